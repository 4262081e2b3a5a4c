"""Of sixteen nodes in four racks any rack may be lost; with a node less that is proved not to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.support.specs import make_spec, node, policy, workload

from dovetail.engine import solve
from dovetail.rules import policy_of
from dovetail.rules.admission import Admission
from dovetail.rules.survive import Survive
from dovetail.spec import Group, Spec, Topology
from dovetail.verify import verify

GANGS: Mapping[str, int] = {"llm": 3, "vision": 2, "speech": 2}
SERVICES: Mapping[str, tuple[int, int]] = {"chat": (4, 4), "search": (6, 2), "embed": (4, 1), "ads": (4, 1)}


def spec_of(count: int) -> Spec:
    """Return a Spec of some nodes, whose work fills twelve."""
    nodes = [node(f"r{n // 4}-{n % 4}", 8, domains={"rack": f"r{n // 4}"}) for n in range(count)]
    work = [workload(f"train/{name}", count, gpus=8, type="gang", priority=50) for name, count in GANGS.items()]
    work += [
        workload(f"serve/{name}", count, gpus=each, type="service", priority=100)
        for name, (count, each) in SERVICES.items()
    ]
    work.append(workload("serve/rest", 4, gpus=1, type="job"))
    rules = [policy("everything-runs", Admission()), policy("survive-a-rack", Survive(of="rack"))]
    return make_spec(nodes, work, rules, levels=("rack", "node"))


def test_whichever_rack_is_lost_all_of_it_restarts() -> None:
    spec = spec_of(16)
    plan = solve(spec)
    assert plan.outcome.status == "optimal"
    assert sum(len(place.gpus) for place in plan.placements.values()) == 12 * 8
    cases = plan.recovery["survive-a-rack"]
    assert sorted(cases) == sorted({place.node[:2] for place in plan.placements.values()})
    for rack, rows in cases.items():
        lost = {replica for replica, place in plan.placements.items() if place.node.startswith(rack)}
        assert set(rows) == lost
        assert not any(place.node.startswith(rack) for place in rows.values())
    assert verify(spec, plan).ok


def test_with_one_node_less_there_is_no_plan_and_that_is_proved() -> None:
    assert solve(spec_of(15)).outcome.status == "infeasible"


def test_groups_restart_in_one_rack() -> None:
    plain = spec_of(16)
    pairs = Topology(groups=(Group("rack", of=2),))
    work = tuple(replace(w, topology=pairs) if w.name in ("vision", "speech") else w for w in plain.workloads)
    held = policy_of(work)
    assert held is not None
    spec = replace(plain, workloads=work, policies=tuple(sorted((*plain.policies, held), key=lambda p: p.name)))
    plan = solve(spec)
    assert plan.outcome.status == "optimal"
    lost = 0
    for rows in plan.recovery["survive-a-rack"].values():
        for name in ("train/vision", "train/speech"):
            racks = {place.node[:2] for replica, place in rows.items() if replica.workload == name}
            assert len(racks) <= 1
            lost += len(racks)
    assert lost == 2
    assert verify(spec, plan).ok

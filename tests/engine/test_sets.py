"""Sets that a policy keeps together count as one in the tiers of topology, whoever else there is (S5.1)."""

from __future__ import annotations

import pytest
from tests.support.specs import make_spec, node, policy, workload

from dovetail.engine import solve
from dovetail.rules.colocate import Colocate
from dovetail.spec import Spec
from dovetail.verify import lines, verify


def _kept_together(trainer: str, loaders: int = 2) -> Spec:
    """Return racks of two, two and three GPUs, and a trainer of one replica with its loaders."""
    nodes = [
        node(f"n{rack}", gpus, domains={"block": "b", "rack": f"b/r{rack}"}) for rack, gpus in enumerate((2, 2, 3))
    ]
    work = [
        workload("trainer", gpus=1, type=trainer, communicates=trainer == "gang", labels={"set": "llm"}),
        workload("loader", loaders, gpus=1, type="job", labels={"set": "llm"} if loaders else {}),
    ]
    held = policy("set", Colocate(by="label", label="set", at="block"))
    return make_spec(nodes, work, [held], levels=("block", "rack", "node"))


def test_a_set_of_which_one_communicates_is_kept_near_without_other_gangs() -> None:
    spec = _kept_together("gang")
    plan = solve(spec)
    assert {tier.name: tier.value for tier in plan.tiers if tier.name.startswith("topology")} == {
        "topology[rack]": 0,
        "topology[node]": 0,
    }
    assert {place.node for place in plan.placements.values()} == {"n2"}
    verification = verify(spec, plan)
    assert verification.ok, "\n".join(lines(verification))


@pytest.mark.parametrize(("trainer", "loaders"), [("job", 2), ("gang", 0)])
def test_where_none_of_a_set_communicates_or_it_is_no_set_nothing_counts(trainer: str, loaders: int) -> None:
    assert not [tier for tier in solve(_kept_together(trainer, loaders)).tiers if tier.name.startswith("topology")]

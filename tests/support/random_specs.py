"""Draws tiny random Specs: every request kind, every rule, current state with faults."""

from __future__ import annotations

from hypothesis import strategies as st
from tests.support.specs import CARDS, TYPE_DEFAULTS, make_spec, node, policy, request, role, workload

from dovetail.placement import Place, obstacle
from dovetail.rules import Rule
from dovetail.rules.exclusive import Exclusive
from dovetail.rules.move import Move
from dovetail.rules.quota import Quota
from dovetail.rules.require import Forbid, Require
from dovetail.rules.separate import Separate
from dovetail.rules.spread import Spread
from dovetail.spec import Node, NodeSelector, Policy, Role, Spec, Taint, Toleration, Workload, WorkloadSelector

TENANTS = ("red", "blue")
TAINTS = (Taint("keep", "", "NoSchedule"), Taint("gone", "", "NoExecute"))
SHARES: tuple[int | tuple[int, int], ...] = (250, 400, (300, 10_000), (100, 23_000))
ENFORCEMENTS: tuple[str | int, ...] = ("hard", "hard", "audit", 3)
NODE_NAMES = ("n0", "n1", "n2", "n3")


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    gpus = draw(st.sampled_from((0, 1, 2, 4, 4)))
    return node(
        name,
        gpus,
        cpu=draw(st.sampled_from((4000, 8000, 64_000))),
        memory=draw(st.sampled_from((4096, 65_536))),
        accelerator=draw(st.sampled_from(("H100-80GB", "H100-80GB", "A100-40GB", "L4"))) if gpus else None,
        mechanism=draw(st.sampled_from(("fraction", "fraction", "devicePlugin"))),
        resources=draw(st.sampled_from(({}, {"rdma": 1}))),
        domains={"rack": draw(st.sampled_from(("r0", "r1")))},
        taints=(draw(st.sampled_from(TAINTS)),) if draw(_rarely(6)) else (),
        price=draw(st.sampled_from((0, 2_500_000))),
        cordoned=draw(_rarely(8)),
        down=draw(_rarely(12)),
        failed_gpus=frozenset({0}) if gpus and draw(_rarely(8)) else frozenset(),
    )


@st.composite
def workloads(draw: st.DrawFn, name: str) -> Workload:
    kind = draw(st.sampled_from(sorted(TYPE_DEFAULTS)))
    roles: list[Role] = []
    for index in range(draw(st.sampled_from((1, 1, 2)))):
        asked = request(
            draw(st.sampled_from((0, 1, 1, 2))),
            cpu=draw(st.sampled_from((0, 500, 2000))),
            memory=draw(st.sampled_from((0, 2048))),
            **draw(st.sampled_from(({}, {}, {"rdma": 1}))),
        )
        if draw(st.booleans()):
            part = draw(st.sampled_from(SHARES))
            asked = request(share=part, cpu=asked.cpu, memory=asked.memory)
        accelerators = draw(st.sampled_from(((), (), ("L4",), ("A100-40GB", "H100-80GB"))))
        observed = draw(st.sampled_from((None, 120)))
        own = "" if index == 0 and not roles else f"role{index}"
        roles.append(role(own, draw(st.integers(1, 4)), asked, accelerators=accelerators, observed=observed))
    if len(roles) > 1:
        roles[0] = role("first", roles[0].replicas, roles[0].request)
    tenant = draw(st.sampled_from(TENANTS))
    return workload(
        f"{tenant}/{name}",
        type=kind,
        roles=roles,
        priority=draw(st.sampled_from((0, 0, 500))),
        preemptible=draw(_rarely(4)),
        movable=draw(st.booleans()),
        mix=draw(st.sampled_from(("none", "none", "perRole", "any"))),
        tolerations=draw(st.sampled_from(((), (), (Toleration("keep", "Exists"),)))),
        checkpoint_every=draw(st.sampled_from((None, 1_800_000))),
        restart=draw(st.sampled_from((0, 60_000))),
        labels={"team": draw(st.sampled_from(("a", "b")))},
    )


def _rules() -> st.SearchStrategy[Rule]:
    return st.one_of(
        st.builds(Separate, by=st.sampled_from(("tenant", "workload")), at=st.sampled_from(("gpu", "node", "rack"))),
        st.builds(Spread, over=st.sampled_from(("node", "rack")), max_per_domain=st.integers(1, 2)),
        st.builds(Spread, over=st.sampled_from(("node", "rack")), max_skew=st.integers(1, 2)),
        st.builds(Exclusive, at=st.sampled_from(("gpu", "node", "rack"))),
        st.builds(Quota, limits=st.just((("gpus", 1500),)), per=st.sampled_from(("all", "tenant"))),
        st.builds(Quota, limits=st.just((("cpu", 4000), ("memory", 8192))), per=st.just("namespace")),
        st.builds(Move, max_moves=st.integers(0, 2)),
        st.just(Require()),
        st.just(Forbid()),
    )


@st.composite
def policies(draw: st.DrawFn, name: str) -> Policy:
    rule = draw(_rules())
    needs_nodes = isinstance(rule, (Require, Forbid))
    return policy(
        name,
        rule,
        enforcement=draw(st.sampled_from(ENFORCEMENTS)),
        workloads=draw(st.sampled_from((WorkloadSelector(), WorkloadSelector(tenants=("red",))))),
        nodes=NodeSelector(names=("n0", "n1")) if needs_nodes else None,
    )


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    """Draw a Spec; its current state need not make sense, as a cluster's after a fault."""
    drawn = [draw(nodes(name)) for name in NODE_NAMES[: draw(st.integers(1, 4))]]
    work = [draw(workloads(f"w{index}")) for index in range(draw(st.integers(1, 4)))]
    rows = draw(running(drawn, [w for w in work if draw(st.booleans())]))
    return make_spec(
        drawn,
        work,
        [draw(policies(f"p{index}")) for index in range(draw(st.integers(0, 3)))],
        running=rows,
        elapsed={w.id: 3_600_000 for w in work[:1]},
    )


@st.composite
def running(draw: st.DrawFn, drawn: list[Node], work: list[Workload]) -> dict[str, Place]:
    """Draw a current state that mostly makes sense: places that fit, now and then one that does not."""
    free = {n.name: list(range(n.gpus)) for n in drawn}
    rows = {}
    for w in work:
        for replica in w.replica_ids():
            role_ = w.by_role[replica.role]
            fitting = [n.name for n in drawn if obstacle(w, role_, n, CARDS, running=True) is None]
            name = draw(st.sampled_from(fitting)) if fitting else "n0"
            count = role_.request.gpu_count
            if len(free.get(name, [])) < count or draw(_rarely(10)):
                continue
            gpus = free[name][-count:] if count else []
            if role_.request.share is None and not draw(_rarely(10)):
                free[name] = free[name][: len(free[name]) - count]
            rows[str(replica)] = Place(name, tuple(gpus))
    return rows


def _rarely(one_in: int) -> st.SearchStrategy[bool]:
    return st.sampled_from((*(False,) * (one_in - 1), True))

"""Draws tiny random Specs: every request kind, every rule, current state with faults."""

from __future__ import annotations

from hypothesis import strategies as st
from tests.support.specs import CARDS, TYPE_DEFAULTS, make_spec, node, policy, request, role, workload

from dovetail.placement import Place
from dovetail.rules import Rule
from dovetail.rules.exclusive import Exclusive
from dovetail.rules.move import Move
from dovetail.rules.quota import Quota
from dovetail.rules.require import Forbid, Require
from dovetail.rules.separate import Separate
from dovetail.rules.spread import Spread
from dovetail.spec import Node, NodeSelector, Policy, Spec, Taint, Toleration, Workload, WorkloadSelector

TENANTS = ("red", "blue")
NODE_NAMES = ("n0", "n1", "n2", "n3")


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    gpus = draw(st.integers(0, 4))
    return node(
        name,
        gpus,
        cpu=draw(st.sampled_from((2000, 8000, 64_000))),
        memory=draw(st.sampled_from((4096, 65_536))),
        accelerator=draw(st.sampled_from(sorted(CARDS))) if gpus else None,
        mechanism=draw(st.sampled_from(("fraction", "fraction", "devicePlugin"))),
        resources=draw(st.sampled_from(({}, {"rdma": 1}))),
        domains={"rack": draw(st.sampled_from(("r0", "r1")))},
        taints=draw(
            st.sampled_from(((), (), (), (Taint("keep", "", "NoSchedule"),), (Taint("gone", "", "NoExecute"),)))
        ),
        price=draw(st.sampled_from((0, 2_500_000))),
        cordoned=draw(st.integers(0, 6)) == 0,
        down=draw(st.integers(0, 9)) == 0,
        failed_gpus=frozenset(draw(st.sets(st.integers(0, gpus - 1), max_size=1))) if gpus else frozenset(),
    )


@st.composite
def workloads(draw: st.DrawFn, name: str) -> Workload:
    kind = draw(st.sampled_from(sorted(TYPE_DEFAULTS)))
    roles = []
    for index in range(draw(st.sampled_from((1, 1, 2)))):
        asked = request(
            draw(st.sampled_from((0, 1, 1, 2))),
            cpu=draw(st.sampled_from((0, 500, 2000))),
            memory=draw(st.sampled_from((0, 2048))),
            **draw(st.sampled_from(({}, {}, {"rdma": 1}))),
        )
        if draw(st.booleans()):
            part = draw(st.sampled_from((250, 400, (300, 10_000), (100, 23_000))))
            asked = request(share=part, cpu=asked.cpu, memory=asked.memory)
        accelerators = draw(st.sampled_from(((), (), ("L4",), ("A100-40GB", "H100-80GB"))))
        observed = draw(st.sampled_from((None, 120)))
        own = "" if index == 0 and not roles else f"role{index}"
        roles.append(role(own, draw(st.integers(0, 4)), asked, accelerators=accelerators, observed=observed))
    if len(roles) > 1:
        roles[0] = role("first", roles[0].replicas, roles[0].request)
    tenant = draw(st.sampled_from(TENANTS))
    return workload(
        f"{tenant}/{name}",
        type=kind,
        roles=roles,
        priority=draw(st.sampled_from((0, 0, 500))),
        preemptible=draw(st.integers(0, 3)) == 0,
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
        enforcement=draw(st.sampled_from(("hard", "hard", "audit", 3))),
        workloads=draw(st.sampled_from((WorkloadSelector(), WorkloadSelector(tenants=("red",))))),
        nodes=NodeSelector(names=("n0", "n1")) if needs_nodes else None,
    )


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    """Draw a Spec; its current state need not make sense, as a cluster's after a fault."""
    drawn = [draw(nodes(name)) for name in NODE_NAMES[: draw(st.integers(1, 4))]]
    work = [draw(workloads(f"w{index}")) for index in range(draw(st.integers(1, 4)))]
    rows = {
        str(replica): Place(draw(st.sampled_from(NODE_NAMES)), tuple(sorted(draw(_gpus(asked.gpu_count)))))
        for w in work
        if draw(st.booleans())
        for replica in w.replica_ids()
        if (asked := w.by_role[replica.role].request) and draw(st.integers(0, 4))
    }
    return make_spec(
        drawn,
        work,
        [draw(policies(f"p{index}")) for index in range(draw(st.integers(0, 3)))],
        running=rows,
        elapsed={w.id: 3_600_000 for w in work[:1]},
    )


def _gpus(count: int) -> st.SearchStrategy[set[int]]:
    return st.sets(st.integers(0, 3), min_size=count, max_size=count)

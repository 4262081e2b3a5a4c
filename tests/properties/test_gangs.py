"""A plan never splits a group and never admits part of a gang, whatever stops the search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.specs import make_spec, node, request, role, workload

from dovetail.engine import ladder, solve
from dovetail.placement import Places
from dovetail.progress import Limits
from dovetail.rules import policy_of
from dovetail.spec import Group, ReplicaId, Spec, Topology, Workload
from dovetail.verify import lines, verify

LEVELS = ("block", "rack", "node")


@st.composite
def gangs(draw: st.DrawFn, name: str) -> Workload:
    size = draw(st.sampled_from((1, 2, 4)))
    number = draw(st.integers(1, 4))
    least = size * draw(st.integers(1, number))
    elastic = draw(st.booleans())
    inner = (Group("node", of=2),) if size == 4 and draw(st.booleans()) else ()
    groups = (Group(draw(st.sampled_from(("rack", "block"))), of=size), *inner) if size > 1 else ()
    within = draw(st.sampled_from((None, "block"))) if all(g.within != "block" for g in groups) else None
    more = {"least": least, "step": size} if elastic else {}
    asked = request(draw(st.sampled_from((1, 2, 4))))
    gang = workload(
        name,
        roles=[role("", size * number, asked, **more)],
        type="gang",
        communicates=True,
        topology=Topology(within, None, groups),
        priority=draw(st.sampled_from((0, 9))),
    )
    return Workload(**{**vars(gang), "min_replicas": least}) if elastic else gang


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    racks = draw(st.lists(st.integers(1, 4), min_size=2, max_size=6))
    nodes = [
        node(f"n{r}-{i}", draw(st.sampled_from((4, 8))), domains={"block": f"b{r // 3}", "rack": f"b{r // 3}/r{r}"})
        for r, size in enumerate(racks)
        for i in range(size)
    ]
    work = [draw(gangs(f"g{index}")) for index in range(draw(st.integers(1, 5)))]
    held = policy_of(work)
    return make_spec(nodes, work, [held] if held else [], levels=LEVELS)


def torn(spec: Spec, places: Places) -> Iterator[str]:
    """Yield what is wrong with gangs, judged from scratch."""
    for one in spec.workloads:
        own = {replica: place for replica, place in places.items() if replica.workload == one.id}
        (only,) = one.roles
        legal = {only.replicas} if only.least is None else set(range(only.least, only.replicas + 1, only.step))
        if len(own) not in {0, *legal}:
            yield f"{one.id} has {len(own)} replicas"
        where = {r: {**spec.cluster.by_name[p.node].domains, "node": p.node} for r, p in own.items()}
        assert one.topology is not None
        if one.topology.within and len({domains[one.topology.within] for domains in where.values()}) > 1:
            yield f"{one.id} is not within one {one.topology.within}"
        for group in one.topology.groups:
            size = group.of or 1
            members = Counter(r.ordinal // size for r in own)
            for number in members:
                ids = [ReplicaId(one.id, "", number * size + i) for i in range(size)]
                if any(r not in own for r in ids) or len({where[r][group.within] for r in ids}) > 1:
                    yield f"{one.id}: group {number} of {size} is split"


@settings(max_examples=25, deadline=None)
@given(spec=specs(), work=st.sampled_from((0.001, 0.05, 1.0)))
def test_no_group_is_split_and_no_gang_admitted_in_part(spec: Spec, work: float) -> None:
    plan = solve(spec, Limits(work=work))
    assert list(torn(spec, plan.placements)) == []
    verification = verify(spec, plan)
    assert verification.ok, "\n".join(lines(verification))


@settings(max_examples=15, deadline=None)
@given(spec=specs())
def test_nor_where_parts_alone_are_solved(spec: Spec) -> None:
    with mock.patch.object(ladder, "EXACT_VARIABLES", 0):
        plan = solve(spec, Limits(work=0.2))
    assert list(torn(spec, plan.placements)) == []
    verification = verify(spec, plan)
    assert verification.ok, "\n".join(lines(verification))

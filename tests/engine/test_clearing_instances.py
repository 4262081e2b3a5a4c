"""Who is on a MIG instance makes way too: for larger instances, for whole GPUs, and on the same GPU cut anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from tests.engine.test_clearing import after, started, values, waits
from tests.support.mig_specs import card, full_mig, mig_request, tiny_mig

from dovetail.engine.construction.clearing import cleared
from dovetail.engine.construction.covers import Covers
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.journal import Journal
from dovetail.engine.construction.leavers import Leavers, come_back, leave
from dovetail.engine.construction.placing import Outlooks
from dovetail.mig import parse_instance
from dovetail.model.legal import legalise
from dovetail.model.state import today_state
from dovetail.problem import compile_problem
from dovetail.progress import Stop
from dovetail.rules import context_of
from dovetail.spec import Cluster, Current, Node, PresentReplica, ReplicaId, Request, Role, Share, Spec, Workload
from dovetail.spec.cluster import Unit

CARD = "A100-80GB"
WHOLE = Request(gpus=1)


def profile(name: str) -> Request:
    return mig_request(CARD, name, cpu=1)


def work(name: str, request: Request, replicas: int = 1, **more: object) -> Workload:
    return replace(Workload(name, "", name, "job", (Role("", replicas, request, request.gpu_milli),)), **more)  # type: ignore[arg-type]


def cut(
    gpus: Sequence[Mapping[str, str]],
    new: Sequence[Workload],
    *,
    unit: Unit | None = None,
    per_node: int = 1,
    pinned: Sequence[str] = (),
) -> Spec:
    """Return nodes whose GPUs are cut: who is on which instance, nobody on those without a name; and what waits."""
    nodes = tuple(
        Node(f"n{i}", "g", cpu=100, memory=1000, gpus=per_node, accelerator=CARD)
        for i in range(len(gpus) // per_node)
    )
    spots = [(f"n{at // per_node}", at % per_node, own) for at, own in enumerate(gpus)]
    running = [
        PresentReplica(ReplicaId(name, "", 0), node, (gpu,), instance)
        for node, gpu, own in spots
        for instance, name in own.items()
        if name
    ]
    there = [
        work(name, profile(instance.partition("@")[0]), movable=name not in pinned)
        for _, _, own in spots
        for instance, name in own.items()
        if name
    ]
    scaled = {one.id for one in new}
    return Spec(
        "cut",
        Cluster("cut", ("node",), nodes, reconfiguration=unit),
        {CARD: card(CARD)},
        tuple(sorted([*(w for w in there if w.id not in scaled), *new], key=lambda w: w.id)),
        current=Current(
            tuple(sorted(running, key=lambda each: each.replica)),
            gpus={f"{node}/{gpu}": tuple(map(parse_instance, own)) for node, gpu, own in spots if own},
        ),
    )


HALVES = {"3g.40gb@0": "a", "3g.40gb@4": ""}


@pytest.mark.parametrize("new", [profile("7g.80gb"), WHOLE])
@pytest.mark.parametrize("unit", [None, "gpu", "instance"])
def test_one_leaves_an_instance_for_what_needs_all_of_the_gpu(new: Request, unit: Unit | None) -> None:
    spec = cut([HALVES, {"3g.40gb@0": "b", "3g.40gb@4": ""}], [work("new", new)], unit=unit)
    problem, state, told = after(spec)
    assert (waits(problem, state), told["disruption.moves"], told["disruption.evicted"]) == (0, 1, 0)


def test_on_a_gpu_that_is_cut_anew_who_was_there_may_be_there_again() -> None:
    """Nobody has another place, and none is needed: a `4g` and a `3g` fit on one GPU, where two `3g` were."""
    problem, state, told = after(cut([HALVES], [work("new", profile("4g.40gb"))]))
    assert (waits(problem, state), told["disruption.moves"]) == (0, 1)


def test_more_of_what_is_there_restarts_it_on_its_gpu() -> None:
    layout = {"2g.20gb@0": "a", "1g.10gb@2": "", "1g.10gb@3": "", "3g.40gb@4": "b"}
    problem, state, told = after(cut([layout], [work("a", profile("2g.20gb"), 2)]))
    assert (waits(problem, state), told["disruption.moves"]) == (0, 2)


def test_where_instances_come_and_go_only_those_in_the_way_leave() -> None:
    """A `4g` begins at slice 0: of five small ones on a GPU the two on its slices leave, and three stay."""
    small = {f"1g.10gb@{i}": f"s{i}" for i in (0, 1, 4, 5, 6)}
    room = {f"1g.10gb@{i}": f"r{i}" if i in (0, 1, 2, 6) else "" for i in range(7)}
    problem, state, told = after(cut([small, room], [work("new", profile("4g.40gb"))], unit="instance"))
    assert (waits(problem, state), told["disruption.moves"]) == (0, 2)
    assert {place.instance for place in state.fill(0).kept} == {f"1g.10gb@{i}" for i in (4, 5, 6)}


def test_on_a_node_that_restarts_as_a_whole_nothing_is_cut_anew_for_others() -> None:
    gpus = [HALVES, {"3g.40gb@0": "b", "3g.40gb@4": ""}]
    problem, state, told = after(cut(gpus, [work("new", profile("7g.80gb"))], unit="node", per_node=2))
    assert (waits(problem, state), told["disruption.moves"]) == (1, 0)


def test_who_may_not_move_keeps_an_instance() -> None:
    gpus = [HALVES, {"3g.40gb@0": "b", "3g.40gb@4": ""}]
    problem, state, told = after(cut(gpus, [work("new", WHOLE)], pinned=["a", "b"]))
    assert (waits(problem, state), told["disruption.moves"]) == (1, 0)


@pytest.mark.parametrize("unit", ["gpu", "node", "instance"])
def test_who_leaves_an_instance_and_comes_back_is_where_it_was(unit: Unit) -> None:
    spec = cut([HALVES, {"3g.40gb@0": "b", "3g.40gb@4": ""}], [work("new", WHOLE)], unit=unit)
    problem, before = started(spec)
    field = Field(problem, before)
    shapes, found = problem.shapes, Leavers(field, frozenset()).of(0)
    rooms = [field.cuts.profile(0, 0, shape, untouched=False) for shape in shapes]
    assert [leaver.profile for leaver in found] == ["3g.40gb"]
    leave(field, found[0])
    assert not field.cuts.held(0, 0)
    assert int(field.untouched[0]) == (unit != "node")
    come_back(field, found[0])
    assert field.state() == before
    assert int(field.untouched[0]) == 0
    assert [field.cuts.profile(0, 0, shape, untouched=False) for shape in shapes] == rooms


def test_what_is_undone_leaves_who_came_back_on_its_own_instance() -> None:
    shared = work("w", Request(share=Share(100, None, 0, ("mig",))), 3)
    running = PresentReplica(ReplicaId("w", "", 0), "n0", (0,), "3g.40gb@4")
    spec = Spec(
        "cut",
        Cluster(
            "cut",
            ("node",),
            (Node("n0", "g", cpu=100, memory=1000, gpus=1, accelerator=CARD),),
            reconfiguration="instance",
        ),
        {CARD: card(CARD)},
        (shared,),
        current=Current((running,), gpus={"n0/0": (parse_instance("3g.40gb@4"),)}),
    )
    problem = compile_problem(context_of(spec))
    today = today_state(problem)
    field = Field(problem, today)
    journal = Journal(Outlooks(field))
    assert journal.place(0)
    (leaver,) = (each for each in Leavers(field, frozenset()).of(0) if each.place is not None)
    journal.leave(leaver)
    journal.undo()
    assert field.state() == today


def test_sets_of_who_leaves_name_nobody_twice() -> None:
    """Who restarts on the GPU frees no CPU, so where that is lacking too all of them leave for good."""
    layout = {"2g.20gb@0": "a", "1g.10gb@2": "b", "1g.10gb@3": "", "3g.40gb@4": ""}
    problem, before = started(cut([layout], [work("new", profile("4g.40gb"))]))
    field = Field(problem, before)
    field.cpu[0] = 0
    shapes_of = [shape.workload.id for shape in problem.shapes]
    covers = Covers(field, Leavers(field, frozenset()))
    form = next(shape for shape in problem.shapes if shape.workload.id == "new")
    found = list(covers.few(form, 0, 4))
    assert [sorted(shapes_of[each.shape] for each in cover) for cover in found] == [["a", "b"]]
    assert not any(each.again for cover in found for each in cover)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("draw", [tiny_mig, full_mig])
def test_whoever_leaves_an_instance_has_another_and_all_fits(draw: object, seed: int) -> None:
    problem, before = started(draw(seed))  # type: ignore[operator]
    state = legalise(problem, cleared(problem, before, Stop(), lambda: False))
    was, now = values(problem, before), values(problem, state)
    admitted = [name for name in was if name.startswith("admitted")]
    assert [now[n] for n in admitted] >= [was[n] for n in admitted]
    assert now.get("disruption.evicted", 0) <= was.get("disruption.evicted", 0)

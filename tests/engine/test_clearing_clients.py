"""Clients of GPUs that are shared by equal parts make way: some where a GPU stays as it is set, else all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.engine.test_clearing import after, started, values, waits
from tests.support.crowded_specs import crowded
from tests.support.sharing_specs import tiny_sharing
from tests.support.specs import CARD, make_spec, node, place, workload

from dovetail.engine.construction.clearing import cleared
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.leavers import Leavers, come_back, leave
from dovetail.model.legal import legalise
from dovetail.progress import Stop
from dovetail.spec import EqualParts, Setting, Spec, Workload

PARTS = EqualParts(parts=None, mps=4, time_slicing=4, oversubscription=1000, mps_oversubscription=1000)


def shared(new: Workload, mechanism: str, *, room: int = 2) -> Spec:
    """Return a node with two clients on each GPU, one with idle GPUs, and what waits."""
    on = {f"c#{i}": i // 2 for i in range(4)}
    nodes = [
        node("a", 2, mechanism=mechanism, sharing=PARTS),
        node("b", room, mechanism=mechanism, sharing=PARTS, accelerator="L4"),
    ]
    work = [workload("c", len(on), share=(200, 1024)), new]
    spec = make_spec(nodes, work, running={name: place("a", gpu) for name, gpu in on.items()})
    told = {f"a/{gpu}": Setting("mps", 2) for gpu in set(on.values())}
    return replace(spec, current=replace(spec.current, settings=told))


@pytest.mark.parametrize(("mechanism", "moves"), [("dra", 2), ("devicePlugin", 4)])
def test_all_clients_of_a_pool_leave_for_a_whole_gpu(mechanism: str, moves: int) -> None:
    """By the device plugin nobody has a whole GPU of a node on which GPUs are shared."""
    problem, state, told = after(shared(workload("new", 1, gpus=1, accelerators=(CARD,)), mechanism))
    assert (waits(problem, state), told["disruption.moves"], told["disruption.evicted"]) == (0, moves, 0)


def test_one_client_leaves_for_another_where_the_gpu_stays_as_it_is_set() -> None:
    problem, state, told = after(shared(workload("new", 1, share=(300, 2048), accelerators=(CARD,)), "dra"))
    assert (waits(problem, state), told["disruption.moves"]) == (0, 1)


def test_all_leave_where_a_gpu_is_to_be_shared_by_fewer() -> None:
    problem, state, told = after(shared(workload("new", 1, share=(900, 1024), accelerators=(CARD,)), "dra"))
    assert (waits(problem, state), told["disruption.moves"]) == (0, 2)


def test_all_stay_where_they_have_no_other_place() -> None:
    problem, state, told = after(shared(workload("new", 1, gpus=1, accelerators=(CARD,)), "devicePlugin", room=0))
    assert (waits(problem, state), told["disruption.moves"]) == (1, 0)


@pytest.mark.parametrize("mechanism", ["dra", "devicePlugin"])
def test_clients_that_leave_and_come_back_are_where_they_were(mechanism: str) -> None:
    problem, before = started(shared(workload("new", 1, gpus=2, accelerators=(CARD,)), mechanism))
    field = Field(problem, before)
    form = next(shape for shape in problem.shapes if shape.workload.id == "c")
    fits = [field.share_fits(0, form, gpu) for gpu in (0, 1)]
    gone = Leavers(field, frozenset()).of(0)
    for leaver in gone:
        leave(field, leaver)
    assert int(field.untouched[0]) == 2
    for leaver in reversed(gone):
        come_back(field, leaver)
    assert field.state() == before
    assert int(field.untouched[0]) == 0
    assert [field.share_fits(0, form, gpu) for gpu in (0, 1)] == fits


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("draw", [tiny_sharing, crowded])
def test_whoever_leaves_has_another_place_and_no_less_is_admitted(draw: object, seed: int) -> None:
    spec = draw(seed)  # type: ignore[operator]
    if spec is None:
        return
    problem, before = started(spec)
    state = legalise(problem, cleared(problem, before, Stop(), lambda: False))
    was, now = values(problem, before), values(problem, state)
    admitted = [name for name in was if name.startswith("admitted")]
    assert [now[n] for n in admitted] >= [was[n] for n in admitted]
    assert now.get("disruption.evicted", 0) <= was.get("disruption.evicted", 0)

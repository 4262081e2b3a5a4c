"""A good start in seconds: replicas where each spoils least, all hard rules kept.

Bands come in order; within a band what is all-or-nothing first, largest first, then replicas with GPUs in an even
mixture of shapes (a mixture leaves fewer odd remainders than any sorted order), then those without. The mixture is
exact up to some thousands of replicas; where there are more, shapes take their turns with several at a time. What ran
on a place that is gone comes before the rest of its band.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby

from dovetail.engine.construction.evening import even_out
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.fragmentation import Bools, Ints
from dovetail.engine.construction.gangs import Crew
from dovetail.engine.construction.holding import hold
from dovetail.engine.construction.legal import is_legal
from dovetail.engine.construction.placing import Outlooks, Put
from dovetail.model.state import State
from dovetail.placement import Place, Places
from dovetail.problem import Problem, Shape
from dovetail.progress import Stop
from dovetail.spec import ReplicaId, Workload

EXACT = 10_000  # the waiting replicas up to which each takes a turn of its own
TURNS = 1_500  # that all forms of a band, with GPUs or without, take together where more wait

Choices = list[frozenset[str] | None]  # accelerators that may be used together, one set after the other; None: all


def construct(problem: Problem, start: State, stop: Stop, hint: Places | None = None) -> State:
    """Fill up a state: admit what waits, never touching what is there.

    Parameters
    ----------
    hint : places to try first, for replicas that stand alone.
    """
    field = Field(problem, start)
    for replica, place in sorted((hint or {}).items()):
        _follow(field, replica, place)
    outlooks = Outlooks(field)
    hold(outlooks, hard=True)
    for band in problem.spec.bands:
        fill_band(outlooks, band, stop)
    hold(outlooks, hard=False)
    return field.state()


def fill_band(outlooks: Outlooks, band: int, stop: Stop) -> None:
    """Admit what waits of a priority band, as far as there is room."""
    field = outlooks.field
    problem = field.problem
    many = sum(field.wanted(shape.index) for shape in problem.shapes) > EXACT
    waiting = [s for s in problem.shapes if problem.spec.band_of(s.workload) == band and not s.workload.holds]
    joint, single = _sorted_out(field, waiting)
    with field.gates.leeway():
        for batch in joint:
            if stop:
                return
            _place_batch(outlooks, batch)
        while single and not stop:
            uneven = _evened_out(outlooks, _place_single(outlooks, single, stop, many=many))
            single = [shape for shape in single if shape.workload.id not in uneven] if uneven else []


def _place_single(outlooks: Outlooks, single: list[Shape], stop: Stop, *, many: bool) -> list[Put]:
    """Place what stands alone, in turns; return what was placed."""
    field, lost = outlooks.field, outlooks.field.problem.lost
    puts: list[Put] = []
    for form in single:  # whoever lost its place is evicted where it finds none
        if lost[form.index]:
            puts += _take_turn(outlooks, form.index, min(lost[form.index], field.wanted(form.index)))
    for gpu in (True, False):
        for shape, count in _turns(outlooks, [s for s in single if bool(s.request.gpu_count) == gpu], many=many):
            if stop:
                return puts
            puts += _take_turn(outlooks, shape, count)
    return puts


def _evened_out(outlooks: Outlooks, puts: list[Put]) -> set[str]:
    """Take off what came uneven and must not be; return the workloads that lost replicas: others have room then."""
    problem = outlooks.field.problem
    own: dict[str, list[Put]] = defaultdict(list)
    for put in puts if outlooks.field.gates.exact else ():
        own[problem.shapes[put[1]].workload.id].append(put)
    uneven = {name for name, put in own.items() if even_out(outlooks, problem.spec.by_id[name], put)}
    if uneven:
        outlooks.forget()
    return uneven


def _follow(field: Field, replica: ReplicaId, place: Place) -> None:
    """Put a replica where a hint says, if it waits, stands alone and fits there."""
    problem = field.problem
    shape = problem.shapes_of_role.get((replica.workload, replica.role))
    index = problem.node_index.get(place.node)
    if shape is None or index is None or replica in problem.context.today.places:
        return
    form = problem.shapes[shape]
    if form.workload.joint or field.wanted(shape) <= 0:
        return
    gpu = place.gpus[0] if form.request.partial and place.gpus else None
    if field.room_on(index, form, place.gpus) and not field.blocked(index, shape, gpu):
        field.put(index, shape, place.gpus)


def _sorted_out(field: Field, shapes: list[Shape]) -> tuple[list[list[int]], list[Shape]]:
    """Return lists of shape indices, one per replica, that stand or fall together, and the shapes that do not."""
    joint: dict[str, list[int]] = defaultdict(list)
    single: list[Shape] = []
    for shape in shapes:
        if shape.workload.joint and shape.workload.replicas > 1:
            joint[shape.workload.id] += [shape.index] * field.wanted(shape.index)
        else:
            single.append(shape)
    weight = {w: sum(field.problem.shapes[s].request.gpu_milli for s in batch) for w, batch in joint.items()}
    return [joint[workload] for workload in sorted(joint, key=lambda w: (-weight[w], w))], single


def _turns(outlooks: Outlooks, shapes: list[Shape], *, many: bool) -> Iterator[tuple[int, int]]:
    """Yield what to place next, a shape and a number of replicas, each shape spread evenly over the sequence.

    Where there are `many` replicas, forms have a limited number of turns, and all their shapes turns of one size.
    """
    waiting = {shape.index: count for shape in shapes if (count := outlooks.field.wanted(shape.index))}
    forms: Counter[object] = Counter()
    for shape, count in waiting.items():
        forms[outlooks.form(shape)] += count
    turns = _most_turns(list(forms.values()), TURNS) if many else EXACT
    keyed = []
    for shape, count in waiting.items():
        size = -(-forms[outlooks.form(shape)] // turns)
        times = -(-count // size)
        keyed += [
            ((turn + 0.5) / times, shape, turn * count // times, (turn + 1) * count // times) for turn in range(times)
        ]
    for _, shape, start, end in sorted(keyed):
        yield shape, end - start


def _most_turns(demands: list[int], turns: int) -> int:
    """Return how many turns a form may take so that all together stay within so many, one each at the least."""
    low, high = 1, turns
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if sum(min(d, middle) for d in demands) <= turns else (low, middle - 1)
    return low


def _take_turn(outlooks: Outlooks, shape: int, count: int) -> list[Put]:
    workload = outlooks.field.problem.shapes[shape].workload
    if workload.atomic and workload.mix != "any":
        for _ in range(count):
            _place_batch(outlooks, [shape])
        return []
    return outlooks.place(shape, count)


def _place_batch(outlooks: Outlooks, batch: list[int]) -> None:
    """Place replicas; where they need each other and too few fit, take them all off again."""
    if not batch:
        return
    field = outlooks.field
    workload = field.problem.shapes[batch[0]].workload
    done: list[Put] = []
    if workload.ranked:
        place_gang(outlooks, workload)
        return
    for part, models in _parts(field, workload, batch):
        done += _place_part(outlooks, part, models, whole=workload.atomic and not workload.elastic)
    even_out(outlooks, workload, done)
    if not is_legal(field, workload):
        outlooks.undo(batch, done)


def place_gang(
    outlooks: Outlooks,
    workload: Workload,
    liked: Ints | None = None,
    only: Bools | None = None,
    upto: Mapping[int, int] | None = None,
) -> list[Put]:
    """Place what counts together only, on the first accelerator that will do for all; return what was put.

    Parameters
    ----------
    liked, only, upto : see `Crew`.
    """
    field = outlooks.field
    shapes = field.problem.shapes_of_workload[workload.id]
    mixed = not workload.atomic or workload.mix == "any"
    for models in [None] if mixed else _choices(field, shapes):
        with field.gates.leeway():
            if puts := Crew(outlooks, workload, models, liked, only, upto).place():
                return puts
    return []


def _place_part(outlooks: Outlooks, part: list[int], choices: Choices, *, whole: bool) -> list[Put]:
    """Place what fits of some replicas; where only the `whole` will do, with the first models that do for all."""
    put: list[Put] = []
    for models in choices:
        for shape, group in groupby(part):
            wanted = len(list(group))
            found = outlooks.place(shape, wanted, models)
            put += found
            if whole and len(found) < wanted:
                break
        if not whole or len(put) == len(part):
            break
        outlooks.undo(part, put)
        put = []
    return put


def _parts(field: Field, workload: Workload, batch: list[int]) -> list[tuple[list[int], Choices]]:
    """Return a batch cut up into what may not mix accelerators (S2.4), each part with the models to try.

    The roles with least choice come first, so that the others do not take their places.
    """
    if not workload.atomic or workload.mix == "any":
        return [(batch, [None])]
    if workload.mix == "none":
        return [(batch, _choices(field, field.problem.shapes_of_workload[workload.id]))]
    roles = [([shape] * batch.count(shape), _choices(field, (shape,))) for shape in dict.fromkeys(batch)]
    return sorted(roles, key=lambda role: len(role[1]))


def _choices(field: Field, shapes: tuple[int, ...]) -> Choices:
    """Return the models to try for shapes that may not mix: the one they have, or each that might do."""
    problem = field.problem
    users = {shape for shape in shapes if problem.shapes[shape].request.gpu_count}
    if not users:
        return [None]
    if any(field.admitted[shape] for shape in users):
        nodes = [
            problem.nodes[index]
            for index, fill in field.fills.items()
            if any(count and slot.shape in users for slot, count in fill.slots.items())
        ]
    else:
        forms = [problem.shapes[shape] for shape in users]
        makes = frozenset[int]().union(*(problem.makes.hosting(form.workload, form.role) for form in forms))
        nodes = [problem.makes.members[make][0] for make in makes]
    return [frozenset([model]) for model in sorted({node.accelerator for node in nodes if node.accelerator})]

"""What fits on one GPU, and where (S3.3): interval packing on the axis of memory slices.

Placed freely, a multiset of profiles fits iff compute slices, memory slices, maxima and engines hold. That is a
theorem for every built-in table (a test enumerates it), not for every table that somebody may observe, so `fits`
asks for an arrangement as well; both are remembered per geometry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, pairwise

from dovetail.mig.geometry import Counts, Geometry, Instance, Profile

_Key = tuple[tuple[str, int], ...]
_Step = tuple[int, int, Instance | None]
_MOST_TRIED = 5_000  # more arrangements than any built-in product has for one multiset


def fits(geometry: Geometry, counts: Counts) -> bool:
    """Tell whether instances of these counts fit together on one GPU that holds nothing else."""
    return _free(geometry, _key(counts)) is not None


def arrange(geometry: Geometry, counts: Counts, pinned: Sequence[Instance] = ()) -> tuple[Instance, ...] | None:
    """Return legal instances for these counts beside pinned ones, None where there are none.

    The pinned instances are not among the returned ones, which ascend by start. Of all arrangements the first is
    taken beside which most profiles find a start for one more instance. With nothing pinned these are all that fit by
    count: every multiset of the built-in tables has such an arrangement (a test enumerates it). Larger profiles are
    tried first and every profile at its last start first: 4g and 7g begin at 0 only, so low slices are the dear ones.

    Parameters
    ----------
    counts : instances to place, by profile; the pinned ones not included.
    pinned : instances that stay where they are.
    """
    if not pinned:
        return _free(geometry, _key(counts))
    return _beside(geometry, _key(counts), tuple(sorted(pinned)))


def legal(geometry: Geometry, instances: Sequence[Instance]) -> str | None:
    """Return in words why these instances cannot stand together on one GPU, None where they can."""
    if not geometry.known:
        return f"the placements of MIG instances on {geometry.product} are not known"
    return (
        _misplaced(geometry, instances) or _over(geometry, _counted(instances)) or _overlapping(geometry, instances)
    )


@lru_cache(maxsize=4096)
def beside(geometry: Geometry, instances: tuple[Instance, ...]) -> tuple[Instance, ...]:
    """Return every instance that could stand on a GPU beside these, the smallest profiles first."""
    options = sorted((p.compute, p.size, start, p.name) for p in geometry.profiles for start in p.starts)
    found = (Instance(name, start) for _, _, start, name in options)
    return tuple(one for one in found if one not in instances and legal(geometry, (*instances, one)) is None)


@lru_cache(maxsize=64)
def budgets(geometry: Geometry) -> tuple[tuple[int, Mapping[str, int]], ...]:
    """Return what bounds the instances of a GPU by count, each with what an instance of each profile takes of it.

    These are compute slices, memory slices, engines, and the maximum of each profile.
    """
    profiles = geometry.profiles
    found = [(geometry.compute, {p.name: p.compute for p in profiles})]
    found.append((geometry.axis, {p.name: p.size for p in profiles}))
    found += [(most, {p.name: p.engines.get(kind, 0) for p in profiles}) for kind, most in geometry.engines.items()]
    found += [(one.maximum, {p.name: int(p is one) for p in profiles}) for one in profiles]
    return tuple(found)


def layouts(geometry: Geometry) -> Iterator[tuple[Instance, ...]]:
    """Yield every legal set of instances of one GPU, the empty one first, each ascending by start."""
    choices = sorted(
        (Instance(profile.name, start) for profile in geometry.profiles for start in profile.starts),
        key=lambda one: (one.start, one.profile),
    )
    yield from _extended(geometry, choices, 0, (), 0)


def positional(geometry: Geometry) -> int:
    """Return how many legal sets of instances one GPU has, the empty one too: as many as `layouts` yields.

    They are counted slice by slice, so that it takes as long as there are multisets, however many layouts these have.
    """
    names = [profile.name for profile in geometry.profiles]
    legal_counts = {tuple(counts.get(name, 0) for name in names) for counts in affordable(geometry)}
    ways: list[Counter[tuple[int, ...]]] = [Counter() for _ in range(geometry.axis + 1)]
    ways[0][(0,) * len(names)] = 1
    for cell in range(geometry.axis):
        starting = [(i, p.size) for i, p in enumerate(geometry.profiles) if cell in p.starts]
        ways[cell + 1].update(ways[cell])
        for counts, number in ways[cell].items():
            for index, size in starting:
                more = (*counts[:index], counts[index] + 1, *counts[index + 1 :])
                if more in legal_counts:
                    ways[cell + size][more] += number
    return ways[-1].total()


def affordable(geometry: Geometry, names: Collection[str] | None = None) -> Iterator[Counts]:
    """Yield every multiset of profiles that no budget of one GPU forbids, whether or not its instances find starts.

    They come in the order of `multisets`.

    Parameters
    ----------
    names : the profiles; None for all.
    """
    profiles = tuple(p for p in geometry.profiles if names is None or p.name in names)
    return _affordable(geometry, profiles, {})


@lru_cache(maxsize=64)
def multisets(geometry: Geometry) -> tuple[Counts, ...]:
    """Return every multiset of profiles that fits on one GPU, the empty one last, larger profiles first."""
    return tuple(counts for counts in affordable(geometry) if fits(geometry, counts))


@lru_cache(maxsize=64)
def maximal(geometry: Geometry) -> tuple[Counts, ...]:
    """Return the multisets that no further instance fits beside, in the order of `multisets`."""
    return tuple(counts for counts in multisets(geometry) if not _can_grow(geometry, counts))


def _affordable(geometry: Geometry, profiles: Sequence[Profile], counts: Counts) -> Iterator[Counts]:
    """Yield what some counts can be extended to by the profiles that are left."""
    if not profiles:
        yield counts
        return
    for number in range(profiles[0].maximum, -1, -1):
        more = {**counts, profiles[0].name: number} if number else counts
        if _over(geometry, more) is None:
            yield from _affordable(geometry, profiles[1:], more)


def _can_grow(geometry: Geometry, counts: Counts) -> bool:
    grown = ({**counts, name: counts.get(name, 0) + 1} for name in geometry.by_name)
    return any(fits(geometry, more) for more in grown)


def _key(counts: Counts) -> _Key:
    return tuple(sorted((name, number) for name, number in counts.items() if number))


def _counted(instances: Sequence[Instance]) -> dict[str, int]:
    return dict(Counter(instance.profile for instance in instances))


@lru_cache(maxsize=65536)
def _free(geometry: Geometry, key: _Key) -> tuple[Instance, ...] | None:
    return _beside(geometry, key, ())


@lru_cache(maxsize=65536)
def _beside(geometry: Geometry, key: _Key, pinned: tuple[Instance, ...]) -> tuple[Instance, ...] | None:
    if not geometry.known or any(name not in geometry.by_name for name, _ in key):
        return None
    together = Counter(dict(key))
    together.update(_counted(pinned))
    if _over(geometry, together) is not None or legal(geometry, pinned) is not None:
        return None
    wanted = dict(key)
    sequence = [profile.name for profile in geometry.profiles for _ in range(wanted.get(profile.name, 0))]
    more = [p for p in geometry.profiles if _over(geometry, together + Counter([p.name])) is None]
    taken = _mask(geometry, pinned)
    best, most = None, -1
    for found in islice(_arrangements(geometry, sequence, 0, taken, None, set()), _MOST_TRIED):
        slices = taken | _mask(geometry, found)
        room = sum(any(not slices & _slices(start, p.size) for start in p.starts) for p in more)
        if room > most:
            best, most = found, room
        if most == len(more):
            break
    return None if best is None else tuple(sorted(best, key=lambda one: one.start))


def _arrangements(
    geometry: Geometry, names: Sequence[str], place: int, taken: int, last: Instance | None, dead: set[_Step]
) -> Iterator[tuple[Instance, ...]]:
    """Yield the ways to place `names[place:]` on the slices that are free, equal profiles at descending starts.

    `dead` are the steps that lead to no arrangement, so that none of them is gone twice.
    """
    if place == len(names):
        yield ()
        return
    step = place, taken, last
    if step in dead:
        return
    profile, leads = geometry.by_name[names[place]], False
    for start in reversed(profile.starts):
        slices = _slices(start, profile.size)
        if taken & slices or (last is not None and last.profile == profile.name and start > last.start):
            continue
        here = Instance(profile.name, start)
        for rest in _arrangements(geometry, names, place + 1, taken | slices, here, dead):
            leads = True
            yield (here, *rest)
    if not leads:
        dead.add(step)


def _extended(
    geometry: Geometry, choices: Sequence[Instance], first: int, chosen: tuple[Instance, ...], taken: int
) -> Iterator[tuple[Instance, ...]]:
    yield chosen
    for index in range(first, len(choices)):
        here = choices[index]
        slices = _slices(here.start, geometry.by_name[here.profile].size)
        more = (*chosen, here)
        if not taken & slices and _over(geometry, _counted(more)) is None:
            yield from _extended(geometry, choices, index + 1, more, taken | slices)


def _slices(start: int, size: int) -> int:
    """Return the memory slices of an instance as bits."""
    return ((1 << size) - 1) << start


def _mask(geometry: Geometry, instances: Sequence[Instance]) -> int:
    """Return the memory slices that legal instances take, as bits."""
    return sum(_slices(one.start, geometry.by_name[one.profile].size) for one in instances)


def _misplaced(geometry: Geometry, instances: Sequence[Instance]) -> str | None:
    for instance in instances:
        profile = geometry.by_name.get(instance.profile)
        if profile is None:
            return f"{geometry.product} has no profile {instance.profile}"
        if instance.start not in profile.starts:
            starts = ", ".join(map(str, profile.starts))
            return f"{instance.profile} cannot start at {instance.start} on {geometry.product}, only at {starts}"
    return None


def _over(geometry: Geometry, counts: Counts) -> str | None:
    """Return which budget of a GPU these counts break, None where all hold: maxima, slices, engines."""
    profiles = geometry.by_name
    for name, number in counts.items():
        if number > profiles[name].maximum:
            return f"{number} x {name} are more than the {profiles[name].maximum} that fit on one {geometry.product}"
    compute = sum(number * profiles[name].compute for name, number in counts.items())
    if compute > geometry.compute:
        return f"they take {compute} compute slices, {geometry.product} has {geometry.compute}"
    size = sum(number * profiles[name].size for name, number in counts.items())
    if size > geometry.axis:
        return f"they take {size} memory slices, {geometry.product} has {geometry.axis}"
    return _over_engines(geometry, counts)


def _over_engines(geometry: Geometry, counts: Mapping[str, int]) -> str | None:
    for kind, number in geometry.engines.items():
        taken = sum(count * geometry.by_name[name].engines.get(kind, 0) for name, count in counts.items())
        if taken > number:
            return f"they take {taken} {kind.upper()} engines, {geometry.product} has {number}"
    return None


def _overlapping(geometry: Geometry, instances: Sequence[Instance]) -> str | None:
    ordered = sorted(instances, key=lambda one: (one.start, one.profile))
    for before, after in pairwise(ordered):
        end = before.start + geometry.by_name[before.profile].size
        if end > after.start:
            return f"{before} and {after} overlap: {before} takes memory slices {before.start} to {end - 1}"
    return None

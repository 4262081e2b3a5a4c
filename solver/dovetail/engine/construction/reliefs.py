"""Who has to leave a GPU that is cut, so that it has one instance more, and who has room on it again (S3.3, S5.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from dovetail.engine.construction.instances import Cut, Cuts, contents_of
from dovetail.mig import Instance
from dovetail.problem import Shape


class Tenant(NamedTuple):
    """Who is on an instance of a GPU, and the very instance where it stays on that."""

    profile: str
    instance: Instance | None = None


class Relief(NamedTuple):
    """Tenants of a GPU, by position, without whom it has an instance more.

    Parameters
    ----------
    again : those of them who have room there again, beside who comes, once the GPU is cut anew.
    """

    gone: tuple[int, ...]
    again: frozenset[int]


class Reliefs:
    """Who has to leave cut GPUs; those that are cut alike are looked at once."""

    def __init__(self, cuts: Cuts) -> None:
        self._cuts = cuts
        self._known: dict[object, Sequence[Relief]] = {}

    def of(self, index: int, gpu: int, shape: Shape, tenants: Sequence[Tenant]) -> Sequence[Relief]:
        """Return sets of tenants of a GPU without whom it has an instance for one replica more, small ones first.

        A set that holds another one leaves fewer without room there.
        """
        number = self._cuts.number(index, gpu)
        if number < 0:
            return ()
        cut, alike = self._cuts.cut(number), tuple[object, ...](tenants)
        if self._cuts.unit != "instance":
            alike = tuple((each.profile, each.instance is not None) for each in tenants)
        modes = self._cuts.profiles(shape.index, cut.make)
        key = number, modes, alike
        if key not in self._known:
            self._known[key] = self._relieving(cut, modes, tenants)
        return self._known[key]

    def _relieving(self, cut: Cut, modes: tuple[str, ...], tenants: Sequence[Tenant]) -> Sequence[Relief]:
        found = list[Relief]()
        for gone in self._sets(tenants):
            least = min(
                (len(each.gone) - len(each.again) for each in found if set(each.gone) < set(gone)), default=None
            )
            again = None if least == 0 else self._again(cut, modes, [tenants[i] for i in gone])
            if again is not None and (least is None or len(gone) - len(again) < least):
                found.append(Relief(gone, frozenset(gone[position] for position in again)))
        return found

    def _sets(self, tenants: Sequence[Tenant]) -> Iterator[tuple[int, ...]]:
        """Yield sets of tenants that could make room, small ones first."""
        everybody = range(len(tenants))
        staying = tuple(i for i in everybody if tenants[i].instance is not None)
        if self._cuts.unit == "instance" or not staying:
            yield from (gone for size in range(1, len(tenants) + 1) for gone in combinations(everybody, size))
            return
        yield from ((i,) for i in everybody)
        anew = [i for i in everybody if i not in staying]
        for size in range(len(anew) + 1):  # who stays has today's layout stay
            for more in combinations(anew, size):
                if len(staying) + size > 1:
                    yield tuple(sorted((*staying, *more)))

    def _again(self, cut: Cut, modes: tuple[str, ...], gone: Sequence[Tenant]) -> list[int] | None:
        """Return who of some that are gone has room again beside a replica more, None where that has none."""
        left, staying = Counter(dict(cut.contents)), list(cut.kept)
        for tenant in gone:
            left[tenant.profile] -= 1
            if tenant.instance is not None:
                staying.remove(
                    tenant.instance if self._cuts.unit == "instance" else _last_of(tenant.profile, staying)
                )

        def has_room() -> bool:
            return self._cuts.first(cut._replace(contents=contents_of(left), kept=tuple(staying)), modes) is not None

        if not has_room():
            return None
        found = []
        for position, tenant in sorted(enumerate(gone), key=lambda one: -cut.geometry.by_name[one[1].profile].size):
            left[tenant.profile] += 1
            if has_room():
                found.append(position)
            else:
                left[tenant.profile] -= 1
        return found


def _last_of(profile: str, instances: Iterable[Instance]) -> Instance:
    return max(instance for instance in instances if instance.profile == profile)

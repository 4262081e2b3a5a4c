"""Which workloads stand for the gangs and the running pods of a case, and under which names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from benchmarks.gang import names, tokens
from benchmarks.gang.arrears import Arrears
from benchmarks.gang.case import Case, Gang, Running, Together
from benchmarks.gang.meaning import has_own_topology, levels, widths
from benchmarks.gang.seats import core

Mode = Literal["now", "moves", "evictions"]

CORE, MORE = "core", "more"  # roles of an elastic gang whose kept pods could go otherwise


def voice(index: int) -> str:
    """Return the name of the member that makes a set count, by its place in the case; it is nowhere."""
    return f"voice-{index}"


@dataclass(frozen=True, slots=True)
class Unit:
    """One workload: a gang, or a set of gangs that are its roles."""

    name: str
    gangs: tuple[Gang, ...]
    together: Together | None = None


class Work:
    """The gangs, the running pods that a question is about, and all names of a case as documents may carry them.

    Parameters
    ----------
    mode : what running pods may do: stay as they are, move, or go.
    """

    def __init__(self, case: Case, mode: Mode) -> None:
        self.case, self.mode = case, mode
        self.gangs = tuple(gang for gang in case.gangs if gang.pods)
        self.running = running_of(case, mode)
        moving = self.running if mode == "moves" else ()
        self.arrears = Arrears(case, [gang for gang in self.gangs if not gang.shrinks], self.running, moving)
        self.level = levels(case)
        self.node = names.hosts(node.name for node in case.nodes)
        self.units = tuple(self._units())
        own = [*(unit.name for unit in self.units), *(token.name for token in tokens.tokens(case))]
        own += [each.name for each in self.arrears.stand_ins()]
        own += [voice(index) for index, each in enumerate(case.sets) if self.voiced(each)]
        self.name = names.labels([gang.name for gang in self.gangs], "gang", own)
        taken = [*self.name.values(), *own]
        self.other = names.labels([each.name for each in self.running], "running", taken)

    def keys(self, gang: Gang) -> list[tuple[str, str]]:
        """Return the workload and the roles that stand for a gang, its kept pods in the first; "" without roles."""
        unit = next(unit for unit in self.units if gang in unit.gangs)
        if unit.together:
            return [(unit.name, self.name[gang.name])]
        return [(self.name[gang.name], role) for role in ([CORE, MORE] if self.split(gang) else [""])]

    def split(self, gang: Gang) -> int:
        """Return how many replicas of an elastic gang are a role of their own, as its kept pods are among them."""
        count = core(self.case, gang)
        return count if count < widths(gang)[1] else 0

    def ids(self, gangs: Iterable[str]) -> list[str]:
        """Return the workloads that stand for gangs."""
        present = {gang.name for gang in self.gangs}
        return sorted({self.keys(self.case.gang[name])[0][0] for name in gangs if name in present})

    def merged(self, together: Together) -> bool:
        """Tell whether a set is one workload, whose topology says what the set asks for."""
        return any(unit.together is together for unit in self.units)

    def silent(self, gang: Gang) -> bool:
        """Tell whether a gang does not communicate, as it would count by itself for the groups that it has."""
        mine = [each for each in self.case.sets if gang.name in each.gangs]
        alone = has_own_topology(self.case, gang) or any(self._inside(each) < 2 for each in mine)
        return bool(mine and gang.slices) and not alone and not any(map(self.merged, mine))

    def voiced(self, together: Together) -> bool:
        """Tell whether a set has a member besides its gangs, which are silent, so that it counts."""
        return any(gang.name in together.gangs and self.silent(gang) for gang in self.gangs)

    def _inside(self, together: Together) -> int:
        return sum(gang.name in together.gangs for gang in self.gangs)

    def gang_of(self) -> Iterable[tuple[tuple[str, str], str]]:
        """Yield the gang, or the running pods, of every workload and role."""
        for gang in self.gangs:
            for key in self.keys(gang):
                yield key, gang.name
        for each in self.running:
            yield (self.other[each.name], ""), each.name

    def rank(self, each: Running) -> int:
        """Return how many priorities of what runs are below that of some pods, as priorities may be any numbers."""
        return len({other.priority for other in self.running if other.priority < each.priority})

    @property
    def priority(self) -> int:
        """The priority of gangs, above that of all that may go for them."""
        return len({each.priority for each in self.running})

    def _units(self) -> Iterable[Unit]:
        """Return the workloads: a set of gangs that differ in nothing but what they ask for is one with roles."""
        taken: set[str] = set()
        for index, each in enumerate(self.case.sets):
            members = tuple(gang for gang in self.gangs if gang.name in each.gangs and gang.name not in taken)
            if len(members) > 1 and len(members) == len(each.gangs) and self._one_workload(each, members):
                taken |= {gang.name for gang in members}
                yield Unit(f"set-{index}", members, each)
        for gang in self.gangs:
            if gang.name not in taken:
                yield Unit(f"alone-{gang.name}", (gang,))

    def _one_workload(self, together: Together, gangs: tuple[Gang, ...]) -> bool:
        plain = not (together.partial or together.optional or together.distinct)
        same = len({(g.hosts(self.case), tuple(sorted(g.prefer_nodes.items()))) for g in gangs}) == 1
        simple = all(g.max_per_node is None and not g.spread and not g.shrinks and g.least == g.pods for g in gangs)
        alike = not any(has_own_topology(self.case, g) for g in gangs)
        astray = any(g.kept.keys() - g.hosts(self.case) for g in gangs)  # where others of the set may not be
        whole = all(len({gang.name in listed for gang in gangs}) == 1 for listed in self.case.lists)
        elsewhere = any(g.name in each.gangs for g in gangs for each in self.case.sets if each is not together)
        return plain and same and simple and alike and whole and not (elsewhere or astray)


def running_of(case: Case, mode: Mode) -> tuple[Running, ...]:
    """Return the running pods that a question is about: those that may move, or go.

    Who may go is for the case to say, whatever the priorities: a queue reclaims from another one's pods that are as
    urgent as its own.
    """
    here = [each for each in case.running if each.on]
    if mode == "moves":
        return tuple(each for each in here if each.movable)
    return tuple(each for each in here if mode == "evictions" and each.evictable)

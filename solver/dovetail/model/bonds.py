"""Rows that keep together after a failure what belongs together: a domain, an accelerator, groups (S4.7)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dovetail.linear import Linear
from dovetail.model.state import Slot
from dovetail.problem import Shape
from dovetail.rules.bonds import ACCELERATOR, Bond, wide_bonds
from dovetail.rules.topology import NAME
from dovetail.spec import Group, Node, Workload
from dovetail.spec.inside import mask_of
from dovetail.spec.topology import Nest, nests_of

if TYPE_CHECKING:
    from dovetail.model.part import PartModel

Again = Mapping[int, Mapping[Slot, int]]
"""Variables that count restarts, by node index."""


def path_of(level: str, node: Node, slot: Slot) -> str | None:
    """Return the domain of a level that a slot of a node lies in, None where no single one holds it."""
    gpus = 1 << slot.gpu if slot.gpu >= 0 else slot.block or mask_of(range(node.gpus))
    return node.around(level, gpus)


def has_sides(shape: Shape, node: Node, slot: Slot) -> bool:
    """Tell whether a slot lies in a domain of each level that its workload, or a group of its role, demands."""
    topology = shape.workload.topology
    if topology is None:
        return True
    levels = {group.within for group in topology.groups if shape.role.name in group.sizes}
    if topology.within is not None:
        levels.add(topology.within)
    return all(path_of(level, node, slot) is not None for level in levels)


def add_bonds(part: PartModel, workloads: Iterable[Workload], lost: set[int], again: Again) -> None:
    """Add the rows of one failure for those who have to survive it."""
    for workload in workloads:
        _add_sides(part, workload, again)
        if workload.topology is not None and workload.topology.groups and _in_groups(part, workload):
            _Groups(part, workload, lost, again).add()


def _in_groups(part: PartModel, workload: Workload) -> bool:
    """Tell whether all groups are whole in every plan, as nothing of today excuses others."""
    scope = part.context.scopes.get(NAME)
    return scope is not None and workload.id in scope.ids and not part.context.tolerated[NAME].get(workload.id)


def _add_sides(part: PartModel, workload: Workload, again: Again) -> None:
    """Keep what restarts of a workload on the one side where it survives, or on one."""
    problem = part.problem
    bonds: dict[Bond, set[int]] = {}
    for role in workload.roles:
        for bond in wide_bonds(workload, role):
            bonds.setdefault(bond, set()).add(problem.shapes_of_role.get((workload.id, role.name), -1))
    for bond, shapes in bonds.items():
        everything: defaultdict[str, Linear] = defaultdict(Linear)
        restarts: defaultdict[str, Linear] = defaultdict(Linear)
        for index, counts in again.items():
            node = problem.nodes[index]
            for slot, count in part.contents(index):
                if slot.shape in shapes and part.model.range_of(count)[1] > 0:
                    everything[_side(bond, node, slot)].add(count)
            for slot, variable in counts.items():
                if slot.shape in shapes:
                    everything[_side(bond, node, slot)].add_term(variable)
                    restarts[_side(bond, node, slot)].add_term(variable)
        if len(everything) > 1 and restarts:
            _on_one_side(part, everything, restarts)


def _side(bond: Bond, node: Node, slot: Slot) -> str:
    if bond.level == ACCELERATOR:
        return node.accelerator or ""
    return path_of(bond.level, node, slot) or f"none of {node.name}"


def _on_one_side(part: PartModel, everything: Mapping[str, Linear], restarts: Mapping[str, Linear]) -> None:
    """Let nothing restart but on the only side that anything is on; what survives on several is not to blame."""
    sides = len(everything)
    row = Linear({part.model.at_least_one(count).variable: 1 for _, count in sorted(everything.items())})
    for _, count in sorted(restarts.items()):
        row.add_term(part.model.at_least_one(count).variable, sides - 1)
    part.model.require(row, upper=sides)


@dataclass(frozen=True, slots=True)
class _Counts:
    """What of groups of one kind is lost and restarts: replicas per domain and role, groups per domain."""

    lost: Mapping[str, Mapping[str, Linear]]
    again: Mapping[str, Mapping[str, Linear]]
    around: Mapping[str, str]
    whole: dict[str, int] = field(default_factory=dict)
    moved: dict[str, int] = field(default_factory=dict)


class _Groups:
    """A flow of groups: those lost as a whole restart in any domain, of others what is lost restarts where they are.

    How many are lost as a whole is known up to who is who: at most as many as what a domain loses makes up, of groups
    that may be there in part with as few replicas as those have.
    """

    def __init__(self, part: PartModel, workload: Workload, lost: set[int], again: Again) -> None:
        self._part, self._workload, self._lost, self._again = part, workload, lost, again
        shapes = part.problem.shapes_of_role
        self._roles = {shapes.get((workload.id, role.name), -1): role.name for role in workload.roles}

    def add(self) -> None:
        """Add the rows of all groups, those around others first."""
        for nest in nests_of(self._workload.topology.groups if self._workload.topology is not None else ()):
            self._add_nest(nest, None)

    def _add_nest(self, nest: Nest, outer: tuple[Group, _Counts] | None) -> None:
        counts = self._counted(nest.group, outer[0].within if outer else None)
        self._add_domains(nest, counts)
        self._add_flow(nest, counts, outer[1] if outer else None)
        for inner in nest.inner:
            self._add_nest(inner, (nest.group, counts))

    def _slots(self, group: Group) -> Iterator[tuple[bool, Node, Slot, str, Linear]]:
        """Yield what is lost, and what restarts, of the roles of a group: which of both, and where, and how many."""
        nodes = self._part.problem.nodes
        for index in sorted(self._lost):
            for slot, count in self._part.contents(index):
                if self._roles.get(slot.shape) in group.sizes and self._part.model.range_of(count)[1] > 0:
                    yield False, nodes[index], slot, self._roles[slot.shape], count
        for index, counts in self._again.items():
            for slot, variable in counts.items():
                if self._roles.get(slot.shape) in group.sizes:
                    yield True, nodes[index], slot, self._roles[slot.shape], Linear.of(variable)

    def _counted(self, group: Group, around: str | None) -> _Counts:
        lost: dict[str, dict[str, Linear]] = {}
        again: dict[str, dict[str, Linear]] = {}
        outer: dict[str, str] = {}
        for restarts, node, slot, role, count in self._slots(group):
            path = path_of(group.within, node, slot)
            if path is not None:
                here = (again if restarts else lost).setdefault(path, {})
                here.setdefault(role, Linear()).add(count)
                outer[path] = "" if around is None else path_of(around, node, slot) or ""
        return _Counts(lost, again, outer)

    def _add_domains(self, nest: Nest, counts: _Counts) -> None:
        """Count groups that are lost as a whole, and those that come, in each domain."""
        model, sizes = self._part.model, nest.group.sizes
        fewest = {role: nest.fewest(role) for role in sizes}
        total = 0
        for path, lost in counts.lost.items():
            ranges = {role: model.range_of(lost[role])[1] if role in lost else 0 for role in sizes}
            most = min(ranges[role] // number for role, number in fewest.items() if number)
            total += most
            counts.whole[path] = model.integer(0, most)
            for role, count in lost.items():
                model.require(count.plus(0).add_term(counts.whole[path], -fewest[role]), lower=0)
        for path, again in counts.again.items():
            counts.moved[path] = model.integer(0, total)
            for role, count in again.items():
                row = count.minus(counts.lost.get(path, {}).get(role, Linear()))
                if path in counts.whole:
                    row.add_term(counts.whole[path], fewest[role])
                model.require(row.add_term(counts.moved[path], -sizes[role]), upper=0)

    def _add_flow(self, nest: Nest, counts: _Counts, outer: _Counts | None) -> None:
        """Let no more groups come than are lost as a whole, into each domain around them where one is demanded."""
        rows: defaultdict[str, Linear] = defaultdict(Linear)
        for path, variable in counts.moved.items():
            rows[counts.around[path]].add_term(variable)
        for path, variable in counts.whole.items():
            rows[counts.around[path]].add_term(variable, -1)
        for path, row in rows.items():
            if outer is not None and path in outer.whole:
                row.add_term(outer.whole[path], nest.least)
            if outer is not None and path in outer.moved:
                row.add_term(outer.moved[path], -nest.number)
            self._part.model.require(row, upper=0)

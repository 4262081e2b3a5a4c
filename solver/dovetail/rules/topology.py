"""`topology`: what workloads themselves demand of where their replicas are together (S2.5).

No document names this rule: `policy_of` makes one hard policy of all that workloads demand, so that models, bounds,
parts and checks treat it like any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from dovetail.linear import Linear
from dovetail.placement import View
from dovetail.placement.nested import every_nest, out_of_order
from dovetail.rules.base import Part, RuleDefaults, Violations
from dovetail.rules.claims import Claims, Together
from dovetail.rules.nested import Held, Loose
from dovetail.rules.scope import Scope
from dovetail.spec import Group, Nest, Policy, ReplicaId, Spec, Workload, WorkloadSelector

NAME: Final = "workload-topology"


@dataclass(frozen=True, slots=True)
class Topology(RuleDefaults):
    """Keep each workload within one domain, and its groups whole, as it demands.

    The violation of a workload adds up, over what it demands, replicas that are out of place: with `within`, those
    outside the domain that holds most of them; per entry of `groups`, those whose group, made of consecutive indices,
    is not there as a whole in one domain, or, where groups inside it have a minimum, who is not in order there
    (`placement.nested`).
    """

    kind: ClassVar[str] = "topology"
    unit: ClassVar[str] = "replicas out of place"
    grandfathered: ClassVar[bool] = True
    needs_current: ClassVar[bool] = False
    judges_places: ClassVar[bool] = True

    def encode(self, part: Part, scope: Scope) -> Mapping[str, Linear]:
        """Return the replicas out of place of each matched workload, as far as the part's domains tell it."""
        return {w.id: Linear.total(_demands(part, w)) for w in part.changing(scope.workloads)}

    def check(self, view: View, scope: Scope) -> Violations:
        """Recount each matched workload's domains and groups, by index."""
        counts = {workload.id: _out_of_place(view, workload) for workload in scope.workloads}
        return {workload: count for workload, count in counts.items() if count}

    def workload_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Distinguish every workload: each has domains and groups of its own."""
        return workload.id

    def lifted(self, spec: Spec) -> Spec:
        """Return the Spec without what workloads demand; what they prefer stays."""
        return replace(spec, workloads=tuple(map(_undemanding, spec.workloads)))

    def claims(self, scope: Scope) -> Claims:
        """Keep each workload within one domain of its level."""
        by_level: dict[str, list[tuple[Workload, ...]]] = {}
        for workload in scope.workloads:
            if workload.topology is not None and workload.topology.within is not None:
                by_level.setdefault(workload.topology.within, []).append((workload,))
        return Claims(together=tuple(Together(level, tuple(groups)) for level, groups in sorted(by_level.items())))


def policy_of(workloads: Iterable[Workload]) -> Policy | None:
    """Return the hard policy that holds all workloads to their topology, None where none demands any."""
    names = tuple(w.id for w in workloads if w.topology is not None and w.topology.binds)
    return Policy(NAME, Topology(), WorkloadSelector(names=names), origin="workloads") if names else None


def _undemanding(workload: Workload) -> Workload:
    if workload.topology is None or not workload.topology.binds:
        return workload
    return replace(workload, topology=replace(workload.topology, within=None, groups=()))


# In a model: replicas are counted by domain, as whoever names them makes groups of what is together.


def _demands(part: Part, workload: Workload) -> Iterator[Linear]:
    topology = workload.topology
    if topology is None:
        return
    if topology.within is not None:
        yield _outside_one(part, workload, topology.within)
        yield _homeless(part, workload, topology.within, [role.name for role in workload.roles])
    for nest in topology.nests:
        outside = Linear()
        _in_domains(part, workload, nest, outside)
        yield outside
        for each in every_nest((nest,)):
            yield _homeless(part, workload, each.group.within, each.group.sizes)


def _in_domains(part: Part, workload: Workload, nest: Nest, outside: Linear) -> Mapping[str, Held]:
    """Return what domains have of groups in order; `outside` adds up who is not, of those inside too."""
    if not nest.loose:
        found = _outside_groups(part, workload, nest.group, outside)
        for each in nest.inner:
            _in_domains(part, workload, each, outside)
        return found
    inner = [(each, _in_domains(part, workload, each, outside)) for each in nest.inner]
    loose = Loose(part, workload, nest, [held for each, held in inner if each.counted])
    there = loose.encode()
    outside.add(loose.beyond)
    return there


def _homeless(part: Part, workload: Workload, level: str, roles: Iterable[str]) -> Linear:
    """Return the replicas of some roles that lie in no domain of a level."""
    return Linear.total(part.astray(workload, level, role=role) for role in roles)


def _outside_one(part: Part, workload: Workload, level: str) -> Linear:
    """Return the replicas outside the one domain that is chosen."""
    total, chosen = Linear(), Linear()
    for count in part.counts(workload, level).values():
        most = min(part.model.range_of(count)[1], workload.replicas)
        if most > 0:
            here = part.model.boolean()
            outside = part.model.integer(0, most)
            part.model.require(count.minus(Linear({here: most, outside: 1})), upper=0)
            chosen.add_term(here)
            total.add_term(outside)
    part.model.require(chosen, upper=1)
    return total


def _outside_groups(part: Part, workload: Workload, group: Group, outside: Linear) -> Mapping[str, Held]:
    """Add the replicas beyond whole groups, over the domains of the group's level; return who is in order where."""
    by_role = {role: part.counts(workload, group.within, role=role) for role in group.sizes}
    staying = _Staying.of(part, workload, group)
    found: dict[str, Held] = {}
    for path in dict.fromkeys(path for counts in by_role.values() for path in counts):
        counts = {role: found.get(path, Linear()) for role, found in by_role.items()}
        ranges = {role: part.model.range_of(count) for role, count in counts.items()}
        if all(high == 0 for _, high in ranges.values()):
            continue
        most = min(ranges[role][1] // size for role, size in group.sizes.items())
        least = min(ranges[role][0] // size for role, size in group.sizes.items())
        settled = least == most and path not in staying.paths
        whole = Linear(constant=least) if settled else Linear.of(part.model.integer(0, most))
        here, strays = staying.strays(part, path, whole)
        found[path] = Held(whole, {role: whole.scaled(size) for role, size in group.sizes.items()}, here)
        for role, count in counts.items():
            beyond = count.minus(whole.scaled(group.sizes[role]))
            outside.add(beyond)
            if not settled:
                part.model.require(beyond.minus(strays.get(role, Linear())), lower=0)
    if staying.running:
        whole = Linear.total(held.groups for held in found.values())
        goes_on = _who_is_whole(part, workload, group, staying, found)
        if part.loosened(workload):
            _tell_who(part, workload, group, staying, goes_on, whole)
    return found


def _who_is_whole(
    part: Part, workload: Workload, group: Group, staying: _Staying, found: Mapping[str, Held]
) -> Mapping[int, Linear]:
    """Return of each group of which anybody ran 1 where it is whole; the others are alike.

    A group is whole only where all who stay of it are.
    """
    model = part.model
    goes_on = {number: Linear.of(model.boolean()) for number in sorted(staying.ran)}
    for number, flag in goes_on.items():
        here = Linear.total(held.here[number] for held in found.values() if number in held.here)
        model.require(flag.minus(here), lower=0, upper=0 if number in staying.bound else None)
    for path, groups in staying.paths.items():
        for number, members in groups.items():
            held = found.get(path, Held(Linear())).here.get(number, Linear())
            for _, stay in members:
                model.require(goes_on[number].plus(0).add(stay).minus(held), upper=1)
    whole = Linear.total(each.groups for each in found.values())
    number_of = min(workload.by_role[role].replicas // size for role, size in group.sizes.items())
    model.require(whole.minus(Linear.total(goes_on.values())), lower=0, upper=number_of - len(goes_on))
    return goes_on


def _tell_who(
    part: Part, workload: Workload, group: Group, staying: _Staying, goes_on: Mapping[int, Linear], whole: Linear
) -> None:
    """Let who is evicted, and who moves, follow from which groups are whole; beyond that is who is not in order."""
    model = part.model
    counts = (count for role in group.sizes for count in part.counts(workload, group.within, role=role).values())
    astray = Linear.total([*counts, _homeless(part, workload, group.within, group.sizes)])
    astray.add(whole, -sum(group.sizes.values()))
    evicted = Linear.total(part.evicted(workload, workload.by_role[role]) for role in group.sizes)
    missing = Linear.total(goes_on[n].scaled(-count).plus(count) for n, count in staying.ran.items())
    model.require(evicted.plus(0).add(astray).minus(missing), lower=0)
    retained = part.moved(workload).plus(0).add(Linear.total(part.stays(workload).values()))
    again = Linear.total(goes_on[number].scaled(count) for number, count in staying.running.items())
    alone = {*group.sizes} >= {replica.role for replica in part.stays(workload)}
    model.require(retained.minus(again), lower=0)
    if alone:
        model.require(retained.minus(again).minus(astray), upper=0)


@dataclass(frozen=True, slots=True)
class _Staying:
    """Who of a workload may stay where, by domain and by the group that its index is in.

    Counts alone do not tell of what stays, whose indices are given: a group is whole in a domain only where none of
    it stays in another one, and whoever stays of a group that is not whole there takes the place of others.

    Parameters
    ----------
    bound : the groups of which somebody runs who may not move; only others come to be whole elsewhere.
    torn : those of them that are whole nowhere.
    running : of how many replicas of a group the place stands.
    ran : of how many it stands, or did.
    """

    paths: Mapping[str, Mapping[int, Sequence[tuple[str, Linear]]]]
    running: Counter[int]
    ran: Counter[int]
    bound: frozenset[int]
    torn: frozenset[int]

    @classmethod
    def of(cls, part: Part, workload: Workload, group: Group) -> _Staying:
        """Ask a part who stays."""
        view = View(part.spec, part.places)
        found: dict[str, dict[int, list[tuple[str, Linear]]]] = {}
        where: dict[int, list[str | None]] = {}
        for replica, stay in part.stays(workload).items():
            if replica.role in group.sizes:
                number = replica.ordinal // group.sizes[replica.role]
                path = view.domain_of(group.within, replica) if part.model.range_of(stay)[1] > 0 else None
                where.setdefault(number, []).append(path)
                if path is not None:
                    found.setdefault(path, {}).setdefault(number, []).append((replica.role, stay))
        bound = frozenset() if workload.movable else frozenset(where)
        running = Counter({number: len(paths) for number, paths in where.items()})
        gone = [r for r in part.lost if r.workload == workload.id and r.role in group.sizes] if where else []
        ran = running + Counter(replica.ordinal // group.sizes[replica.role] for replica in gone)
        torn = frozenset(number for number in bound if len({*where[number]}) > 1 or None in where[number])
        return cls(found, running, ran, bound, torn)

    def strays(self, part: Part, path: str, whole: Linear) -> tuple[Mapping[int, Linear], Mapping[str, Linear]]:
        """Return which groups that run are whole in a domain, and per role who stays though the group is not.

        The number of whole groups there is bounded. A group is whole only where all of it stays that may not move.
        """
        found: dict[str, Linear] = {}
        flags: dict[int, Linear] = {}
        groups = Linear()
        for number, members in self.paths.get(path, {}).items():
            here = part.model.boolean()
            flags[number] = Linear.of(here)
            groups.add_term(here)
            if number in self.bound:
                self._keep_whole(part, number, members, flags[number])
            for elsewhere in (p for p in self.paths if p != path):
                for _, stay in self.paths[elsewhere].get(number, ()):
                    part.model.require(stay.plus(0).add_term(here), upper=1)
            for role, stay in members:
                stray = part.model.positive_part(stay.minus(Linear.of(here)))
                found.setdefault(role, Linear()).add(stray)
        if groups.terms:
            part.model.require(whole.minus(groups), lower=0)
        return flags, found

    def _keep_whole(self, part: Part, number: int, members: Iterable[tuple[str, Linear]], here: Linear) -> None:
        """Let a group be whole where it runs only if all of it stays."""
        if number in self.torn:
            part.model.require(here, upper=0)
        for _, stay in members:
            part.model.require(stay.minus(here), lower=0)


# On a finished placement: groups are those of consecutive indices.


def _out_of_place(view: View, workload: Workload) -> int:
    topology = workload.topology
    if topology is None:
        return 0
    found = 0
    if topology.within is not None:
        paths = [view.domain_of(topology.within, replica) for replica in view.admitted(workload)]
        counts = Counter(path for path in paths if path is not None)
        found = len(paths) - max(counts.values(), default=0)
    return found + sum(_outside(view, workload, nest) for nest in every_nest(topology.nests))


def _outside(view: View, workload: Workload, nest: Nest) -> int:
    if nest.loose:
        return out_of_order(view.spec.cluster, view.places, workload, nest)
    return _outside_whole(view, workload, nest.group)


def _outside_whole(view: View, workload: Workload, group: Group) -> int:
    members: dict[int, list[ReplicaId]] = {}
    for replica in view.admitted(workload):
        if replica.role in group.sizes:
            members.setdefault(replica.ordinal // group.sizes[replica.role], []).append(replica)
    size = sum(group.sizes.values())
    return sum(len(found) for found in members.values() if not _together(view, found, size, group.within))


def _together(view: View, members: Sequence[ReplicaId], size: int, level: str) -> bool:
    paths = {view.domain_of(level, replica) for replica in members}
    return len(members) == size and len(paths) == 1 and None not in paths

"""Groups that may be there in part, as rows of a model (S2.5): their minimum is of groups inside them.

In a domain of the outer level lie so many groups; of each kind of group inside these are at least the minimum of it
per group, and at most as many as go in. Who is beyond them is out of place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from dovetail.linear import Linear
from dovetail.placement.nested import path_of
from dovetail.rules.base import Part
from dovetail.spec import Cluster, Nest, ReplicaId, Workload
from dovetail.spec.inside import INNER_LEVELS


@dataclass(slots=True)
class Held:
    """What of a group's kind a domain has in order.

    Parameters
    ----------
    groups : how many groups.
    replicas : how many of their replicas, per role.
    here : of groups that run today 1 where they are in order here, by number.
    """

    groups: Linear
    replicas: Mapping[str, Linear] = field(default_factory=dict)
    here: Mapping[int, Linear] = field(default_factory=dict)


ByPath = Mapping[str, Held]
Running = Mapping[int, Mapping[str, Sequence[tuple[ReplicaId, Linear]]]]  # by number of the group, by path


def around(cluster: Cluster, inner: str, outer: str) -> Mapping[str, str]:
    """Return the domain of an outer level that each domain of an inner one lies in, by path."""
    found: dict[str, str] = {}
    for node in cluster.nodes:
        masks = node.parts(inner) if inner in INNER_LEVELS else ((1 << node.gpus) - 1,)
        for mask in masks:
            here, outside = node.around(inner, mask), node.around(outer, mask)
            if here and outside:
                found[here] = outside
    return found


@dataclass(slots=True)
class Loose:
    """The rows of one kind of group that may be there in part.

    Parameters
    ----------
    inner : what domains have of the counted groups inside, in the order of `nest.counted_inner`.
    """

    part: Part
    workload: Workload
    nest: Nest
    inner: Sequence[ByPath]
    beyond: Linear = field(default_factory=Linear)
    _groups: Linear = field(default_factory=Linear)
    _fresh: Linear = field(default_factory=Linear)
    _elsewhere: Linear = field(default_factory=Linear)
    _torn: Linear = field(default_factory=Linear)
    _homes: dict[int, Linear] = field(default_factory=dict)
    _most_of: dict[int, Linear] = field(default_factory=dict)
    _fewest_of: dict[int, Linear] = field(default_factory=dict)
    _owed: Mapping[int, Sequence[int]] = field(init=False)

    def __post_init__(self) -> None:
        """Find which groups must go on, and how many of each kind of counted group inside do."""
        found: dict[int, list[int]] = {}
        replicas = self.part.owed(self.workload)
        for position, inner in enumerate(self.nest.counted_inner):
            numbers = {r.ordinal // size for r in replicas if (size := inner.group.sizes.get(r.role))}
            for number, count in Counter(k // inner.number for k in numbers).items():
                found.setdefault(number, [0] * len(self.nest.counted_inner))[position] = count
        self._owed = found

    def encode(self) -> dict[str, Held]:
        """Return what each domain has in order; `beyond` adds up who is out of place."""
        level, roles = self.nest.group.within, self.nest.group.sizes
        counts = {role: self.part.counts(self.workload, level, role=role) for role in roles}
        inside = [around(self.part.spec.cluster, each.group.within, level) for each in self.nest.counted_inner]
        running = self._running()
        found: dict[str, Held] = {}
        for path in dict.fromkeys(path for own in counts.values() for path in own):
            here = {role: own.get(path, Linear()) for role, own in counts.items()}
            if any(self.part.model.range_of(count)[1] for count in here.values()):
                lists = [
                    [held for inner, held in by_path.items() if outer.get(inner) == path]
                    for by_path, outer in zip(self.inner, inside, strict=True)
                ]
                found[path] = self._domain(path, here, lists, running)
        self._once_each(running)
        self._enough(running)
        if running and self.part.loosened(self.workload):
            self._tell_who(running)
        return found

    # What runs.

    def _running(self) -> Running:
        """Return who of the groups that run stays where, by number and path."""
        found: dict[int, dict[str, list[tuple[ReplicaId, Linear]]]] = {}
        cluster, level = self.part.spec.cluster, self.nest.group.within
        for replica, stay in self.part.stays(self.workload).items():
            size = self.nest.group.sizes.get(replica.role)
            if size:
                path = path_of(cluster, level, self.part.places[replica]) or ""
                found.setdefault(replica.ordinal // size, {}).setdefault(path, []).append((replica, stay))
        return found

    def _once_each(self, running: Collection[int]) -> None:
        """Let no group be in two domains, nor be left out where it must go on, and no more be than there are."""
        for number in running:
            home = self._homes.get(number, Linear())
            self.part.model.require(home, lower=1 if number in self._owed else None, upper=1)
        self.part.model.require(self._groups, upper=self._number)
        self.part.model.require(self._fresh, upper=self._number - len(running))

    def _enough(self, running: Running) -> None:
        """Let as many outermost groups be there as must be, where anybody is; those out of order count as well.

        Of such a group somebody stays, or somebody else is out of place, whom today excuses.
        """
        least = self.workload.groups_owed(self.nest)
        if not least:
            return
        model, there, others = self.part.model, self._groups.plus(0), self._astray().plus(0).add(self._elsewhere)
        for number, members in running.items():
            stays = Linear.total(stay for own in members.values() for _, stay in own)
            broken, moved = Linear.of(model.boolean()), Linear.of(model.boolean())
            model.require(broken.minus(stays), upper=0)
            model.require(broken.plus(0).add(moved).add(self._homes.get(number, Linear())), upper=1)
            there.add(broken).add(moved)
            others.add(moved, -1)
        self._torn.add_term(model.integer(0, self._number - len(running)))
        model.require(others.minus(self._torn), lower=0)
        model.require(self._fresh.plus(0).add(self._torn), upper=self._number - len(running))
        here = model.at_least_one(self.part.admitted(self.workload))
        model.require(there.add(self._torn).minus(Linear.of(here.variable, least)), lower=0)

    @property
    def _number(self) -> int:
        """How many groups of this kind there are in all."""
        role, size = next(iter(self.nest.group.sizes.items()))
        return self.workload.by_role[role].replicas // size

    def _astray(self) -> Linear:
        """Return how many of the groups' replicas are in no domain."""
        level, roles = self.nest.group.within, self.nest.group.sizes
        return Linear.total(self.part.astray(self.workload, level, role=role) for role in roles)

    def _tell_who(self, running: Running) -> None:
        """Let who is evicted, and who moves, follow from how many of each group of which anybody runs are in order.

        Of those who run elsewhere as many move as there are more of a group than stay, were lost or wait.
        """
        part, sizes = self.part, self.nest.group.sizes
        lost = Counter(
            replica.ordinal // sizes[replica.role]
            for replica in part.lost
            if replica.workload == self.workload.id and replica.role in sizes
        )
        gone, moved = Linear(), Linear()
        for group, members in running.items():
            stays = [stay for own in members.values() for _, stay in own]
            ran, others = len(stays) + lost[group], sum(sizes.values()) - len(stays)
            gone.add(part.model.positive_part(Linear(constant=ran).minus(self._most_of.get(group, Linear()))))
            there = self._fewest_of.get(group, Linear()).minus(Linear.total(stays))
            moved.add(part.model.positive_part(there.plus(-others)))
        evicted = Linear.total(part.evicted(self.workload, self.workload.by_role[role]) for role in sizes)
        astray = self._astray().add(self.beyond).minus(self._torn)  # in a group of others is none of those who ran
        part.model.require(evicted.plus(0).add(astray).minus(gone), lower=0)
        part.model.require(part.moved(self.workload).minus(moved), lower=0)

    # One domain.

    def _domain(
        self,
        path: str,
        counts: Mapping[str, Linear],
        inner: Sequence[Sequence[Held]],
        running: Running,
    ) -> Held:
        model = self.part.model
        number = max(self.workload.by_role[role].replicas // size for role, size in self.nest.group.sizes.items())
        rest = model.integer(0, number)
        here = {group: Linear.of(model.boolean()) for group in running}
        chosen = [
            self._chosen(position, each, rest, here, own)
            for position, (each, own) in enumerate(zip(self.nest.counted_inner, inner, strict=True))
        ]
        plain = self._plain()
        for group, flag in here.items():
            for counted in (self._most_of, self._fewest_of):
                counted.setdefault(group, Linear()).add(flag, plain)
        groups = Linear.total([Linear.of(rest), *here.values()])
        replicas = {role: self._in_order(role, groups, inner, chosen) for role in counts}
        strays = self._strays(path, here, running)
        for role, count in counts.items():
            beyond = count.minus(replicas[role])
            self.beyond.add(beyond)
            others = beyond.minus(strays.get(role, Linear()))
            self._elsewhere.add(others)
            model.require(others, lower=0)
        self._groups.add(groups)
        self._fresh.add_term(rest)
        for group, flag in here.items():
            self._homes.setdefault(group, Linear()).add(flag)
        return Held(groups, replicas, here)

    def _chosen(
        self, position: int, inner: Nest, rest: int, here: Mapping[int, Linear], own: Sequence[Held]
    ) -> Linear:
        """Return how many counted groups are in order in those around them here, as many as may be in each."""
        model, owed = self.part.model, self._owed
        total = Linear.of(model.integer(0, inner.number * self._most(rest)))
        model.require(total.minus(Linear.of(rest, inner.number)), upper=0)
        model.require(total.minus(Linear.of(rest, inner.least)), lower=0)
        for group, flag in here.items():
            count = Linear.of(model.integer(0, inner.number))
            least = max(inner.least, owed[group][position]) if group in owed else inner.least
            model.require(count.minus(flag.scaled(inner.number)), upper=0)
            model.require(count.minus(flag.scaled(least)), lower=0)
            numbers = range(group * inner.number, (group + 1) * inner.number)
            standing = Linear.total(held.here[k] for held in own for k in numbers if k in held.here)
            if not self.workload.movable:
                self._keep_off(group, inner, count, standing, own)
            room = Linear(constant=inner.number).minus(flag.scaled(inner.number))
            model.require(count.minus(standing).add(room), lower=0)
            total.add(count)
            self._most_of.setdefault(group, Linear()).add(count, sum(inner.group.sizes.values()))
            fewest = sum(inner.fewest(role) for role in inner.group.sizes)
            self._fewest_of.setdefault(group, Linear()).add(count, fewest)
        if self.inner[position]:  # else the model does not tell domains of that level apart
            model.require(total.minus(Linear.total(held.groups for held in own)), upper=0)
        return total

    def _keep_off(self, group: int, inner: Nest, count: Linear, standing: Linear, own: Sequence[Held]) -> None:
        """Let nobody who may not move be in order but where it runs: who runs elsewhere is not counted in."""
        running: dict[int, list[tuple[str, Linear]]] = {}
        for replica, stay in self.part.stays(self.workload).items():
            size = inner.group.sizes.get(replica.role)
            if size and replica.ordinal // size // inner.number == group:
                running.setdefault(replica.ordinal // size, []).append((replica.role, stay))
        fresh = inner.number - len(running)
        self.part.model.require(count.minus(standing), upper=fresh)
        for held in own if not inner.loose else ():
            for number, flag in held.here.items():
                for _, stay in running.get(number, ()):
                    self.part.model.require(stay.minus(flag), lower=0)

    def _plain(self) -> int:
        """Return how many replicas of a group are in no counted group inside it."""
        counted = {role for inner in self.nest.counted_inner for role in inner.group.sizes}
        return sum(size for role, size in self.nest.group.sizes.items() if role not in counted)

    def _most(self, variable: int) -> int:
        return self.part.model.range_of(Linear.of(variable))[1]

    def _in_order(
        self, role: str, groups: Linear, inner: Sequence[Sequence[Held]], chosen: Sequence[Linear]
    ) -> Linear:
        """Return how many replicas of a role are in order: those of the groups inside that were chosen, or of all."""
        for position, each in enumerate(self.nest.counted_inner):
            if role not in each.group.sizes:
                continue
            if not each.loose:
                return chosen[position].scaled(each.group.sizes[role])
            if not self.inner[position]:
                return self._untold(role, each, chosen[position])
            there = Linear.total(held.replicas.get(role, Linear()) for held in inner[position])
            left_out = Linear.total(held.groups for held in inner[position]).minus(chosen[position])
            return self._without(there, left_out, each.fewest(role), each.group.sizes[role])
        return groups.scaled(self.nest.group.sizes[role])

    def _without(self, there: Linear, left_out: Linear, fewest: int, size: int) -> Linear:
        """Return how many replicas are left without groups of at least `fewest` and at most `size` of them."""
        most = there.minus(left_out.scaled(fewest))
        found = Linear.of(self.part.model.integer(0, max(0, self.part.model.range_of(there)[1])))
        self.part.model.require(found.minus(most), upper=0)
        self.part.model.require(found.minus(most).add(left_out, size - fewest), lower=0)
        return found

    def _untold(self, role: str, inner: Nest, chosen: Linear) -> Linear:
        """Return a number of replicas that so many groups inside may have."""
        size = inner.group.sizes[role]
        found = Linear.of(self.part.model.integer(0, size * self.part.model.range_of(chosen)[1]))
        self.part.model.require(found.minus(chosen.scaled(size)), upper=0)
        self.part.model.require(found.minus(chosen.scaled(inner.fewest(role))), lower=0)
        return found

    def _strays(
        self,
        path: str,
        here: Mapping[int, Linear],
        running: Running,
    ) -> Mapping[str, Linear]:
        """Return per role who stays here though the group is not in order here; a group is where all of it stays."""
        model, found = self.part.model, dict[str, Linear]()
        for group, flag in here.items():
            for where, members in running[group].items():
                for replica, stay in members:
                    if where != path:
                        model.require(stay.plus(0).add(flag), upper=1)
                    else:
                        stray = model.positive_part(stay.minus(flag))
                        found.setdefault(replica.role, Linear()).add(stray)
        return found

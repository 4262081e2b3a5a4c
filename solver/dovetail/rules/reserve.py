"""`reserve`: places, or whole domains, that a plan holds free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.placement import Place, Room, View, copies, laid
from dovetail.rules.base import Guard, Part, RuleDefaults, Told, Violations
from dovetail.rules.claims import Claims, Short
from dovetail.rules.guards import Plain, domain_of
from dovetail.rules.levels import inner, level_problem, nodes_problem, reached
from dovetail.rules.scope import Scope
from dovetail.spec import Node, Policy, Request, Role, Spec, Toleration, Workload
from dovetail.spec.cluster import NODE_LEVEL
from dovetail.spec.inside import Mask, holds, mask_of


@dataclass(frozen=True, slots=True)
class Reserve(RuleDefaults):
    """Hold places for `replicas` of a request free, or `domains` of the level `of` as a whole.

    The subject is the policy. Its violation is the number of places that are missing: `max(0, replicas - held)`,
    places on matched nodes counting, with `within` those of one domain only; or `max(0, domains - untouched)`, a
    domain being untouched where all its nodes are matched, up, not cordoned and without failed GPUs, and hold neither
    a replica nor a held place; inside a node, where its own GPUs are in order and no replica or held place reaches
    into it. Where nobody has said which places are held, as today, those count that there is room for.
    """

    kind: ClassVar[str] = "reserve"
    unit: ClassVar[str] = "places missing"
    grandfathered: ClassVar[bool] = True
    needs_current: ClassVar[bool] = False
    judges_places: ClassVar[bool] = True

    replicas: int = 0
    request: Request = field(default_factory=Request)
    accelerators: tuple[str, ...] = ()
    within: str | None = None
    domains: int = 0
    of: str = ""

    @property
    def inner_level(self) -> str:
        """The level of whole domains, or of the one that holds all places, where it lies inside nodes."""
        return inner(self.of or self.within or "")

    def placeholders(self, own: Policy) -> tuple[Workload, ...]:
        """Return a job whose replicas are the places."""
        return (self._job(own.name, named=own.nodes is not None),) if self.replicas else ()

    def _job(self, policy: str, *, named: bool) -> Workload:
        """Return a job whose replicas are the places; on nodes that are named, taints do not matter."""
        role = Role("", self.replicas, self._asked, value=0, accelerators=self.accelerators)
        tolerations = (Toleration(operator="Exists"),) if named else ()
        name = f"hold:{policy}"
        return Workload(name, "", name, "job", (role,), tolerations=tolerations, holds=policy)

    @property
    def _asked(self) -> Request:
        """What a place has room for, inside nodes within a domain of the level."""
        return replace(self.request, within=(self.inner_level,)) if self.inner_level else self.request

    def encode(self, part: Part, scope: Scope) -> Mapping[str, Linear]:
        """Return the places that are missing, or the domains."""
        missing = self._encode_domains(part, scope) if self.domains else self._encode_places(part, scope)
        return {scope.policy: missing}

    def _encode_places(self, part: Part, scope: Scope) -> Linear:
        own = _own(scope)
        by_domain = self._by_domain(part, own, scope)
        if by_domain is not None:
            held = self._in_one_domain(part, by_domain)
        else:
            held = part.admitted(own) if scope.nodes is None else part.misplaced(own, scope.nodes)
        # Places that do not count are not held: nothing is kept off them.
        part.model.require(part.admitted(own).minus(held), upper=0)
        return Linear(constant=self.replicas).minus(held)

    def _by_domain(self, part: Part, own: Workload, scope: Scope) -> Mapping[str, Linear] | None:
        """Return the places of each domain of which one holds all that count, None where the model tells none apart.

        Such a model counts the places on all nodes: never more are missing than in truth.
        """
        if self.within is None or (self.within == NODE_LEVEL and not any(part.every_domain(NODE_LEVEL))):
            return None
        found = part.counts(own, self.within, scope.nodes)
        return None if self.inner_level and not found else found

    def _in_one_domain(self, part: Part, by_domain: Mapping[str, Linear]) -> Linear:
        """Return at most what the fullest domain holds."""
        chosen, total = Linear(), Linear()
        for count in by_domain.values():
            most = part.model.range_of(count)[1]
            if most > 0:
                flag, held = part.model.boolean(), part.model.integer(0, most)
                part.model.require(Linear({held: 1, flag: -most}), upper=0)
                part.model.require(Linear.of(held).minus(count), upper=0)
                chosen.add_term(flag)
                total.add_term(held)
        part.model.require(chosen, upper=1)
        return total

    def _encode_domains(self, part: Part, scope: Scope) -> Linear:
        whole = frozenset(self._whole(scope))
        missing = Linear(constant=self.domains - len(whole))
        for path, count in self._held(part, scope):
            if path in whole:
                if part.model.range_of(count)[0] > 0:
                    missing.constant += 1
                elif not count.is_constant:
                    missing.add_term(part.model.at_least_one(count).variable)
        return part.model.positive_part(missing)

    def _held(self, part: Part, scope: Scope) -> Iterator[tuple[str, Linear]]:
        """Yield how many replicas and held places each domain has, or has reaching into it."""
        everything = scope.spec.everything
        if self.inner_level:
            yield from ((path, counts[0]) for path, counts in reached(part, [everything], self.of).items())
        else:
            yield from ((domain.path, part.count(everything, domain)) for domain in part.every_domain(self.of))

    def check(self, view: View, scope: Scope) -> Violations:
        """Count the places, or the domains, that are missing."""
        if self.domains:
            missing = self.domains - len(self._untouched(view, scope))
        elif view.held is None or scope.policy not in view.held:
            missing = self.replicas - self._possible(view.rooms, scope)
        else:
            missing = self.replicas - len(self._useful(view.held[scope.policy], scope))
        return {scope.policy: missing} if missing > 0 else {}

    def told(self, view: View, scope: Scope) -> Told:
        """Tell the places that are held, or the first domains."""
        if self.domains:
            return Told(untouched=tuple(self._untouched(view, scope)[: self.domains]))
        held = (view.held or {}).get(scope.policy, ())
        return Told(held=tuple(sorted(self._useful(held, scope))))

    def guard(self, scope: Scope) -> Guard | None:
        """Keep held places on matched nodes and together, or enough domains untouched."""
        if not self.domains:
            return PlacesGuard(scope, NODE_LEVEL if self.inner_level else self.within)
        if not self.inner_level:
            return UntouchedGuard(scope, self.of, self.domains, dict.fromkeys(self._whole(scope), 1))
        nodes = Counter(path.rpartition("/")[0] for path in self._whole(scope))
        return UntouchedGuard(scope, NODE_LEVEL, self.domains, nodes, gpus_alone=True)  # node by node to begin with

    def workload_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Distinguish no workloads, since it does not matter who leaves the places free, but inside nodes each."""
        return workload.id if self.inner_level and self.domains else None

    def other_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Distinguish each workload where the rule tells where replicas are inside nodes, or the places alone."""
        told = bool(self.domains) or workload.holds == scope.policy
        return workload.id if self.inner_level and told else None

    def node_key(self, node: Node, scope: Scope) -> Hashable:
        """Distinguish nodes by the domain, where one wider than a node is asked for, and matched ones from others."""
        level = self.of or self.within
        wide = level is not None and level != NODE_LEVEL and not self.inner_level
        return node.domain(level) if level and wide else None, scope.nodes is None or node.name in scope.nodes

    def claims(self, scope: Scope) -> Claims:
        """Hold whole GPUs free: those of the places, or of as many domains as have the fewest."""
        if not self.domains:
            return Claims(places=self.replicas * self.request.gpus, short=self._short_of_places(scope))
        sizes = sorted(self._whole(scope).values())
        short = Short(self.domains, len(sizes), f"domains of level {self.of}") if len(sizes) < self.domains else None
        return Claims(domains=sum(sizes[: self.domains]), short=short)

    def _short_of_places(self, scope: Scope) -> Short | None:
        there = self._possible({}, scope)
        return Short(self.replicas, there, "places") if there < self.replicas else None

    def unsound(self, spec: Spec) -> str | None:
        """Refuse anything but one of the two forms, accelerators of places without GPUs, and unknown levels."""
        if bool(self.domains) == bool(self.replicas) or bool(self.domains) != bool(self.of):
            return "give 'replicas' with 'request', or 'domains' with 'of'"
        if bool(self.replicas) != (self.request != Request()):
            return "'replicas' goes with a 'request' that asks for something: so many places, each with room for that"
        if self.domains and (self.within or self.accelerators):
            return "'within' and 'accelerators' tell of places, and whole domains are held here"
        if self.accelerators and not self.request.gpu_count:
            return "'accelerators' tells which GPUs places are on, and these have none"
        if self.replicas and self.inner_level and not self.request.gpu_count:
            return f"places within one {self.within} need GPUs, and these have none"
        level = self.of or self.within
        return None if level is None else level_problem(spec, level, gpu=False, inside=True)

    def unsound_beside(self, own: Policy, spec: Spec) -> str | None:
        """Refuse a choice of nodes where whole domains are inside them; places may be on some nodes alone."""
        return nodes_problem(own, inner(self.of))

    def never_lifted(self, own: Policy) -> str | None:
        """Refuse waivers: it does not matter who leaves the places free."""
        return "it holds places free of everybody, and binds no workloads of its own"

    # Places and domains of a finished placement.

    def _useful(self, held: Sequence[Place], scope: Scope) -> Sequence[Place]:
        """Return the held places that count, no more than are wanted."""
        found = [place for place in sorted(held) if scope.nodes is None or place.node in scope.nodes]
        if self.within is not None:
            by_name = scope.spec.cluster.by_name
            of = [by_name[place.node].around(self.within, mask_of(place.gpus)) for place in found]
            sizes = Counter(path for path in of if path is not None)
            best = min(sizes, key=lambda path: (-sizes[path], path), default=None)
            found = [place for place, path in zip(found, of, strict=True) if path == best and path is not None]
        return found[: self.replicas]

    def _possible(self, rooms: Mapping[str, Room], scope: Scope) -> int:
        """Return for how many places there is room beside what nodes hold, within one domain where asked for."""
        there: Counter[str] = Counter()
        for path, node, gpus in self._sites(scope):
            room = rooms.get(node.name) or Room(node, scope.spec.accelerators)
            there[path] += copies(room, self._asked, gpus)
        return min(self.replicas, max(there.values(), default=0))

    def could_hold(self, view: View, scope: Scope) -> tuple[Place, ...]:
        """Return places that could be held beside what nodes hold, as many as there may be."""
        rooms, found = view.fresh_rooms(), dict[str, list[Place]]()
        for path, node, gpus in self._sites(scope) if self.replicas else ():
            room = rooms.setdefault(node.name, Room(node, scope.spec.accelerators))
            here = found.setdefault(path, [])
            here += laid(room, self._asked, self.replicas - len(here), gpus)
        best = max(found, key=lambda path: len(found[path]), default=None)
        return () if best is None else tuple(found[best])

    def _sites(self, scope: Scope) -> Iterator[tuple[str, Node, Mask | None]]:
        """Yield the nodes that places may be on, or parts of these, each with the domain that it is in."""
        for name in sorted(scope.hosts(self._job(scope.policy, named=scope.nodes is not None))):
            node = scope.spec.cluster.by_name[name]
            for path, gpus in self._parts(node):
                yield path, node, gpus

    def _parts(self, node: Node) -> Iterator[tuple[str, Mask | None]]:
        """Yield the domains that places on a node may share, inside it those of its GPUs."""
        if self.inner_level:
            yield from ((f"{node.name}/{i}", mask) for i, mask in enumerate(node.parts(self.inner_level)))
        elif self.within is None:
            yield "", None
        elif (path := node.domain(self.within)) is not None:
            yield path, None

    def _whole(self, scope: Scope) -> dict[str, int]:
        """Return the GPUs of each domain whose nodes are all matched and in order, sorted by path."""
        cluster = scope.spec.cluster
        if self.inner_level:
            return dict(sorted(_in_order_inside(cluster.nodes, self.of, scope)))
        members = sorted(cluster.members(self.of).items())
        whole = ((path, nodes) for path, nodes in members if all(_in_order(node, scope) for node in nodes))
        return {path: sum(len(node.healthy_gpus()) for node in nodes) for path, nodes in whole}

    def _untouched(self, view: View, scope: Scope) -> list[str]:
        by_name = scope.spec.cluster.by_name
        places = (*view.places.values(), *(place for _, place in view.placeholders))
        spans = (by_name[place.node].spanned(self.of, mask_of(place.gpus)) for place in places)
        touched = {path for paths in spans for path in paths}
        return [path for path in self._whole(scope) if path not in touched]


def _own(scope: Scope) -> Workload:
    return next(w for w in scope.spec.placeholders if w.holds == scope.policy)


def _in_order(node: Node, scope: Scope) -> bool:
    return _open(node, scope) and not node.failed_gpus


def _open(node: Node, scope: Scope) -> bool:
    matched = scope.nodes is None or node.name in scope.nodes
    return matched and not (node.down or node.cordoned)


def _in_order_inside(nodes: Iterable[Node], level: str, scope: Scope) -> Iterator[tuple[str, int]]:
    """Yield the domains inside nodes without failed GPUs, each with the number of its GPUs."""
    for node in nodes:
        for position, mask in enumerate(node.parts(level) if _open(node, scope) else ()):
            if mask and holds(node.healthy, mask):
                yield f"{node.name}/{level}-{position}", mask.bit_count()


@dataclass(slots=True)
class PlacesGuard(Plain):
    """Blocks held places off matched nodes and, with `within`, off the domain that the first one is in."""

    scope: Scope
    within: str | None
    held: Counter[str] = field(default_factory=Counter)

    def domain(self, node: Node) -> str | None:
        """Return the domain that a place on a node counts in, the same one for all without `within`; None in none."""
        if self.scope.nodes is not None and node.name not in self.scope.nodes:
            return None
        return "" if self.within is None else node.domain(self.within)

    def blocks(self, workload: Workload, role: Role, node: Node, gpu: int | None) -> bool:
        """Block where a place would not count."""
        if workload.holds != self.scope.policy:
            return False
        path = self.domain(node)
        return path is None or (self.held.total() > 0 and not self.held[path])

    def add(self, workload: Workload, role: Role, node: Node, gpu: int | None, count: int) -> None:
        """Count held places by domain."""
        path = self.domain(node) if workload.holds == self.scope.policy else None
        if path is not None:
            self.held[path] += count


@dataclass(slots=True)
class UntouchedGuard(Plain):
    """Blocks the last `wanted` domains that nothing has touched.

    Parameters
    ----------
    whole : how many of the wanted domains each one of the level stands for.
    gpus_alone : whether work without GPUs touches nothing.
    """

    scope: Scope
    level: str
    wanted: int
    whole: Mapping[str, int]
    gpus_alone: bool = False
    held: Counter[str] = field(default_factory=Counter)
    left: int = field(init=False)
    freed: int = 0

    def __post_init__(self) -> None:
        self.left = sum(self.whole.values())

    def opened(self, workload: Workload) -> int:
        """Return how often a domain became untouched again."""
        return self.freed

    def blocks(self, workload: Workload, role: Role, node: Node, gpu: int | None) -> bool:
        """Block an untouched domain where no more are left than wanted."""
        path = domain_of(self.level, self.scope, node, None)
        if path is None or path not in self.whole or (self.gpus_alone and not role.request.gpu_count):
            return False
        return not self.held[path] and self.left - self.whole[path] < self.wanted

    def add(self, workload: Workload, role: Role, node: Node, gpu: int | None, count: int) -> None:
        """Count what domains hold."""
        path = domain_of(self.level, self.scope, node, None)
        if path is None or path not in self.whole or (self.gpus_alone and not role.request.gpu_count):
            return
        before, now = self.held[path], self.held[path] + count
        self.held[path] = now
        self.left -= self.whole[path] * ((now > 0) - (before > 0))
        self.freed += before > 0 and not now


def places_of(plan: Mapping[str, Told], spec: Spec) -> Iterator[tuple[str, tuple[Place, ...]]]:
    """Yield the held places that a plan tells, for every policy that holds places."""
    for workload in spec.placeholders:
        yield workload.holds, plan.get(workload.holds, Told()).held

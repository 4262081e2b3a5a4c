"""Brute force: every legal placement of a tiny Spec, hence its true optimum.

Straight code that shares nothing with the engine: legality of places is judged here from the Spec, hard policies by
`check` of their rules, tiers by `measure`. Only symmetry that is safe by inspection is left out:

- waiting replicas of one role are alike, unless they form groups, so their places ascend and those not admitted come
  last;
- on a node that holds nothing today the GPUs are alike, so fresh ones are taken in the order of their index.

Replicas that run today are told apart. A role's replicas claim their places in the order of S6.5: those whose place
stands, those whose place is gone, those that wait; a waiting one is not admitted while a running one is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import combinations, product

from tests.oracle.clients import restarted, suits, taken

from dovetail.mig import Geometry, Profile, layouts
from dovetail.objectives import Tier, tiers_of
from dovetail.objectives.admitted import Admitted, Retained
from dovetail.placement import Place, Places, View
from dovetail.placement.nested import all_in_order
from dovetail.rules import Context, context_of
from dovetail.spec import Layout, Node, ReplicaId, Role, Spec, Workload

LEAVES = 6_000
EVALUATIONS = 2_000


class TooLarge(Exception):
    """The Spec has more placements than brute force is willing to look at."""


@dataclass(frozen=True)
class Optimum:
    """The tiers' values at the lexicographic optimum, in order, and all placements that have them."""

    tiers: tuple[Tier, ...]
    values: tuple[int, ...]
    ties: tuple[Places, ...]

    @property
    def places(self) -> Places:
        """One of the best placements."""
        return self.ties[0]

    @property
    def by_name(self) -> dict[str, int]:
        """Values by the tiers' names."""
        return {tier.name: value for tier, value in zip(self.tiers, self.values, strict=True)}


def brute(spec: Spec, *, leaves: int = LEAVES, evaluations: int = EVALUATIONS) -> Optimum | None:
    """Return the optimum of a Spec, None where no placement keeps every hard rule.

    Raises
    ------
    TooLarge
        If there are more placements, or more of them that need full evaluation, than allowed.
    """
    context = context_of(spec)
    tiers = tiers_of(context)
    cheap = _cheap_prefix(spec, tiers)
    groups: dict[tuple[int, ...], list[Places]] = defaultdict(list)
    worth_of = _worths(context, tiers[:cheap])
    count = 0

    def collect(places: Places) -> None:
        nonlocal count
        count += 1
        if count > leaves:
            raise TooLarge(f"more than {leaves} placements")
        worth = tuple(map(sum, zip(*(worth_of[replica] for replica in places), strict=True)))
        groups[worth or (0,) * cheap].append(dict(places))

    (PartSearch if spec.uses_mig or spec.current.gpus else _Search)(context, collect).run()
    budget = evaluations
    for worth in sorted(groups, reverse=True):
        budget -= len(groups[worth])
        if budget < 0:
            raise TooLarge("too many placements to evaluate")
        found = _best_of(context, tiers, groups[worth])
        if found is not None:
            assert tuple(found.values[:cheap]) == worth, "the oracle's own sums disagree with the tiers"
            return found
    return None


def keeps_hard(context: Context, view: View) -> bool:
    """Tell whether a placement keeps every hard policy, beyond what today excuses (S4.5)."""
    for policy in context.spec.policies:
        if policy.enforcement.kind == "hard":
            excused = context.tolerated[policy.name]
            found = policy.rule.check(view, context.scopes[policy.name])
            if any(count > excused.get(subject, 0) for subject, count in found.items()):
                return False
    return True


def ascending(tiers: Sequence[Tier], values: Sequence[int]) -> tuple[int, ...]:
    """Return values that compare as plans do: greater is better."""
    return tuple(v if tier.sense == "max" else -v for tier, v in zip(tiers, values, strict=True))


def _cheap_prefix(spec: Spec, tiers: Sequence[Tier]) -> int:
    """Return how many leading tiers are sums over admitted replicas; what a rate is worth is none."""
    plain = (isinstance(tier, Retained) or (isinstance(tier, Admitted) and tier.adds_up(spec)) for tier in tiers)
    return next((i for i, cheap in enumerate(plain) if not cheap), len(tiers))


def _worths(context: Context, tiers: Sequence[Tier]) -> dict[ReplicaId, tuple[int, ...]]:
    """Return what each replica, where admitted, adds to leading admitted and retained tiers, judged here."""
    return {
        replica: tuple(_worth(context, tier, workload, replica) for tier in tiers)
        for workload in context.spec.everything
        for replica in workload.replica_ids()
    }


def _worth(context: Context, tier: Tier, workload: Workload, replica: ReplicaId) -> int:
    role = workload.by_role[replica.role]
    if workload.holds or context.spec.band_of(workload) != tier.band:  # type: ignore[attr-defined]
        return 0
    if isinstance(tier, Retained):
        stays = workload.preemptible and replica in context.today.places and goes_on(context, workload)
        return max(1, role.value) if stays else 0
    uses_gpu = bool(role.request.gpus or role.request.share or role.request.mig)
    return role.value if tier.gpu == uses_gpu else 0  # type: ignore[attr-defined]


def goes_on(context: Context, workload: Workload) -> bool:
    """Tell whether what runs of a workload is legal by itself (S5.3)."""
    cards: defaultdict[str, set[str | None]] = defaultdict(set)
    running = [(r, place) for r, place in context.today.places.items() if r.workload == workload.id]
    for replica, place in running:
        if place.gpus:
            card = context.spec.cluster.by_name[place.node].accelerator
            cards["" if workload.mix == "none" else replica.role].add(card)
    if len(running) < max(1, workload.min_replicas) or not _at_a_width(workload, [r for r, _ in running]):
        return False
    if workload.topology is not None and workload.topology.loose:
        if not all_in_order(context.spec.cluster, dict(running), workload):
            return False
        if not _groups_enough(workload, {r for r, _ in running}):
            return False
    elif _grouped(workload) and not _whole_groups(workload, {r for r, _ in running}):
        return False
    return not workload.atomic or workload.mix == "any" or all(len(kinds) == 1 for kinds in cards.values())


def _best_of(context: Context, tiers: Sequence[Tier], options: list[Places]) -> Optimum | None:
    best: tuple[int, ...] | None = None
    ties: list[Places] = []
    for places in options:
        view = context.view_of_all(places)
        if not keeps_hard(context, view):
            continue
        values = ascending(tiers, [tier.measure(view, context) for tier in tiers])
        if best is None or values > best:
            best, ties = values, []
        if values == best:
            ties.append(places)
    if best is None:
        return None
    return Optimum(tuple(tiers), ascending(tiers, best), tuple(ties))


# ---------------------------------------------------------------------- legal placements


@dataclass
class Stock:
    """What is left of one node while replicas are placed and taken off again; `card` is one GPU's memory in MiB."""

    node: Node
    card: int
    cpu: int = 0
    memory: int = 0
    resources: dict[str, int] = field(default_factory=dict)
    compute: dict[int, int] = field(default_factory=dict)
    vram: dict[int, int] = field(default_factory=dict)
    holders: dict[int, int] = field(default_factory=dict)
    on: dict[int, list[Role]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        node = self.node
        self.cpu, self.memory, self.resources = node.cpu, node.memory, dict(node.resources)
        sound = [] if node.down else [g for g in range(node.gpus) if g not in node.failed_gpus]
        self.compute = dict.fromkeys(sound, 1000)
        self.vram = dict.fromkeys(sound, 1000 * self.card)
        self.holders = dict.fromkeys(sound, 0)

    def fits(self, role: Role, gpus: tuple[int, ...], instance: str = "") -> bool:
        asked = role.request
        if asked.cpu > self.cpu or asked.memory > self.memory:
            return False
        for name, amount in asked.resources.items():
            if amount > self.resources.get(name, 0):
                return False
        for gpu in gpus:
            if gpu not in self.compute or (asked.share is None and self.holders[gpu]):
                return False
        if self.node.mechanism != "fraction" and gpus:
            if asked.share is not None and any(role.request.gpus for role in self.on[gpus[0]]):
                return False
            return suits(self.node, self.card, {**self.on, **{gpu: [*self.on[gpu], role] for gpu in gpus}})
        if asked.share is None:
            return True
        return self.compute[gpus[0]] >= taken(asked.share, self.node)[0] and self.vram[gpus[0]] >= self._vram_of(role)

    def _vram_of(self, role: Role) -> int:
        share = role.request.share
        if share is None:
            return 1000 * self.card
        return taken(share, self.node)[0] * self.card if share.memory is None else 1000 * share.memory

    def change(self, role: Role, gpus: tuple[int, ...], sign: int, instance: str = "") -> None:
        asked = role.request
        self.cpu -= sign * asked.cpu
        self.memory -= sign * asked.memory
        for name, amount in asked.resources.items():
            self.resources[name] = self.resources.get(name, 0) - sign * amount
        for gpu in gpus:
            self.compute[gpu] -= sign * (taken(asked.share, self.node)[0] if asked.share else 1000)
            self.vram[gpu] -= sign * self._vram_of(role)
            self.holders[gpu] += sign
            self.on[gpu].append(role) if sign > 0 else self.on[gpu].remove(role)


def stock_of(spec: Spec) -> dict[str, Stock]:
    """Return what the empty nodes of a Spec have, by name."""
    cards = {name: card.memory for name, card in spec.accelerators.items()}
    return {n.name: Stock(n, cards[n.accelerator] if n.accelerator else 0) for n in spec.cluster.nodes}


@dataclass(frozen=True)
class _Step:
    """One replica to decide on; `alike` where the replica before it differs from it in nothing."""

    replica: ReplicaId
    workload: Workload
    role: Role
    standing: int  # 0: its place stands today, 1: its place is gone, 2: it waits
    alike: bool
    last: bool  # of its workload


class _Search:
    """Goes through the legal placements of a Spec, policies aside, up to the symmetry that the module tells."""

    def __init__(self, context: Context, found: Callable[[Places], None]) -> None:
        self.context = context
        self.found = found
        spec = context.spec
        self.stock: Mapping[str, Stock] = self._stock(spec)
        self.order = {node.name: index for index, node in enumerate(spec.cluster.nodes)}
        self.held = {place.node for place in context.today.places.values()}
        self.places: dict[ReplicaId, Place] = {}
        self.steps = [step for workload in spec.everything for step in self._steps_of(workload)]

    def _stock(self, spec: Spec) -> Mapping[str, Stock]:
        return stock_of(spec)

    def _steps_of(self, workload: Workload) -> list[_Step]:
        found = []
        for role in workload.roles:
            own = [ReplicaId(workload.id, role.name, i) for i in range(role.replicas)]
            ranked = sorted(own, key=lambda r: (self._standing(r), r.ordinal))
            before = None
            for replica in ranked:
                standing = self._standing(replica)
                alike = standing > 0 and standing == before and not _grouped(workload)
                found.append((replica, workload, role, standing, alike))
                before = standing
        return [_Step(*parts, last=index == len(found) - 1) for index, parts in enumerate(found)]

    def _standing(self, replica: ReplicaId) -> int:
        today = self.context.today
        return 0 if replica in today.places else 1 if replica in today.lost else 2

    def run(self) -> None:
        """Call `found` with each placement; it is changed afterwards."""
        leaf = self.found

        def kept(places: Places) -> None:
            again = restarted(self.context, places)
            if again is None:
                return
            assert again <= self.context.view(places).restarted, (again, places)
            if not again & self.context.today.fixed:
                leaf(places)

        leaning = any(r.request.share and r.request.share.leans for w in self.context.spec.workloads for r in w.roles)
        if (self.context.today.settings or leaning) and not isinstance(self, PartSearch):
            self.found = kept
        self._decide(0, None)

    def _decide(self, index: int, before: Place | None) -> None:
        """Try every option of a replica; `before` is where the replica before it went, None if nowhere."""
        if index == len(self.steps):
            self.found(self.places)
            return
        step = self.steps[index]
        for place in self._options(step, before):
            if place is not None:
                stock = self.stock[place.node]
                if not stock.fits(step.role, place.gpus, place.instance):
                    continue
                stock.change(step.role, place.gpus, 1, place.instance)
                self.places[step.replica] = place
            if not step.last or self._whole(step.workload):
                self._decide(index + 1, place)
            if place is not None:
                stock.change(step.role, place.gpus, -1, place.instance)
                del self.places[step.replica]

    def _options(self, step: _Step, before: Place | None) -> Iterator[Place | None]:
        today = self.context.today
        here = today.places.get(step.replica)
        if here is not None:
            yield here
        if (step.alike and before is None) or not self._turn(step):
            yield None
            return
        if here is None or step.workload.movable:
            for place in self._new_places(step):
                if place != here and not (step.alike and before and self._key(place) < self._key(before)):
                    yield place
        if step.replica not in today.protected:
            yield None

    def _turn(self, step: _Step) -> bool:
        """Tell whether all replicas of the role that claim places before this one are admitted.

        Of what is not atomic and could not go on as it is, what was lost and what runs come in any order.
        """
        return (
            step.standing == 0
            or (step.standing == 1 and not step.workload.atomic and not goes_on(self.context, step.workload))
            or _grouped(step.workload)
            or all(
                other.replica in self.places
                for other in self.steps
                if (other.workload.id, other.role.name) == (step.workload.id, step.role.name)
                and other.standing < step.standing
            )
        )

    def _key(self, place: Place) -> tuple[int, tuple[int, ...], str]:
        return self.order[place.node], place.gpus, place.instance

    def _new_places(self, step: _Step) -> Iterator[Place]:
        for name, gpus in self._hosts[step.workload.id, step.role.name]:
            if name in self.held or self.stock[name].node.islands or self.stock[name].node.sockets:
                choices: Iterator[tuple[int, ...]] = combinations(gpus, step.role.request.gpu_count)
            else:
                choices = self._canonical(step.role, name, gpus)
            yield from (Place(name, chosen) for chosen in choices if self._together(step, name, chosen))

    def _together(self, step: _Step, name: str, gpus: tuple[int, ...]) -> bool:
        """Tell whether GPUs lie in one island where several do by default, and in one of each level demanded."""
        node, topology = self.stock[name].node, step.workload.topology
        levels = set()
        if topology is not None:
            levels |= {
                topology.within,
                *(g.within for g in topology.groups if step.role.name in (g.roles or {"": 1})),
            }
        if len(gpus) > 1 and not (topology is not None and topology.across):
            levels.add("island")
        parts = {"island": node.islands, "socket": node.sockets}
        return all(
            not parts.get(level) or any(set(gpus) <= set(part) for part in parts[level]) for level in levels if level
        )

    def _canonical(self, role: Role, name: str, gpus: list[int]) -> Iterator[tuple[int, ...]]:
        """Yield GPUs of a node that holds nothing today: those in use, and fresh ones in order."""
        count = role.request.gpu_count
        holders = self.stock[name].holders
        fresh = [gpu for gpu in gpus if not holders[gpu]]
        if role.request.share is not None:
            yield from ((gpu,) for gpu in gpus if holders[gpu])
        if len(fresh) >= count:
            yield tuple(fresh[:count])

    @cached_property
    def _hosts(self) -> dict[tuple[str, str], list[tuple[str, list[int]]]]:
        """Per role, the nodes that may newly take it, each with its healthy GPUs."""
        spec = self.context.spec
        return {
            (workload.id, role.name): [
                (node.name, list(self.stock[node.name].compute))
                for node in spec.cluster.nodes
                if welcomes(workload, role, node)
            ]
            for workload in spec.everything
            for role in workload.roles
        }

    def _whole(self, workload: Workload) -> bool:
        """Tell whether as many replicas of a workload are admitted as may be, on accelerators that may mix."""
        own = [r for r in self.places if r.workload == workload.id]
        if workload.atomic and not workload.elastic and len(own) not in (0, workload.replicas):
            return False
        if own and not _at_a_width(workload, own):
            return False
        if own and (len(own) < workload.min_replicas or not _groups_enough(workload, set(own))):
            return False
        return not workload.atomic or not self._mixed(workload, own)

    def _mixed(self, workload: Workload, own: list[ReplicaId]) -> bool:
        cards: defaultdict[str, set[str | None]] = defaultdict(set)
        for replica in own:
            if self.places[replica].gpus:
                card = self.stock[self.places[replica].node].node.accelerator
                cards["" if workload.mix == "none" else replica.role].add(card)
        return workload.mix != "any" and any(len(kinds) > 1 for kinds in cards.values())


def _grouped(workload: Workload) -> bool:
    """Tell whether it matters which of a workload's alike replicas is where: groups are of consecutive ones."""
    return workload.topology is not None and bool(workload.topology.groups)


def _whole_groups(workload: Workload, own: set[ReplicaId]) -> bool:
    for group in workload.topology.groups if workload.topology else ():
        roles = group.roles or {"": group.of or 1}
        for replica in own:
            number = replica.ordinal // roles.get(replica.role, 1)
            for role, size in roles.items() if replica.role in roles else ():
                if any(ReplicaId(workload.id, role, number * size + i) not in own for i in range(size)):
                    return False
    return True


def _groups_enough(workload: Workload, own: set[ReplicaId]) -> bool:
    """Tell whether enough outermost groups have anybody, where groups inside have a minimum."""
    topology = workload.topology
    if topology is None or not topology.loose:
        return True
    first = topology.groups[0]
    roles = first.roles or {"": first.of or 1}
    all_of_them = min(workload.by_role[role].replicas // size for role, size in roles.items())
    least = first.minimum if first.minimum is not None else all_of_them if workload.atomic else 0
    return len({r.ordinal // roles[r.role] for r in own if r.role in roles}) >= least


def _at_a_width(workload: Workload, own: list[ReplicaId]) -> bool:
    for role in workload.roles:
        count = sum(replica.role == role.name for replica in own)
        if role.least is not None and count not in range(role.least, role.replicas + 1, role.step):
            return False
    return True


# ---------------------------------------------------------------------- parts of GPUs


@cache
def _layouts_of(geometry: Geometry) -> tuple[frozenset[frozenset[str]], Mapping[tuple[str, ...], list[list[str]]]]:
    """Return every legal set of instances of one GPU, and those of every multiset of profiles."""
    sets, of_multiset = set(), defaultdict[tuple[str, ...], list[list[str]]](list)
    for layout in layouts(geometry):
        texts = [str(instance) for instance in layout]
        sets.add(frozenset(texts))
        of_multiset[tuple(sorted(text.split("@")[0] for text in texts))].append(texts)
    return frozenset(sets), of_multiset


@dataclass
class PartStock(Stock):
    """A node whose GPUs can be cut: `parts` are the instances in use, those of GPUs without a layout today at `?`."""

    geometry: Geometry | None = None
    today: Mapping[int, Layout] = field(default_factory=dict)
    parts: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))

    def fits(self, role: Role, gpus: tuple[int, ...], instance: str = "") -> bool:
        asked = role.request
        if not instance:
            outside = not asked.mig and (asked.share is None or "fraction" in asked.share.modes)
            return outside and super().fits(role, gpus) and not any(self.parts[gpu] for gpu in gpus)
        if not super().fits(Role("", 1, replace(asked, mig="", share=None), 0), ()) or gpus[0] not in self.compute:
            return False
        together = [*self.parts[gpus[0]], instance]
        if self.holders[gpus[0]] != len(self.parts[gpus[0]]) or self.geometry is None:
            return False
        sets, multisets = _layouts_of(self.geometry)
        if gpus[0] in self.today:
            return len(set(together)) == len(together) and frozenset(together) in sets
        return tuple(sorted(text.split("@")[0] for text in together)) in multisets

    def change(self, role: Role, gpus: tuple[int, ...], sign: int, instance: str = "") -> None:
        if not instance:
            super().change(role, gpus, sign)
            return
        super().change(Role("", 1, replace(role.request, mig="", share=None), 0), (), sign)
        self.holders[gpus[0]] += sign
        own = self.parts[gpus[0]]
        own.append(instance) if sign > 0 else own.remove(instance)


class PartSearch(_Search):
    """The same where GPUs may be cut: starts are gone through on GPUs that are cut today, elsewhere counts do."""

    def _stock(self, spec: Spec) -> Mapping[str, Stock]:
        found = {}
        for node in spec.cluster.nodes:
            card = spec.accelerators[node.accelerator] if node.accelerator else None
            today = {
                index: layout
                for index in range(node.gpus)
                if (layout := self.context.today.layouts.get(f"{node.name}/{index}")) is not None
            }
            geometry = card.mig if card else None
            found[node.name] = PartStock(node, card.memory if card else 0, geometry=geometry, today=today)
        return found

    def run(self) -> None:
        leaf, self.held = self.found, self.held | {n for n, stock in self.stock.items() if stock.today}  # type: ignore[attr-defined]

        def named(places: Places) -> None:
            for told in self._named(places):
                judged(told)

        def judged(told: Places) -> None:
            stay = {r for r, place in told.items() if self.context.today.places.get(r) == place}
            anew = restarted(self.context, told)
            if anew is None:
                return
            again = self._restarted(told, stay) | anew
            assert again == self.context.view(told).restarted & stay, (told, again)
            if not again & self.context.today.fixed:
                leaf(told)

        self.found = named
        super().run()

    def _named(self, places: Places) -> Iterator[Places]:
        """Give the instances of GPUs that are not cut today their starts, in every way where a tier may tell."""
        used: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
        for place in places.values():
            if place.instance.endswith("@?"):
                used[place.node, place.gpus[0]].append(place.instance[:-2])
        ways = []
        for (node, _), profiles in used.items():
            geometry = self.stock[node].geometry  # type: ignore[attr-defined]
            known = _layouts_of(geometry)[1][tuple(sorted(profiles))]
            ways.append(known if "fragmentation" in self.context.spec.objective.tiers else known[-1:])
        for layouts_of_gpus in product(*ways):
            yield self._started(places, dict(zip(used, map(list, layouts_of_gpus), strict=True)))

    def _started(self, places: Places, spare: Mapping[tuple[str, int], list[str]]) -> Places:
        """Return places with their starts, by GPU of those that are spare."""
        told = {}
        for replica, place in places.items():
            if place.instance.endswith("@?"):
                free = spare[place.node, place.gpus[0]]
                text = next(each for each in free if each.startswith(place.instance[:-1]))
                free.remove(text)
                place = place._replace(instance=text)
            told[replica] = place
        return told

    def _restarted(self, places: Places, stay: set[ReplicaId]) -> set[ReplicaId]:
        """Return who restarts in place: on a GPU that is cut anew, or on its node, as the cluster's unit is."""
        unit = self.context.spec.cluster.reconfiguration or "gpu"
        before = self.context.today.layouts
        cut: dict[str, set[str]] = defaultdict(set)
        plain: set[str] = set()
        for place in places.values():
            for gpu in place.gpus:
                if place.instance:
                    cut[f"{place.node}/{gpu}"].add(place.instance)
                else:
                    plain.add(f"{place.node}/{gpu}")
        changed = {gpu for gpu in before if gpu in plain}
        for name, texts in cut.items():
            if name not in before or not texts <= {str(one) for one in before[name]}:
                after = sorted(text.split("@")[0] for text in texts)
                same = name in before and after == sorted(one.profile for one in before[name])
                if not (same and self.context.spec.cluster.positions == "toolChosen"):
                    changed.add(name)
        if unit == "instance":
            return set()
        nodes = {gpu.rpartition("/")[0] for gpu in changed}
        on = {r: places[r] for r in stay if places[r].gpus}
        if unit == "node":
            return {r for r, place in on.items() if place.node in nodes}
        return {r for r, place in on.items() if any(f"{place.node}/{gpu}" in changed for gpu in place.gpus)}

    def _new_places(self, step: _Step) -> Iterator[Place]:
        asked = step.role.request
        if not (asked.mig or asked.share):
            yield from super()._new_places(step)
            return
        for name, gpus in self._hosts[step.workload.id, step.role.name]:
            stock = self.stock[name]
            assert isinstance(stock, PartStock)
            told_apart = name in self.held or stock.node.islands or stock.node.sockets
            choices = [(gpu,) for gpu in gpus] if told_apart else self._open(name, gpus)
            for chosen in choices:
                if asked.share and "fraction" in asked.share.modes and _listed(step.workload, stock.node):
                    yield Place(name, chosen)
                for profile in stock.geometry.profiles if stock.geometry else ():
                    rated = _listed(step.workload, stock.node, f"/{profile.name}")
                    if rated and _may_hold(profile, step.role, stock):
                        starts: tuple[object, ...] = profile.starts if chosen[0] in stock.today else ("?",)
                        yield from (Place(name, chosen, f"{profile.name}@{start}") for start in starts)

    def _open(self, name: str, gpus: list[int]) -> list[tuple[int]]:
        holders = self.stock[name].holders
        fresh = [gpu for gpu in gpus if not holders[gpu]]
        return [(gpu,) for gpu in gpus if holders[gpu]] + [(gpu,) for gpu in fresh[:1]]


def _listed(workload: Workload, node: Node, instance: str = "") -> bool:
    """Tell whether a service that promises a rate says what a replica sustains there."""
    slo = workload.slo
    return slo is None or not slo.listed or f"{node.accelerator}{instance}" in slo.rates


def _may_hold(profile: Profile, role: Role, stock: Stock) -> bool:
    asked = role.request
    if asked.share is None:
        return asked.mig == profile.name
    if "mig" not in asked.share.modes:
        return False
    compute, peak = taken(asked.share, stock.node)
    memory = compute * stock.card / 1000 if asked.share.memory is None else asked.share.memory
    return max(compute, peak) <= profile.milli and memory <= profile.memory


def welcomes(workload: Workload, role: Role, node: Node) -> bool:
    """Tell whether a node may newly take a replica of a role, room aside."""
    if node.down or node.cordoned:
        return False
    for taint in node.taints:
        if taint.effect != "PreferNoSchedule" and not any(t.tolerates(taint) for t in workload.tolerations):
            return False
    asked = role.request
    if not (asked.gpus or asked.share or asked.mig):
        return True
    if role.accelerators and node.accelerator not in role.accelerators:
        return False
    return asked.share is None or "mig" in asked.share.modes or "fraction" in asked.share.modes

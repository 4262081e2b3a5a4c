"""A Spec compiled to integers: shapes, classes, who may be where, and what runs today."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from dovetail.mig import Geometry
from dovetail.objectives import Tier, tiers_of
from dovetail.objectives.disruption import Moves, Recut
from dovetail.placement import Makes, least_profiles, profiles_for
from dovetail.placement.clients import Terms, equal_parts, terms_of, uncut
from dovetail.problem.classes import NodeClass, classes_of
from dovetail.problem.counts import least_counts
from dovetail.problem.present import Present, Standing, counted, standing_of
from dovetail.problem.shapes import Shape, shapes_of
from dovetail.rules import Context, Domain
from dovetail.spec import EqualParts, Layout, Node, Request, Setting, Spec, Workload
from dovetail.spec.cluster import GPU_LEVEL
from dovetail.spec.inside import INNER_LEVELS, Mask, Parts, holds, mask_of
from dovetail.spec.workload import MILLI

_Kind = tuple[int, str | None, str, EqualParts | None, tuple[str, ...]]
"""A shape, and all of a node that decides how its GPUs may be shared."""


@dataclass(frozen=True)
class Problem:
    """What the engine solves.

    Parameters
    ----------
    nodes : the nodes that can host anything; a node's position here is its index everywhere in the engine.
    standing : who runs at each place that still stands.
    """

    context: Context
    shapes: tuple[Shape, ...]
    nodes: tuple[Node, ...]
    classes: tuple[NodeClass, ...]
    standing: Standing

    @property
    def spec(self) -> Spec:
        """The Spec that was compiled."""
        return self.context.spec

    @cached_property
    def tiers(self) -> tuple[Tier, ...]:
        """The tiers of the objective, most important first."""
        return tiers_of(self.context)

    @cached_property
    def search_tiers(self) -> tuple[Tier, ...]:
        """The tiers a search follows: the objective's, then moves, so that nothing moves for nothing (S5.3).

        GPUs that are cut anew come last, so that layouts of today stay where they do as well.
        """
        quiet = [tier for tier in (Moves(),) if self.context.today.places and tier not in self.tiers]
        return (*self.tiers, *quiet, *([Recut()] if self.context.today.layouts else []))

    @cached_property
    def node_index(self) -> Mapping[str, int]:
        """Node names to indices."""
        return {node.name: index for index, node in enumerate(self.nodes)}

    @cached_property
    def ranked(self) -> tuple[Workload, ...]:
        """The workloads for which it matters who of them is next to whom."""
        return tuple(workload for workload in self.spec.workloads if workload.ranked)

    @cached_property
    def in_squads(self) -> tuple[Workload, ...]:
        """The workloads of which so many groups must be there, each perhaps in part."""
        return tuple(workload for workload in self.spec.workloads if workload.squads)

    @cached_property
    def tree_order(self) -> Mapping[str, int]:
        """Node names to positions in the tree of domains: nodes of one domain stand together, as first met."""
        first: dict[tuple[str, str | None], int] = {}
        levels = self.spec.cluster.levels
        keys = {
            node.name: tuple(first.setdefault((level, node.domain(level)), index) for level in levels)
            for index, node in enumerate(self.nodes)
        }
        return {name: position for position, name in enumerate(sorted(keys, key=keys.__getitem__))}

    @cached_property
    def class_of(self) -> tuple[int, ...]:
        """Class index per node index."""
        found = [0] * len(self.nodes)
        for node_class in self.classes:
            for node in node_class.nodes:
                found[node] = node_class.index
        return tuple(found)

    @cached_property
    def hosted(self) -> tuple[tuple[int, ...], ...]:
        """Per class, the shapes that a node of it may newly take; classes of one make share them."""
        of = self.makes.of
        return tuple(self.hosted_by_make[of[node_class.nodes[0]]] for node_class in self.classes)

    @cached_property
    def hosted_by_make(self) -> tuple[tuple[int, ...], ...]:
        """Per make of node, the shapes that a node of it may newly take, ascending."""
        found: list[list[int]] = [[] for _ in self.makes.members]
        for shape in self.shapes:
            for make in self.makes_for(shape):
                found[make].append(shape.index)
        return tuple(tuple(shapes) for shapes in found)

    def makes_for(self, shape: Shape) -> frozenset[int]:
        """Return the makes of node that may newly take a shape, in some mode where it takes part of a GPU."""
        makes = self.makes.hosting(shape.workload, shape.role)
        if not shape.request.partial:
            return makes
        return frozenset(make for make in makes if self.modes(shape.index, self.makes.members[make][0]))

    @cached_property
    def makes(self) -> Makes:
        """The nodes by make."""
        return Makes(self.nodes, self.spec.accelerators)

    @cached_property
    def counts(self) -> int:
        """How many counts the exact model of the whole has at the least: per node and shape, for shares per GPU."""
        return least_counts(self)

    @cached_property
    def bound(self) -> frozenset[int]:
        """The shapes of which all there may be runs and may not move: they are nowhere but where they run."""
        still = (shape for shape in self.shapes if not shape.workload.movable)
        return frozenset(shape.index for shape in still if self.running[shape.index] >= shape.demand)

    @cached_property
    def layouts(self) -> tuple[Mapping[int, Layout], ...]:
        """Per node index, today's instances of its GPUs in MIG mode, by GPU."""
        found: list[dict[int, Layout]] = [{} for _ in self.nodes]
        for gpu, layout in self.context.today.layouts.items():
            name, _, index = gpu.rpartition("/")
            if name in self.node_index:
                found[self.node_index[name]][int(index)] = layout
        return tuple(found)

    @cached_property
    def settings(self) -> tuple[Mapping[int, Setting], ...]:
        """Per node index, what today's pools of GPUs with clients are set to, by pool (S3.5)."""
        found: list[dict[int, Setting]] = [{} for _ in self.nodes]
        for (name, pool), setting in self.context.today.settings.items():
            if name in self.node_index:
                found[self.node_index[name]][pool] = setting
        return tuple(found)

    def geometry(self, node: Node) -> Geometry | None:
        """Return what the GPUs of a node can be cut into, None where they cannot be cut."""
        return self.spec.accelerators[node.accelerator].mig if node.accelerator else None

    def card(self, node: Node) -> int:
        """Return the memory of a GPU of a node in MiB, 0 where it has none."""
        return self.spec.accelerators[node.accelerator].memory if node.accelerator else 0

    def request(self, shape: int, node: Node) -> Request:
        """Return what a replica of a shape asks of a node."""
        return self.shapes[shape].on(node.accelerator)

    @cached_property
    def _blocks(self) -> dict[tuple[int, tuple[Parts, Parts, int]], tuple[Mask, ...]]:
        return {}

    def blocks(self, shape: int, node: Node) -> tuple[Mask, ...]:
        """Return the sets of GPUs of which replicas of a shape may have some, the smaller first; 0 for all of a node.

        Those are islands and sockets as far as the shape demands one, or wishes for one (S2.5).
        """
        if not (node.islands or node.sockets):
            return (0,)
        key = shape, (node.islands, node.sockets, node.gpus)
        if key not in self._blocks:
            self._blocks[key] = self._worked_out(self.shapes[shape], node)
        return self._blocks[key]

    def _worked_out(self, shape: Shape, node: Node) -> tuple[Mask, ...]:
        request, topology = shape.request, shape.workload.topology
        if not request.gpus:
            return (0,)
        found = set(node.blocks(request.inside))
        wishes = topology is not None and topology.prefer in INNER_LEVELS
        if wishes or shape.workload.id in self._ruled_inside:
            found |= {each for each in node.sets if any(holds(block, each) for block in found)}
        wide = [block for block in found if block.bit_count() >= request.gpus]
        whole = mask_of(range(node.gpus))
        return tuple(0 if b == whole else b for b in sorted(wide, key=lambda block: (block.bit_count(), block)))

    @cached_property
    def _ruled_inside(self) -> frozenset[str]:
        """The workloads of which rules ask where they are inside nodes."""
        scopes, policies = self.context.scopes, self.spec.policies
        inside = [(p.rule, scopes[p.name]) for p in policies if p.rule.inner_level]
        others = {
            w.id for rule, scope in inside for w in self.spec.everything if rule.other_key(w, scope) is not None
        }
        return frozenset(name for _, scope in inside for name in scope.ids) | others

    def block_of(self, index: int, shape: int, gpus: tuple[int, ...]) -> Mask | None:
        """Return the smallest set of GPUs of a node that holds a replica's, None where it may not have them."""
        mask = mask_of(gpus)
        return next((b for b in self.blocks(shape, self.nodes[index]) if not b or holds(b, mask)), None)

    def set_of(self, index: int, shape: int, gpus: tuple[int, ...]) -> Mask:
        """Return the set that a replica's GPUs count in: that which may have them, else the smallest around them."""
        if (block := self.block_of(index, shape, gpus)) is not None:
            return block
        node = self.nodes[index]
        around = next(each for each in node.sets if holds(each, mask_of(gpus)))
        return 0 if around == mask_of(range(node.gpus)) else around

    @cached_property
    def _modes(self) -> dict[_Kind, tuple[str, ...]]:
        return {}

    def modes(self, shape: int, node: Node) -> tuple[str, ...]:
        """Return how a shape that takes part of a GPU may be on a node: `""` outside MIG, else a profile.

        Of the profiles only those are told that no other one could always stand in for.
        """
        key = shape, node.accelerator, node.mechanism, node.sharing, (node.mig_strategy, *node.leaning)
        if key not in self._modes:
            request = self.request(shape, node)
            card = self.spec.accelerators.get(node.accelerator or "")
            closed = self.closed_modes(self.shapes[shape], node)
            outside = card is not None and uncut(request, node, card.memory)
            outside = outside and not ("time-slice" in closed and not equal_parts(node))
            able = profiles_for if node.mig_strategy == "single" else least_profiles  # others may settle on any
            profiles = () if "mig" in closed else tuple(profile.name for profile in able(request, card))
            self._modes[key] = (*(("",) if outside else ()), *profiles)
        return self._modes[key]

    def closed_modes(self, shape: Shape, node: Node) -> frozenset[str]:
        """Return the modes on a node that hard policies keep all shares of a shape out of, whatever runs today."""
        share, excused = shape.request.share, self.context.tolerated
        leans = () if share is None else share.leans
        here = (lean for lean in leans if not lean.weight and (lean.everywhere or lean.policy in node.leaning))
        firm = (lean for lean in here if shape.workload.id not in excused.get(lean.policy, ()))
        return frozenset(mode for lean in firm for mode in lean.closed)

    def terms(self, shape: int, node: Node) -> Terms | None:
        """Return on what terms a shape may be on GPUs of a node that are shared by equal parts (S3.5)."""
        key = shape, node.accelerator, node.mechanism, node.sharing, (node.mig_strategy, *node.leaning)
        if key not in self._terms:
            card = self.spec.accelerators.get(node.accelerator or "")
            self._terms[key] = None if card is None else terms_of(self.request(shape, node), node, card.memory)
        return self._terms[key]

    def load(self, shape: int, node: Node) -> int:
        """Return the thousandths of one GPU that a replica takes at the least, outside MIG where it is a share.

        Of clients of a GPU none is there among more than it suffers, so that 1/n for each, n the most that it does,
        add up to 1 at the most; rounded down they are valid for bounds.
        """
        request = self.request(shape, node)
        if request.share is None or not equal_parts(node):
            return request.gpu_milli
        terms = self.terms(shape, node)
        return MILLI if terms is None else MILLI // terms.most

    @cached_property
    def _terms(self) -> dict[_Kind, Terms | None]:
        return {}

    @cached_property
    def shapes_of_role(self) -> Mapping[tuple[str, str], int]:
        """Shape index by workload id and role name."""
        return {(m.workload.id, m.role.name): shape.index for shape in self.shapes for m in shape.members}

    @cached_property
    def shapes_of_workload(self) -> Mapping[str, tuple[int, ...]]:
        """Shape indices by workload id."""
        found: dict[str, list[int]] = {}
        for (workload, _), shape in self.shapes_of_role.items():
            found.setdefault(workload, []).append(shape)
        return {workload: tuple(sorted(set(shapes))) for workload, shapes in found.items()}

    @cached_property
    def running(self) -> Counter[int]:
        """Per shape, how many replicas have a place that stands today."""
        total: Counter[int] = Counter()
        for places in self.present.values():
            for place, count in places.items():
                total[place.shape] += count
        return total

    @property
    def fresh(self) -> bool:
        """Whether nothing runs, nor did until its place went: only then do proofs of fleets count these shapes."""
        return not self.context.today.present()

    @cached_property
    def present(self) -> Mapping[int, Mapping[Present, int]]:
        """Per node index, how many replicas run at each place that still stands."""
        return counted(self.standing)

    @cached_property
    def places_of(self) -> Mapping[str, tuple[tuple[int, Present], ...]]:
        """Per workload id, the keys of `standing` where it runs."""
        found: dict[str, list[tuple[int, Present]]] = {}
        for key, replicas in self.standing.items():
            for workload in dict.fromkeys(replica.workload for replica in replicas):
                found.setdefault(workload, []).append(key)
        return {workload: tuple(keys) for workload, keys in found.items()}

    @cached_property
    def lost(self) -> Counter[int]:
        """Per shape, how many replicas ran until their place went."""
        return Counter(self.shapes_of_role[r.workload, r.role] for r in self.context.today.lost)

    @cached_property
    def loosened(self) -> frozenset[str]:
        """The ids of the workloads in groups of which other groups may come before those that run (S5.3).

        These could not go on as they are, or are preemptible.
        """
        found = {workload for workload in self._ran if self.spec.by_id[workload].grouped}
        return frozenset(found - {replica.workload for replica in self.context.today.protected})

    @cached_property
    def broken(self) -> frozenset[int]:
        """The shapes of `loosened` workloads."""
        return frozenset(shape for workload in self.loosened for shape in self.shapes_of_workload[workload])

    @cached_property
    def replaced(self) -> Counter[int]:
        """Per shape of workloads that are not atomic and could not go on as they are, how many lost their place.

        These come before those that run: to replace them costs no move (S5.3).
        """
        goes_on = {replica.workload for replica in (*self.context.today.protected, *self.context.today.preemptible)}
        goes_on |= {workload for workload in self._ran if self.spec.by_id[workload].atomic}
        return Counter({s: n for s, n in self.lost.items() if self.shapes[s].workload.id not in goes_on})

    @cached_property
    def groups_run(self) -> bool:
        """Whether anything runs, or ran until its place went, of workloads in groups."""
        return any(self.spec.by_id[workload].grouped for workload in self._ran)

    @cached_property
    def _ran(self) -> frozenset[str]:
        return frozenset(replica.workload for replica in self.context.today.present())

    @cached_property
    def protected(self) -> Counter[int]:
        """Per shape, how many replicas must stay admitted (S5.3)."""
        return Counter(self.shapes_of_role[r.workload, r.role] for r in self.context.today.protected)

    @cached_property
    def _domains(self) -> dict[str, tuple[Domain, ...]]:
        return {}

    def domains(self, level: str) -> tuple[Domain, ...]:
        """Return the domains of a level, of the level `gpu` too, over the nodes of this Problem."""
        if level not in self._domains:
            self._domains[level] = tuple(self._gpu_domains() if level == GPU_LEVEL else self._node_domains(level))
        return self._domains[level]

    @cached_property
    def _positions(self) -> dict[str, Mapping[str, Sequence[int]]]:
        return {}

    def domains_of(self, level: str, nodes: Iterable[str]) -> list[Domain]:
        """Return the domains of a level that hold any of some nodes, in the order of `domains`."""
        domains = self.domains(level)
        if level not in self._positions:
            found: dict[str, list[int]] = {}
            for position, domain in enumerate(domains):
                for name in domain.nodes:
                    found.setdefault(name, []).append(position)
            self._positions[level] = found
        table = self._positions[level]
        return [domains[i] for i in sorted({i for name in nodes for i in table.get(name, ())})]

    def _gpu_domains(self) -> list[Domain]:
        return [Domain(f"{n.name}/{gpu}", (n.name,), gpu) for n in self.nodes for gpu in n.healthy_gpus()]

    def _node_domains(self, level: str) -> list[Domain]:
        found: dict[str, list[str]] = {}
        for node in self.nodes:
            path = node.domain(level)
            if path is not None:
                found.setdefault(path, []).append(node.name)
        return [Domain(path, tuple(names)) for path, names in found.items()]


def compile_problem(context: Context) -> Problem:
    """Compile a judged Spec into a Problem."""
    up = (node for node in context.spec.cluster.nodes if not node.down)
    nodes = tuple(sorted(up, key=lambda node: node.name))  # documents may tell them in any order
    shapes = shapes_of(context)
    return Problem(context, shapes, nodes, classes_of(context, nodes), standing_of(context, shapes, nodes))

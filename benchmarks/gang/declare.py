"""A case as dovetail's documents: what a user would declare, and the way back from its names.

The scale of a resource is the largest amount that all requests are multiples of, so that bytes stay exact and small;
what a node has beyond such a multiple is of no use to anybody. `cpu_m` and `gpu` are CPU and GPUs, all else are
plain resources. Preferences for a level need no declaration: the tiers `topology` ask for the fewest domains at every
level, outermost first. Node preferences are soft policies below these tiers. Whether all fits is what the tier
`admitted` proves: every pod is worth 1, every one of several jobs the same, and what runs and may be evicted as much
per workload, in one band below.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks.gang import names
from benchmarks.gang.amounts import Amounts
from benchmarks.gang.case import Case, Gang, Job, Running, Together
from benchmarks.gang.meaning import (
    belongs,
    has_own_topology,
    inner,
    levels,
    shunned,
    slices,
    untouched_before,
    widths,
)

Mode = Literal["now", "moves", "evictions"]
Document = dict[str, Any]
GPU = "H100-80GB"
CASE_FILE = "case.yaml"

TIERS: Mapping[Mode, list[Any]] = {
    "now": ["mend", "admitted", "topology", "policies"],
    "moves": ["mend", "admitted", {"disruption": ["moves"]}, "topology", "policies"],
    "evictions": ["mend", "admitted", "topology", "policies"],
}


@dataclass(frozen=True)
class Declared:
    """Documents of one question about a case, the project first.

    Parameters
    ----------
    gang_of : the gang, or the running pods, that a workload's role stands for; the role is empty without roles.
    node_of : the case's name of a node.
    """

    documents: list[Document]
    gang_of: Mapping[tuple[str, str], str]
    node_of: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Unit:
    """One workload: a gang, or a set of gangs that are its roles."""

    name: str
    gangs: tuple[Gang, ...]
    together: Together | None = None


def declare(case: Case, mode: Mode = "now", *, must: bool = False) -> Declared:
    """Return the documents that ask for a case to be planned.

    Parameters
    ----------
    mode : what running pods may do: stay as they are, move, or go.
    must : whether there is to be no plan where any gang has fewer pods than are enough.
    """
    return _Declaration(case, mode, must).made()


class _Declaration:
    def __init__(self, case: Case, mode: Mode, must: bool) -> None:
        self.case, self.mode, self.must = case, mode, must
        self.gangs = tuple(gang for gang in case.gangs if gang.pods)
        self.running = _modelled(case, mode)
        self.level = levels(case)
        self.node = names.hosts(node.name for node in case.nodes)
        self.units = tuple(self._units())
        self.name = names.labels([gang.name for gang in self.gangs], "gang", [unit.name for unit in self.units])
        self.other = names.labels([each.name for each in self.running], "running", self._taken())
        self.amounts = Amounts(case, self.gangs, self.running)
        self.policies: list[Document] = []
        self.gpus_used: dict[str, int] = {}

    def _taken(self) -> list[str]:
        return [*self.name.values(), *(unit.name for unit in self.units)]

    def made(self) -> Declared:
        """Return the documents."""
        for gang in self.gangs:
            self._place_rules(gang)
        for index, each in enumerate(self.case.sets):
            self._set_rules(index, each)
        self._admission_rules()
        self._limit_rules()
        self._reserve_rules()
        for run in self.running:
            self._running_rules(run)
        project = _document("Project", "case", {"objective": "default", "documents": [CASE_FILE]})
        documents = [project, self._cluster(), *self._workloads(), *self.policies, self._objective()]
        placements = self._placements()
        if placements:
            documents.append(_document("Placement", "today", {"placements": placements}))
        return Declared(documents, dict(self._gang_of()), {safe: name for name, safe in self.node.items()})

    # -- hardware

    def _cluster(self) -> Document:
        levels = [safe for safe in self.level.values() if safe != "node"] + ["node"]
        groups = [self._node_group(index, node.name) for index, node in enumerate(self.case.nodes)]
        return _document("Cluster", "case", {"levels": [{"name": each} for each in levels], "nodeGroups": groups})

    def _node_group(self, index: int, node: str) -> Document:
        host, has = self.case.by_name[node], self.amounts.of_node(node)
        domains = {
            safe: {"name": self._part(level, host.domain.get(level), node)}
            for level, safe in self.level.items()
            if safe != "node"
        }
        group: Document = {"name": f"g{index}", "names": [self.node[node]], "gpus": has.gpus, "memory": 0}
        group |= {"cpu": f"{has.cpu}m", "resources": has.resources, "domains": domains}
        return group | ({"accelerator": GPU} if has.gpus else {})

    def _part(self, level: str, path: str | None, node: str) -> str:
        """Return a name for a domain that is unique within its level; without one a node is a domain of its own."""
        found = sorted({h.domain[level] for h in self.case.nodes if level in h.domain})
        return f"alone-{self.case.nodes.index(self.case.by_name[node])}" if path is None else f"d{found.index(path)}"

    # -- work

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
        same = len({(g.hosts(self.case), tuple(sorted(g.prefer_nodes.items())), g.priority) for g in gangs}) == 1
        simple = all(
            g.max_per_node is None
            and not g.spread
            and not g.shrinks
            and g.least == g.pods
            and self._alike(together, g)
            for g in gangs
        )
        whole = all(len({gang.name in listed for gang in gangs}) == 1 for listed in self.case.lists)
        return plain and same and simple and whole

    def _alike(self, together: Together, gang: Gang) -> bool:
        """Tell whether a gang asks for no topology of its own beside that of its set."""
        of_set = {"required": together.required, "preferred": together.preferred}
        return all(of_set.get(key) == level for key, level in gang.topology.items())

    def _gang_of(self) -> Iterable[tuple[tuple[str, str], str]]:
        for unit in self.units:
            for gang in unit.gangs:
                yield self._key(gang), gang.name
        for each in self.running:
            yield (self.other[each.name], ""), each.name

    def _key(self, gang: Gang) -> tuple[str, str]:
        unit = next(unit for unit in self.units if gang in unit.gangs)
        return (unit.name, self.name[gang.name]) if unit.together else (self.name[gang.name], "")

    def _workloads(self) -> Iterable[Document]:
        for unit in self.units:
            yield self._workload(unit)
        for each in self.running:
            pods = sum(each.on.values())
            spec: Document = {"type": "gang", "replicas": pods, "value": self._worth // max(1, pods)}
            spec |= {"request": self.amounts.request(each.per_pod), "priority": each.priority}
            spec |= {"movable": self.mode == "moves", "preemptible": self.mode == "evictions", "communicates": False}
            yield _document("Workload", self.other[each.name], spec)

    def _workload(self, unit: Unit) -> Document:
        first, within = unit.gangs[0], inner(self.case, [unit.gangs[0].required], unit.together)
        spec: Document = {"type": "gang", "priority": self._pending_priority(first)}
        topology: Document = {"within": self.level.get(within, within)} if within and not self._shared(first) else {}
        groups = [group for gang in unit.gangs for group in self._groups(gang, within, bool(unit.together))]
        topology |= {"groups": groups} if groups else {}
        spec |= {"topology": topology} if topology or self._counts_alone(first) else {}
        roles = [self._role(gang) for gang in unit.gangs]
        if unit.together:
            spec["roles"] = [{"name": self.name[g.name], **role} for g, role in zip(unit.gangs, roles, strict=True)]
        else:
            spec |= roles[0]
        named = unit.name if unit.together else self.name[first.name]
        return _document("Workload", named, spec, labels=self._labels(first))

    def _shared(self, gang: Gang) -> bool:
        """Tell whether a gang that is a workload by itself has its topology from its set, as a policy says it."""
        together = self.case.set_of(gang.name)
        alone = all(gang.name not in [g.name for g in unit.gangs] for unit in self.units if unit.together)
        return alone and together is not None and not has_own_topology(together, gang.topology)

    def _counts_alone(self, gang: Gang) -> bool:
        """Tell whether a gang of a set counts by itself as well; saying anything of topology makes it so."""
        together = self.case.set_of(gang.name)
        return together is not None and has_own_topology(together, gang.topology)

    def _role(self, gang: Gang) -> Document:
        least, most = widths(self.case, gang)
        replicas: Any = most if least == most else {"min": least, "max": most}
        return {"replicas": replicas, "request": self.amounts.request_of(gang), "value": self._value(gang)}

    def _groups(self, gang: Gang, within: str | None, roles: bool) -> Iterable[Document]:
        for level, size in slices(self.case, gang, within):
            count = {"roles": {self.name[gang.name]: size}} if roles else {"of": size}
            yield {**count, "within": self.level.get(level, level)}

    def _value(self, gang: Gang) -> int:
        """Return what a pod is worth: with several jobs each job is worth the same, else each pod."""
        job = _job_of(self.case, gang)
        if job is None:
            return 1
        pods = {each.name: sum(self.case.gang[g].pods for g in each.gangs) or 1 for each in self.case.jobs}
        whole = math.lcm(*pods.values())
        return min(10**9, whole // pods[job.name])

    def _labels(self, gang: Gang) -> dict[str, str]:
        found = {f"set-{index}": "in" for index, each in enumerate(self.case.sets) if gang.name in each.gangs}
        job = _job_of(self.case, gang)
        return found | ({"job": f"j{self.case.jobs.index(job)}"} if job else {})

    def _pending_priority(self, gang: Gang) -> int:
        if gang.priority is not None:
            return gang.priority
        return max((each.priority for each in self.running), default=-1) + 1

    @property
    def _worth(self) -> int:
        """What each running workload is worth, whatever its number of pods."""
        return min(10**9, math.lcm(1, *(sum(each.on.values()) or 1 for each in self.running)))

    def _objective(self) -> Document:
        spec: Document = {"tiers": TIERS[self.mode]}
        if self.mode == "evictions":
            spec["bands"] = [min(self._pending_priority(gang) for gang in self.gangs)]
            spec["bands"] += [min(run.priority for run in self.running)]
        return _document("Objective", "default", spec)

    # -- what runs

    def _placements(self) -> Document:
        found: Document = {}
        for gang in self.gangs:
            if not gang.shrinks:
                workload, role = self._key(gang)
                self._put(found, f"{workload}.{role}" if role else workload, gang.kept, gang.per_pod)
        for each in self.running:
            self._put(found, self.other[each.name], each.on, each.per_pod)
        return found

    def _put(self, found: Document, name: str, on: Mapping[str, int], per_pod: Mapping[str, int]) -> None:
        index, gpus = 0, self.amounts.gpus(per_pod)
        for node, count in sorted(on.items()):
            for _ in range(count):
                place: Document = {"node": self.node.get(node, node)}
                if gpus:
                    start = self.gpus_used.get(node, 0)
                    self.gpus_used[node] = start + gpus
                    place["gpus"] = list(range(start, start + gpus))
                found[f"{name}#{index}"] = place
                index += 1

    # -- rules

    def _policy(
        self, gangs: Iterable[str], rule: Document, nodes: Iterable[str] | None = None, weight: int = 0
    ) -> None:
        match: Document = {"workloads": {"names": sorted(set(gangs))}}
        if nodes is not None:
            match["nodes"] = {"names": sorted(self.node[node] for node in nodes)}
        enforcement: Any = {"soft": {"weight": weight}} if weight else "hard"
        spec = {"match": match, "rule": rule, "enforcement": enforcement}
        self.policies.append(_document("Policy", f"p{len(self.policies):03}", spec))

    def _ids(self, gangs: Iterable[str]) -> list[str]:
        present = {gang.name for gang in self.gangs}
        return sorted({self._key(self.case.gang[name])[0] for name in gangs if name in present})

    def _place_rules(self, gang: Gang) -> None:
        own, hosts, everywhere = self._ids([gang.name]), gang.hosts(self.case), frozenset(self.node)
        if not gang.shrinks and hosts != everywhere:
            self._policy(own, {"forbid": {}}, everywhere - hosts)
        if gang.max_per_node is not None:
            self._at_most(own, "node", gang.max_per_node)
        for each in gang.spread:
            self._at_most(own, self.level.get(each.level, each.level), each.most)
        for weight, nodes in shunned(gang, everywhere):
            self._policy(own, {"forbid": {}}, nodes, min(weight, 10**6))

    def _at_most(self, own: list[str], level: str, most: int) -> None:
        if most > 0:
            self._policy(own, {"spread": {"over": level, "maxPerDomain": most}})
        else:
            self._policy(own, {"forbid": {}}, self.node)

    def _set_rules(self, index: int, each: Together) -> None:
        own = self._ids(each.gangs)
        if len(own) < 2:
            return
        label = {"by": "label", "label": f"set-{index}"}
        if each.required:
            self._policy(own, {"colocate": {**label, "at": self.level.get(each.required, each.required)}})
        else:  # a wish below all tiers on topology, so that the set counts as one
            at = self.level.get(each.preferred or self.case.levels[0], each.preferred)
            self._policy(own, {"colocate": {**label, "at": at}}, weight=1)
        if each.distinct:
            at = self.level.get(each.distinct, each.distinct)
            self._policy(own, {"separate": {"by": "workload", "at": at}})

    def _admission_rules(self) -> None:
        """Admit what belongs together whole or not at all: jobs, and sets that are not one workload."""
        loose = {name for each in self.case.sets if each.partial for name in each.gangs}
        if self.must:
            self._admitted([g.name for g in self.gangs if g.name not in loose], {"atLeast": "minimum"})
        together = {"atLeast": "minimum", "per": "label", "orNone": True}
        for job in self.case.jobs:
            self._admitted([name for name in job.gangs if name not in loose], {**together, "label": "job"})
        for index, each in enumerate(self.case.sets):
            rule = {**together, "label": f"set-{index}"}
            if not each.partial:
                self._admitted(each.gangs, rule)
            if each.min_pods is not None:
                self._admitted(each.gangs, {**rule, "atLeast": max(1, each.min_pods)})
            for policy, least in each.min_subgroups.items():
                members = [self.case.gang[name] for name in each.gangs if belongs(self.case.gang[name], policy)]
                pods = sum(sorted(gang.least for gang in members)[:least])
                self._admitted([gang.name for gang in members], {**rule, "atLeast": max(1, pods)})

    def _admitted(self, gangs: Iterable[str], rule: Document) -> None:
        own = self._ids(gangs)
        if own and (len(own) > 1 or rule["atLeast"] != "minimum" or self.must):
            self._policy(own, {"admission": rule})

    def _limit_rules(self) -> None:
        for each in self.case.limits:
            kept = [(self.case.gang[name].charged, self.case.gang[name].per_pod) for name in each.gangs]
            back = [run for run in self.running if run.queue and run.queue in each.queues]
            kept += [(run.on, run.per_pod) for run in back]
            most = max(0, each.most) + sum(sum(on.values()) * per.get(each.resource, 0) for on, per in kept)
            limit = self.amounts.limit(each.resource, most)
            if limit is not None:
                own = [*self._ids(each.gangs), *(self.other[run.name] for run in back)]
                self._policy(own, {"quota": {"limit": limit}})

    def _reserve_rules(self) -> None:
        for each in self.case.reserve:
            rule = {"reserve": {"domains": each.count, "of": self.level.get(each.level, each.level)}}
            nodes = untouched_before(self.case, each.level, [run.name for run in self.running])
            spec = {"match": {"nodes": {"names": sorted(self.node[node] for node in nodes)}}, "rule": rule}
            self.policies.append(_document("Policy", f"p{len(self.policies):03}", {**spec, "enforcement": "hard"}))

    def _running_rules(self, each: Running) -> None:
        if each.eligible is not None and self.node.keys() - each.eligible:
            self._policy([self.other[each.name]], {"forbid": {}}, self.node.keys() - each.eligible)


def _modelled(case: Case, mode: Mode) -> tuple[Running, ...]:
    """Return the running pods that a question is about: those that may move, or go for what is more urgent."""
    known = {node.name for node in case.nodes}
    here = [each for each in case.running if each.on and each.on.keys() <= known]
    if mode == "moves":
        return tuple(each for each in here if each.movable)
    asked = [gang.priority for gang in case.gangs if gang.priority is not None]
    return tuple(
        e for e in here if mode == "evictions" and e.evictable and all(e.priority < least for least in asked)
    )


def _job_of(case: Case, gang: Gang) -> Job | None:
    return next((job for job in case.jobs if gang.name in job.gangs), None)


def _document(kind: str, name: str, spec: Document, labels: Mapping[str, str] | None = None) -> Document:
    metadata: Document = {"name": name, **({"labels": dict(labels)} if labels else {})}
    return {"apiVersion": "dovetail/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}

"""A case as dovetail's documents: what a user would declare, and the way back from its names.

The scale of a resource is the largest amount that all requests are multiples of, so that bytes stay exact and small;
what a node has beyond such a multiple is of no use to anybody. `cpu_m` and `gpu` are CPU and GPUs, all else are
plain resources. Preferences for a level need no declaration: the tiers `topology` ask for the fewest domains at
every level, outermost first. Node preferences are soft policies below these tiers. As things are, the tier `admitted`
proves how many pods fit; every job has a token that is worth more than all pods (`tokens`). Where pods may move or
go, all that has to fit is demanded, and disruption is the first tier.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.gang import tokens
from benchmarks.gang.amounts import Amounts
from benchmarks.gang.case import Case, Gang
from benchmarks.gang.meaning import has_own_topology, inner, slices, step, widths
from benchmarks.gang.rules import Document, document, policies
from benchmarks.gang.seats import core, seats, without_hope
from benchmarks.gang.work import Mode, Unit, Work, voice

GPU = "H100-80GB"
CASE_FILE = "case.yaml"

TIERS: Mapping[Mode, list[Any]] = {
    "now": ["mend", "admitted", "topology", "policies"],
    "moves": ["mend", {"disruption": ["moves"]}, "admitted", "topology", "policies"],
    "evictions": ["mend", {"disruption": ["evicted"]}, "admitted", "topology", "policies"],
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


def declare(case: Case, mode: Mode = "now", *, must: bool = False) -> Declared:
    """Return the documents that ask for a case to be planned.

    Parameters
    ----------
    mode : what running pods may do: stay as they are, move, or go.
    must : whether there is to be no plan where any gang has fewer pods than are enough.
    """
    return _Declaration(Work(without_hope(case), mode), must).made()


class _Declaration:
    def __init__(self, work: Work, must: bool) -> None:
        self.work, self.case, self.must = work, work.case, must
        self.tokens = list(tokens.tokens(work.case))
        self.amounts = Amounts(work.case, work.gangs, work.running, work.arrears)
        self.gpus_used: dict[str, int] = {}
        self.staying = self._worth_of_staying()
        self.first = 1 + work.priority
        self.worth = 1 + sum(self.staying[each.name] * each.pods for each in self.work.running)

    def _worth_of_staying(self) -> Mapping[str, int]:
        """Return what a pod of each that runs is worth: of as many that go, those of lower priorities do."""
        if self.work.mode != "evictions":
            return dict.fromkeys((each.name for each in self.work.running), 0)
        whole = math.lcm(*(each.pods for each in self.work.running))
        return {each.name: self.work.rank(each) * whole // each.pods for each in self.work.running}

    def made(self) -> Declared:
        """Return the documents."""
        project = document("Project", "case", {"objective": "default", "documents": [CASE_FILE]})
        rules = policies(self.work, self.amounts, must=self.must)
        documents = [project, self._cluster(), *self._workloads(), *rules, self._objective()]
        placements = self._placements()
        if placements:
            documents.append(document("Placement", "today", {"placements": placements}))
        back = {safe: name for name, safe in self.work.node.items()}
        return Declared(documents, dict(self.work.gang_of()), back)

    # -- hardware

    def _cluster(self) -> Document:
        levels = [safe for safe in self.work.level.values() if safe != "node"] + ["node"]
        groups = [self._node_group(index, node.name) for index, node in enumerate(self.case.nodes)]
        if self.tokens:
            groups.append(self._token_group())
        return document("Cluster", "case", {"levels": [{"name": each} for each in levels], "nodeGroups": groups})

    def _token_group(self) -> Document:
        """Return a node for tokens and nothing else, in domains of its own."""
        name = next(n for n in (tokens.NODE, *(f"{tokens.NODE}-{i}" for i in self.work.node)) if self._is_new(n))
        group: Document = {"name": tokens.NODE, "names": [name], "gpus": 0, "memory": 0, "cpu": 0}
        group["resources"] = {tokens.RESOURCE: sum(token.replicas for token in self.tokens)}
        levels = [safe for safe in self.work.level.values() if safe != "node"]
        return group | {"domains": {level: {"name": tokens.NODE} for level in levels}}

    def _is_new(self, node: str) -> bool:
        return node not in self.work.node.values()

    def _node_group(self, index: int, node: str) -> Document:
        host, has = self.case.by_name[node], self.amounts.of_node(node)
        domains = {
            safe: {"name": self._part(level, host.home(level))}
            for level, safe in self.work.level.items()
            if safe != "node"
        }
        group: Document = {"name": f"g{index}", "names": [self.work.node[node]], "gpus": has.gpus, "memory": 0}
        group |= {"cpu": f"{has.cpu}m", "resources": has.resources, "domains": domains}
        return group | ({"accelerator": GPU} if has.gpus else {})

    def _part(self, level: str, home: str) -> str:
        """Return a name for a domain, or for what stands for one, that is unique within its level."""
        return f"d{sorted({host.home(level) for host in self.case.nodes}).index(home)}"

    # -- work

    def _workloads(self) -> Iterable[Document]:
        for unit in self.work.units:
            yield self._workload(unit)
        for each in self.work.running:
            spec: Document = {"type": "gang", "replicas": each.pods, "communicates": False}
            spec["value"] = self.staying[each.name]
            spec |= {"request": self.amounts.request_of(each), "priority": self.work.rank(each)}
            spec |= {"movable": self.work.mode == "moves", "preemptible": self.work.mode == "evictions"}
            yield document("Workload", self.work.other[each.name], spec)
        for token in self.tokens:
            spec = {"type": "gang", "replicas": token.replicas, "value": token.value, "communicates": False}
            spec |= {"request": {"resources": {tokens.RESOURCE: 1}}, "priority": self.first if token.value else 0}
            yield document("Workload", token.name, spec, dict(token.marks))
        for index in (index for index, each in enumerate(self.case.sets) if self.work.voiced(each)):
            spec = {"type": "gang", "replicas": 2, "value": 0, "request": {"resources": {"nothing": 1}}}
            yield document("Workload", voice(index), spec, {f"set-{index}": "in"})
        for other in self.work.arrears.stand_ins():
            spec = {"type": "gang", "replicas": 1, "value": 0, "communicates": False}
            spec |= {"request": self.amounts.request_of_stand_in(other), "priority": self.work.priority}
            yield document("Workload", other.name, spec, {other.label: "in"})

    def _workload(self, unit: Unit) -> Document:
        first, within = unit.gangs[0], inner(self.case, [unit.gangs[0].required], unit.together)
        spec: Document = {"type": "gang", "priority": self.work.priority}
        topology: Document = {}
        if within and not self._shared(first):
            topology["within"] = self.work.level.get(within, within)
        groups = [group for gang in unit.gangs for group in self._groups(gang, within)]
        topology |= {"groups": groups} if groups else {}
        spec |= {"topology": topology} if topology or self._counts_alone(first) else {}
        spec |= {"communicates": False} if self.work.silent(first) else {}
        roles = [role for gang in unit.gangs for role in self._roles(gang)]
        keys = [key for gang in unit.gangs for key in self.work.keys(gang)]
        if keys[0][1]:
            spec["roles"] = [{"name": name, **role} for (_, name), role in zip(keys, roles, strict=True)]
        else:
            spec |= roles[0]
        name = keys[0][0]
        return document("Workload", name, spec, dict(tokens.marks(self.case, first)))

    def _shared(self, gang: Gang) -> bool:
        """Tell whether a gang that is a workload by itself has its topology from its set, as a policy says it."""
        together = self.case.set_of(gang.name)
        alone = all(gang.name not in [g.name for g in unit.gangs] for unit in self.work.units if unit.together)
        return alone and together is not None and not has_own_topology(self.case, gang)

    def _counts_alone(self, gang: Gang) -> bool:
        """Tell whether a gang of a set counts by itself as well; saying anything of topology makes it so.

        So does a set of that gang alone beside another one.
        """
        mine = [each for each in self.case.sets if gang.name in each.gangs]
        by_itself = len(mine) > 1 and any(len(each.gangs) == 1 for each in mine)
        return by_itself or (bool(mine) and has_own_topology(self.case, gang))

    def _roles(self, gang: Gang) -> Iterable[Document]:
        least, most = widths(gang)
        least, split = max(least, core(self.case, gang)), self.work.split(gang)
        if split:
            yield self._role(gang, split, split)
        yield self._role(gang, least - split, most - split)

    def _role(self, gang: Gang, least: int, most: int) -> Document:
        replicas: Any = most if least == most else {"min": least, "max": most, "step": step(gang)}
        return {"replicas": replicas, "request": self.amounts.request_of(gang), "value": self.worth}

    def _groups(self, gang: Gang, within: str | None) -> Iterable[Document]:
        for level, size in slices(self.case, gang, within):
            for _, role in self.work.keys(gang):
                count: Document = {"roles": {role: size}} if role else {"of": size}
                yield {**count, "within": self.work.level.get(level, level)}

    def _objective(self) -> Document:
        """Return the tiers, in one band: priorities tell who may be evicted, not who goes first.

        The tokens of jobs have one of their own before, so that as many jobs as there can be is a tier by itself.
        """
        bands = [self.first, 0] if self.case.jobs else [0]
        return document("Objective", "default", {"tiers": TIERS[self.work.mode], "bands": bands})

    # -- what runs

    def _placements(self) -> Document:
        found: Document = {}
        for gang in self.work.gangs:
            if not gang.shrinks:
                workload, role = self.work.keys(gang)[0]
                name = f"{workload}.{role}" if role else workload
                self._put(found, name, seats(self.case, gang), gang.per_pod)
        for each in self.work.running:
            nodes = [node for node, count in sorted(each.on.items()) for _ in range(count)]
            self._put(found, self.work.other[each.name], dict(enumerate(nodes)), each.per_pod)
        return found

    def _put(self, found: Document, name: str, by_index: Mapping[int, str], per_pod: Mapping[str, int]) -> None:
        gpus = self.amounts.gpus(per_pod)
        for index, node in by_index.items():
            place: Document = {"node": self.work.node.get(node, node)}
            if gpus:
                start = self.gpus_used.get(node, 0)
                self.gpus_used[node] = start + gpus
                place["gpus"] = list(range(start, start + gpus))
            found[f"{name}#{index}"] = place

"""The policies that say what a case asks of places, sets, quotas, untouched domains and of being whole."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks.gang import tokens
from benchmarks.gang.amounts import Amounts
from benchmarks.gang.case import Case, Counts, Gang, Together
from benchmarks.gang.meaning import loose, members, shunned, staying, untouched_before
from benchmarks.gang.work import Work, voice

Document = dict[str, Any]
MOST_WEIGHT = 10**6


def policies(work: Work, amounts: Amounts, *, must: bool) -> list[Document]:
    """Return the policies of a question; with `must` there is no plan without all that is not optional."""
    return _Rules(work, amounts, must).made()


def document(kind: str, name: str, spec: Document, labels: dict[str, str] | None = None) -> Document:
    """Return a document."""
    metadata: Document = {"name": name, **({"labels": labels} if labels else {})}
    return {"apiVersion": "dovetail/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def _may_take(gang: Gang, resource: str) -> bool:
    """Tell whether new pods of a gang, if there are any, take some of a resource; others mind no quota of it."""
    return bool(gang.per_pod.get(resource)) and gang.pods > sum(gang.kept.values())


class _Rules:
    def __init__(self, work: Work, amounts: Amounts, must: bool) -> None:
        self.work, self.amounts, self.must = work, amounts, must
        self.case: Case = work.case
        self.heavy = tokens.heavy(work.case)
        self.loose = loose(work.case)
        self.found: list[Document] = []

    def made(self) -> list[Document]:
        """Return the policies."""
        for gang in self.work.gangs:
            self._place_rules(gang)
        for index, each in enumerate(self.case.sets):
            self._set_rules(index, each)
            self._complete_rules(index, each)
        self._job_rules()
        self._must_rules()
        self._limit_rules()
        self._arrears_rules()
        self._reserve_rules()
        for run in self.work.running:
            if run.eligible is not None:
                self._kept_off([self.work.other[run.name]], frozenset(self.work.node) - run.eligible, run.on)
        return self.found

    def _policy(
        self, own: Iterable[str], rule: Document, weight: int = 0, nodes: Iterable[str] | None = None
    ) -> None:
        match: Document = {"workloads": {"names": sorted(set(own))}}
        if nodes is not None:
            match["nodes"] = {"names": sorted(self.work.node[node] for node in nodes)}
        enforcement: Any = {"soft": {"weight": weight}} if weight else "hard"
        spec = {"match": match, "rule": rule, "enforcement": enforcement}
        self.found.append(document("Policy", f"p{len(self.found):03}", spec))

    def _barred(self, own: Iterable[str], nodes: frozenset[str], weight: int = 0) -> None:
        if nodes:
            self._policy(own, {"forbid": {}}, weight, nodes)

    # -- where pods may be

    def _place_rules(self, gang: Gang) -> None:
        own, everywhere = self.work.ids([gang.name]), frozenset(self.work.node)
        if not gang.shrinks:
            self._kept_off(own, everywhere - gang.hosts(self.case), gang.kept)
        if gang.max_per_node is not None:
            self._at_most(own, "node", gang.max_per_node)
        for each in gang.spread:
            self._at_most(own, self.work.level.get(each.level, each.level), each.most)
        for weight, nodes in shunned(gang, everywhere):
            self._barred(own, nodes, min(weight, MOST_WEIGHT))

    def _kept_off(self, own: list[str], nodes: frozenset[str], there: Counts) -> None:
        """Keep pods off nodes; what is there already may stay, and nothing comes."""
        self._barred(own, nodes - there.keys())
        for node in sorted(nodes & there.keys()):
            self._at_most(own, "node", there[node], [node])

    def _at_most(self, own: list[str], level: str, most: int, nodes: Iterable[str] | None = None) -> None:
        if most > 0:
            self._policy(own, {"spread": {"over": level, "maxPerDomain": most}}, nodes=nodes)
        else:
            self._barred(own, frozenset(self.work.node))

    def _set_rules(self, index: int, each: Together) -> None:
        own = self.work.ids(each.gangs)
        label = {"by": "label", "label": f"set-{index}"}
        wished = each.preferred or next(iter(self.case.levels), None)
        heard = own
        if self.work.voiced(each):
            heard = [*own, voice(index)]
            self._barred([voice(index)], frozenset(self.work.node))
        if each.required and own and not self.work.merged(each):
            self._policy(heard, {"colocate": {**label, "at": self._level(each.required)}})
        elif wished and len(own) > 1:  # a wish below all tiers on topology, so that the set counts as one
            self._policy(heard, {"colocate": {**label, "at": self._level(wished)}}, 1)
        if each.distinct and len(own) > 1:
            self._policy(own, {"separate": {"by": "workload", "at": self._level(each.distinct)}})

    def _level(self, name: str) -> str:
        return self.work.level.get(name, name)

    # -- what is admitted together

    def _grouped(self, own: Iterable[str], label: str, least: int | str) -> None:
        """Demand that of the workloads of a group nothing is admitted, or so many replicas."""
        rule = {"atLeast": least, "per": "label", "label": label, "orNone": True}
        if own:
            self._policy(own, {"admission": rule})

    def _complete_rules(self, index: int, each: Together) -> None:
        """Admit a set whole or not at all, or as far as it needs: its token tells that it is there."""
        own, label = self.work.ids(each.gangs), f"set-{index}"
        token, needed = tokens.of_set(index), self.work.ids(self.case.firm(each))
        if not each.atomic and needed:
            self._grouped([*needed, token] if each.partial else needed, label, "minimum")
        if not each.partial:
            return
        self._grouped([*own, token], label, self.heavy + max(1, each.min_pods or 0))
        for policy, least in each.min_subgroups.items():
            counted = [tokens.of_gang(self.case, gang) for gang in members(each, self.case.gangs, policy)]
            self._grouped([*counted, token], label, self.heavy + least)
        for name in each.gangs if each.min_subgroups else ():
            counting = tokens.of_gang(self.case, self.case.gang[name])
            self._grouped([*self.work.ids([name]), counting], counting, "minimum")

    def _job_rules(self) -> None:
        """Admit a job's token together with all that is not optional, and what is optional only with it."""
        for index, job in enumerate(self.case.jobs):
            token, inside = tokens.of_job(index), set(job.gangs)
            whole = [tokens.of_set(i) for i, each in self._needed_sets() if inside & set(each.gangs)]
            self._grouped([*self.work.ids(inside - self.loose), *whole, token], "job", "minimum")
            free = self.work.ids(inside & self.loose)
            if free:
                self._grouped([*free, token], "job", self.heavy)

    def _must_rules(self) -> None:
        """Demand all that is not optional, where that is asked for, and what keeps pods in any case."""
        own = self.work.ids(staying(self.case))
        if self.must:
            needed = [gang.name for gang in self.work.gangs if gang.name not in self.loose]
            own += [*self.work.ids(needed), *(tokens.of_set(index) for index, _ in self._needed_sets())]
        if own:
            self._policy(own, {"admission": {"atLeast": "minimum"}})

    def _needed_sets(self) -> list[tuple[int, Together]]:
        return [(index, each) for index, each in enumerate(self.case.sets) if each.counts and not each.optional]

    # -- what must be left

    def _limit_rules(self) -> None:
        for each in self.case.limits:
            gangs = [self.case.gang[name] for name in each.gangs if not self.case.gang[name].shrinks]
            back = [run for run in self.work.running if run.queue and run.queue in each.queues]
            given = sum(run.pods * run.per_pod.get(each.resource, 0) for run in back)
            if each.most + given <= 0:  # whatever leaves, there is nothing for new pods
                back, given = [], -each.most
            kept = sum(sum(gang.kept.values()) * gang.per_pod.get(each.resource, 0) for gang in gangs)
            limit = self.amounts.limit(each.resource, each.most + given + kept)
            own = [*self.work.ids(each.gangs), *(self.work.other[run.name] for run in back)]
            if limit is not None and any(_may_take(gang, each.resource) for gang in gangs):
                self._policy(own, {"quota": {"limit": limit}})

    def _arrears_rules(self) -> None:
        """Demand one stand-in of every label, for a node that takes nothing new or one that takes what it has."""
        labels: dict[str, list[str]] = {}
        for each in self.work.arrears.stand_ins():
            labels.setdefault(each.label, []).append(each.name)
        for label, own in labels.items():
            self._policy(own, {"admission": {"atLeast": 1, "per": "label", "label": label}})

    def _reserve_rules(self) -> None:
        for each in self.case.reserve:
            nodes = untouched_before(self.case, each.level, [run.name for run in self.work.running])
            if each.count > 0:
                rule = {"reserve": {"domains": each.count, "of": self._level(each.level)}}
                match = {"nodes": {"names": sorted(self.work.node[node] for node in nodes)}}
                spec = {"match": match, "rule": rule, "enforcement": "hard"}
                self.found.append(document("Policy", f"p{len(self.found):03}", spec))

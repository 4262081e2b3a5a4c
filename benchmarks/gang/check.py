"""An independent check: does an answer hold, by the case alone? Nothing of dovetail is asked or used here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from benchmarks.gang.answer import Answer, domains_used
from benchmarks.gang.case import Case, Gang, Together
from benchmarks.gang.meaning import members, untouched_before


def faults(case: Case, answer: Answer) -> list[str]:
    """Return what is wrong with an answer that places anything, in words."""
    if not answer.placement:
        return []
    found = [*_capacities(case, answer), *_limits(case, answer), *_reserves(case, answer), *_moves(case, answer)]
    for gang in case.gangs:
        found += [f"{gang.name}: {words}" for words in _gang(case, gang, answer.placement.get(gang.name, {}))]
    for index in range(len(case.sets)):
        found += [f"set {index}: {words}" for words in _set(case, answer, index)]
    for job in case.jobs:
        there = [name for name in job.gangs if answer.placement.get(name)]
        if there and any(_missing(case.gang[n], answer) for n in job.gangs) and not _partial(case, job.gangs):
            found.append(f"job {job.name} is admitted in part")
    if answer.domains != domains_used(case, answer.placement):
        found.append("domains are miscounted")
    return found


def _missing(gang: Gang, answer: Answer) -> bool:
    return sum(answer.placement.get(gang.name, {}).values()) < gang.least


def _partial(case: Case, gangs: Iterable[str]) -> bool:
    return any((each.partial or each.optional) and set(each.gangs) & set(gangs) for each in case.sets)


def _capacities(case: Case, answer: Answer) -> Iterator[str]:
    """Yield nodes that new pods overfill; what runs gives back what it leaves and takes where it goes.

    What leaves an overdrawn node makes up for what is missing first; where nothing comes, that is nobody's fault.
    """
    for node in case.nodes:
        comes: Counter[str] = Counter()
        goes: Counter[str] = Counter()
        for gang in case.gangs:
            kept = gang.charged.get(node.name, 0)
            _charge(comes, gang.per_pod, max(0, answer.placement.get(gang.name, {}).get(node.name, 0) - kept))
        for each in case.running:
            more = _after(answer, each.name, each.on).get(node.name, 0) - each.on.get(node.name, 0)
            _charge(comes if more > 0 else goes, each.per_pod, abs(more))
        for resource, amount in comes.items():
            left = node.free.get(resource, 0) + goes[resource]
            if amount > max(0, left):
                yield f"node {node.name}: {amount} {resource} wanted, {left} free"


def _after(answer: Answer, name: str, on: Mapping[str, int]) -> Mapping[str, int]:
    """Return where running pods are in the end: where they were, unless they were moved or evicted."""
    if name in (answer.evicted or ()) and not answer.running.get(name):
        return {}
    return answer.running.get(name) or on


def _charge(need: Counter[str], per_pod: Mapping[str, int], count: int) -> None:
    for resource, amount in per_pod.items():
        need[resource] += amount * count


def _gang(case: Case, gang: Gang, pods: Mapping[str, int]) -> Iterator[str]:
    total = sum(pods.values())
    if not total:
        return
    if not gang.least <= total <= gang.pods:
        yield f"{total} pods, wanted {gang.least} to {gang.pods}"
    hosts = gang.hosts(case)
    for node, count in pods.items():
        if gang.shrinks and count > gang.previous.get(node, 0):
            yield f"{count} pods on {node}, where it had {gang.previous.get(node, 0)}"
        if not gang.shrinks and node not in hosts and count > gang.kept.get(node, 0):
            yield f"new pods on {node}, which is not eligible"
        if gang.max_per_node is not None and count > gang.max_per_node:
            yield f"{count} pods on {node}, at most {gang.max_per_node}"
    yield from (f"pod left {node}" for node, count in gang.kept.items() if pods.get(node, 0) < count)
    yield from _levels(case, gang, pods)


def _levels(case: Case, gang: Gang, pods: Mapping[str, int]) -> Iterator[str]:
    if gang.required and len(_per_domain(case, gang.required, pods)) > 1:
        yield f"spans several domains of {gang.required}"
    for piece in gang.slices:
        uneven = [d for d, n in _per_domain(case, piece.level, pods).items() if n % piece.size]
        yield from (f"{domain} has no multiple of {piece.size}" for domain in uneven)
    for each in gang.spread:
        full = [d for d, n in _per_domain(case, each.level, pods).items() if n > each.most]
        yield from (f"{domain} has more than {each.most}" for domain in full)


def _per_domain(case: Case, level: str, pods: Mapping[str, int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for node, count in pods.items():
        found[case.home(node, level)] += count
    return found


def _set(case: Case, answer: Answer, index: int) -> Iterator[str]:
    each = case.sets[index]
    there = {name: answer.placement[name] for name in each.gangs if answer.placement.get(name)}
    if not there:
        if not each.optional and _needed(case, each) and answer.fits:
            yield "is not there"
        return
    union: Counter[str] = Counter()
    for pods in there.values():
        union.update(pods)
    if each.required and len(_per_domain(case, each.required, union)) > 1:
        yield f"spans several domains of {each.required}"
    if each.distinct:
        homes = Counter(domain for pods in there.values() for domain in _per_domain(case, each.distinct, pods))
        yield from (f"{domain} holds {count} gangs" for domain, count in homes.items() if count > 1)
    if each.min_pods is not None and sum(union.values()) < each.min_pods:
        yield f"{sum(union.values())} pods, at least {each.min_pods}"
    for policy, least in each.min_subgroups.items():
        if sum(gang.name in there for gang in members(each, case.gangs, policy)) < least:
            yield f"fewer than {least} subgroups of {policy}"
    if not each.atomic and any(_missing(case.gang[name], answer) for name in case.firm(each)):
        yield "is there in part"


def _needed(case: Case, together: Together) -> bool:
    return together.counts or bool(case.firm(together) and not together.atomic)


def _limits(case: Case, answer: Answer) -> Iterator[str]:
    for each in case.limits:
        new = 0
        for name in each.gangs:
            gang = case.gang[name]
            pods = sum(answer.placement.get(name, {}).values()) - sum(gang.charged.values())
            new += max(0, pods) * gang.per_pod.get(each.resource, 0)
        gone = [run for run in case.running if run.name in (answer.evicted or ()) and run.queue in each.queues]
        back = sum(run.pods * run.per_pod.get(each.resource, 0) for run in gone)
        if new > max(0, each.most + back):
            yield f"{new} {each.resource} of {', '.join(each.gangs)}, at most {each.most + back}"


def _reserves(case: Case, answer: Answer) -> Iterator[str]:
    away = [*(answer.evicted or ()), *(move["pods"] for move in answer.moved or ())]
    for each in case.reserve:
        left = untouched_before(case, each.level, away)
        used = {node for pods in answer.placement.values() for node in pods}
        used |= {node for run in case.running for node in _after(answer, run.name, run.on)}
        homes: dict[str, set[str]] = {}
        for node in case.nodes:
            if each.level in node.domain:
                homes.setdefault(node.domain[each.level], set()).add(node.name)
        whole = sum(nodes <= left and not nodes & used for nodes in homes.values())
        if whole < each.count:
            yield f"{whole} whole domains of {each.level} remain, {each.count} are wanted"


def _moves(case: Case, answer: Answer) -> Iterator[str]:
    for each in case.running:
        after = _after(answer, each.name, each.on)
        if after and sum(after.values()) != each.pods:
            yield f"{each.name}: {each.pods} pods ran, {sum(after.values())} do"
        if not each.evictable and each.name in (answer.evicted or ()):
            yield f"{each.name} was evicted, and may not be"
        if not each.movable and after and after != each.on:
            yield f"{each.name} was moved, and may not be"

"""What sums tell of restarts after a failure: no more than the surviving nodes have in all (S4.7).

Rows for every model, plain in one that tells restarts node by node. Who has to survive, who stays whatever fails, and
what the nodes have are worked out once for all failures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

from dovetail.linear import Linear
from dovetail.mig import maximal
from dovetail.placement.clients import promised
from dovetail.rules.base import Domain, Part
from dovetail.rules.chances import Chances
from dovetail.rules.recovery import Failure
from dovetail.rules.scope import Scope
from dovetail.spec import Node, Spec, Workload

_MOST_COUNTED: Final = 40_000
"""Workloads counted by domain, in all: a whole fleet tells each of them apart on each kind of node of each domain."""


class Sums:
    """Rows for the failures of one policy.

    Parameters
    ----------
    part : the model.
    scope : of the policy.
    chances : who could restart at all.
    failures : how many there are.
    """

    def __init__(self, part: Part, scope: Scope, chances: Chances, failures: int) -> None:
        self._part, self._chances, self._failures = part, chances, failures
        gone = chances.stakes.ids | chances.stakes.evictable
        self._standing = scope.once("standing", lambda: tuple(w for w in scope.spec.everything if w.id not in gone))
        self._capacities = scope.once("capacities", lambda: _capacities(scope))
        self._in_all = {name: sum(each.values()) for name, each in self._capacities.items()}
        matched = chances.stakes.matched
        self._tells_standing = self._few(len(self._standing))
        own = {w.id for name, ws in chances.profiles.items() for w in (*ws, *chances.offering(name))}
        self._tells_instances = self._few(len(own))
        self._largest = {name: max((_most_of(w, name) for w in matched), default=0) for name in self._capacities}

    def add(self, case: Failure, lost: Sequence[Domain], missing: Linear) -> None:
        """Add the rows of a failure.

        Parameters
        ----------
        lost : the domains that are lost, as far as the model tells what they hold.
        missing : the replicas that do not restart.
        """
        told = len(lost) == len(case.domains)
        standing = told and self._tells_standing and self._standing
        for name, each in self._capacities.items():
            if self._largest[name]:
                asked = self._matched[name].plus(0)
                if standing:
                    asked.add(self._staying[name])
                    for domain in lost:
                        asked.add(self._part.requested(self._standing, name, domain), -1)
                left = self._in_all[name] - sum(each.get(node, 0) for node in case.nodes)
                if self._part.model.range_of(asked)[1] > left:
                    self._part.model.require(asked.minus(missing.scaled(self._largest[name])), upper=left)
        if lost and told and self._tells_instances:
            self._add_instances(case, lost, missing)

    def _few(self, workloads: int) -> bool:
        """Tell whether so many workloads may be counted in what each failure takes."""
        return workloads * self._failures <= _MOST_COUNTED

    @cached_property
    def _matched(self) -> Mapping[str, Linear]:
        return {name: self._part.requested(self._chances.stakes.matched, name) for name in self._capacities}

    @cached_property
    def _staying(self) -> Mapping[str, Linear]:
        """What those ask for who neither have to survive nor go for that."""
        return {name: self._part.requested(self._standing, name) for name in self._capacities}

    def _add_instances(self, case: Failure, lost: Sequence[Domain], missing: Linear) -> None:
        """Let no more restart on instances of a profile than there are today, or are given up, elsewhere."""
        part, chances = self._part, self._chances
        for profile, matched in chances.profiles.items():
            going = chances.offering(profile)
            idle = sum(n for node, n in chances.instances.get(profile, {}).items() if node not in case.nodes)
            asked = Linear.total(part.count(matched, domain) for domain in lost)
            asked.add(part.together(going), -1)
            for domain in lost if going else ():
                asked.add(part.count(going, domain))
            part.model.require(asked.minus(missing), upper=idle)


def _most_of(workload: Workload, name: str) -> int:
    """Return the most that one replica of a workload asks for of `gpus` (milli), `cpu` or `memory`."""
    asked = (role.request for role in workload.roles)
    return max(r.gpu_milli if name == "gpus" else r.cpu if name == "cpu" else r.memory for r in asked)


def _capacities(scope: Scope) -> Mapping[str, Mapping[str, int]]:
    """Return what each node has that is not down, by resource and node."""
    nodes = [node for node in scope.spec.cluster.nodes if not node.down]
    return {
        "gpus": {node.name: _most_on(scope, node) * len(node.healthy_gpus()) for node in nodes},
        "cpu": {node.name: node.cpu for node in nodes},
        "memory": {node.name: node.memory for node in nodes},
    }


def _most_on(scope: Scope, node: Node) -> int:
    """Return the most milli-GPU of requests that one GPU of a node holds: instances may count for more than it."""
    card = scope.spec.accelerators.get(node.accelerator or "")
    if card is None or card.mig is None or not scope.spec.uses_mig:
        return promised(node)
    geometry, worth = card.mig, scope.once("worth", lambda: _worth_of(scope.spec))
    amounts = {p.name: max(p.milli, worth.get(p.name, 0)) for p in geometry.profiles}
    layouts = scope.once(
        ("fullest", node.accelerator),
        lambda: max(sum(count * amounts[name] for name, count in counts.items()) for counts in maximal(geometry)),
    )
    return max(promised(node), layouts)


def _worth_of(spec: Spec) -> Mapping[str, int]:
    """Return what requests for each MIG profile count for, in milli-GPU."""
    found: dict[str, int] = {}
    for request in (role.request for workload in spec.everything for role in workload.roles):
        if request.mig:
            found[request.mig] = max(found.get(request.mig, 0), request.mig_milli)
    return found

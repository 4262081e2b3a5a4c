"""Who could restart after a failure at all, as no GPU is cut anew for that: shares and MIG instances (S4.7)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cached_property
from typing import Final

from dovetail.mig import parse_instance
from dovetail.placement.layouts import declared_layouts
from dovetail.rules.recovery import Stakes
from dovetail.spec import Current, Role, Spec, Workload

_FRACTION: Final = "fraction"


def asked_profiles(workload: Workload) -> tuple[str, ...]:
    """Return the MIG profiles that the roles of a workload name, ascending; empty for roles that name none."""
    return tuple(sorted({role.request.mig for role in workload.roles}))


def on_any_profile(workload: Workload) -> bool:
    """Tell whether shares of a workload may be on MIG instances."""
    return any(r.request.share is not None and "mig" in r.request.share.modes for r in workload.roles)


class Chances:
    """Where those who have to survive may restart: what there is today, and whoever may give an instance up.

    Parameters
    ----------
    spec : with the cluster.
    current : what runs today, and how GPUs are cut.
    stakes : who has to survive, and who may go for that.
    """

    def __init__(self, spec: Spec, current: Current, stakes: Stakes) -> None:
        self.stakes, self._spec, self._current = stakes, spec, current
        self._none: dict[tuple[str, str], bool] = {}

    def none(self, workload: Workload, role: Role) -> bool:
        """Tell whether a replica could restart on no node, whatever a plan holds."""
        key = workload.id, role.name
        if key not in self._none:
            self._none[key] = self._has_none(workload, role)
        return self._none[key]

    def _has_none(self, workload: Workload, role: Role) -> bool:
        hosts, request = self.stakes.hosts[workload.id, role.name], role.request
        if request.mig:
            return not self.offering(request.mig) and not hosts & self.instances.get(request.mig, {}).keys()
        if request.share is not None:
            return _FRACTION not in request.share.modes or not hosts & self._shared_by_fractions
        return not hosts

    @cached_property
    def without(self) -> tuple[Workload, ...]:
        """Those who have to survive of whom no replica could restart."""
        return tuple(workload for workload in self.stakes.matched if self.hopeless(workload))

    def hopeless(self, workload: Workload) -> bool:
        """Tell whether no replica of a workload could restart."""
        return all(self.none(workload, role) for role in workload.roles)

    @cached_property
    def profiles(self) -> Mapping[str, tuple[Workload, ...]]:
        """Those who have to survive of whom every replica is on an instance of one MIG profile, by its name."""
        found: dict[str, list[Workload]] = {}
        for workload in self.stakes.matched:
            asked = asked_profiles(workload)
            if len(asked) == 1 and asked[0]:
                found.setdefault(asked[0], []).append(workload)
        return {profile: tuple(own) for profile, own in sorted(found.items())}

    def offering(self, profile: str) -> tuple[Workload, ...]:
        """Return those who go where room is needed and may be on instances of a MIG profile."""
        return self._offering.get(profile, self._on_any)

    @cached_property
    def _offering(self) -> Mapping[str, tuple[Workload, ...]]:
        going = [w for w in self._spec.workloads if w.id in self.stakes.evictable]
        named = {profile for w in going for profile in asked_profiles(w)} - {""}
        on_any = {w.id for w in self._on_any}
        return {
            profile: tuple(w for w in going if w.id in on_any or profile in asked_profiles(w))
            for profile in sorted(named)
        }

    @cached_property
    def _on_any(self) -> tuple[Workload, ...]:
        return tuple(w for w in self._spec.workloads if w.id in self.stakes.evictable and on_any_profile(w))

    @cached_property
    def instances(self) -> Mapping[str, Mapping[str, int]]:
        """How many instances of each MIG profile nodes have today, in use or not, or get as they are cut alike."""
        there = {
            (gpu, each) for gpu, layout in declared_layouts(self._spec, self._current).items() for each in layout
        }
        for row in self._current.replicas:
            if row.instance:
                there.add((f"{row.node}/{row.gpus[0]}", parse_instance(row.instance)))
        found: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for gpu, instance in there:
            found[instance.profile][gpu.rpartition("/")[0]] += 1
        for node in self._spec.cluster.nodes:
            card = self._spec.accelerators.get(node.accelerator or "")
            for profile in card.mig.profiles if card and card.mig and node.mig_strategy == "single" else ():
                own = found[profile.name]
                own[node.name] = max(own[node.name], profile.maximum * len(node.healthy_gpus()))
        return found

    @cached_property
    def _shared_by_fractions(self) -> frozenset[str]:
        return frozenset(node.name for node in self._spec.cluster.nodes if node.mechanism == _FRACTION)

"""What some hard policies of a Spec claim together, about some of its workloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dovetail.placement import Makes
from dovetail.rules import Cap, Claims, Scope, context_of, scope_of
from dovetail.spec import Policy, Role, Spec, Workload


@dataclass(frozen=True)
class Ground:
    """What does not depend on which policies are looked at."""

    spec: Spec

    @cached_property
    def policies(self) -> Mapping[str, Policy]:
        """The hard policies by name."""
        return {policy.name: policy for policy in self.spec.policies if policy.enforcement.kind == "hard"}

    @cached_property
    def scopes(self) -> Mapping[str, Scope]:
        """What each hard policy applies to."""
        return {name: scope_of(self.spec, policy) for name, policy in self.policies.items()}

    @cached_property
    def claims(self) -> Mapping[str, Claims]:
        """What each hard policy claims."""
        return {name: policy.rule.claims(self.scopes[name]) for name, policy in self.policies.items()}

    @cached_property
    def demanded(self) -> Mapping[str, frozenset[str]]:
        """Ids of the workloads that each hard policy demands in full; only policies that demand any."""
        found = {name: frozenset(w.id for w in claims.admitted) for name, claims in self.claims.items()}
        return {name: ids for name, ids in sorted(found.items()) if ids}

    @cached_property
    def caps(self) -> Mapping[str, Sequence[tuple[str, Cap]]]:
        """Per workload, the limits that count it, each with its policy."""
        found: dict[str, list[tuple[str, Cap]]] = {}
        for name, claims in sorted(self.claims.items()):
            for cap in claims.caps:
                for workload in cap.workloads:
                    found.setdefault(workload.id, []).append((name, cap))
        return found

    @cached_property
    def closed(self) -> Mapping[str, frozenset[str]]:
        """The nodes that each hard policy closes for those it matches; only policies that close any."""
        found = {name: policy.rule.closed_nodes(self.scopes[name]) for name, policy in self.policies.items()}
        return {name: nodes for name, nodes in found.items() if nodes}

    @cached_property
    def makes(self) -> Makes:
        """The nodes by make."""
        return Makes(self.spec.cluster.nodes, self.spec.accelerators)

    @cached_property
    def running(self) -> frozenset[str]:
        """Workloads of which anything runs today: what they break may be excused, so nothing is certain of them."""
        return frozenset(row.replica.workload for row in self.spec.current.replicas)

    def excused(self, policy: str) -> Mapping[str, int]:
        """Return what today excuses of a policy, per subject (S4.5)."""
        return self._tolerated.get(policy, {}) if self.spec.current.replicas else {}

    @cached_property
    def _tolerated(self) -> Mapping[str, Mapping[str, int]]:
        return context_of(self.spec).tolerated

    @cached_property
    def domains(self) -> dict[tuple[frozenset[str], str], frozenset[str] | None]:
        """Domains by nodes and level; filled as needed."""
        return {}

    @cached_property
    def hosts(self) -> dict[tuple[frozenset[int], tuple[str, ...]], frozenset[str]]:
        """Nodes by makes and the policies that close some of them; filled as needed."""
        return {}


@dataclass(frozen=True)
class Facts:
    """Some hard policies, some workloads, and of which workloads all replicas must be admitted.

    Parameters
    ----------
    names : the policies that are looked at.
    focus : ids of the workloads that are looked at, None for all.
    assumed : ids of workloads that are taken to be admitted, whether or not a policy demands it.
    """

    ground: Ground
    names: frozenset[str]
    focus: frozenset[str] | None = None
    assumed: frozenset[str] = frozenset()

    def only(self, names: frozenset[str]) -> Facts:
        """Return the facts of fewer policies."""
        return replace(self, names=names)

    def about(self, workloads: frozenset[str]) -> Facts:
        """Return the facts about fewer workloads."""
        return replace(self, focus=workloads)

    @cached_property
    def needed(self) -> Mapping[str, Workload]:
        """Workloads of which every replica must be admitted, and of which nothing runs today."""
        wanted = {w.id: w for name in self._sorted for w in self.ground.claims[name].admitted}
        by_id = self.ground.spec.by_id
        wanted |= {name: by_id[name] for name in self.assumed}
        return {
            name: wanted[name]
            for name in sorted(wanted)
            if name not in self.ground.running
            and (self.focus is None or name in self.focus)
            and wanted[name].replicas
        }

    @property
    def _sorted(self) -> list[str]:
        return sorted(self.names & self.ground.claims.keys())

    def demanding(self, workload: Workload) -> Iterator[str]:
        """Yield the policies that demand the admission of a workload."""
        for name, ids in self.ground.demanded.items():
            if name in self.names and workload.id in ids:
                yield name

    def closing(self, workload: Workload) -> tuple[str, ...]:
        """Return the policies that close nodes for a workload, sorted."""
        closed, scopes = self.ground.closed, self.ground.scopes
        return tuple(name for name in sorted(self.names & closed.keys()) if workload.id in scopes[name].ids)

    def hosts(self, workload: Workload, role: Role | None = None) -> frozenset[str]:
        """Return the nodes that may take a replica of a role, or of any, that the policies leave open."""
        ground = self.ground
        roles = [role] if role is not None else [each for each in workload.roles if each.replicas]
        makes = frozenset[int]().union(*(ground.makes.hosting(workload, each) for each in roles))
        key = makes, self.closing(workload)
        if key not in ground.hosts:
            nodes = frozenset(node.name for make in makes for node in ground.makes.members[make])
            ground.hosts[key] = nodes.difference(*(ground.closed[name] for name in key[1]))
        return ground.hosts[key]

    def covers(self, policy: str, workload: Workload) -> bool:
        """Tell whether a policy speaks of a workload and of every node that it may use."""
        scope = self.ground.scopes[policy]
        return workload.id in scope.ids and self.inside(policy, workload)

    def inside(self, policy: str, workload: Workload) -> bool:
        """Tell whether a policy speaks of every node that a workload may use."""
        nodes = self.ground.scopes[policy].nodes
        return nodes is None or self.hosts(workload) <= nodes

    def paths(self, workload: Workload, level: str) -> frozenset[str] | None:
        """Return the domains of a level that a workload may use, None where a node is in none of them."""
        key = self.hosts(workload), level
        if key not in self.ground.domains:
            by_name = self.ground.spec.cluster.by_name
            found = {by_name[name].domain(level) for name in key[0]}
            whole = None if None in found else frozenset(path for path in found if path is not None)
            self.ground.domains[key] = whole
        return self.ground.domains[key]

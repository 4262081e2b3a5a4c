"""Levels that rules name: which they may be, and what is counted in domains inside nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from dovetail.linear import Linear
from dovetail.spec import Policy, Spec, Workload
from dovetail.spec.inside import INNER_LEVELS

if TYPE_CHECKING:
    from dovetail.rules.base import Part


def inner(level: str) -> str:
    """Return a level that lies inside nodes, empty for any other."""
    return level if level in INNER_LEVELS else ""


def level_problem(spec: Spec, level: str, *, gpu: bool, inside: bool = False) -> str | None:
    """Return why a level named by a rule is unknown, None if it is fine.

    `gpu` allows the level `gpu`, `inside` those inside nodes.
    """
    allowed = [*spec.cluster.levels, *(["gpu"] if gpu else []), *(INNER_LEVELS if inside else ())]
    return None if level in allowed else f"unknown level '{level}'; levels here are {', '.join(allowed)}"


def nodes_problem(own: Policy, inner: str) -> str | None:
    """Return why a policy may not choose nodes, None if it may: levels inside nodes are told of all of them."""
    return f"'match.nodes' beside the level '{inner}', which is told of all nodes" if inner and own.nodes else None


def counts_at(part: Part, workload: Workload, level: str, nodes: frozenset[str] | None) -> Mapping[str, Linear]:
    """Return how many replicas of a workload are in each domain of a level, inside nodes how many reach into it."""
    return part.reaching(workload, level) if level in INNER_LEVELS else part.counts(workload, level, nodes)


def reached(part: Part, groups: Sequence[Iterable[Workload]], level: str) -> Mapping[str, Sequence[Linear]]:
    """Return per domain of a level inside nodes how many replicas of each group of workloads reach into it."""
    found: dict[str, list[Linear]] = {}
    for position, members in enumerate(groups):
        for workload in members:
            for path, count in part.reaching(workload, level).items():
                found.setdefault(path, [Linear() for _ in groups])[position].add(count)
    return found

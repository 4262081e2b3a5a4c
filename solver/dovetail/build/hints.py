"""What a selector that selects nothing, or looks at a label that nothing carries, was probably meant to say."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from dovetail.build.cursor import Cursor, listed
from dovetail.build.selectors import Known
from dovetail.spec import Node, NodeSelector, Requirement, Workload, WorkloadSelector

_TOGETHER: Final = "each condition by itself selects some, all of them together none"

S = TypeVar("S", WorkloadSelector, NodeSelector)


@dataclass(frozen=True, slots=True)
class _Condition(Generic[S]):
    """One condition of a selector by itself, and what to say where it selects nothing."""

    alone: S
    hint: Callable[[], str | None]


def warn_if_no_workload(place: Cursor, selector: WorkloadSelector, known: Known) -> bool:
    """Warn at a selector that selects no workload, with what was probably meant; tell whether there was need."""
    workloads = tuple(known.workloads.values())
    if not workloads or not place.log.may_select(len(workloads)):
        return False
    _warn_of_absent_labels(place, selector.match_expressions, [w.labels for w in workloads])
    if any(map(selector.selects, workloads)):
        return False
    conditions = _of_workloads(place, selector, workloads)
    hint = _first(conditions, lambda alone: any(map(alone.selects, workloads)))
    place.warn("DT1911", "this selects no workload", hint, of_key=True)
    return True


def warn_if_no_node(place: Cursor, selector: NodeSelector, known: Known) -> None:
    """Warn at a selector that selects no node, with what was probably meant."""
    nodes: Sequence[Node] = known.cluster.nodes
    if not nodes or not place.log.may_select(len(nodes)):
        return
    labels = list({id(node.labels): node.labels for node in nodes}.values())
    _warn_of_absent_labels(place, selector.match_expressions, labels)
    if not any(map(selector.selects, nodes)):
        conditions = _of_nodes(place, selector, nodes, labels)
        hint = _first(conditions, lambda alone: any(map(alone.selects, nodes)))
        place.warn("DT1912", "this selects no node", hint, of_key=True)


def _first(conditions: Iterable[_Condition[S]], selects: Callable[[S], bool]) -> str | None:
    """Return the hint of the first condition that selects nothing by itself."""
    guilty = next((each for each in conditions if not selects(each.alone)), None)
    return _TOGETHER if guilty is None else guilty.hint()


def _of_workloads(
    place: Cursor, selector: WorkloadSelector, workloads: Sequence[Workload]
) -> Iterator[_Condition[WorkloadSelector]]:
    """Yield the conditions of a selector one by one."""
    nothing = WorkloadSelector()
    parts: list[tuple[str, tuple[str, ...], Iterable[str]]] = [
        ("tenants", selector.tenants, (w.tenant for w in workloads)),
        ("namespaces", selector.namespaces, (w.namespace for w in workloads)),
        ("types", selector.types, (w.type for w in workloads)),
    ]
    for name, wanted, there in parts:
        if wanted:
            alone = replace(nothing, **{name: wanted})  # type: ignore[arg-type]
            yield _Condition(alone, _names_hint(place, f"{name} here", wanted, {each for each in there if each}))
    labels = [workload.labels for workload in workloads]
    yield from _of_labels(place, nothing, selector, labels)
    priorities = sorted({workload.priority for workload in workloads})
    ranged = replace(nothing, priority_min=selector.priority_min, priority_max=selector.priority_max)
    yield _Condition(ranged, lambda: f"priorities here are {priorities[0]:,} to {priorities[-1]:,}")
    accepted = {a for w in workloads for role in w.roles for a in role.accelerators}
    if selector.accelerators:
        alone = replace(nothing, accelerators=selector.accelerators)
        yield _Condition(alone, _names_hint(place, "workloads ask for", selector.accelerators, accepted))


def _of_nodes(
    place: Cursor, selector: NodeSelector, nodes: Sequence[Node], labels: Sequence[Mapping[str, str]]
) -> Iterator[_Condition[NodeSelector]]:
    """Yield the conditions of a selector one by one; groups, names and domains that are not there are faults."""
    nothing = NodeSelector()
    yield from _of_labels(place, nothing, selector, labels)
    there = {node.accelerator for node in nodes if node.accelerator}
    if selector.accelerators:
        alone = replace(nothing, accelerators=selector.accelerators)
        yield _Condition(alone, _names_hint(place, "accelerators here", selector.accelerators, there))


def _of_labels(
    place: Cursor, nothing: S, selector: S, labels: Sequence[Mapping[str, str]]
) -> Iterator[_Condition[S]]:
    """Yield the conditions on labels one by one."""
    for key, value in selector.match_labels.items():
        alone = replace(nothing, match_labels={key: value})
        yield _Condition(alone, _label_hint(place, key, (value,), labels))
    for each in selector.match_expressions:
        alone = replace(nothing, match_expressions=(each,))
        wanted = each.values if each.operator == "In" else ()
        yield _Condition(alone, _label_hint(place, each.key, wanted, labels))


def _names_hint(place: Cursor, what: str, wanted: Sequence[str], there: Collection[str]) -> Callable[[], str | None]:
    def hint() -> str | None:
        near = (place.log.suggest(name, there) for name in wanted if name not in there)
        return next(filter(None, near), None) or listed(what, there)

    return hint


def _label_hint(
    place: Cursor, key: str, wanted: Sequence[str], labels: Sequence[Mapping[str, str]]
) -> Callable[[], str | None]:
    def hint() -> str | None:
        keys = {name for each in labels for name in each}
        if key not in keys:
            return place.log.suggest(key, keys) or listed("label keys here", keys)
        return _names_hint(place, f"values of {key}", wanted, {each[key] for each in labels if key in each})()

    return hint


def _warn_of_absent_labels(
    place: Cursor, requirements: Iterable[Requirement], labels: Sequence[Mapping[str, str]]
) -> None:
    """Warn where a condition holds for all only because its key is probably misspelt."""
    keys = {name for each in labels for name in each}
    for each in requirements:
        if each.operator in ("NotIn", "DoesNotExist") and each.key not in keys:
            hint = place.log.suggest(each.key, keys)
            if hint is not None:
                message = f"nothing carries the label '{each.key}', so that '{each.operator}' holds for all"
                place["matchExpressions"].warn("DT1917", message, hint, of_key=True)

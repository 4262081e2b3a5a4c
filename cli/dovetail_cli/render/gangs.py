"""Gangs of a plan: which rank runs where, and the tree of domains around each gang."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from dovetail import hostlist
from dovetail.objectives.slowest import speed_of
from dovetail.placement import Place
from dovetail.placement.links import narrowest
from dovetail.plan import Plan
from dovetail.plan.ranks import Rank, ranks_of
from dovetail.spec import Spec
from dovetail_cli.problems import usage
from dovetail_cli.render.columns import PLAIN, Screen, layout, prose
from dovetail_cli.render.words import plural

VIEWS = ("gang", "topology")
_NOWHERE = "(none)"


def lines(plan: Plan, spec: Spec | None, view: str, screen: Screen = PLAIN) -> list[str]:
    """Return the lines of a view: `gang` is who runs where, `topology` the tree of domains, which takes a Spec.

    Without documents every workload with several replicas in the plan is taken for a gang.
    """
    if view == "topology" and spec is None:
        raise usage("--by topology needs the documents: give PATH", "a plan alone knows no domains")
    found: list[str] = []
    for workload, ranks in ranks_of(plan, spec).items():
        told, *rows = _tree(ranks, spec, screen) if view == "topology" and spec else _ranks(ranks, spec, screen)
        found += [*([""] if found else []), *prose(f"{workload}  {told}", screen), *rows]
    return found or ["  no gang has a place"]


def _ranks(ranks: Sequence[Rank], spec: Spec | None, screen: Screen) -> list[str]:
    """Return a row per run of replicas on one node: ranks, replicas, node, GPUs and their ranks, domain."""
    rows = [("rank", "replica", "node", "GPUs", "GPU ranks", "in")]
    for _, run in groupby(ranks, key=lambda rank: (rank.place.node, rank.replica.role)):
        each = list(run)
        first, last = each[0], each[-1]
        gpus = [gpu for rank in each for gpu in rank.place.gpus]
        name = f"{first.replica.role}#{_runs([rank.replica.ordinal for rank in each])}"
        numbers = _span(first.number, last.number) if first.known else "-"
        told = _span(first.gpu, last.gpus.stop - 1) if gpus and first.known else "-"
        rows.append((numbers, name, first.place.node, _runs(gpus), told, _home(spec, first.place.node)))
    kept = 6 if spec is not None and len(spec.cluster.levels) > 1 else 5
    return [_count(ranks), *layout([row[:kept] for row in rows], screen, indent=4)]


def _home(spec: Spec | None, node: str) -> str:
    """Return the path of the innermost domain around a node."""
    found = spec.cluster.by_name.get(node) if spec else None
    if found is None or spec is None:
        return _NOWHERE
    paths = [found.domain(level) for level in spec.cluster.levels[:-1]]
    return next((path for path in reversed(paths) if path is not None), _NOWHERE)


def _tree(ranks: Sequence[Rank], spec: Spec, screen: Screen) -> list[str]:
    """Return the domains that a gang spans, indented level by level, the innermost with nodes and ranks."""
    levels = spec.cluster.levels[:-1]
    rows = list(_branches(ranks, spec, levels, 0)) if levels else [_leaf("", ranks, 0)]
    spans = [f"{level} {len({_path(spec, rank, level) for rank in ranks})}" for level in levels]
    spans.append(f"{spec.cluster.levels[-1]} {len({rank.place.node for rank in ranks})}")
    told = [f"{_count(ranks)}, domains: {', '.join(spans)}", *_speeds(ranks, spec)]
    return [", ".join(told), *layout(rows, screen, indent=4)]


def _speeds(ranks: Sequence[Rank], spec: Spec) -> Iterator[str]:
    """Yield what a gang waits for: its narrowest link, and its slowest member where members differ.

    Nothing is known of nodes and GPUs that the documents lack, as where a plan is older than they are.
    """
    if not all(_known(spec, rank.place) for rank in ranks):
        return
    link = narrowest(spec, [rank.place for rank in ranks])
    if link is not None and link.bandwidth is not None:
        yield f"narrowest link {_thousandths(link.bandwidth)} GB/s ({link.level})"
    nodes = {name: spec.cluster.by_name[name] for rank in ranks if rank.place.gpus for name in [rank.place.node]}
    speeds = {name: speed_of(spec, node) for name, node in sorted(nodes.items())}
    if len(set(speeds.values())) > 1:
        slowest = min(speeds, key=speeds.__getitem__)
        yield f"slowest member {_thousandths(speeds[slowest])} ({slowest})"


def _known(spec: Spec, place: Place) -> bool:
    node = spec.cluster.by_name.get(place.node)
    return node is not None and all(gpu < node.gpus for gpu in place.gpus)


def _thousandths(number: int) -> str:
    return f"{number / 1000:.3f}".rstrip("0").rstrip(".")


def _branches(ranks: Sequence[Rank], spec: Spec, levels: Sequence[str], depth: int) -> Iterator[tuple[str, ...]]:
    inside: dict[str, list[Rank]] = {}
    for rank in ranks:
        inside.setdefault(_path(spec, rank, levels[depth]), []).append(rank)
    for path, members in inside.items():
        if depth + 1 == len(levels):
            yield _leaf(path, members, depth)
        else:
            yield f"{'  ' * depth}{path}", plural(len(members), "replica"), "", ""
            yield from _branches(members, spec, levels, depth + 1)


def _leaf(path: str, members: Sequence[Rank], depth: int) -> tuple[str, ...]:
    nodes = ",".join(hostlist.fold({rank.place.node for rank in members}))
    return f"{'  ' * depth}{path}", plural(len(members), "replica"), f"ranks {_numbers(members)}", nodes


def _path(spec: Spec, rank: Rank, level: str) -> str:
    node = spec.cluster.by_name.get(rank.place.node)
    return (node.domain(level) if node else None) or _NOWHERE


def _count(ranks: Sequence[Rank]) -> str:
    gpus = sum(len(rank.place.gpus) for rank in ranks)
    return plural(len(ranks), "replica") + (f", {plural(gpus, 'GPU')}" if gpus else "")


def _numbers(ranks: Sequence[Rank]) -> str:
    return _runs([rank.number for rank in ranks])


def _runs(numbers: Sequence[int]) -> str:
    """Write numbers in their order, those that follow each other as runs: `0-3,6`; the same again is not repeated."""
    runs: list[list[int]] = []
    for number in numbers:
        if not runs or number not in (runs[-1][1], runs[-1][1] + 1):
            runs.append([number, number])
        runs[-1][1] = number
    return ",".join(_span(low, high) for low, high in runs) or "-"


def _span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"

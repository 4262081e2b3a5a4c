"""What `dovetail doctor` finds, as text and as documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dovetail.model.report import ModelReport, ShapeSize, to_document
from dovetail.problem.splits import Split
from dovetail.problem.steps import EXACT_FIRST, EXACT_VARIABLES
from dovetail.quantities import format_milli
from dovetail_cli.environment import Environment
from dovetail_cli.render import machine
from dovetail_cli.render.columns import PLAIN, Screen, layout
from dovetail_cli.render.words import amount, plural, printable

FORMATS = ("table", "json", "yaml")
_MOST = 20
_MIB_PER_GIB = 1024


def of_environment(found: Environment, name: str, screen: Screen = PLAIN) -> str:
    """Return an environment in a format."""
    if name != "table":
        return machine.rendered(found.to_document(), name)
    verdict = "everything can be loaded" if found.ok else "NOT EVERYTHING CAN BE LOADED"
    rows = [("python", found.python, found.platform)]
    for package in found.packages:
        rows.append((package.name, package.version or "-", package.problem or "loads"))
    machine_rows = [("cores", amount(found.cores), "")]
    machine_rows.append(("memory", _gib(found.memory), f"{_gib(found.free)} free"))
    head = f"dovetail doctor: {verdict}"
    return "\n".join([head, "", *layout([*rows, *machine_rows], screen)]) + "\n"


def _gib(mib: int | None) -> str:
    return "unknown" if mib is None else f"{mib / _MIB_PER_GIB:,.1f} GiB"


def of_model(report: ModelReport, name: str, screen: Screen = PLAIN, *, detail: bool = False) -> str:
    """Return a report of a model in a format."""
    if name != "table":
        return machine.rendered(to_document(report), name)
    head = [printable(f"dovetail doctor --model: {report.name}")]
    blocks = [head, _nodes(report, screen, detail), _node_splits(report, screen)]
    blocks += [_shapes(report, screen, detail), _shape_splits(report, screen), _model(report, screen)]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _nodes(report: ModelReport, screen: Screen, detail: bool) -> list[str]:
    problem = report.problem
    kinds = sorted(report.kinds, key=lambda kind: -kind.nodes)
    rows = [
        (amount(k.nodes), amount(k.busy), amount(k.classes), amount(k.gpus), k.accelerator or "no GPU", k.first)
        for k in kinds
    ]
    said = f"{plural(len(problem.nodes), 'node')} in {plural(len(problem.classes), 'class', 'classes')}"
    title = f"{said}, {len(kinds):,} if none held anything"
    head = ("nodes", "busy", "classes", "GPUs", "accelerator", "first node")
    return [title, *_cut(head, rows, screen, detail)]


def _shapes(report: ModelReport, screen: Screen, detail: bool) -> list[str]:
    shapes = sorted(report.shapes, key=lambda row: -row.shape.demand)
    rows = [
        (amount(r.shape.demand), amount(len(r.shape.members)), _asked(r), amount(r.nodes), r.first) for r in shapes
    ]
    roles = sum(len(row.shape.members) for row in shapes)
    title = f"{plural(sum(row.shape.demand for row in shapes), 'replica')} of {plural(roles, 'role')} in "
    head = ("replicas", "roles", "each asks for", "fits nodes", "first role")
    return [title + plural(len(shapes), "shape"), *_cut(head, rows, screen, detail, right=(0, 1, 3))]


def _cut(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    screen: Screen,
    detail: bool,
    right: Sequence[int] = (0, 1, 2, 3),
) -> list[str]:
    """Return a table of which the largest rows are shown, unless details are asked for."""
    shown = rows if detail else rows[:_MOST]
    more = [f"    {len(rows) - len(shown):,} more (--detail)"] if len(rows) > len(shown) else []
    return layout([head, *shown], screen, right=right) + more if rows else []


def _asked(row: ShapeSize) -> str:
    request = row.shape.request
    parts = [f"{amount(request.gpus)} GPU"] if request.gpus else []
    if request.share:
        memory = "" if request.share.memory is None else f" with {amount(request.share.memory)} MiB"
        more = " or more" if request.varies else ""
        parts.append(f"{format_milli(request.share.compute)}{more} of a GPU{memory}")
    if request.mig:
        parts.append(f"a {request.mig}")
    if request.cpu:
        parts.append(f"{format_milli(request.cpu)} cpu")
    if request.memory:
        parts.append(f"{amount(request.memory)} MiB")
    return (
        ", ".join([*parts, *(f"{value:,} {name}" for name, value in sorted(request.resources.items()))]) or "nothing"
    )


def _node_splits(report: ModelReport, screen: Screen) -> list[str]:
    return _splits("What tells nodes apart", "classes", report, report.node_splits, screen)


def _shape_splits(report: ModelReport, screen: Screen) -> list[str]:
    return _splits("What tells replicas apart", "shapes", report, report.shape_splits, screen)


def _splits(title: str, noun: str, report: ModelReport, splits: Sequence[Split], screen: Screen) -> list[str]:
    if not splits:
        return [f"{title}: nothing"]
    head = ("values", f"{noun} more", "fewer without", "attribute", "")
    rows = [
        (amount(s.values), f"+{s.adds:,}", f"-{s.alone:,}" if s.alone else "0", s.attribute, _due(report, s))
        for s in splits
    ]
    return [f"{title}, one attribute after the other", *layout([head, *rows], screen, right=(0, 1, 2))]


def _due(report: ModelReport, split: Split) -> str:
    policy = report.policy(split)
    return f"{policy.rule.kind}, {policy.enforcement.kind}" if policy else ""


def _model(report: ModelReport, screen: Screen) -> list[str]:
    return ["The exact model of the whole", *layout(list(_size(report)), screen)]


def _size(report: ModelReport) -> Iterator[tuple[str, str]]:
    yield "counts", amount(report.counts)
    if report.exact is not None:
        yield "variables", amount(report.exact.variables)
        yield "rows", amount(report.exact.rows)
    yield "tiers", ", ".join(tier.name for tier in report.problem.tiers) or "none"
    yield "steps", ", ".join(report.steps)
    yield "", _way(report)


def _way(report: ModelReport) -> str:
    if "exact" not in report.steps:
        return f"above {EXACT_VARIABLES:,} counts it is not tried: patterns of nodes, then part after part"
    if report.steps.count("exact") > 1:
        return f"up to {EXACT_FIRST:,} counts it is tried before anything else"
    return f"above {EXACT_FIRST:,} counts it is tried last, from what parts have found, or first without a plan"

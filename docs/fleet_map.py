"""Draws the fleet of a plan as SVG: a box per node, a cell per GPU, coloured by tenant.

    python docs/fleet_map.py PLAN PROJECT > docs/fleet.svg

A share takes its fraction of a cell's height. White is idle, crossed is failed, a dashed box is cordoned. Equal plans
give equal bytes.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections import defaultdict
from collections.abc import Iterator
from html import escape
from pathlib import Path

from dovetail.build import build
from dovetail.documents import load_project
from dovetail.plan import Plan, read
from dovetail.spec import Node, Spec

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")  # told apart by most eyes (Okabe, Ito)
CELL, TALL, GAP, LEFT, LINE = 15, 34, 14, 96, 66
Cells = dict[tuple[str, int], list[tuple[str, int]]]


def contents(spec: Spec, plan: Plan) -> Cells:
    """Return, per node and GPU, the tenants on it with their milli-GPU."""
    found: Cells = defaultdict(list)
    for replica, place in sorted(plan.placements.items()):
        workload = spec.by_id[replica.workload]
        request = workload.by_role[replica.role].request
        for gpu in place.gpus:
            found[place.node, gpu].append((workload.tenant, request.gpu_milli // len(place.gpus)))
    return {key: sorted(parts) for key, parts in found.items()}


def rows(spec: Spec) -> list[tuple[str, list[Node]]]:
    """Return the nodes with GPUs by their innermost domain."""
    level = spec.cluster.levels[-2] if len(spec.cluster.levels) > 1 else ""
    found: dict[str, list[Node]] = {}
    for node in spec.cluster.nodes:
        if node.gpus:
            found.setdefault(node.domains.get(level, node.group), []).append(node)
    return list(found.items())


def draw(spec: Spec, plan: Plan) -> str:
    """Return the picture."""
    tenants = sorted({workload.tenant for workload in spec.workloads})
    colour = {tenant: COLOURS[index % len(COLOURS)] for index, tenant in enumerate(tenants)}
    lines, held, layout = [], contents(spec, plan), rows(spec)
    for row, (name, nodes) in enumerate(layout):
        top, left = 34 + row * LINE, LEFT
        lines.append(_text(0, top + TALL / 2 + 4, name))
        for node in nodes:
            lines += _node(node, left, top, held, colour)
            left += node.gpus * CELL + GAP
    for index, tenant in enumerate(tenants):
        lines.append(f'<rect x="{LEFT + index * 110}" y="6" width="12" height="12" fill="{colour[tenant]}"/>')
        lines.append(_text(LEFT + index * 110 + 17, 16, tenant or "(no tenant)"))
    width = LEFT + max((sum(n.gpus * CELL + GAP for n in nodes) for _, nodes in layout), default=0)
    height = 34 + LINE * len(layout)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    title = escape(f"Plan {plan.name}: GPUs by {', '.join(tenants)}; white is idle")
    style = 'font-family="sans-serif" font-size="11" role="img"'
    back = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    return "\n".join([f"{head} {style}>", f"<title>{title}</title>", back, *lines, "</svg>"]) + "\n"


def _node(node: Node, left: int, top: int, held: Cells, colour: dict[str, str]) -> Iterator[str]:
    dashed = ' stroke-dasharray="4 3"' if node.cordoned else ""
    healthy = node.healthy_gpus()
    for gpu in range(node.gpus):
        x = left + gpu * CELL
        bottom: float = top + TALL
        for tenant, milli in held.get((node.name, gpu), []):
            tall = TALL * milli / 1000
            bottom -= tall
            yield (
                f'<rect x="{x}" y="{bottom:.2f}" width="{CELL}" height="{tall:.2f}" fill="{colour[tenant]}"'
                ' stroke="#ffffff" stroke-width="0.5"/>'
            )
        frame = 'fill="none" stroke="#999999" stroke-width="0.5"'
        yield f'<rect x="{x}" y="{top}" width="{CELL}" height="{TALL}" {frame}/>'
        if gpu not in healthy:
            yield f'<path d="M{x} {top}l{CELL} {TALL}m0 -{TALL}l-{CELL} {TALL}" stroke="#666666"/>'
    wide = node.gpus * CELL
    yield f'<rect x="{left}" y="{top}" width="{wide}" height="{TALL}" fill="none" stroke="#333333"{dashed}/>'
    yield _text(left, top + TALL + 13, node.name)


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" fill="#333333">{escape(text)}</text>'


def main(plan: str, project: str) -> str:
    """Return the picture of a plan file."""
    spec = build(load_project(project), as_of=dt.datetime.now(dt.UTC).date())
    return draw(spec, read(Path(plan).read_text(encoding="utf-8"), plan))


if __name__ == "__main__":
    sys.stdout.write(main(*sys.argv[1:]))

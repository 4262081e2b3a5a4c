"""Ranks of gangs for launchers: which rank runs on which node and GPUs, in which domains (S2.5).

The file is a RankList in JSON with a line for each replica, so that two of them can be compared by line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from dovetail.documents import API_VERSION
from dovetail.plan import Plan
from dovetail.plan.ranks import Rank, ranks_of
from dovetail.spec import Spec

RANKS_FILE: Final = "ranks.json"


def export_ranks(spec: Spec, plan: Plan) -> dict[str, str]:
    """Return the text of the list of ranks, by file name; a plan without gangs gives a list without any."""
    gangs = [_gang(spec, name, ranks) for name, ranks in ranks_of(plan, spec).items()]
    lines = [
        "{",
        f'  "apiVersion": {json.dumps(API_VERSION)},',
        '  "kind": "RankList",',
        f'  "metadata": {json.dumps({"name": spec.name})},',
        f'  "spec": {{"inputs": {json.dumps(plan.inputs)}, "gangs": [',
        *_joined(gangs),
        "  ]}",
        "}",
    ]
    return {RANKS_FILE: "\n".join(lines) + "\n"}


def _gang(spec: Spec, name: str, ranks: Sequence[Rank]) -> str:
    rows = (f"      {json.dumps(_row(spec, rank))}" for rank in ranks)
    return "\n".join([f'    {{"gang": {json.dumps(name)}, "ranks": [', *_joined(list(rows)), "    ]}"])


def _joined(rows: Sequence[str]) -> Iterator[str]:
    """Yield rows with a comma after each but the last."""
    for number, row in enumerate(rows, start=1):
        yield row if number == len(rows) else f"{row},"


def _row(spec: Spec, rank: Rank) -> dict[str, Any]:
    place = rank.place
    row: dict[str, Any] = {"rank": rank.number, "replica": str(rank.replica), "node": place.node}
    if place.gpus:
        row |= {"gpus": list(place.gpus), "gpuRanks": list(rank.gpus)}
    if place.instance:
        row["instance"] = place.instance
    node = spec.cluster.by_name[place.node]
    around = spec.cluster.levels[:-1]
    row["domains"] = {level: path for level in around if (path := node.domain(level)) is not None}
    return row

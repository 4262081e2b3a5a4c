"""A project as it is some days later: full to a part, some workloads changed, and a plan as today's state."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, Final

from benchmarks.synthetic.hardware import MILLI
from benchmarks.synthetic.work import BANDS

from dovetail.documents import load_project
from dovetail.placement import Layouts, Place, Places
from dovetail.spec import Setting, Spec, Workload

TODAY = "today.yaml"
WORKLOADS = "workloads.yaml"
KEPT = ("cluster.yaml", "policies.yaml", "objective.yaml")
NONE: Final[Mapping[str, Any]] = {}
Rows = dict[str, list[Place]]  # per workload without roles, the places of its replicas


def replan(
    project: Path,
    spec: Spec,
    places: Places,
    seed: int,
    full: int = 90,
    changed: int = 10,
    cut: Layouts = NONE,
    shared: Mapping[str, Setting] = NONE,
) -> Mapping[str, str]:
    """Return the files of the changed project.

    What a plan placed goes on to run until `full` per cent of the GPUs are taken; what it did not place is gone. Then
    `changed` workloads in a thousand are scaled, dropped, new or of another priority, a quarter each (elastic ones
    are not scaled but copied), and a fifth as many nodes in a thousand have failed, one that a gang is on among them
    if gangs run.

    Parameters
    ----------
    project : a project of `fleet`; documents other than workloads are taken over as they are.
    places : the placements of a plan of it.
    cut, shared : the instances, and the modes, of GPUs that it cuts or shares by equal parts, by `node/index`.
    """
    rng = Random(f"replan {seed}")
    running = _trimmed(spec, places, full, rng)
    kept = {
        document.identity: {**document.value, "spec": _kept(document.spec, len(running[document.identity]))}
        for document in load_project(project).documents
        if document.kind == "Workload" and document.identity in running
    }
    _change(kept, max(4, len(kept) * changed // 1000), rng)
    texts = {name: (project / name).read_text(encoding="utf-8") for name in ("dovetail.yaml", *KEPT)}
    listed = f"  documents: [{', '.join((*KEPT, WORKLOADS, TODAY))}]"
    lines = texts["dovetail.yaml"].splitlines()
    gangs = sorted(name for name in running if spec.by_id[name].type == "gang")
    hit = {place.node for place in running[rng.choice(gangs)][:1]} if gangs else set[str]()
    texts["cluster.yaml"] += _failed(spec, "\n  nodes:\n" in texts["cluster.yaml"], changed, rng, hit)
    texts["dovetail.yaml"] = "".join(f"{listed if '  documents:' in line else line}\n" for line in lines)
    texts[WORKLOADS] = "---\n".join(_document(value) for _, value in sorted(kept.items()))
    texts[TODAY] = today(running, cut, shared)
    return texts


def _trimmed(spec: Spec, places: Places, full: int, rng: Random) -> Rows:
    """Return what goes on running, replicas numbered from 0: workloads end until no more than `full` is taken."""
    rows: Rows = defaultdict(list)
    for replica, place in sorted(places.items()):
        rows[replica.workload].append(place)
    capacity = MILLI * sum(len(node.healthy_gpus()) for node in spec.cluster.nodes)
    taken = sum(len(found) * _milli(spec.by_id[name]) for name, found in rows.items())
    order = sorted(rows)
    rng.shuffle(order)
    while taken * 100 > full * capacity:
        name = order.pop()
        taken -= len(rows[name]) * _milli(spec.by_id[name])
        del rows[name]
    return {name: found for name, found in rows.items() if found}


def _kept(spec: Mapping[str, Any], running: int) -> dict[str, Any]:
    """Return a workload that asks for what runs of it; an elastic one for any width as before."""
    elastic = isinstance(spec.get("replicas"), Mapping)
    return {**spec} if elastic else {**spec, "replicas": running}


def _milli(workload: Workload) -> int:
    return workload.roles[0].request.gpu_milli


def _change(kept: dict[str, Any], many: int, rng: Random) -> None:
    """Of some workloads scale a quarter by a half up or down, drop, copy, and put into another band one each."""
    for number, name in enumerate(rng.sample(sorted(kept), many)):
        value = kept[name]
        replicas = value["spec"]["replicas"]
        if number % 4 == 0 and isinstance(replicas, int):
            value["spec"]["replicas"] += max(1, replicas // 2) * (rng.choice((-1, 1)) if replicas > 1 else 1)
        elif number % 4 == 1:
            del kept[name]
        elif number % 4 == 2:
            kept[name] = {**value, "spec": {**value["spec"], "priority": rng.choice(_others(value))}}
        else:
            metadata = {**value["metadata"], "name": f"{value['metadata']['name']}-new"}
            kept[f"{name}-new"] = {**value, "metadata": metadata, "spec": {**value["spec"]}}


def _others(value: Mapping[str, Any]) -> list[int]:
    return [band for band in BANDS if band != value["spec"]["priority"]]


def _failed(spec: Spec, listed: bool, changed: int, rng: Random, hit: Set[str]) -> str:
    """Return lines for a Cluster in which some whole nodes have failed, one at the least, and those that are hit."""
    sound = [node for node in spec.cluster.nodes if len(node.healthy_gpus()) == node.gpus]
    chosen = rng.sample([node.name for node in sound], max(1, len(sound) * changed // 5000))
    lines = [f"    {name}: {{failed: true}}\n" for name in sorted({*hit, *chosen})]
    return "".join(lines if listed else ["  nodes:\n", *lines])


def _document(value: Mapping[str, Any]) -> str:
    """Return a document as YAML whose inner mappings are in flow style."""
    return "".join(f"{key}: {_flow(inner)}\n" for key, inner in value.items())


def _flow(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=_number)


def _number(value: Any) -> float:
    assert isinstance(value, Decimal)
    return float(value)


def today(running: Mapping[str, Sequence[Place]], cut: Layouts = NONE, shared: Mapping[str, Setting] = NONE) -> str:
    """Return a Placement document; replicas next to each other with one place are one row."""
    lines = ["apiVersion: dovetail/v1alpha1", "kind: Placement", "metadata: {name: today}", "spec:", "  placements:"]
    for name, found in sorted(running.items()):
        for first, last, place in _runs(sorted(found)):
            key = f"{name}#{first}" + (f"-{last}" if last > first else "")
            gpus = f", gpus: [{', '.join(map(str, place.gpus))}]" if place.gpus else ""
            instance = f", instance: {place.instance}" if place.instance else ""
            lines.append(f"    {key}: {{node: {place.node}{gpus}{instance}}}")
    if cut or shared:
        lines.append("  gpus:")
    lines += (f"    {gpu}: {{mode: mig, instances: [{', '.join(map(str, cut[gpu]))}]}}" for gpu in sorted(cut))
    lines += (f"    {gpu}: {{mode: {by.mode}, clients: {by.clients}}}" for gpu, by in sorted(shared.items()))
    return "\n".join(lines) + "\n"


def _runs(found: Sequence[Place]) -> Iterator[tuple[int, int, Place]]:
    first = 0
    for index, place in enumerate(found):
        if index + 1 == len(found) or found[index + 1] != place:
            yield first, index, place
            first = index + 1

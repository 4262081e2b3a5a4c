"""Layouts as mig-parted's configurations: its own rules hold, and what is imported again is what was exported."""

from __future__ import annotations

import dataclasses
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml
from tests.build.text import spec_of
from tests.support.plans import plan_for

from dovetail.catalogue import geometries
from dovetail.exporters.mig_parted import CONFIG_FILE, NODES_FILE, export_mig_parted, uncounted
from dovetail.faults import FaultLog
from dovetail.importers.mig_parted import CONFIG, FILE, import_mig_parted
from dovetail.importers.partedfile import last_match, read_parted
from dovetail.mig import Instance, arrange, multisets, parse_instance
from dovetail.placement import Place
from dovetail.spec import Current, PresentReplica, ReplicaId

CLUSTER = """\
apiVersion: dovetail/v1alpha1
kind: Cluster
metadata: {name: c}
spec:
  nodeGroups:
  - {name: h100, count: 3, accelerator: H100-80GB, gpus: 2, cpu: 96, memory: 1Ti}
  - {name: a30, count: 1, accelerator: A30-24GB, gpus: 1, cpu: 96, memory: 1Ti}
  - {name: pro, count: 1, accelerator: RTXPRO6000-96GB, gpus: 2, cpu: 96, memory: 1Ti}
  - {name: l4, count: 1, accelerator: L4-24GB, gpus: 4, cpu: 96, memory: 1Ti}
"""
SPEC = spec_of(CLUSTER)
HALVES = (Instance("3g.40gb", 0), Instance("3g.40gb", 4))
Layouts = Mapping[str, Sequence[Instance]]


def exported(planned: Layouts, today: Layouts | None = None, current: Current | None = None) -> dict[str, str]:
    spec = SPEC if current is None else dataclasses.replace(SPEC, current=current)
    return export_mig_parted(spec, planned, today or {})


def read_again(folder: Path, files: Mapping[str, str]) -> dict[str, Counter[str]]:
    """Return the counts that importing an export with its labels tells, by GPU."""
    steps = yaml.safe_load(files[NODES_FILE])["nodes"]
    applied = {"nvidia.com/mig.config.state": "success"}
    items = [{"metadata": {"name": name, "labels": row["labels"] | applied}} for name, row in steps.items()]
    (folder / "nodes.json").write_text(json.dumps({"items": items}), encoding="utf-8")
    (folder / "config.yaml").write_text(files[CONFIG_FILE], encoding="utf-8")
    (folder / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
    text = import_mig_parted(folder / "config.yaml", folder / "nodes.json", folder / "cluster.yaml").files[FILE]
    return {gpu: Counter(row["instances"]) for gpu, row in yaml.safe_load(text)["spec"]["gpus"].items()}


def test_every_gpu_of_every_node_that_can_be_cut_is_matched_once(tmp_path: Path) -> None:
    files = exported({"h100-001/1": HALVES, "pro-000/0": ()})
    (tmp_path / CONFIG_FILE).write_text(files[CONFIG_FILE], encoding="utf-8")
    parted = read_parted(tmp_path / CONFIG_FILE, FaultLog())
    assert parted is not None
    steps = yaml.safe_load(files[NODES_FILE])
    assert steps["strategy"] == "mixed"
    assert sorted(steps["nodes"]) == ["a30-000", "h100-000", "h100-001", "h100-002", "pro-000"]
    for name, row in steps["nodes"].items():
        entries = parted.configs[row["labels"][CONFIG]]
        gpus = SPEC.cluster.by_name[name].gpus
        assert [entry.devices for entry in entries] == [frozenset({index}) for index in range(gpus)]
        assert all(last_match(entries, index, ()) is not None for index in range(gpus))


def test_equal_nodes_share_a_configuration_and_others_have_names_of_their_own() -> None:
    files = exported({"h100-001/1": HALVES, "h100-002/1": HALVES[::-1]})
    named = {name: row["labels"][CONFIG] for name, row in yaml.safe_load(files[NODES_FILE])["nodes"].items()}
    assert named["h100-001"] == named["h100-002"] != named["h100-000"]
    assert set(yaml.safe_load(files[CONFIG_FILE])["mig-configs"]) == set(named.values())
    assert all(len(name) <= 63 for name in named.values())


def test_a_gpu_in_mig_mode_without_instances_stays_in_it() -> None:
    configs = yaml.safe_load(exported({"a30-000/0": ()})[CONFIG_FILE])["mig-configs"]
    assert [{"devices": [0], "mig-enabled": True, "mig-devices": {}}] in configs.values()


@pytest.mark.parametrize("seed", range(20))
def test_what_is_imported_again_is_what_was_exported(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    planned: dict[str, Sequence[Instance]] = {}
    for node in SPEC.cluster.nodes:
        geometry = geometries().get(node.accelerator or "")
        for index in range(node.gpus if geometry is not None else 0):
            if geometry is not None and rng.random() < 0.7:
                planned[f"{node.name}/{index}"] = arrange(geometry, rng.choice(multisets(geometry))) or ()
    wanted = {gpu: Counter(one.profile for one in layout) for gpu, layout in planned.items()}
    assert read_again(tmp_path, exported(planned)) == wanted


def running(*places: tuple[str, int]) -> Current:
    replicas = [PresentReplica(ReplicaId("web", "", i), node, (gpu,)) for i, (node, gpu) in enumerate(places)]
    return Current(tuple(replicas), from_outside=True)


def drained(files: Mapping[str, str]) -> dict[str, list[str]]:
    nodes = yaml.safe_load(files[NODES_FILE])["nodes"]
    return {name: row["drain"] for name, row in nodes.items() if "changes" in row}


def test_only_what_runs_on_gpus_that_are_cleared_is_drained() -> None:
    today = running(("h100-000", 0), ("h100-000", 1), ("h100-001", 0))
    before = {"h100-000/0": HALVES, "h100-000/1": HALVES}
    after = {"h100-000/0": HALVES, "h100-000/1": (parse_instance("7g.80gb@0"),)}
    assert drained(exported(after, before, today)) == {"h100-000": ["web#1"]}


def test_a_change_of_mode_resets_all_gpus_of_the_node() -> None:
    today = running(("h100-000", 0), ("h100-000", 1), ("h100-001", 0))
    assert drained(exported({"h100-000/1": HALVES}, {}, today)) == {"h100-000": ["web#0", "web#1"]}


def test_other_starts_of_the_same_profiles_are_no_change() -> None:
    before = {"h100-000/0": (parse_instance("1g.10gb@0"),)}
    after = {"h100-000/0": (parse_instance("1g.10gb@6"),)}
    assert drained(exported(after, before)) == {}


def test_equal_layouts_give_equal_bytes() -> None:
    assert exported({"h100-001/1": HALVES}) == exported({"h100-001/1": HALVES})


def test_a_node_of_the_strategy_single_is_told() -> None:
    spec = spec_of(
        CLUSTER.replace("gpus: 1, cpu: 96, memory: 1Ti}", "gpus: 1, cpu: 96, memory: 1Ti, migStrategy: single}")
    )
    told = yaml.safe_load(export_mig_parted(spec, {}, {})[NODES_FILE])
    assert told["strategy"] == "mixed"
    assert {name for name, row in told["nodes"].items() if row.get("strategy") == "single"} == {"a30-000"}


WORK = """\
---
apiVersion: dovetail/v1alpha1
kind: Workload
metadata: {name: web}
spec: {type: service, replicas: 1, request: {gpus: 1}}
---
apiVersion: dovetail/v1alpha1
kind: Workload
metadata: {name: small}
spec: {type: service, replicas: 2, request: {mig: 1g.10gb}}
---
apiVersion: dovetail/v1alpha1
kind: Placement
metadata: {name: today}
spec:
  placements: {web#0: {node: h100-000, gpus: [0]}, small#0: {node: h100-001, gpus: [0], instance: 1g.10gb@0}}
"""


def warned(unit: str, places: Mapping[str, Place]) -> tuple[str, ...]:
    """Return the warnings about a plan of a cluster whose changes of layouts restart what a unit says."""
    given = f"  reconfiguration: {unit}\n" if unit else ""
    spec = spec_of(CLUSTER.replace("  nodeGroups:", f"{given}  nodeGroups:") + WORK)
    return uncounted(spec, plan_for(spec, {ReplicaId(name, "", 0): at for name, at in places.items()}))


STAYS = {"web": Place("h100-000", (0,))}
BESIDE_WEB = {**STAYS, "small": Place("h100-000", (1,), "1g.10gb@0")}


def test_work_that_is_drained_and_counted_as_undisturbed_is_told() -> None:
    (warning,) = warned("", BESIDE_WEB)
    assert "web#0" in warning
    assert "'reconfiguration: node'" in warning
    assert "small#0" not in warning
    assert warned("gpu", BESIDE_WEB) == warned("instance", BESIDE_WEB) == (warning,)


@pytest.mark.parametrize(
    ("unit", "places"),
    [
        ("node", BESIDE_WEB),
        ("", {"small": Place("h100-000", (1,), "1g.10gb@0"), "web": Place("h100-002", (0,))}),
        ("", STAYS),
    ],
)
def test_nothing_is_told_where_the_plan_counts_all_that_is_drained(unit: str, places: Mapping[str, Place]) -> None:
    assert warned(unit, places) == ()


def test_instances_that_stay_on_a_gpu_that_is_cut_anew_are_told() -> None:
    spec = spec_of(CLUSTER.replace("  nodeGroups:", "  reconfiguration: instance\n  nodeGroups:") + WORK)
    places = {ReplicaId("small", "", i): Place("h100-001", (0,), f"1g.10gb@{i}") for i in range(2)}
    (warning,) = uncounted(spec, plan_for(spec, places))
    assert "small#0" in warning
    assert "'reconfiguration: gpu'" in warning

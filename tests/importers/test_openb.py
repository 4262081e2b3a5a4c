"""The Alibaba trace as documents: every number survives, whatever the order of rows."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from dovetail.hostlist import expand
from dovetail.importers.openb import import_openb
from dovetail.importers.project import ImportedProject
from dovetail.quantities import parse_cpu, parse_fraction, parse_memory

HERE = Path(__file__).parent / "data"
TABLES = ["default", "cpu100", "gpushare40", "gpuspec10", "multigpu20"]

NodeRow = tuple[str, int, int, int, str]
PodRow = tuple[int, int, int, int, frozenset[str]]

ACCELERATORS = {
    "A10": "A10-24GB",
    "G2": "openb-g2",
    "G3": "openb-g3",
    "H9": "openb-h9",
    "P100": "P100-16GB",
    "T4": "T4-16GB",
    "V100M16": "V100-16GB",
    "V100M32": "V100-32GB",
    "": "",
}


def _documents(project: ImportedProject, kind: str) -> Iterator[Mapping[str, Any]]:
    """Yield the documents of a kind; every scalar stays text."""
    for text in project.files.values():
        for document in yaml.load_all(text, yaml.BaseLoader):
            if document["kind"] == kind:
                yield document


def _nodes_in(project: ImportedProject) -> Counter[NodeRow]:
    """Return the nodes that the cluster document describes, with their accelerators."""
    (cluster,) = _documents(project, "Cluster")
    rows: Counter[NodeRow] = Counter()
    for group in cluster["spec"]["nodeGroups"]:
        cpu, memory = parse_cpu(group["cpu"]), parse_memory(group["memory"], "down")
        shape = (cpu, memory, int(group["gpus"]), group.get("accelerator", ""))
        rows.update((name, *shape) for text in group["names"] for name in expand(text))
    return rows


def _pods_in(project: ImportedProject) -> Counter[PodRow]:
    """Return how many replicas the workload documents ask for, by what a replica asks for."""
    rows: Counter[PodRow] = Counter()
    for workload in _documents(project, "Workload"):
        spec, request = workload["spec"], workload["spec"]["request"]
        gpus, milli = int(request.get("gpus", 0)), 1000 if "gpus" in request else 0
        if "share" in request:
            gpus, milli = 1, parse_fraction(request["share"]["compute"])
        cpu, memory = parse_cpu(request.get("cpu", "0")), parse_memory(request.get("memory", "0"), "up")
        rows[cpu, memory, gpus, milli, frozenset(spec.get("accelerators", []))] += int(spec["replicas"])
    return rows


def _nodes_of(path: Path) -> Counter[NodeRow]:
    """Return the nodes of the table itself."""
    return Counter(
        (row["sn"], *_numbers(row, "cpu_milli", "memory_mib", "gpu"), ACCELERATORS[row["model"]])
        for row in _rows(path)
    )


def _pods_of(path: Path) -> Counter[PodRow]:
    """Return the pods of the table itself."""
    return Counter(
        (
            *_numbers(row, "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"),
            frozenset(ACCELERATORS[model] for model in row["gpu_spec"].split("|") if model),
        )
        for row in _rows(path)
    )


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def _numbers(row: Mapping[str, str], *columns: str) -> Any:
    return tuple(int(row[column]) for column in columns)


@pytest.fixture(scope="module")
def small() -> ImportedProject:
    return import_openb(HERE / "nodes.csv", HERE / "pods.csv")


def test_every_node_of_the_table_is_in_the_documents_with_its_numbers(small: ImportedProject) -> None:
    assert _nodes_in(small) == _nodes_of(HERE / "nodes.csv")


def test_every_pod_of_the_table_is_in_the_documents_with_its_numbers(small: ImportedProject) -> None:
    assert _pods_in(small) == _pods_of(HERE / "pods.csv")


@pytest.mark.parametrize("table", [*(f"arrived/{name}" for name in TABLES), "pods_default"])
def test_the_whole_trace_survives_in_a_few_thousand_lines(table: str, data: Path) -> None:
    nodes, pods = data / "openb" / "nodes.csv", data / "openb" / f"{table}.csv"
    project = import_openb(nodes, pods)
    assert _nodes_in(project) == _nodes_of(nodes)
    assert _pods_in(project) == _pods_of(pods)
    assert sum(text.count("\n") for text in project.files.values()) < 4000


def test_every_document_keeps_to_its_schema(small: ImportedProject, root: Path) -> None:
    schemas = [json.loads(path.read_text(encoding="utf-8")) for path in (root / "schemas").rglob("*.json")]
    registry: Registry[Any] = Registry().with_resources(
        (schema["$id"], Resource.from_contents(schema)) for schema in schemas
    )
    (whole,) = (schema for schema in schemas if schema["$id"].endswith("/all.json"))
    validator = Draft202012Validator(whole, registry=registry)
    documents = [document for text in small.files.values() for document in yaml.safe_load_all(text)]
    assert len(documents) == 12
    assert [error.message for document in documents for error in validator.iter_errors(document)] == []


def test_nodes_alike_are_one_group_and_keep_their_names(small: ImportedProject) -> None:
    (cluster,) = _documents(small, "Cluster")
    groups = {group["name"]: group for group in cluster["spec"]["nodeGroups"]}
    assert groups["g2-8x-96c-384gi"] == {
        "name": "g2-8x-96c-384gi",
        "names": ["trace-[001-002,004]"],
        "accelerator": "openb-g2",
        "gpus": "8",
        "cpu": "96",
        "memory": "384Gi",
        "sharing": {"mechanism": "fraction"},
    }
    assert groups["v100m16-8x-82500m-344065mi"]["cpu"] == "82.5"
    assert groups["cpu-32c-128gi"].keys() == {"name", "names", "gpus", "cpu", "memory"}


def test_the_most_frequent_shape_is_the_first_workload(small: ImportedProject) -> None:
    workloads = {each["metadata"]["name"]: each for each in _documents(small, "Workload")}
    assert sorted(workloads) == [f"p-{number:04}" for number in range(1, 9)]
    assert workloads["p-0001"]["metadata"]["namespace"] == "trace"
    assert workloads["p-0001"]["spec"] == {
        "type": "job",
        "replicas": "3",
        "request": {"share": {"compute": "0.81"}, "cpu": "3.152", "memory": "5600Mi"},
    }


def test_models_that_the_catalogue_lacks_get_documents_and_no_others(small: ImportedProject) -> None:
    assert [each["metadata"]["name"] for each in _documents(small, "Accelerator")] == ["openb-g2", "openb-h9"]


def test_models_asked_for_are_a_set(small: ImportedProject) -> None:
    asked = [each["spec"] for each in _documents(small, "Workload") if each["spec"]["request"].get("gpus") == "8"]
    assert [(each["replicas"], each["accelerators"]) for each in asked] == [("2", ["V100-16GB", "V100-32GB"])]


def test_columns_beyond_the_needed_ones_are_allowed() -> None:
    project = import_openb(HERE / "nodes.csv", HERE / "pods_with_more_columns.csv")
    assert sum(_pods_in(project).values()) == 2


def test_a_table_without_unknown_models_makes_no_accelerators(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("\ufeffsn,cpu_milli,memory_mib,gpu,model\r\na,1000,1024,1,T4\r\n", encoding="utf-8")
    project = import_openb(nodes, HERE / "pods_with_more_columns.csv")
    assert "accelerators.yaml" not in project.files
    assert "accelerators.yaml" in project.owned


def test_the_order_of_rows_and_quotes_change_nothing(tmp_path: Path, small: ImportedProject) -> None:
    for name in ("nodes.csv", "pods.csv"):
        heading, *rows = (HERE / name).read_text(encoding="utf-8").splitlines()
        quoted = [",".join(f'"{cell}"' for cell in row.split(",")) for row in reversed(rows)]
        (tmp_path / name).write_text("\n".join([heading, *quoted]), encoding="utf-8")
    assert import_openb(tmp_path / "nodes.csv", tmp_path / "pods.csv") == small


def test_what_the_file_names_hold_stays_inside_a_comment(tmp_path: Path) -> None:
    pods = tmp_path / "a\nkind: Policy\u2028.csv"
    pods.write_bytes((HERE / "pods.csv").read_bytes())
    project = import_openb(HERE / "nodes.csv", pods)
    assert "# from nodes.csv and a?kind: Policy?.csv." in project.files["dovetail.yaml"].splitlines()
    assert sorted({doc["kind"] for kind in ("Project", "Policy") for doc in _documents(project, kind)}) == ["Project"]

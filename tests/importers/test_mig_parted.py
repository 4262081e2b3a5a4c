"""What GPUs are cut into, from mig-parted's configurations and labels; and the strict reader of its format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dovetail.faults import FaultLog, Refused
from dovetail.importers.mig_parted import FILE, import_mig_parted
from dovetail.importers.partedfile import last_match, read_parted

CLUSTER = """\
apiVersion: dovetail/v1alpha1
kind: Cluster
metadata: {name: c}
spec:
  nodeGroups:
  - {name: h100, count: 2, accelerator: H100-80GB, gpus: 2, cpu: 96, memory: 1Ti}
  - {name: a100, count: 1, accelerator: A100-40GB, gpus: 2, cpu: 96, memory: 1Ti}
  - {name: h20, count: 1, accelerator: H20-96GB, gpus: 1, cpu: 96, memory: 1Ti}
"""
CONFIGS = """\
version: v1
mig-configs:
  all-disabled:
  - {devices: all, mig-enabled: false}
  halves:
  - {devices: all, mig-enabled: true, mig-devices: {}}
  - {devices: [0], mig-enabled: true, mig-devices: {3g.40gb: 2, 1g.10gb: 0}}
  by-product:
  - {devices: all, device-filter: "0x233010DE", mig-enabled: true, mig-devices: {1g.10gb: 7}}
  - {devices: all, device-filter: ["0x20B010DE", "0x20B110DE"], mig-enabled: true, mig-devices: {1g.10gb: 4}}
  first-only:
  - {devices: [0], mig-enabled: true, mig-devices: {1g.10gb: 1}}
  too-much:
  - {devices: all, mig-enabled: true, mig-devices: {1g.10gb: 7}}
  inner:
  - {devices: all, mig-enabled: true, mig-devices: {1c.3g.20gb: 3}}
"""


def nodes(**configs: str) -> str:
    """Return a list of nodes with the configurations that their labels name, and one without label."""
    items: list[dict[str, Any]] = [{"metadata": {"name": "cpu-000", "labels": {"a": "b"}}}]
    for name, config in configs.items():
        config, _, state = config.partition(":")
        labels = {"nvidia.com/mig.config": config}
        labels |= {"nvidia.com/mig.config.state": state or "success"} if state != "none" else {}
        items.append({"metadata": {"name": name.replace("_", "-"), "labels": labels}})
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def imported(folder: Path, configs: str = CONFIGS, inventory: str | None = None, **labels: str) -> dict[str, Any]:
    for name, text in (("configs.yaml", configs), ("nodes.json", inventory or nodes(**labels))):
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "project").mkdir()
    (folder / "project" / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
    files = import_mig_parted(folder / "configs.yaml", folder / "nodes.json", folder / "project").files
    found: dict[str, Any] = yaml.safe_load(files[FILE])["spec"]
    return found


def test_labels_become_the_layout_of_every_gpu_in_mig_mode(tmp_path: Path) -> None:
    found = imported(tmp_path, h100_000="halves", h100_001="all-disabled", a100_000="by-product")
    assert found == {
        "placements": {},
        "gpus": {
            "a100-000/0": {"mode": "mig", "instances": ["1g.10gb"] * 4},
            "a100-000/1": {"mode": "mig", "instances": ["1g.10gb"] * 4},
            "h100-000/0": {"mode": "mig", "instances": ["3g.40gb", "3g.40gb"]},
            "h100-000/1": {"mode": "mig", "instances": []},
        },
    }


UNTOLD = [
    ({"h100_000": "halves:failed"}, "DT1958", "its configuration's state is 'failed'"),
    ({"h100_000": "halves:none"}, "DT1958", "it has no label nvidia.com/mig.config.state"),
    ({"h100_000": "halvs"}, "DT1958", "there is no configuration 'halvs'"),
    ({"h100_007": "halves"}, "DT1308", "there is no node 'h100-007'"),
    ({"h100_000": "first-only"}, "DT1958", "no entry of 'first-only' is for GPU 1 of 'h100-000'"),
    ({"a100_000": "too-much"}, "DT1958", "7 x 1g.10gb: no 'A100-40GB' can be cut so"),
    ({"a100_000": "inner"}, "DT1958", "'1c.3g.20gb' is a compute instance inside"),
    ({"h20_000": "too-much"}, "DT1958", "no 'H20-96GB' can be cut so"),
]


@pytest.mark.parametrize(("labels", "code", "message"), UNTOLD)
def test_a_state_that_cannot_be_told_is_refused(
    tmp_path: Path, labels: dict[str, str], code: str, message: str
) -> None:
    with pytest.raises(Refused) as refused:
        imported(tmp_path, **labels)
    assert {fault.code for fault in refused.value.faults} == {code}
    assert all(message.partition("GPU")[0] in fault.message for fault in refused.value.faults)
    assert all(fault.position is not None and fault.hint for fault in refused.value.faults)


MALFORMED = [
    ("", "holds nothing"),
    ("kind: ConfigMap\ndata:\n  config.yaml: |\n    version: v1\n", "this is a ConfigMap"),
    ("kind: ConfigMap\ndata: {}\n", "this is a ConfigMap"),
    ("version: v1\n---\nversion: v1\n", "holds several documents"),
    ("mig-configs: {}\n", "'version' is missing"),
    ("version: v2\nmig-configs: {a: []}\n", "the version is 'v2'"),
    ("version: v1\nmig-configs: {}\n", "at least one configuration"),
    ("version: v1\nmig-configs: []\n", "at least one configuration"),
    ("version: v1\nmig-config: {}\n", "there is no field 'mig-config'"),
    ("version: v1\nmig-configs: {a: []}\n", "at least one entry"),
    ("version: v1\nmig-configs: {a: [1]}\n", "an entry is a mapping"),
    ("version: v1\nmig-configs: {a: [{devices: all}]}\n", "an entry needs 'mig-enabled'"),
    ("version: v1\nmig-configs: {a: [{mig-enabled: false}]}\n", "an entry needs 'devices'"),
    ("version: v1\nmig-configs: {a: [{devices: some, mig-enabled: false}]}\n", "'devices' is 'all' or a list"),
    ("version: v1\nmig-configs: {a: [{devices: [-1], mig-enabled: false}]}\n", "'devices' is 'all' or a list"),
    ("version: v1\nmig-configs: {a: [{devices: all, mig-enabled: yes}]}\n", "'mig-enabled' is true or false"),
    ("version: v1\nmig-configs: {a: [{devices: all, mig-enabled: true}]}\n", "where MIG is on"),
    ("version: v1\nmig-configs: {a: [{devices: all, mig-enabled: false, mig-devices: {1g.5gb: 1}}]}\n", "MIG is off"),
    ("version: v1\nmig-configs: {a: [{devices: all, mig-enabled: true, mig-devices: {1g: 1}}]}\n", "no MIG profile"),
    ("version: v1\nmig-configs: {a: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: -1}}]}\n", "from 0"),
    ("version: v1\nmig-configs: {a: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 0}}]}\n", "all 0"),
    ("version: v1\nmig-configs: {a: [{devices: all, mig-enabled: false, device-filter: A100}]}\n", "PCI id"),
    ("version: v1\nmig-configs: {a: [{devices: all, mig-enabled: false, profile: x}]}\n", "no field 'profile'"),
]


@pytest.mark.parametrize(("text", "message"), MALFORMED)
def test_a_file_against_the_specification_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "configs.yaml").write_text(text, encoding="utf-8")
    log = FaultLog()
    assert read_parted(tmp_path / "configs.yaml", log) is None
    assert [fault.code for fault in log.errors] == ["DT1957"]
    assert message in log.errors[0].message
    assert log.errors[0].hint


def test_the_last_entry_that_matches_counts(tmp_path: Path) -> None:
    (tmp_path / "configs.yaml").write_text(CONFIGS, encoding="utf-8")
    parted = read_parted(tmp_path / "configs.yaml", FaultLog())
    assert parted is not None
    halves = parted.configs["halves"]
    assert [dict(entry.counts) for index in (0, 1) if (entry := last_match(halves, index, ()))] == [
        {"3g.40gb": 2},
        {},
    ]
    assert last_match(parted.configs["by-product"], 0, ("0x2331",)) is None


@pytest.mark.parametrize("inventory", ['{"items": {}}', '{"items": [{"metadata": {}}]}', "[]", "{"])
def test_a_list_of_nodes_of_another_form_is_refused(tmp_path: Path, inventory: str) -> None:
    with pytest.raises(Refused):
        imported(tmp_path, inventory=inventory)

"""Topologies of Slurm become clusters; what is wrong with them is told with file and line."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from dovetail.build import build
from dovetail.documents import load_project
from dovetail.faults import CODES, Fault, Refused
from dovetail.importers.project import ImportedProject, write_project
from dovetail.importers.slurm_topology import import_slurm_topology
from dovetail.spec import Cluster
from dovetail_cli.main import run

CONF = """\
# Two leaves of unlike size under a spine.
SwitchName=s0 Nodes=gpu[1-3] LinkSpeed=100
switchname=s1 nodes=gpu4,gpu5
SwitchName=top Switches=s[0-1] \\
  Nodes=login
"""
YAML = """\
---
- topology: other
  tree: {switches: [{switch: x, nodes: none}]}
- topology: main
  cluster_default: true
  tree:
    switches:
    - {switch: top, children: "s[0-1]", nodes: login}
    - {switch: s0, nodes: "gpu[1-3]"}
    - {switch: s1, nodes: "gpu4,gpu5"}
"""
BLOCKS = """\
BlockName=b1 Nodes=gpu[1-2]
BlockName=b2 Nodes=gpu[3-4]
BlockName=b3 Nodes=gpu5,login
BlockSizes=2,4
"""
NODES = """\
ClusterName=test
NodeName=DEFAULT RealMemory=1024000
NodeName=gpu[1-4] CPUs=128 Gres=gpu:nvidia_h100_80gb_hbm3:8(S:0-1),nvme:2
NodeName=gpu5 Boards=1 SocketsPerBoard=2 CoresPerSocket=32 ThreadsPerCore=2 Gres=gpu:mystery:4 State=DRAIN
NodeName=login CPUs=16 RealMemory=64000 State=DOWN
"""


def cluster_of(project: ImportedProject, folder: Path) -> Cluster:
    """Return the cluster that an import means."""
    write_project(project, folder)
    return build(load_project(folder), as_of=dt.date(2026, 1, 1)).cluster


def slurm(tmp_path: Path, text: str, name: str = "topology.conf", nodes: str = NODES) -> ImportedProject:
    """Import a topology with its nodes."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "slurm.conf").write_text(nodes, encoding="utf-8")
    return import_slurm_topology(tmp_path / name, tmp_path / "slurm.conf")


@pytest.mark.parametrize(("text", "name"), [(CONF, "topology.conf"), (YAML, "topology.yaml")])
def test_a_tree_of_switches_becomes_levels(text: str, name: str, tmp_path: Path) -> None:
    found = cluster_of(slurm(tmp_path, text, name), tmp_path / "out")
    assert found.levels == ("spine", "leaf", "node")
    homes = {node.name: (node.domains["spine"], node.domains["leaf"]) for node in found.nodes}
    assert homes["gpu3"] == ("top", "top/s0")
    assert homes["gpu5"] == ("top", "top/s1")
    assert homes["login"] == ("top", "top/top")


def test_nodes_that_the_topology_does_not_have_are_left_out_and_told(tmp_path: Path) -> None:
    made = slurm(tmp_path, CONF, nodes=NODES + "NodeName=mgmt\nNodeName=cpu[1-6] CPUs=64\n")
    (warning,) = made.warnings
    assert (warning.code, warning.position and warning.position.line) == ("DT1959", 6)
    assert warning.message.endswith("does not have them: mgmt, cpu1, cpu2, cpu3, cpu4 and 2 more")
    assert "does not have them: 7 of 13 nodes" in made.files["dovetail.yaml"]
    assert len(cluster_of(made, tmp_path / "out").nodes) == 6
    assert slurm(tmp_path, CONF).warnings == ()


def test_a_topology_that_is_not_imported_tells_which_could_be(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        slurm(tmp_path, YAML.replace("tree:\n", "ring:\n"), "topology.yaml")
    assert [fault.hint for fault in refused.value.faults] == ["leave 'other' alone in the file to import it"]


def test_hardware_comes_from_the_lines_of_nodes(tmp_path: Path) -> None:
    found = cluster_of(slurm(tmp_path, CONF), tmp_path / "out").by_name
    assert (found["gpu1"].gpus, found["gpu1"].accelerator, found["gpu1"].cpu) == (8, "H100-80GB", 128_000)
    assert found["gpu1"].memory == 1_024_000
    assert (found["gpu5"].gpus, found["gpu5"].accelerator, found["gpu5"].cpu) == (4, "gpu-mystery", 128_000)
    assert found["gpu5"].cordoned
    assert found["login"].down
    assert not found["login"].gpus


def test_blocks_and_larger_blocks_become_levels(tmp_path: Path) -> None:
    found = cluster_of(slurm(tmp_path, BLOCKS), tmp_path / "out")
    assert found.levels == ("blocks-4", "block", "node")
    assert {node.name: node.domains["block"] for node in found.nodes} == {
        **dict.fromkeys(("gpu1", "gpu2"), "blocks-4-0/b1"),
        **dict.fromkeys(("gpu3", "gpu4"), "blocks-4-0/b2"),
        **dict.fromkeys(("gpu5", "login"), "blocks-4-1/b3"),
    }


BAD_SLURM = [
    (CONF.replace("s[0-1]", "s[0-2]"), NODES, "topology.conf", 4, "there is no switch 's2'"),
    (CONF + "SwitchName=s0 Nodes=x\n", NODES, "topology.conf", 6, "the switch 's0' is there twice"),
    (BLOCKS + "BlockName=b1 Nodes=x\n", NODES, "topology.conf", 5, "the block 'b1' is there twice"),
    (CONF + "SwitchName=s2 Switches=s0\n", NODES, "topology.conf", 6, "hangs on 'top' already"),
    (CONF.replace("gpu4,gpu5", "gpu3,gpu4,gpu5"), NODES, "topology.conf", 3, "'gpu3' is in 's0' already"),
    ("SwitchName=a Switches=b Nodes=gpu[1-5],login\nSwitchName=b Switches=a\n", NODES, "topology.conf", 1, "itself"),
    (CONF.replace("gpu[1-3]", "gpu[1-"), NODES, "topology.conf", 2, "a list of nodes: "),
    (CONF + "what is this\n", NODES, "topology.conf", 6, "no list of Key=Value"),
    (CONF + "Nodes=x\n", NODES, "topology.conf", 6, "none of SwitchName"),
    (CONF + "BlockName=b Nodes=x\n", NODES, "topology.conf", 1, "both switches and blocks"),
    ("# nothing\n", NODES, "topology.conf", 1, "neither switches nor blocks"),
    (CONF, NODES.replace("login", "lojin"), "topology.conf", 4, "slurm.conf has no node 'login'"),
    (CONF, NODES.replace("CPUs=128", "CPUs=many"), "slurm.conf", 3, "cpus is 'many'"),
    (
        CONF,
        NODES.replace("nvme:2", "gpu:a100:4"),
        "slurm.conf",
        3,
        "several models",
    ),
    ("SwitchName=s Switches=t\nSwitchName=t\n", NODES, "slurm.conf", 3, "the topology has no node of slurm.conf"),
    (CONF + "SwitchName=s2 Node=x\n", NODES, "topology.conf", 6, "a line SwitchName= has no key 'Node'"),
    (BLOCKS + "BlockName=b4 Node=x\n", NODES, "topology.conf", 5, "a line BlockName= has no key 'Node'"),
    (BLOCKS.replace("b3", "b3 BlockIndex=2"), NODES, "topology.conf", 3, "`scontrol show topology` prints"),
    (
        "SwitchName=a Level=0 Nodes=gpu1\nSwitchName=b Level=1 Nodes=gpu1 Switches=a\n",
        NODES,
        "topology.conf",
        1,
        "`scontrol show topology` prints",
    ),
    (CONF, NODES + "NodeName=gpu1\n", "slurm.conf", 6, "the node 'gpu1' is there twice"),
    (CONF, NODES + "Include more.conf\n", "slurm.conf", 6, "Include is not followed"),
    (CONF, NODES + "DownNodes=gpu[5-6]\n", "slurm.conf", 6, "no line NodeName= of 'gpu6'"),
    (CONF, NODES + "DownNodes=gpu5 Stat=FAIL\n", "slurm.conf", 6, "a line DownNodes= has no key 'Stat'"),
    (CONF, NODES + "DownNodes=gpu5 State=DWON\n", "slurm.conf", 6, "'DWON' is no state"),
    (CONF, NODES.replace("State=DRAIN", "State=DRIAN"), "slurm.conf", 4, "'DRIAN' is no state of a node"),
    (CONF, NODES.replace("State=DRAIN", "State=IDLE+DRIAN*"), "slurm.conf", 4, "'DRIAN*' is no state of a node"),
    (CONF, NODES.replace(" RealMemory=64000", " RealMemroy=64000"), "slurm.conf", 5, "has no key 'RealMemroy'"),
    (CONF, NODES.replace("DEFAULT RealMemory", "DEFAULT Memory"), "slurm.conf", 2, "has no key 'Memory'"),
    (CONF, NODES.replace("Gres=gpu:mystery", "Gress=gpu:mystery"), "slurm.conf", 4, "has no key 'Gress'"),
    (CONF, NODES.replace("gpu:mystery:4", "gpu:a100_1g.10gb:7"), "slurm.conf", 4, "GPUs that MIG cuts"),
    (CONF, NODES.replace("gpu:mystery:4", "gpu:3g.40gb:2"), "slurm.conf", 4, "GPUs that MIG cuts"),
    *(
        (CONF, NODES.replace("gpu:mystery:4", gres), "slurm.conf", 4, "does not tell how many GPUs")
        for gres in ("gpu:a:b:4", "gpu:", "gpu:257", "gpu:a100:1K", "gpu:9999")
    ),
    ("# all\nSwitchName=ib/s0 Nodes=gpu[1-5],login\n", NODES, "topology.conf", 2, "'ib/s0' cannot be the name"),
    (CONF.replace("gpu5", "gpu_"), NODES.replace("gpu5", "gpu_"), "slurm.conf", 4, "'gpu_' cannot be the name"),
    *(
        (BLOCKS.replace("2,4", sizes), NODES, "topology.conf", 4, "the sizes of blocks are")
        for sizes in ("0,4", "2,\u00b2", "2,4,4", "2,4k", "4,2", "4,6", "2,6", "-2,4", "2,", "2,12")
    ),
]


@pytest.mark.parametrize(("text", "nodes", "file", "line", "words"), BAD_SLURM)
def test_a_fault_of_slurm_has_its_place(
    text: str, nodes: str, file: str, line: int, words: str, tmp_path: Path
) -> None:
    with pytest.raises(Refused) as refused:
        slurm(tmp_path, text, nodes=nodes)
    assert_told(refused.value.faults, file, line, words)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (YAML.replace("switch: s1", "swich: s1"), 10, "an entry has 'switch'"),
        (YAML.replace("switches:\n", "swiches:\n"), 6, "a topology has 'tree.switches'"),
        (YAML.replace("gpu4,gpu5", "gpu[4"), 10, "a list of nodes: "),
        (YAML.replace("cluster_default: true", "cluster_default: maybe"), 5, "'cluster_default' is 'maybe'"),
        ("- a: [\n", 1, ""),
        (YAML.replace("tree:\n", "ring:\n"), 6, "the topology 'main' is neither a tree nor blocks"),
        (YAML.split("  tree:\n")[0] + "  flat: true\n", 6, "'main' is neither a tree nor blocks"),
        ("---\n# of switches\ntopologies: 3\n", 3, "must be a list"),
        *(
            (
                f"- topology: a\n  block:\n    block_sizes: {sizes}\n    blocks: [{{block: b, nodes: n}}]\n",
                3,
                "the sizes of blocks are",
            )
            for sizes in ("[0, 4]", "['2', '4']", "[true, 4]", "[-4, 8]", "4")
        ),
    ],
)
def test_a_fault_of_yaml_has_its_place(text: str, line: int, words: str, tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        slurm(tmp_path, text, "topology.yaml")
    assert any(words in f.message for f in refused.value.faults)
    assert all(f.position is None or f.position.line >= line for f in refused.value.faults)


def assert_told(faults: tuple[Fault, ...], file: str, line: int, words: str) -> None:
    """Assert that one of some faults is at a line and says some words, in a known code."""
    assert all(fault.code in CODES and fault.hint for fault in faults), faults
    told = [f for f in faults if f.position and Path(f.position.file).name == file and f.position.line == line]
    assert any(words in fault.message for fault in told), faults


def test_the_command_writes_a_project_that_validates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slurm(tmp_path, CONF)
    given = ["--topology", str(tmp_path / "topology.conf"), "--nodes", str(tmp_path / "slurm.conf")]
    assert run(["import", "slurm-topology", *given, "--out", str(tmp_path / "out")]) == 0
    assert run(["validate", str(tmp_path / "out")]) == 0
    assert "wrote 3 files" in capsys.readouterr().out


def test_long_names_of_gpu_types_stay_apart(tmp_path: Path) -> None:
    long = "x" * 90
    nodes = NODES.replace("gpu:nvidia_h100_80gb_hbm3:8", f"gpu:{long}1:8").replace("gpu:mystery:4", f"gpu:{long}2:4")
    found = cluster_of(slurm(tmp_path, CONF, nodes=nodes), tmp_path / "out").by_name
    assert found["gpu1"].accelerator != found["gpu5"].accelerator


def test_a_comment_ends_with_its_line_and_continued_lines_have_nothing_between(tmp_path: Path) -> None:
    text = """\
SwitchName=s0 Nodes=gpu[1-2],\\
gpu3
SwitchName=s1 Nodes=gpu[4-5]
# both hang on one spine \\
SwitchName=top Switches=s[0-1] Nodes=login
"""
    found = cluster_of(slurm(tmp_path, text), tmp_path / "out").by_name
    assert {found[f"gpu{i}"].domains["leaf"] for i in (1, 2, 3)} == {"top/s0"}
    assert {node.domains["spine"] for node in found.values()} == {"top"}


@pytest.mark.parametrize(("gres", "number"), [("gpu:4090:4", 4), ("gpu:4", 4), ("gpu:a100", 1), ("gpu", 1)])
def test_a_number_before_another_is_a_model(gres: str, number: int, tmp_path: Path) -> None:
    nodes = NODES.replace("gpu:mystery:4", gres)
    node = cluster_of(slurm(tmp_path, CONF, nodes=nodes), tmp_path / "out").by_name["gpu5"]
    assert len(node.healthy_gpus()) == number
    assert ("4090" in (node.accelerator or "")) == ("4090" in gres)


@pytest.mark.parametrize(
    ("gres", "number", "model"),
    [
        ("gpu:no_consume:2", 2, "unknown"),
        ("gpu:tesla:no_consume:2", 2, "tesla"),
        ("gpu:tesla:2,gpu_mem:5,gpumem:tesla:80G,shard:8", 2, "tesla"),
    ],
)
def test_only_gpus_are_counted_whether_they_are_consumed_or_not(
    gres: str, number: int, model: str, tmp_path: Path
) -> None:
    nodes = NODES.replace("gpu:mystery:4", gres)
    node = cluster_of(slurm(tmp_path, CONF, nodes=nodes), tmp_path / "out").by_name["gpu5"]
    assert (node.gpus, node.accelerator) == (number, f"gpu-{model}")


@pytest.mark.parametrize(
    ("state", "failed", "cordoned"),
    [
        ("IDLE+DRAIN", False, True),
        ("DRAIN*", False, True),
        ("idle*", False, True),
        ("mixed$", False, True),
        ("IDLE+MAINTENANCE", False, True),
        ("DOWN*+DRAIN", True, False),
        ("drng", False, True),
        ("IDLE+CLOUD+POWERED_DOWN", False, False),
        ("alloc+", False, False),
        ("idle~", False, False),
        ("MIXED@", False, False),
        ("UNKNOWN", False, False),
    ],
)
def test_states_are_read_as_slurm_prints_them(state: str, failed: bool, cordoned: bool, tmp_path: Path) -> None:
    nodes = NODES.replace("State=DRAIN", f"State={state}")
    node = cluster_of(slurm(tmp_path, CONF, nodes=nodes), tmp_path / "out").by_name["gpu5"]
    assert (node.down, node.cordoned) == (failed, cordoned)


def test_a_key_that_no_node_has_is_told_with_what_was_meant(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        slurm(tmp_path, CONF, nodes=NODES.replace(" RealMemory=64000", " RealMemroy=64000"))
    assert [fault.hint for fault in refused.value.faults] == ["did you mean RealMemory?"]


def test_procs_are_cpus(tmp_path: Path) -> None:
    found = cluster_of(slurm(tmp_path, CONF, nodes=NODES.replace("CPUs=16", "Procs=16")), tmp_path / "out")
    assert found.by_name["login"].cpu == 16_000


@pytest.mark.parametrize("said", ["true", "True", "yes", "On", "y", '"true"'])
def test_the_default_of_several_topologies_is_told_in_any_way_that_slurm_reads(said: str, tmp_path: Path) -> None:
    text = YAML.replace("cluster_default: true", f"cluster_default: {said}")
    text = text.replace("- topology: other\n", "- topology: other\n  cluster_default: off\n")
    assert cluster_of(slurm(tmp_path, text, "topology.yaml"), tmp_path / "out").levels == ("spine", "leaf", "node")


@pytest.mark.parametrize(("state", "failed"), [("", True), (" State=FAIL", True), (" State=DRAIN", False)])
def test_nodes_that_are_declared_down_are_not_planned_on(state: str, failed: bool, tmp_path: Path) -> None:
    found = cluster_of(
        slurm(tmp_path, CONF, nodes=NODES + f"DownNodes=gpu[1-2]{state} Reason=fan\n"), tmp_path / "out"
    )
    assert [(found.by_name[f"gpu{i}"].down, found.by_name[f"gpu{i}"].cordoned) for i in (1, 2, 3)] == [
        (failed, not failed),
        (failed, not failed),
        (False, False),
    ]

"""The Alibaba trace with something wrong in it: all faults at once, each at its cell."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.faults import CODES, Fault, Refused, render_fault
from dovetail.importers.csvtable import MAX_BYTES, MAX_FAULTS
from dovetail.importers.openb import import_openb

NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
NODE = "n0,96000,393216,8,G2\n"
POD = "p0,1000,1024,1,500,\n"

BAD_NODES = [
    ("", 1, 1, "DT1954", "the file is empty"),
    (NODES, 1, 1, "DT1954", "the table has no rows"),
    ("sn,cpu_milli,memory_mib,gpus,model\n" + NODE, 1, 1, "DT1951", "the column gpu is missing"),
    ("sn,sn,cpu_milli,memory_mib,gpu,model\n", 1, 1, "DT1951", "the column sn is there more than once"),
    (NODES + "n0,96000,393216,8\n", 2, 1, "DT1956", "the row has 4 cells, and the heading names 5 columns"),
    (NODES + '"n0,96000,393216,8,G2\n', 2, 1, "DT1956", "the line is not CSV"),
    (NODES + "n0,96000.0,393216,8,G2\n", 2, 4, "DT1952", "cpu_milli is '96000.0', and must be a whole number"),
    (NODES + "n0,96000,-1,8,G2\n", 2, 10, "DT1952", "memory_mib is '-1', and must be a whole number from 0"),
    (NODES + "n0,,1,8,G2\n", 2, 4, "DT1952", "cpu_milli is empty"),
    (NODES + "n0,1,1,257,G2\n", 2, 8, "DT1952", "gpu is '257', and must be a whole number from 0 to 256"),
    (NODES + "n0,1,1000000000,8,G2\n", 2, 6, "DT1952", "from 0 to 999999999"),
    (NODES + "n0,\u0663,1,8,G2\n", 2, 4, "DT1952", "cpu_milli is '\u0663'"),
    (NODES + "n0,1,1,8,\n", 2, 10, "DT1952", "model is empty, and the node has GPUs"),
    (NODES + "n0,1,1,0,T4\n", 2, 8, "DT1952", "gpu is 0, and the model is T4"),
    (NODES + "n0,1,1,8,T4/x\n", 2, 10, "DT1952", "'T4/x' cannot be the name of a GPU model"),
    (NODES + ",1,1,8,T4\n", 2, 1, "DT1952", "sn is empty"),
    (NODES + "-n,1,1,8,T4\n", 2, 1, "DT1952", "'-n' cannot be the name of a node"),
    (NODES + NODE + "\n" + NODE, 4, 1, "DT1953", "'n0' is already the name in line 2"),
]

BAD_PODS = [
    (PODS, 1, 1, "DT1954", "the table has no rows"),
    (PODS.replace("gpu_milli", "gpu_mili") + POD, 1, 1, "DT1951", "the column gpu_milli is missing"),
    (PODS + POD + POD, 3, 1, "DT1953", "'p0' is already the name in line 2"),
    (PODS + "p0,1000,1024,2,500,\n", 2, 16, "DT1955", "the pod asks for parts of 2 GPUs"),
    (PODS + "p0,1000,1024,1,1001,\n", 2, 16, "DT1955", "gpu_milli is 1001, and must be from 1 to 1000"),
    (PODS + "p0,1000,1024,1,0,\n", 2, 16, "DT1955", "gpu_milli is 0, and must be from 1 to 1000"),
    (PODS + "p0,1000,1024,0,5,\n", 2, 16, "DT1955", "the pod asks for 5 thousandths of no GPU"),
    (PODS + "p0,1000,1024,0,0,T4\n", 2, 18, "DT1955", "the pod asks for a GPU model and for no GPU"),
    (PODS + "p0,1000,1024,1,500,T4|\n", 2, 20, "DT1952", "'' cannot be the name of a GPU model"),
    (PODS + '"p0",1000,1024,1,x,\n', 2, 1, "DT1952", "gpu_milli is 'x'"),
]


def _faults(tmp_path: Path, nodes: str | bytes, pods: str | bytes) -> tuple[Fault, ...]:
    for name, content in (("nodes.csv", nodes), ("pods.csv", pods)):
        data = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(data)
    with pytest.raises(Refused) as caught:
        import_openb(tmp_path / "nodes.csv", tmp_path / "pods.csv")
    assert all(fault.code in CODES for fault in caught.value.faults)
    return caught.value.faults


def _check(fault: Fault, file: Path, line: int, column: int, code: str, message: str) -> None:
    assert message in fault.message
    assert fault.code == code
    assert fault.position is not None
    assert (fault.position.file, fault.position.line, fault.position.column) == (str(file), line, column)


@pytest.mark.parametrize(("text", "line", "column", "code", "message"), BAD_NODES)
def test_a_bad_table_of_nodes_is_refused_at_its_cell(
    tmp_path: Path, text: str, line: int, column: int, code: str, message: str
) -> None:
    (fault,) = _faults(tmp_path, text, PODS + POD)
    _check(fault, tmp_path / "nodes.csv", line, column, code, message)


@pytest.mark.parametrize(("text", "line", "column", "code", "message"), BAD_PODS)
def test_a_bad_table_of_pods_is_refused_at_its_cell(
    tmp_path: Path, text: str, line: int, column: int, code: str, message: str
) -> None:
    (fault,) = _faults(tmp_path, NODES + NODE, text)
    _check(fault, tmp_path / "pods.csv", line, column, code, message)


def test_faults_of_both_tables_are_told_together_with_their_lines(tmp_path: Path) -> None:
    faults = _faults(tmp_path, NODES + "n0,x,y,8,G2\n", PODS + "p0,1000,z,1,500,\n" + POD)
    assert [fault.code for fault in faults] == ["DT1952", "DT1952", "DT1952", "DT1953"]
    assert render_fault(faults[1]).splitlines() == [
        f"{tmp_path / 'nodes.csv'}:2:6: error DT1952: "
        "memory_mib is 'y', and must be a whole number from 0 to 999999999",
        "  | n0,x,y,8,G2",
        "  |      ^",
    ]


def test_a_column_with_a_slip_in_its_name_is_suggested(tmp_path: Path) -> None:
    (fault,) = _faults(tmp_path, NODES.replace("cpu_milli", "cpu_mili") + NODE, PODS + POD)
    assert fault.hint == "is 'cpu_mili' meant to be it?"


def test_models_that_would_get_one_name_are_refused(tmp_path: Path) -> None:
    (fault,) = _faults(tmp_path, NODES + "a,1,1,1,X-1\nb,1,1,1,x_1\n", PODS + POD)
    assert fault.message == "the GPU models X-1 and x_1 differ only in case or punctuation"


def test_a_file_that_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught:
        import_openb(tmp_path / "absent.csv", tmp_path)
    assert [fault.code for fault in caught.value.faults] == ["DT1001", "DT1001"]


def test_text_that_is_not_utf8_is_refused_at_its_byte(tmp_path: Path) -> None:
    (fault,) = _faults(tmp_path, NODES.encode() + b"n\xff0,1,1,1,T4\n", PODS + POD)
    _check(fault, tmp_path / "nodes.csv", 2, 2, "DT1003", "not UTF-8")


def test_a_file_beyond_the_limit_is_refused_unread(tmp_path: Path) -> None:
    (fault,) = _faults(tmp_path, b"\n" * (MAX_BYTES + 1), PODS + POD)
    assert fault.code == "DT1002"


def test_very_many_faults_end_with_a_word_that_there_are_more(tmp_path: Path) -> None:
    rows = "".join(f"n{number},x,1,1,T4\n" for number in range(MAX_FAULTS + 50))
    faults = _faults(tmp_path, NODES + rows, PODS + POD)
    assert len(faults) == MAX_FAULTS + 1
    assert faults[-1].code == "DT1115"


@given(
    st.lists(st.text(alphabet='09-x,"\n\r|. T4\x00é', max_size=30), max_size=5),
    st.lists(st.text(alphabet='019,"\n|T4', max_size=20), max_size=5),
)
def test_any_text_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, nodes: list[str], pods: list[str]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / "n.csv").write_text(NODES + NODE + "\n".join(nodes), encoding="utf-8", newline="")
    (folder / "p.csv").write_text(PODS + POD + "\n".join(pods), encoding="utf-8", newline="")
    try:
        files = import_openb(folder / "n.csv", folder / "p.csv").files
    except Refused as refused:
        codes = {fault.code for fault in refused.faults}
    else:
        codes = set()
        assert "cluster.yaml" in files
    assert codes <= CODES.keys()

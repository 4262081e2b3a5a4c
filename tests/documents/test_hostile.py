"""No input yields a traceback, more than 5 s or more than 1 GiB: a fault, or documents."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dovetail.documents import load_file, load_text
from dovetail.documents.format import format_text
from dovetail.documents.source import LARGEST_FILE
from dovetail.faults import Refused, render_faults

HERE = Path(__file__).resolve().parent
HEADER = "apiVersion: dovetail/v1alpha1\nkind: Workload\nmetadata: {name: w}\nspec:\n"
SAMPLES = [path.read_bytes() for folder in ("refused", "accepted") for path in sorted((HERE / folder).iterdir())]

PIECES = [b"", b": ", b"- ", b"&a ", b"*a", b"{", b"]", b"null", b"\n", b"1e9", b"''"]

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10)
)
WORKLOAD = (
    "---\napiVersion: dovetail/v1alpha1\nkind: Workload\nmetadata: {name: w%d}\n"
    "spec: {type: job, replicas: 1, request: {cpu: 1}}\n"
)
MEGABYTE = 1_000_000


def yaml_texts(n: int) -> dict[str, str]:
    """Return texts of about n bytes, each with much of one thing."""
    return {
        "brackets": "[" * n,
        "braces": "{a: " * (n // 4),
        "dashes": "- " * (n // 2),
        "question marks": "? " * (n // 2),
        "nested keys": "".join(f"{' ' * i}a:\n" for i in range(int(1400 * (n / MEGABYTE) ** 0.5))),
        "siblings of lists": "[[]," * (n // 4),
        "one wide list": HEADER + "  value: [" + "1," * (49 * n // 100) + "1]\n",
        "wrong entries": HEADER + "  accelerators: [" + "1," * (49 * n // 100) + "1]\n",
        "repeated entries": HEADER.replace("Workload", "Policy")
        + "  match: {workloads: {tenants: ["
        + ",".join(f"[{i}],{i}" for i in range(6 * n // 100))
        + "]}}\n",
        "unknown fields": HEADER + "".join(f"  f{i}: 1\n" for i in range(8 * n // 100)),
        "same keys": "a: 1\n" * (n // 5),
        "number keys": "1: 1\n" * (n // 5),
        "documents": "---\n" * (n // 4),
        "scalars as documents": "a\n---\n" * (15 * n // 100),
        "unknown kinds": "apiVersion: dovetail/v1alpha1\nkind: Worklod\n---\n" * (21 * n // 1000),
        "workloads": "".join(WORKLOAD % i for i in range(7 * n // 1000)),
        "same workloads": "".join(WORKLOAD % 1 for _ in range(7 * n // 1000)),
        "alias bomb": BOMB,
        "bomb of long text": "a: &a '" + "x" * (n // 2) + "'\nb: [" + "*a," * (16 * n // 100) + "]\n",
        "cyclic alias": "a: &a [*a]\n",
        "many anchors": "".join(f"a{i}: &a{i} 1\n" for i in range(n // 20)),
        "anchors in a row": "&a " * (3 * n // 10),
        "tags": "!a " * (3 * n // 10),
        "tag directives": "".join(f"%TAG !a{i}! x\n" for i in range(6 * n // 100)),
        "one quote": '"' + "x" * n,
        "backslashes": '"' + "\\" * n,
        "comment": "#" * n,
        "blank lines": "\n" * n,
        "long key": "a" * n + ": 1",
        "long name": HEADER.replace("{name: w}", "{name: " + "a-" * (45 * n // 100) + "}"),
        "long number": HEADER + "  priority: " + "1" * (99 * n // 100),
        "huge exponent": HEADER + "  value: 1e999999999\n",
    }


def json_texts(n: int) -> dict[str, str]:
    """Return the like in JSON."""
    return {
        "brackets": "[" * n,
        "braces": '{"a":' * (n // 5),
        "siblings of lists": "[[]," * (n // 4),
        "wide list": "[" + "[]," * (3 * n // 10) + "[]]",
        "same keys": "{" + '"a":1,' * (15 * n // 100) + '"a":1}',
        "quotes": '"' * n,
        "escapes": '"' + "\\ud800" * (15 * n // 100) + '"',
        "long number": "1" * n,
    }


PROGRAM = """
import json, resource, sys, time
from dovetail.documents import format_text, load_text
from dovetail.faults import Refused, render_faults
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
slowest = {}
for name, file, text in json.load(sys.stdin):
    start = time.process_time()
    try:
        load_text(text, file)
    except Refused as refused:
        render_faults(refused.faults)
    middle = time.process_time()
    slowest[name] = middle - start
    try:
        format_text(text, file)
    except Refused:
        pass
    slowest["format " + name] = time.process_time() - middle
json.dump(slowest, sys.stdout)
"""


def slow(size: int, limit: float) -> dict[str, float]:
    """Read texts of a size in one child process with 1 GiB of address space; return those that take too long."""
    cases = [(f"yaml {name}", "x.yaml", text) for name, text in yaml_texts(size).items()]
    cases += [(f"json {name}", "x.json", text) for name, text in json_texts(size).items()]
    assert all(len(text.encode()) <= 2**20 for _, _, text in cases)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps(cases), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return {name: seconds for name, seconds in json.loads(done.stdout).items() if seconds > limit}


def test_a_sixty_fourth_of_a_megabyte_of_anything_is_bounded_in_time_and_memory() -> None:
    assert slow(MEGABYTE // 64, 1.5) == {}


@pytest.mark.campaign
def test_hostile_input_below_a_megabyte_is_bounded_in_time_and_memory() -> None:
    assert slow(MEGABYTE, 5.0) == {}


def only_refused(data: bytes, file: str, tmp_path: Path) -> None:
    path = tmp_path / file
    path.write_bytes(data)
    start = time.monotonic()
    faults = None
    try:
        load_file(path)
    except Refused as refused:
        faults = refused.faults
    assert faults is None or render_faults(faults)
    assert time.monotonic() - start < 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@given(st.binary(max_size=300), st.sampled_from(["x.yaml", "x.json"]))
@example(b"", "x.yaml")
@example(b"\xef\xbb\xbf{}", "x.json")
@example(b"\xff\xfea\x00", "x.yaml")
def test_random_bytes_are_refused_or_read(folder: Path, data: bytes, file: str) -> None:
    only_refused(data, file, folder)


@given(st.text("ab01:-?[]{},&*!|>'\"%@`#<~. \n\t", max_size=120), st.sampled_from(["x.yaml", "x.json"]))
@example('".\n', "x.json")
@example('["\\ud800", "\\x \\ud800"]', "x.json")
def test_random_punctuation_is_refused_or_read(folder: Path, text: str, file: str) -> None:
    only_refused(text.encode(), file, folder)


@settings(max_examples=200)
@given(st.data())
def test_mutated_documents_are_refused_or_read(folder: Path, data: st.DataObject) -> None:
    sample = bytearray(data.draw(st.sampled_from(SAMPLES)))
    other = data.draw(st.sampled_from(SAMPLES))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(sample)))
        length = data.draw(st.integers(0, 12))
        start = data.draw(st.integers(0, max(0, len(other) - 1)))
        piece = data.draw(
            st.sampled_from([b"", b": ", b"- ", b"&a ", b"*a", b"{", b"]", b"null", b"\n", b"1e9", b"''"])
        )
        sample[at : at + length] = piece or other[start : start + length]
    only_refused(bytes(sample), "x.yaml", folder)
    with suppress(Refused, UnicodeDecodeError):
        format_text(bytes(sample).decode(), "x.yaml")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_the_other_encoding_that_editors_write_is_named(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(f"\ufeff{'a: 1'}".encode(encoding))
    with pytest.raises(Refused) as caught:
        load_file(file)
    assert [(fault.code, fault.hint) for fault in caught.value.faults] == [
        ("DT1003", "it is UTF-16; save it as UTF-8")
    ]


def test_half_characters_in_text_are_refused() -> None:
    with pytest.raises(Refused) as caught:
        load_text("a: \ud800", "x.yaml")
    assert caught.value.faults[0].code == "DT1003"


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    with path.open("wb") as stream:
        stream.truncate(LARGEST_FILE + 1)
    with pytest.raises(Refused) as caught:
        load_file(path)
    assert caught.value.faults[0].code == "DT1002"


@pytest.mark.parametrize("name", ["missing.yaml", ".", "a\0b"])
def test_what_is_no_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refused) as caught:
        load_file(tmp_path / name)
    assert caught.value.faults[0].code == "DT1001"

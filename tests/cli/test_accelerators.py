"""What `dovetail accelerators` lists and draws."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from tests.cli.shell import Shell

from dovetail.build.acceleratorlist import listed
from dovetail_cli.render.accelerators import of_one
from dovetail_cli.render.columns import Screen

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"
OBSERVED = """\
apiVersion: dovetail/v1alpha1
kind: Accelerator
metadata: {name: H20-96GB}
spec: {mig: {allowUnverified: true}}
---
apiVersion: dovetail/v1alpha1
kind: Cluster
metadata: {name: c}
spec:
  nodeGroups:
  - {name: g, count: 1, accelerator: H20-96GB, gpus: 8, cpu: 96, memory: 1Ti}
"""


def test_every_product_is_listed_with_who_vouches_for_its_table(dovetail: Shell) -> None:
    assert dovetail("accelerators") == 0
    rows = {line.split()[0]: line for line in dovetail.out.splitlines() if line.startswith("  ")}
    assert {*rows} == {*listed(), "accelerator"}
    assert rows["H100-80GB"].endswith("verified")
    assert rows["H200-141GB"].endswith("inferred by sources that agree")
    assert rows["H20-96GB"].endswith("unverified, needs an opt-in")
    assert rows["RTXPRO5000-48GB"].endswith("needs an observed table")
    assert rows["L4-24GB"].endswith("-")


def test_layouts_are_drawn_over_the_memory_slices(dovetail: Shell) -> None:
    assert dovetail("accelerators", "nvidia-a100-sxm4-80gb") == 0
    lines = dovetail.out.splitlines()
    assert "44 layouts that take no further instance, 128 with smaller ones, 2,319 by position" in lines
    drawn = [line.strip() for line in lines]
    assert "|          4g.40gb          |          3g.40gb          |" in drawn
    assert "|          3g.40gb          |          3g.40gb          |  1 compute idle" in drawn
    assert "|1g.10 |1g.10 |1g.10 |1g.10 |1g.10 |1g.10 |1g.10 |  .   |  1 memory idle" in drawn
    assert "  16 more with variants such as +me (--detail)" in lines


def test_details_draw_the_variants_too(dovetail: Shell) -> None:
    assert dovetail("accelerators", "RTXPRO6000-96GB", "--detail") == 0
    _, _, drawn = dovetail.out.partition("64 layouts that take no further instance")
    assert sum("|" in line for line in drawn.splitlines()) == 64
    assert "1g.24gb+me.all" in drawn


def test_a_narrow_terminal_gets_narrow_boxes_and_colours_only_where_wanted() -> None:
    one = listed()["H100-80GB"]
    narrow = of_one(one, "table", Screen(width=50)).partition("Where instances")[2]
    assert max(map(len, narrow.splitlines())) <= 50
    assert "\x1b" not in narrow
    assert "\x1b[" in of_one(one, "table", Screen(colours=True))


def test_documents_of_a_project_count(dovetail: Shell, tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(OBSERVED, encoding="utf-8")
    assert dovetail("accelerators", "H20-96GB", str(tmp_path)) == 0
    assert "unverified, allowed by a document" in dovetail.out
    assert dovetail("accelerators", "H20-96GB", "-o", "json") == 0
    assert json.loads(dovetail.out)["spec"]["accelerators"][0]["mig"]["status"] == "unverified"


@pytest.mark.parametrize("name", [(), ("H100-80GB",), ("RTXPRO5000-48GB",), ("L4-24GB",)])
def test_the_document_has_the_form_of_its_schema(dovetail: Shell, name: tuple[str, ...]) -> None:
    found = [json.loads(path.read_text("utf-8")) for path in SCHEMAS.rglob("*.json")]
    registry: Registry = Registry().with_resources((each["$id"], Resource.from_contents(each)) for each in found)
    schema = next(each for each in found if each["title"] == "AcceleratorList")
    assert dovetail("accelerators", *name, "-o", "json") == 0
    Draft202012Validator(schema, registry=registry).validate(json.loads(dovetail.out))


def test_a_name_that_nobody_has_is_met_with_the_nearest(dovetail: Shell) -> None:
    assert dovetail("accelerators", "H100-81GB") == 64
    assert "did you mean H100-80GB" in dovetail.err


def test_a_lone_directory_or_file_is_the_project(
    dovetail: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.yaml").write_text(OBSERVED, encoding="utf-8")
    for path in (".", "own.yaml"):
        assert dovetail("accelerators", path) == 0
        (row,) = (line for line in dovetail.out.splitlines() if line.startswith("  H20-96GB "))
        assert row.endswith("unverified, allowed by a document")

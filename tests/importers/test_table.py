"""The table of importers is complete, and its entries run."""

from __future__ import annotations

from pathlib import Path

from dovetail.importers.openb import import_openb
from dovetail.importers.table import IMPORTERS

HERE = Path(__file__).parent / "data"
_SHARED = {"__init__", "csvtable", "emit", "foreign", "partedfile", "project", "sources", "table"}
_SHARED |= {"clusterfile", "slurmconf", "slurmnodes", "switches"}


def test_every_importer_has_a_line_and_a_test(root: Path) -> None:
    modules = {path.stem for path in (root / "solver/dovetail/importers").glob("*.py")} - _SHARED
    assert {importer.name.replace("-", "_") for importer in IMPORTERS} == modules
    assert all((Path(__file__).parent / f"test_{module}.py").exists() for module in modules)


def test_names_and_options_are_unique() -> None:
    assert len({importer.name for importer in IMPORTERS}) == len(IMPORTERS)
    for importer in IMPORTERS:
        assert len({each.option for each in importer.inputs}) == len(importer.inputs)


def test_openb_runs_from_its_line() -> None:
    (openb,) = (importer for importer in IMPORTERS if importer.name == "openb")
    inputs = {each.option: HERE / f"{each.option}.csv" for each in openb.inputs}
    assert openb.run(inputs) == import_openb(HERE / "nodes.csv", HERE / "pods.csv")

"""What a driver prints of its MIG table, as a document that stands before the catalogue."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from tests.build.text import spec_of

from dovetail.catalogue import geometries
from dovetail.faults import Refused
from dovetail.importers.mig_geometry import FILE, import_mig_geometry
from dovetail.mig import Geometry

HERE = Path(__file__).parent / "data"
SEEN = ["A30-24GB", "A100-40GB", "A100-80GB", "H100-80GB", "B200-180GB", "RTXPRO6000-96GB"]


def imported(name: str, lgip: Path, lgipp: Path) -> Geometry:
    text = import_mig_geometry(name, lgip, lgipp).files[FILE]
    group = f"{{name: g, count: 1, cpu: 8, memory: 8Gi, accelerator: {name}, gpus: 1}}"
    head = "apiVersion: dovetail/v1alpha1\nkind: Cluster\nmetadata: {name: c}\n"
    found = spec_of(text, f"{head}spec: {{nodeGroups: [{group}]}}\n").accelerators[name].mig
    assert found is not None
    return found


def printed(geometry: Geometry, gpus: int = 1) -> tuple[str, str]:
    """Return what a driver prints of a geometry: profiles and placements."""
    profiles, places = [], []
    for gpu in range(gpus):
        for one in geometry.profiles:
            kinds = {"enc": 0, **one.engines}
            profiles.append(
                f"|   {gpu}  MIG {one.name:<14} {one.gi_profile_id:>3}  {one.maximum}/{one.maximum}  "
                f"{one.memory / 1024 + 0.0003:.4f}  No  {one.sms}  {kinds['dec']}  {kinds['enc']}   |\n"
                f"|       {kinds['ce']}  {kinds['jpeg']}  {kinds['ofa']}   |\n"
            )
            starts = ",".join(map(str, one.starts))
            word = "Placements:" if len(one.starts) > 1 else "Placement :"
            places.append(f"GPU  {gpu} Profile ID {one.gi_profile_id:>2} {word} {{{starts}}}:{one.size}\n")
    return "".join(profiles), "".join(places)


def comparable(geometry: Geometry) -> Geometry:
    """Return a geometry without what a driver does not print: sources, and engines that are not there."""
    engines = {kind: number for kind, number in geometry.engines.items() if number}
    profiles = tuple(
        dataclasses.replace(one, engines={kind: n for kind, n in one.engines.items() if n})
        for one in geometry.profiles
    )
    return dataclasses.replace(geometry, engines=engines, profiles=profiles, source="")


def test_a_transcript_of_an_a30_is_the_built_in_table() -> None:
    found = imported("A30-24GB", HERE / "a30-lgip.txt", HERE / "a30-lgipp.txt")
    assert comparable(found) == comparable(geometries()["A30-24GB"])


@pytest.mark.parametrize("product", SEEN)
def test_every_verified_table_survives_printing_and_importing(product: str, tmp_path: Path) -> None:
    lgip, lgipp = tmp_path / "lgip", tmp_path / "lgipp"
    for path, text in zip((lgip, lgipp), printed(geometries()[product], gpus=2), strict=True):
        path.write_text(text, encoding="utf-8")
    assert comparable(imported(product, lgip, lgipp)) == comparable(geometries()[product])


def test_a_product_that_nobody_knows_can_be_imported_too(tmp_path: Path) -> None:
    found = imported("my-card", HERE / "a30-lgip.txt", HERE / "a30-lgipp.txt")
    assert (found.product, found.axis, found.compute) == ("my-card", 4, 4)
    assert found.by_name["4g.24gb"].milli == 1000


FAULTY = [
    (
        "No MIG-enabled devices found.\n",
        "GPU  0 Profile ID  0 Placement : {0}:4\n",
        "DT1957",
        "lists no MIG profiles",
    ),
    ("HEAD", "", "DT1957", "lists no placements"),
    ("HEAD", "GPU  0 Profile ID 14 Placements: {0,1,2,3}:1\n", "DT1958", "of which there are no placements"),
    (
        "|   0  MIG 4g.24gb   0  1/1  23.44  No  56  4  0   |\n",
        "GPU 0 Profile ID 0 Placement : {0}:4",
        "DT1957",
        "second",
    ),
    (
        f"|   0  MIG 4g.24gb   0  1/1  {'9' * 400}  No  56  4  0   |\n|       4  1  1   |\n",
        "GPU 0 Profile ID 0 Placement : {0}:4",
        "DT1957",
        "lists no MIG profiles",
    ),
    ("HEAD", f"GPU  0 Profile ID 0 Placement : {{{'9' * 5000}}}:4\n", "DT1957", "lists no placements"),
]


@pytest.mark.parametrize(("lgip", "lgipp", "code", "message"), FAULTY)
def test_a_list_that_is_not_whole_is_refused(tmp_path: Path, lgip: str, lgipp: str, code: str, message: str) -> None:
    profiles, places = tmp_path / "lgip", tmp_path / "lgipp"
    profiles.write_text((HERE / "a30-lgip.txt").read_text("utf-8") if lgip == "HEAD" else lgip, encoding="utf-8")
    places.write_text(lgipp, encoding="utf-8")
    with pytest.raises(Refused) as refused:
        import_mig_geometry("A30-24GB", profiles, places)
    assert code in {fault.code for fault in refused.value.faults}
    assert any(message in fault.message for fault in refused.value.faults)


def test_gpus_that_differ_cannot_have_one_table(tmp_path: Path) -> None:
    mixed = (HERE / "a30-lgip.txt").read_text("utf-8") + printed(geometries()["H100-80GB"])[0].replace(
        "|   0 ", "|   1 "
    )
    (tmp_path / "lgip").write_text(mixed, encoding="utf-8")
    with pytest.raises(Refused) as refused:
        import_mig_geometry("A30-24GB", tmp_path / "lgip", HERE / "a30-lgipp.txt")
    assert [fault.hint for fault in refused.value.faults] == ["list one GPU with -i INDEX"]


def test_a_file_that_is_not_there_is_one_fault(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        import_mig_geometry("A30-24GB", tmp_path / "none", HERE / "a30-lgipp.txt")
    assert "DT1001" in {fault.code for fault in refused.value.faults}

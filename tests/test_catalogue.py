"""The built-in catalogue of accelerators."""

import dataclasses
import json
import re
from collections import Counter
from importlib.resources import files

import pytest

from dovetail.catalogue import AcceleratorEntry, load

ENTRIES = list(load().values())


def by_id(entry: AcceleratorEntry) -> str:
    return entry.id


def test_every_id_appears_once_in_the_file() -> None:
    rows = json.loads((files("dovetail.catalogue") / "accelerators.json").read_text(encoding="utf-8"))
    ids = [row["id"] for row in rows["accelerators"]]
    assert len(ids) == len(set(ids)) == len(load())


def test_every_alias_and_id_names_one_product() -> None:
    names = Counter(name for entry in ENTRIES for name in (entry.id, *entry.aliases))
    assert [name for name, count in names.items() if count > 1] == []


def test_all_families_that_a_planner_meets_are_there() -> None:
    wanted = [
        "A30",
        "A100",
        "H100",
        "H800",
        "H200",
        "GH200",
        "H20",
        "B200",
        "B300",
        "GB200",
        "GB300",
        "RTXPRO6000",
        "RTXPRO5000",
        "RTXPRO4500",
        "L4",
        "L40S",
        "A10",
        "T4",
        "V100",
        "P100",
    ]
    assert {entry.id.split("-")[0] for entry in ENTRIES} == set(wanted)


@pytest.mark.parametrize("entry", ENTRIES, ids=by_id)
def test_memory_is_within_a_tenth_below_the_nominal_figure(entry: AcceleratorEntry) -> None:
    found = re.search(r"-(\d+)GB", entry.id)
    assert found is not None
    nominal = 1024 * int(found.group(1))
    assert 0.9 * nominal <= entry.memory_mib <= nominal


@pytest.mark.parametrize("entry", ENTRIES, ids=by_id)
def test_every_entry_names_its_source_and_only_observed_memory_is_verified(entry: AcceleratorEntry) -> None:
    assert entry.sources
    assert all(entry.sources)
    assert entry.verified == (entry.memory_basis == "nvidia-smi")


def test_product_labels_lead_to_their_entry() -> None:
    by_alias = {alias: entry.id for entry in ENTRIES for alias in entry.aliases}
    assert by_alias["NVIDIA-H100-80GB-HBM3"] == "H100-80GB"
    assert by_alias["Tesla-T4"] == "T4-16GB"
    assert by_alias["Tesla-V100-SXM2-16GB"] == "V100-16GB"


def test_the_catalogue_cannot_be_changed_by_its_readers() -> None:
    with pytest.raises(TypeError):
        load()["X"] = ENTRIES[0]  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        ENTRIES[0].memory_mib = 0  # type: ignore[misc]

"""MIG in documents: whose table applies, and what is said of profiles and layouts that do not exist."""

import pytest
from tests.build.text import SMALL, cluster, codes, document, faults_of, spec_of

from dovetail.build.accelerators import read_accelerators
from dovetail.build.cursor import Cursor, Log
from dovetail.build.partitions import check_profile, read_layout
from dovetail.catalogue import geometries
from dovetail.documents import load_text
from dovetail.mig import Geometry, Instance
from dovetail.rules import Rule
from dovetail.rules.quota import Quota
from dovetail.rules.reserve import Reserve
from dovetail.spec import Accelerator

OWN = """
mig:
  memorySlices: 4
  computeSlices: 4
  sms: 56
  profiles:
    1g.6gb: {id: 14, computeSlices: 1, memorySlices: 1, memory: 5949Mi, sms: 14, starts: [3, 0, 1], maxInstances: 3}
    4g.24gb: {id: 0, computeSlices: 4, memorySlices: 4, memory: 24002Mi, starts: [0], maxInstances: 1}
"""


def of(name: str, *texts: str) -> Accelerator:
    return spec_of(cluster(f"{{name: g, count: 1, accelerator: {name}, gpus: 8}}"), *texts).accelerators[name]


def mig_of(name: str, *texts: str) -> Geometry:
    found = of(name, *texts).mig
    assert found is not None
    return found


def test_verified_tables_apply_unasked_and_others_when_they_are_allowed() -> None:
    allow = document("Accelerator", "H20-96GB", "mig: {allowUnverified: true}")
    assert mig_of("H100-80GB") == geometries()["H100-80GB"]
    assert of("H20-96GB").mig is None
    assert mig_of("H20-96GB", allow) == geometries()["H20-96GB"]
    assert of("L4-24GB").mig is None


def test_a_document_without_memory_leaves_the_rest_of_the_entry_as_it_is() -> None:
    found = of("H20-96GB", document("Accelerator", "H20-96GB", "mig: {allowUnverified: true}"))
    assert (found.memory, found.aliases) == (97_871, ("NVIDIA-H20",))


def test_the_table_of_a_document_goes_before_the_built_in_one() -> None:
    found = mig_of("H100-80GB", document("Accelerator", "H100-80GB", OWN))
    assert (found.axis, found.compute, found.verified) == (4, 4, True)
    assert [profile.name for profile in found.profiles] == ["4g.24gb", "1g.6gb"]
    smallest = found.by_name["1g.6gb"]
    assert (smallest.starts, smallest.memory, smallest.milli) == ((0, 1, 3), 5949, 250)
    assert found.by_name["4g.24gb"].milli == 1000


def test_an_accelerator_of_ones_own_can_be_cut() -> None:
    assert mig_of("mine", document("Accelerator", "mine", f"memory: 24Gi\n{OWN}")).product == "mine"


def test_an_accelerator_needs_memory_where_the_catalogue_has_none() -> None:
    assert codes(faults_of(SMALL, document("Accelerator", "mine", OWN))) == ["DT1401"]


ALL = read_accelerators((), Log())


def named(*texts: str) -> tuple[Log, list[Cursor]]:
    """Return the places of words in some document, and the log that complaints about them go to."""
    log, words = Log(), ", ".join(f'"{text}"' for text in texts)
    written = load_text(document("Accelerator", "a", f"memory: 1Gi\naliases: [{words}]"), "a.yaml")[0]
    return log, [Cursor(written, log, text, ("spec", "aliases", index)) for index, text in enumerate(texts)]


def complaints(log: Log) -> list[tuple[str, str, str | None]]:
    return [(fault.code, fault.message, fault.hint) for fault in log.errors]


PROFILES = [
    ("3g.20gb", ["A100-80GB"], "DT1423", "did you mean 3g.40gb?"),
    ("3g.24gb", ["A30-24GB"], "DT1423", "did you mean 4g.24gb?"),
    ("7g.79gb", ["A100-80GB"], "DT1423", "did you mean 7g.80gb?"),
    ("1g.10gb", ["L4-24GB"], "DT1423", "it cannot be cut by MIG"),
    ("1g.12gb", ["H20-96GB"], "DT1422", None),
]


@pytest.mark.parametrize(("profile", "cards", "code", "hint"), PROFILES)
def test_a_profile_that_no_accepted_accelerator_has_is_refused(
    profile: str, cards: list[str], code: str, hint: str | None
) -> None:
    log, (here,) = named(profile)
    check_profile(here, [ALL.by_id[card] for card in cards], ALL.held_back)
    ((found, message, said),) = complaints(log)
    assert found == code
    assert cards[0] in message
    assert said is not None
    if hint is not None:
        assert said == hint


def test_a_profile_that_one_accepted_accelerator_has_is_no_fault() -> None:
    log, (here,) = named("1g.5gb")
    check_profile(here, [ALL.by_id["H100-80GB"], ALL.by_id["A100-40GB"]], ALL.held_back)
    assert complaints(log) == []


LAYOUTS = [
    ("A100-40GB", ["3g.20gb", "3g.20gb", "1g.5gb"], "DT1424", "do not fit on one 'A100-40GB'"),
    ("A100-40GB", ["1g.10gb"] * 7, "DT1424", "7 x 1g.10gb do not fit"),
    ("A100-80GB", ["3g.20gb@0"], "DT1423", "no MIG profile '3g.20gb' on 'A100-80GB'"),
    ("A30-24GB", ["3g.24gb"], "DT1423", "no MIG profile '3g.24gb' on 'A30-24GB'"),
    ("H100-80GB", ["3g.40gb@4", "1g.10gb@6"], "DT1424", "3g.40gb@4 and 1g.10gb@6 overlap"),
    ("H100-80GB", ["3g.40gb@2"], "DT1424", "cannot start at 2"),
    ("H100-80GB", ["1g.10gb@0", "1g.10gb@4", "3g.40gb"], "DT1424", "beside 1g.10gb@0, 1g.10gb@4"),
    ("L4-24GB", ["1g.10gb"], "DT1423", "on 'L4-24GB'"),
    ("H20-96GB", ["1g.12gb"], "DT1422", "nobody has verified"),
]


@pytest.mark.parametrize(("card", "texts", "code", "message"), LAYOUTS)
def test_a_layout_that_does_not_exist_is_refused(card: str, texts: list[str], code: str, message: str) -> None:
    log, items = named(*dict.fromkeys(texts))
    places = {item.value: item for item in items}
    assert read_layout([places[text] for text in texts], ALL.by_id[card], ALL.held_back) is None
    assert [(found, message in said) for found, said, _ in complaints(log)] == [(code, True)]


def test_instances_without_a_start_are_put_beside_those_with_one() -> None:
    log, items = named("3g.40gb@4", "1g.10gb", "2g.20gb")
    found = read_layout(items, ALL.by_id["H100-80GB"], ALL.held_back)
    assert found == (Instance("1g.10gb", 1), Instance("2g.20gb", 2), Instance("3g.40gb", 4))
    assert complaints(log) == []


def test_a_gpu_in_mig_mode_may_hold_no_instance() -> None:
    assert read_layout([], ALL.by_id["H100-80GB"], ALL.held_back) == ()


TWO_GPUS = cluster("{name: g, count: 1, accelerator: A100-80GB, gpus: 2}")


def hard(rule: str) -> str:
    return document("Policy", "p", f"match: {{}}\nrule: {rule}\nenforcement: hard")


def rule_of(rule: str) -> Rule:
    return spec_of(TWO_GPUS, hard(rule)).policies[0].rule


def test_a_profile_in_a_rule_counts_for_what_one_of_a_workload_does() -> None:
    held = rule_of("{reserve: {replicas: 2, request: {mig: 3g.40gb}}}")
    assert isinstance(held, Reserve)
    assert held.request.gpu_milli == 500
    quota = rule_of("{quota: {limit: {shape: {replicas: 2, request: {mig: 3g.40gb}}}}}")
    assert isinstance(quota, Quota)
    assert quota.limits == (("gpus", 1000),)


@pytest.mark.parametrize(
    "rule",
    ["{reserve: {replicas: 2, request: {mig: 3g.20gb}}}", "{quota: {limit: {shape: {request: {mig: 3g.20gb}}}}}"],
)
def test_a_profile_in_a_rule_that_nothing_here_has_is_refused(rule: str) -> None:
    assert codes(faults_of(TWO_GPUS, document("Policy", "p", f"match: {{}}\nrule: {rule}\nenforcement: hard"))) == [
        "DT1423"
    ]

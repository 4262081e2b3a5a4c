"""The file of a certificate: canonical, and any other file refused with its faults."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.proof.cases import certificate_of, certified, refuted

from dovetail.faults import Refused
from dovetail.proof.certificate import Branch, Certificate, Cut, Fork, Leaf, Proof, write
from dovetail.proof.reading import read

LARGE = Certificate(
    "demo",
    "sha256:" + "0" * 64,
    (
        Proof(
            "cost",
            7,
            (Branch(4, 2), Leaf({11: 5, 2: 3}, 12, {1: {3: 9}, 2: (Fork(7, 0), {}, {4: 5})}), Leaf({})),
            given={"b": 1, "a": 2},
            cuts=(Cut({1: -4}, 3, (5, 2)), Cut({0: 1})),
        ),
    ),
)


def codes(text: str) -> list[str]:
    with pytest.raises(Refused) as refused:
        read(text, "x.cert.json")
    return [fault.code for fault in refused.value.faults]


def test_what_is_written_is_read_and_written_alike() -> None:
    for certificate in (LARGE, certificate_of(certified()[1]), certificate_of(refuted()[1])):
        text = write(certificate)
        assert write(read(text, "x.cert.json")) == text
        assert json.loads(text)["kind"] == "Certificate"


def test_equal_certificates_are_equal_bytes() -> None:
    proof = LARGE.tiers[0]
    leaf = Leaf({2: 3, 11: 5, 7: 0}, 12, {2: (Fork(7, 0), {}, {4: 5, 6: 0}), 1: {3: 9}})
    again = replace(proof, tree=(proof.tree[0], leaf, Leaf({})), given={"a": 2, "b": 1})
    assert write(replace(LARGE, tiers=(again,))) == write(LARGE)


def test_a_node_of_a_tree_is_a_line() -> None:
    lines = write(LARGE).splitlines()
    assert '{"variable":4,"most":2},' in lines
    assert (
        '{"denominator":12,"multipliers":{"2":3,"11":5},"prices":{"1":{"3":9},"2":[{"shape":7,"most":0},{},{"4":5}]}},'
        in lines
    )


def document(change: Callable[[dict[str, Any]], object]) -> str:
    value = json.loads(write(LARGE))
    change(value["spec"]["tiers"][0])
    return json.dumps(value)


def put(*path: object) -> Callable[[dict[str, Any]], object]:
    """Return what puts a value, the last of a path, into a proof."""

    def change(proof: Any) -> None:
        *way, key, value = path
        for step in way:
            proof = proof[step]
        proof[key] = value

    return change


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (put("tree", 1, "multipliers", "2", 1.5), "DT1103"),
        (put("tree", 1, "multipliers", "2", "3"), "DT1103"),
        (put("tree", 1, "multipliers", "two", 3), "DT1105"),
        (put("tree", 1, "multipliers", "-2", 3), "DT1105"),
        (put("tree", 1, "multipliers", "9" * 30, 3), "DT1105"),
        (put("tree", 1, "denominator", 0), "DT1106"),
        (put("tree", 0, "variable", -1), "DT1106"),
        (put("tree", 0, "colour", "red"), "DT1101"),
        (put("tree", []), None),
        (put("tree", "all"), "DT1103"),
        (put("tree", 1, "prices", "2", 1, {"shape": 1}), None),
        (put("tree", 1, "prices", "2", 1, {"shape": 1, "most": -1}), None),
        (put("tree", 1, "prices", "2", 1, {"shape": 1, "most": 0, "4": 5}), None),
        (put("tree", 1, "prices", "2", "all"), None),
        (put("bound", None), "DT1103"),
        (put("tree", 0, {"variable": 1}), "DT2008"),
        (put("tree", 0, {}), "DT2008"),
        (put("tree", 0, {"variable": 1, "most": 1, "multipliers": {}}), "DT2008"),
    ],
)
def test_what_is_no_proof_is_refused_at_its_place(
    change: Callable[[dict[str, Any]], object], code: str | None
) -> None:
    found = codes(document(change))
    assert code in found or (code is None and found)


def test_two_proofs_of_a_tier_are_refused() -> None:
    assert codes(write(replace(LARGE, tiers=LARGE.tiers * 2))) == ["DT2008"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{",
        '{"kind": "Certificate"}',
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"apiVersion": "dovetail/v1alpha1", "kind": "Certificate", "spec": {"inputs": 1e999999}}',
        '{"spec": ' + "9" * 5000 + "}",
        "\x00",
        "\ud800",
    ],
)
def test_what_is_no_certificate_is_refused(text: str) -> None:
    assert codes(text)


def test_another_kind_is_no_certificate() -> None:
    assert codes(write(LARGE).replace('"Certificate"', '"Environment"', 1))


def test_a_file_of_a_hundred_megabytes_is_refused() -> None:
    assert codes(" " * 100_000_000) == ["DT1002"]


def test_numbers_may_be_longer_than_those_of_a_machine() -> None:
    long = replace(LARGE.tiers[0], tree=(Leaf({0: 10**90}),))
    assert read(write(replace(LARGE, tiers=(long,))), "x.cert.json").tiers[0].tree == long.tree

"""The JSON Schemas: valid, self-contained, described, and dispatching on the kind."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
import yaml
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

ROOT = Path(__file__).resolve().parent.parent
SCHEMAS = ROOT / "schemas"
FILES = sorted(path.relative_to(SCHEMAS).as_posix() for path in SCHEMAS.rglob("*.json"))
PACKS = sorted(path.name for path in (ROOT / "policies").glob("*.yaml"))
BASE = "https://dovetail.dev/schemas/v1alpha1/"
UNSUPPORTED = "x-dovetail-unsupported"
UNSUPPORTED_VALUES = "x-dovetail-unsupported-values"
KINDS = [
    "Project",
    "Cluster",
    "Accelerator",
    "Workload",
    "Policy",
    "PolicyPack",
    "Waiver",
    "Objective",
    "Placement",
    "Scenario",
    "Sweep",
    "PolicyTest",
    "Plan",
    "Certificate",
    "PlanDiff",
    "Faults",
    "Verification",
    "WhatIfResult",
    "PolicyList",
    "AcceleratorList",
    "RankList",
    "Report",
    "SweepResult",
    "ModelReport",
    "Environment",
    "TestResult",
    "Explanation",
]
RULES = [
    "separate",
    "colocate",
    "spread",
    "exclusive",
    "require",
    "forbid",
    "sharing",
    "quota",
    "reserve",
    "survive",
    "move",
    "admission",
]


@cache
def load(name: str) -> Any:
    return json.loads((SCHEMAS / name).read_text(encoding="utf-8"))


@cache
def registry() -> Any:
    return Registry().with_resources([(load(n)["$id"], Resource.from_contents(load(n))) for n in FILES])


def faults(kind_file: str, document: object) -> list[str]:
    validator = Draft202012Validator(load(kind_file), registry=registry())
    return [error.message for error in validator.iter_errors(document)]


def subschemas(schema: object, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every JSON object inside a schema file, with its place."""
    if isinstance(schema, dict):
        yield path, schema
        for key, value in schema.items():
            yield from subschemas(value, f"{path}/{key}")
    elif isinstance(schema, list):
        for index, value in enumerate(schema):
            yield from subschemas(value, f"{path}/{index}")


def described(schema: object, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every property that documents may have; conditions (`if`, `then`, `allOf`) only narrow those."""
    if not isinstance(schema, dict):
        return
    for name, value in schema.get("properties", {}).items():
        yield f"{path}/{name}", value
        yield from described(value, f"{path}/{name}")
    for key in ("items", "additionalProperties"):
        yield from described(schema.get(key), f"{path}/{key}")
    for name, value in schema.get("$defs", {}).items():
        yield f"{path}/$defs/{name}", value
        yield from described(value, f"{path}/$defs/{name}")


def document(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "dovetail/v1alpha1", "kind": kind, "metadata": {"name": "x"}, "spec": spec}


def test_there_is_one_schema_per_kind_and_per_rule() -> None:
    wanted = {f"{kind.lower()}.schema.json" for kind in KINDS} | {f"rules/{rule}.schema.json" for rule in RULES}
    assert set(FILES) == wanted | {"common.schema.json", "all.json"}


@pytest.mark.parametrize("name", FILES)
def test_schema_is_valid_and_named_by_its_place(name: str) -> None:
    Draft202012Validator.check_schema(load(name))
    assert load(name)["$id"] == BASE + name
    assert load(name)["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("name", FILES)
def test_every_reference_resolves_without_a_network(name: str) -> None:
    resolver = registry().resolver(base_uri=BASE + name)
    for _, schema in subschemas(load(name)):
        if isinstance(schema.get("$ref"), str):
            assert urljoin(BASE + name, schema["$ref"]).startswith(BASE)
            assert resolver.lookup(schema["$ref"]).contents is not None


@pytest.mark.parametrize("name", FILES)
def test_every_property_is_described_by_a_sentence(name: str) -> None:
    texts = [("", load(name)), *described(load(name))]
    assert [path for path, schema in texts if not re.search(r"[.!?]$", schema.get("description", ""))] == []


@pytest.mark.parametrize("name", FILES)
def test_objects_admit_no_unknown_fields(name: str) -> None:
    """Everything with properties is closed; the exceptions dispatch to a schema that is."""
    open_on_purpose = {("all.json", "")}
    for path, schema in subschemas(load(name)):
        if "properties" in schema and "description" in schema and (name, path) not in open_on_purpose:
            assert schema.get("additionalProperties") is False, path


@pytest.mark.parametrize("name", FILES)
def test_what_is_unsupported_says_what_it_waits_for(name: str) -> None:
    for path, schema in subschemas(load(name)):
        if UNSUPPORTED in schema and not path.endswith("properties"):
            assert isinstance(schema[UNSUPPORTED], str), path
            assert schema[UNSUPPORTED].strip(), path
        for value, phrase in schema.get(UNSUPPORTED_VALUES, {}).items():
            assert isinstance(phrase, str), path
            assert phrase.strip(), path
            assert "enum" not in schema or value in schema["enum"], path


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_of_all_documents_dispatches_on_the_kind(kind: str) -> None:
    wrong = {"apiVersion": "dovetail/v1alpha1", "kind": kind, "metadata": {"name": "x"}, "spec": {"no such": 1}}
    own = faults(f"{kind.lower()}.schema.json", wrong)
    assert own
    assert faults("all.json", wrong) == own


def test_the_schema_of_all_documents_refuses_unknown_kinds() -> None:
    assert faults("all.json", document("Clutser", {}))


def test_a_rule_is_exactly_one() -> None:
    one = {"rule": {"spread": {"over": "node", "maxPerDomain": 1}}, "enforcement": "hard"}
    assert faults("policy.schema.json", document("Policy", one)) == []
    assert faults("policy.schema.json", document("Policy", {**one, "rule": {}}))
    two: dict[str, Any] = {"require": {}, "forbid": {}}
    assert faults("policy.schema.json", document("Policy", {**one, "rule": two}))


@pytest.mark.parametrize("enforcement", ["hard", "audit", {"soft": {}}, {"soft": {"tier": "policies", "weight": 5}}])
def test_enforcement_is_a_word_or_a_weight(enforcement: object) -> None:
    spec = {"rule": {"admission": {}}, "enforcement": enforcement}
    assert faults("policy.schema.json", document("Policy", spec)) == []


@pytest.mark.parametrize("enforcement", ["Hard", "soft", {}, {"soft": {"weight": 0}}, 1])
def test_other_enforcement_is_refused(enforcement: object) -> None:
    spec = {"rule": {"admission": {}}, "enforcement": enforcement}
    assert faults("policy.schema.json", document("Policy", spec))


def test_a_scenario_judges_the_documents_that_it_sets() -> None:
    def patch(rule: object) -> dict[str, Any]:
        spec = {"rule": rule, "enforcement": "hard"}
        policy = {"kind": "Policy", "metadata": {"name": "p"}, "spec": spec}
        return document("Scenario", {"patches": [{"set": policy}]})

    assert faults("scenario.schema.json", patch({"move": {"never": True}})) == []
    assert faults("scenario.schema.json", patch({"move": {"never": False}}))


@pytest.mark.parametrize("name", PACKS)
def test_shipped_packs_follow_the_schema(name: str) -> None:
    pack = yaml.safe_load((ROOT / "policies" / name).read_text(encoding="utf-8"))
    assert faults("policypack.schema.json", pack) == []
    assert pack["metadata"]["name"] == name.removesuffix(".yaml")


def test_policy_names_are_unique_over_the_shipped_packs() -> None:
    packs = [yaml.safe_load((ROOT / "policies" / name).read_text(encoding="utf-8")) for name in PACKS]
    names = Counter(policy["name"] for pack in packs for policy in pack["spec"]["policies"])
    shipped = ["baseline", "inference", "multi-tenant", "regulated", "research", "training"]
    assert [f"{name}.yaml" for name in shipped] == PACKS
    assert [name for name, count in names.items() if count > 1] == []

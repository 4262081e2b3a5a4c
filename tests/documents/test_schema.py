"""The compiled schemas agree with the general validator, and lists of leaves with the schemas."""

from __future__ import annotations

import copy
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, TypeChecker
from jsonschema.validators import extend
from referencing import Registry, Resource

from dovetail.documents import ALL_KINDS, leaves, load_text, unsupported_leaves
from dovetail.documents.compiled import TYPES, first_repeated
from dovetail.documents.document import Document
from dovetail.documents.reading import Checker, read_source
from dovetail.documents.schema import Schemas, shipped_schemas
from dovetail.documents.source import Source
from dovetail.documents.yaml_reader import RawDocument
from dovetail.faults import FaultLog, Refused
from dovetail.resources import pack_names, pack_text, schemas_folder

HERE = Path(__file__).resolve().parent
HEADER = {"apiVersion": "dovetail/v1alpha1", "metadata": {"name": "a"}}


def is_one_of(types: frozenset[type]) -> Any:
    return lambda _, value: type(value) in types


def general_validators() -> dict[str, Any]:
    """Return the plain validator of each kind, with our types and nothing else of ours."""
    parsed = {
        entry.name.removesuffix(".schema.json"): json.loads(entry.read_text(), parse_float=Decimal)
        for folder in (schemas_folder(), schemas_folder() / "rules")
        for entry in folder.iterdir()
        if entry.name.endswith(".schema.json")
    }
    registry: Any = Registry().with_resources([(s["$id"], Resource.from_contents(s)) for s in parsed.values()])
    checker = TypeChecker({name: is_one_of(types) for name, types in TYPES.items()})
    extended: Any = extend
    validator = extended(Draft202012Validator, type_checker=checker)
    return {kind: validator(parsed[kind.lower()], registry=registry) for kind in ALL_KINDS}


def samples() -> list[tuple[str, Any]]:
    """Return documents of many kinds, good and bad, that the tests hold anyway."""
    texts = [path.read_bytes().decode(errors="replace") for path in sorted(HERE.glob("*/*.yaml"))]
    texts += [pack_text(name) for name in pack_names()]
    found = [document for text in texts for document in read_source(Source("x.yaml", text), FaultLog())]
    return [(document.kind, document.value) for document in found if document.kind in ALL_KINDS]


SMALL: list[Any] = [None, True, 0, -1, 3, Decimal("0.5"), "", "x", "gpu", [], {}, [1]]
GENERAL = general_validators()
SAMPLES = samples()


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_every_kind_compiles(kind: str) -> None:
    assert not shipped_schemas().is_valid(kind, {})


@settings(max_examples=250)
@given(st.data())
def test_the_compiled_schemas_agree_with_the_general_validator(data: st.DataObject) -> None:
    kind, value = copy.deepcopy(data.draw(st.sampled_from(SAMPLES)))
    for _ in range(data.draw(st.integers(0, 3))):
        mutate(value, data)
    assert shipped_schemas().is_valid(kind, value) == GENERAL[kind].is_valid(value)
    assert bool(shipped_schemas().breaches(kind, value)) != GENERAL[kind].is_valid(value)


def mutate(value: Any, data: st.DataObject) -> None:
    """Change one thing somewhere inside a document."""
    while isinstance(value, dict | list) and value:
        key = data.draw(st.sampled_from(sorted(value)) if isinstance(value, dict) else st.integers(0, len(value) - 1))
        if not isinstance(value[key], dict | list) or not value[key] or data.draw(st.integers(0, 3)) == 0:
            if isinstance(value, dict) and data.draw(st.booleans()):
                del value[key]
            else:
                value[key] = copy.deepcopy(data.draw(st.sampled_from(SMALL)))
            return
        value = value[key]


def checked(kind: str, spec: Any, **more: Any) -> list[str]:
    """Return the codes of the faults of a document."""
    value = {**HEADER, "kind": kind, "spec": spec, **more}
    document = Document(Source("x.yaml", ""), RawDocument(value, 0, 0))
    return [fault.code for fault in Checker(shipped_schemas()).faults(document)]


def test_integers_are_written_without_a_point() -> None:
    assert checked("Workload", {"type": "job", "replicas": Decimal("4.0"), "request": {"cpu": 1}}) == ["DT1103"]


def test_a_name_may_not_end_in_a_line_break() -> None:
    assert checked("Project", {"documents": ["a"], "tenants": ["a\n"]}) == ["DT1105"]


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_leaves_are_listed(kind: str) -> None:
    listed = leaves(kind)
    assert "metadata.name" in listed
    assert unsupported_leaves(kind).keys() <= set(listed)
    prefixes = {leaf.rpartition(".")[0] for leaf in listed}
    assert not prefixes & set(listed)


def test_leaves_name_what_is_not_supported() -> None:
    assert "spec.nodeGroups[].cpu" in leaves("Cluster")
    assert "spec.power" in unsupported_leaves("Accelerator")
    assert "spec.nodeGroups[].taints[].effect=PreferNoSchedule" in unsupported_leaves("Cluster")
    assert "spec.rule.quota.limit.gpus" not in unsupported_leaves("Policy")


def test_alternatives_are_told_as_the_one_that_was_meant(tmp_path: Path) -> None:
    schema = {
        "$id": "https://dovetail.dev/schemas/v1alpha1/workload.schema.json",
        "properties": {
            "spec": {
                "properties": {
                    "either": {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
                    "number": {"anyOf": [{"type": "integer"}, {"type": "object", "required": ["min"]}]},
                    "never": {"not": {"required": ["a", "b"]}},
                }
            }
        },
    }
    (tmp_path / "workload.schema.json").write_text(json.dumps(schema))
    checker = Checker(Schemas(tmp_path))

    def messages(spec: Any) -> list[tuple[str, str]]:
        value = {**HEADER, "kind": "Workload", "spec": spec}
        faults = checker.faults(Document(Source("x.yaml", ""), RawDocument(value, 0, 0)))
        return [(fault.code, fault.message) for fault in faults]

    assert messages({"either": {}}) == [("DT1110", "exactly one of a or b is needed")]
    assert messages({"either": {"a": 1, "b": 1}})[0][0] == "DT1110"
    assert messages({"number": "x"}) == [("DT1103", "expected an integer or a mapping, got text 'x'")]
    assert messages({"number": {}}) == [("DT1102", "number lacks the field min")]
    assert messages({"never": {"a": 1, "b": 1}}) == [("DT1110", "a and b do not go together")]


def test_an_unknown_keyword_of_a_schema_is_never_ignored(tmp_path: Path) -> None:
    schema = {"$id": "https://dovetail.dev/schemas/v1alpha1/workload.schema.json", "contains": {}}
    (tmp_path / "workload.schema.json").write_text(json.dumps(schema))
    with pytest.raises(NotImplementedError, match="contains"):
        Schemas(tmp_path).is_valid("Workload", {})


@given(st.lists(st.sampled_from([1, True, Decimal(1), "1", None, [1], [True], {"a": 1}, {"a": True}]), max_size=5))
def test_repeated_entries_are_found(values: list[Any]) -> None:
    texts = [repr(value) if not isinstance(value, Decimal) else "1" for value in values]
    repeated = next((index for index, text in enumerate(texts) if text in texts[:index]), None)
    assert first_repeated(values) == repeated


def test_all_documents_of_a_text_are_judged() -> None:
    with pytest.raises(Refused) as caught:
        load_text("kind: A\n---\nkind: B\n---\n- 1\n", "x.yaml")
    assert [fault.code for fault in caught.value.faults] == ["DT1102", "DT1102", "DT1015"]

"""The table of every fault code, with a title and an explanation for people.

A code is stable: its meaning never changes and a retired one is not reused. Ranges:

====== =====================================================
DT10xx reading: YAML and JSON syntax, limits, keys, aliases
DT11xx schema: unknown, missing or wrongly typed fields
DT12xx quantities
DT13xx references and identity
DT14xx cluster arithmetic
DT15xx workload arithmetic
DT16xx policies, waivers, objective
DT17xx placement and current state
DT18xx scenarios
DT1900 not supported yet
DT19xx warnings; DT195x tables read by importers
DT2xxx plan files
DT3xxx verification failures
DT4xxx reasons for not admitting a replica
DT5xxx the engine
====== =====================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dovetail.faults.build_codes import CLUSTER, CURRENT_STATE, POLICIES, REFERENCES, WARNINGS, WORKLOADS
from dovetail.faults.info import CodeInfo
from dovetail.faults.plan_codes import PLAN_FILES, REASONS
from dovetail.faults.scenario_codes import SCENARIOS
from dovetail.faults.verify_codes import VERIFICATION

_READING: Final[Mapping[str, CodeInfo]] = {
    "DT1001": CodeInfo("file cannot be read", "The file does not exist, is not a file, or may not be opened."),
    "DT1002": CodeInfo("file too large", "A document file may be at most 64 MB. Split it."),
    "DT1003": CodeInfo(
        "not UTF-8 text",
        "Documents are UTF-8 text. The file holds bytes that are not, or control characters such as NUL.",
    ),
    "DT1004": CodeInfo("syntax error", "The text is not well-formed YAML 1.2 or JSON at this place."),
    "DT1005": CodeInfo(
        "duplicate key", "The same key stands twice in one mapping; which value is meant cannot be known."
    ),
    "DT1006": CodeInfo(
        "key is not text",
        "Keys are plain text. Put quotes around a key that looks like a number or a boolean.",
    ),
    "DT1007": CodeInfo("explicit tag", "YAML tags such as `!!python/object` or `!include` are never interpreted."),
    "DT1008": CodeInfo("merge key", "The YAML 1.1 merge key `<<` is not part of YAML 1.2. Spell the fields out."),
    "DT1009": CodeInfo("undefined alias", "The alias names an anchor that has not been defined before it."),
    "DT1010": CodeInfo("alias inside its own anchor", "A value cannot contain itself."),
    "DT1011": CodeInfo(
        "too many aliased values",
        "Aliases repeat so many values that the expanded document would be too large.",
    ),
    "DT1012": CodeInfo("nested too deeply", "Values may be nested at most 64 deep."),
    "DT1013": CodeInfo("not a finite number", "Infinity and not-a-number have no meaning in a document."),
    "DT1014": CodeInfo("number too long", "A number may have at most 100 digits and a three-digit exponent."),
    "DT1015": CodeInfo("document is not a mapping", "A document is a mapping with apiVersion, kind and metadata."),
    "DT1016": CodeInfo("no documents", "Nothing was found to read: no file matched, or none held a document."),
    "DT1017": CodeInfo("path outside the project", "Patterns must stay inside the project's directory."),
    "DT1018": CodeInfo(
        "unknown policy pack", "No shipped pack and no PolicyPack document of the project has this name."
    ),
    "DT1019": CodeInfo("directive not supported", "Only `%YAML 1.2` is understood; `%TAG` and others are refused."),
    "DT1020": CodeInfo("too many files", "A project may hold at most 100,000 files."),
    "DT1021": CodeInfo(
        "files that are not read", "A Project names files of other folders, and does not stand in `dovetail.yaml`."
    ),
}

_SCHEMA: Final[Mapping[str, CodeInfo]] = {
    "DT1101": CodeInfo("unknown field", "The kind has no such field at this place. Fields are never ignored."),
    "DT1102": CodeInfo("missing field", "A required field is not given."),
    "DT1103": CodeInfo("wrong type", "The value is of another type than the field takes."),
    "DT1104": CodeInfo("not one of the choices", "The field takes one of a few fixed values."),
    "DT1105": CodeInfo("malformed text", "The text does not have the form that this field takes."),
    "DT1106": CodeInfo("number out of range", "The number is below the smallest or above the largest allowed value."),
    "DT1107": CodeInfo("wrong length", "The text or list is shorter or longer than the field allows."),
    "DT1108": CodeInfo("listed twice", "The entries of this list must differ from each other."),
    "DT1109": CodeInfo("wrong number of fields", "The mapping holds more or fewer entries than it may."),
    "DT1110": CodeInfo("fields do not go together", "The given fields exclude each other, or one needs another."),
    "DT1111": CodeInfo("unknown rule", "A policy names one of the known rules."),
    "DT1112": CodeInfo("unknown kind", "The kind is not one that dovetail reads."),
    "DT1113": CodeInfo("unknown apiVersion", "This version reads `dovetail/v1alpha1`."),
    "DT1114": CodeInfo("does not match the schema", "The value has a shape that its kind's schema does not allow."),
    "DT1115": CodeInfo("too many faults", "The document has more faults than are shown. Mend these first."),
}

_QUANTITIES: Final[Mapping[str, CodeInfo]] = {
    "DT1201": CodeInfo("not a quantity", "The text is not an amount of the expected unit, such as 80Gi or 2h30m."),
    "DT1202": CodeInfo("quantity out of range", "The amount is negative where that has no meaning, or too large."),
    "DT1203": CodeInfo("too many digits", "The amount is finer than dovetail counts; it would have to be rounded."),
}

_IDENTITY: Final[Mapping[str, CodeInfo]] = {
    "DT1301": CodeInfo(
        "name given twice",
        "`[namespace/]name` is unique per kind. Rename or delete one of the two documents.",
    ),
    "DT1302": CodeInfo(
        "not a valid name",
        "Names are DNS-1123 labels: at most 63 of a-z, 0-9 and `-`, alphanumeric at both ends.",
    ),
    "DT1303": CodeInfo("more than one project", "A directory holds at most one document of kind Project."),
}

_NOT_YET: Final[Mapping[str, CodeInfo]] = {
    "DT1900": CodeInfo(
        "not supported yet",
        "The field, value or kind is part of the format, but this version does not honour it and refuses it.",
    ),
    "DT1901": CodeInfo("pattern matches nothing", "No file of the project has a name that this pattern fits."),
    "DT1902": CodeInfo("empty project file", "A `dovetail.yaml` without a Project names no files."),
}

_IMPORTERS: Final[Mapping[str, CodeInfo]] = {
    "DT1951": CodeInfo(
        "missing column", "The first line of an imported table names its columns; one is missing or repeated."
    ),
    "DT1952": CodeInfo(
        "bad value in a table",
        "A cell of an imported table is empty, not a number, out of range, or no possible name.",
    ),
    "DT1953": CodeInfo("row given twice", "Two rows of an imported table have the same name."),
    "DT1954": CodeInfo("empty table", "An imported table has no rows; there would be nothing to plan."),
    "DT1955": CodeInfo(
        "request without a meaning",
        "A row asks for what no document can say, such as parts of several GPUs at once.",
    ),
    "DT1956": CodeInfo(
        "malformed row", "A line is not well-formed CSV, or has another number of cells than the heading."
    ),
    "DT1957": CodeInfo(
        "not the format that is imported", "The file does not have the form that its format's specification asks for."
    ),
    "DT1958": CodeInfo(
        "state that cannot be told", "What is imported does not say what GPUs are cut into, or says what cannot be."
    ),
    "DT1959": CodeInfo(
        "left out of an import",
        "What is imported holds nodes, or GPUs of nodes, that are not part of the documents that are made.",
    ),
}

__all__ = ["CODES", "CodeInfo"]

CODES: Final[Mapping[str, CodeInfo]] = {
    **_READING,
    **_SCHEMA,
    **_QUANTITIES,
    **_IDENTITY,
    **REFERENCES,
    **CLUSTER,
    **WORKLOADS,
    **POLICIES,
    **CURRENT_STATE,
    **SCENARIOS,
    **_NOT_YET,
    **WARNINGS,
    **_IMPORTERS,
    **PLAN_FILES,
    **VERIFICATION,
    **REASONS,
}
"""Every code used anywhere, in ascending order within its range."""

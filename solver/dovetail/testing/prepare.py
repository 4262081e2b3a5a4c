"""Holds tests and scenarios to the project before anything is planned: all faults together."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from dovetail.build import assemble, read_places
from dovetail.build.cursor import Cursor, Log
from dovetail.documents import DocumentSet
from dovetail.faults import Fault, FaultLog, Refused, nearest
from dovetail.placement import Place, Places
from dovetail.quantities import QuantityError, parse_date
from dovetail.spec import Spec
from dovetail.spec.identity import speaks_of
from dovetail.testing.model import Name, Trial
from dovetail.testing.reading import Case, PolicyTest, read_test
from dovetail.testing.run import CaseTrial, ScenarioTrial
from dovetail.testing.world import world_of
from dovetail.verify import impossible
from dovetail.whatif import Spot, Unfit, applied, check_scenarios, examined, read_scenario, redeclared, unknown
from dovetail.whatif import prepare as both_sides

_MOST_COMPARED: Final = 20_000
_MOST_TOLD: Final = 20


def prepare(documents: DocumentSet, *, as_of: dt.date, only: Collection[str] = ()) -> tuple[Trial, ...]:
    """Return what there is to run: the cases of every PolicyTest, then every Scenario that expects anything.

    Parameters
    ----------
    as_of : the date that waivers are judged at where a case has none of its own (S4.3).
    only : names of tests and scenarios, none for all.

    Raises
    ------
    Refused
        With all faults of all tests and scenarios.
    """
    log = FaultLog()
    found = _cases(documents, as_of, only, log)
    for document in documents.of_kind("Scenario"):
        if document.spec.get("expect") and (not only or document.identity in only):
            name = Name("Scenario", document.identity, document.identity, document.position("metadata", "name"))
            try:
                found.append(ScenarioTrial(name, both_sides(documents, read_scenario(document), as_of=as_of)))
            except Refused as refused:
                log.extend(refused.faults)
    log.raise_if_errors()
    return tuple(found)


def check_tests(documents: DocumentSet, *, as_of: dt.date) -> None:
    """Hold every test and every scenario of a project to the project, without planning anything.

    Raises
    ------
    Refused
        With all faults of all tests and scenarios.
    """
    log = FaultLog()
    _cases(documents, as_of, (), log)
    try:
        check_scenarios(documents, as_of=as_of)
    except Refused as refused:
        log.extend(refused.faults)
    log.raise_if_errors()


def _cases(documents: DocumentSet, as_of: dt.date, only: Collection[str], log: FaultLog) -> list[Trial]:
    """Return the cases of the tests, as far as they fit; what does not goes to the log."""
    return [
        trial
        for document in documents.of_kind("PolicyTest")
        if not only or document.identity in only
        for trial in _trials(documents, read_test(document), as_of, log)
    ]


def _trials(documents: DocumentSet, test: PolicyTest, as_of: dt.date, log: FaultLog) -> list[Trial]:
    own = FaultLog()
    world = world_of(documents, test, own)
    _check_policies(world, test, own)
    _check_names(test, own)
    own.extend(_left_out(documents, test))
    found: list[Trial] = []
    if not own.errors:  # what would follow from these need not be told as well
        for case in test.cases:
            try:
                found.append(_trial(world, test, case, as_of))
            except Refused as refused:
                own.extend(refused.faults)
    log.extend(own.errors)
    return found


def _check_policies(world: DocumentSet, test: PolicyTest, log: FaultLog) -> None:
    """Add a fault for each policy under test that neither a document nor a pack of the project has."""
    known = _names_of_policies(world)
    for index, name in enumerate(test.document.spec.get("policies", ())):
        if name not in known:
            log.append((test.spot / "policies" / index).fault(unknown("DT1808", "policy", name, known)))


def _names_of_policies(documents: DocumentSet) -> set[str]:
    names = {document.name for document in documents.of_kind("Policy")}
    return names.union(
        *({each["name"] for each in pack.spec["policies"]} for pack in documents.of_kind("PolicyPack"))
    )


def _left_out(documents: DocumentSet, test: PolicyTest) -> Iterator[Fault]:
    """Yield a fault for each policy that the test writes, or speaks of, although its `policies` leave it out."""
    if test.policies is None:
        return
    written = list(_written(test))
    known = _names_of_policies(documents) | {name for _, name in written}
    hint = "add it to the `policies` of the test: those that are not named there take no part"
    for spot, name in [*written, *(each for case in test.cases for each in _spoken_of(case))]:
        if name in known and name not in test.policies:
            yield spot.fault(Unfit("DT1808", f"the policy '{name}' is not under test", hint=hint))


def _written(test: PolicyTest) -> Iterator[tuple[Spot, str]]:
    """Yield the policies that a test itself writes, and where: as documents of its world, and by `set`."""
    rows = [(test.spot / "documents" / n, row) for n, row in enumerate(test.document.spec.get("documents", ()))]
    steps = (step for case in test.cases for step in case.scenario.steps)
    rows += [(step.spot, step.row["set"]) for step in steps if "set" in step.row]
    for spot, row in rows:
        if row["kind"] == "Policy":
            yield spot / "metadata" / "name", row["metadata"]["name"]


def _spoken_of(case: Case) -> Iterator[tuple[Spot, str]]:
    """Yield the policies that a case drops, or expects something of, and where it says so."""
    for step in case.scenario.steps:
        if "policy" in step.row.get("drop", ()):
            yield step.spot / "policy", step.row["drop"]["policy"]
    for expectation in case.scenario.expectations:
        if "policy" in expectation.row:
            yield expectation.spot / "policy", expectation.row["policy"]
        for index, name in enumerate(expectation.row.get("conflict", ())):
            yield expectation.spot / "conflict" / index, name


def _check_names(test: PolicyTest, log: FaultLog) -> None:
    told: set[str] = set()
    for case in test.cases:
        if case.name.case in told:
            message = "another case of this test has this name already"
            log.append((case.spot / "name").fault(Unfit("DT1815", message)))
        told.add(case.name.case)


def _trial(world: DocumentSet, test: PolicyTest, case: Case, as_of: dt.date) -> Trial:
    """Return a case that fits its world, or raise `Refused`."""
    log = FaultLog()
    date = _date(case, as_of, log)
    documents = redeclared(world, case.scenario.steps, log)
    log.raise_if_errors()
    meant = assemble(documents, as_of=date, only=test.policies).spec
    spec = applied(meant, case.scenario, documents, log)
    log.raise_if_errors()
    examined(case.scenario, spec, log)
    places = _places(case, spec, log)
    log.raise_if_errors()
    return CaseTrial(case, spec, places)


def _date(case: Case, as_of: dt.date, log: FaultLog) -> dt.date:
    if case.as_of is None:
        return as_of
    try:
        return parse_date(case.as_of)
    except QuantityError as error:
        log.append((case.spot / "asOf").fault(Unfit(error.code, error.message, hint=error.hint)))
        return as_of


def _places(case: Case, spec: Spec, log: FaultLog) -> Places | None:
    """Return the places that are given; where they cannot be, whatever policies say, that is a fault."""
    if case.placements is None:
        return None
    document, path = case.spot.document, case.spot.path
    assert document is not None, "cases stand in documents"
    reading = Log()
    rows = read_places(Cursor(document, reading, {"placements": case.placements}, path))
    log.extend(reading.errors)
    places = {replica: Place(row.node, row.gpus, row.instance) for replica, row in sorted(rows.items())}
    for unfit in [*_impossible(case, spec, places), *_without_search(case)]:
        log.append(case.spot.fault(unfit))
    return places


def _impossible(case: Case, spec: Spec, places: Places) -> Iterator[Unfit]:
    for check, finding in islice(impossible(spec, places), _MOST_TOLD):
        row = _row_of(case.placements or {}, finding.subject)
        words = f"{finding.subject}: {finding.detail} ({check.name}, {check.code})"
        hint = _hint(finding.subject, spec) if check.name == "replicas-exist" else None
        yield Unfit("DT1813", words, "placements", *([row] if row else []), hint=hint, of_key=True)


def _row_of(rows: Mapping[str, Any], subject: str) -> str | None:
    """Return the row that speaks of a replica, else the first one on a GPU, or else on its node or on a node."""
    node, _, gpu = subject.partition("/")
    there = [text for text, row in rows.items() if row["node"] == node]
    on_it = [text for text in there if gpu in map(str, rows[text].get("gpus", ()))]
    told = [text for text in rows if "#" in subject and speaks_of(text, subject)]
    return next(iter([*told, *on_it, *there]), None)


def _hint(replica: str, spec: Spec) -> str | None:
    """Return which replica was probably meant."""
    near = nearest(replica.partition("#")[0], list(spec.by_id)[:_MOST_COMPARED])
    if near is None:
        return None
    found = spec.by_id[near].replicas
    return (
        f"did you mean {near}?" if near != replica.partition("#")[0] else f"{near} has {found:,} replicas, from #0 on"
    )


def _without_search(case: Case) -> Iterator[Unfit]:
    for index, expectation in enumerate(case.scenario.expectations):
        if "status" in expectation.row:
            message = "places that are given are judged, so that no search has a status"
            yield Unfit(
                "DT1814", message, "expect", index, "status", hint="leave out `placements` to have it planned"
            )

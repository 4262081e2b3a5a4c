"""What a run of tests found, in every format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dovetail.faults import Position
from dovetail.testing import CaseResult, to_document
from dovetail.whatif import Check
from dovetail_cli.render import annotated, comparison, junit, machine, markdown
from dovetail_cli.render.annotation import Annotation
from dovetail_cli.render.columns import PLAIN, Screen, headline, layout
from dovetail_cli.render.markdown import Section
from dovetail_cli.render.words import plural

FORMATS = ("table", "json", "yaml", "md", "junit", *annotated.FORMATS)
_MARKS = {"pass": "+", "fail": "!", "undecided": "?"}
_SIGNS = {"pass": ":white_check_mark:", "fail": ":x:", "undecided": ":grey_question:"}


@dataclass(frozen=True, slots=True)
class Run:
    """A run of tests: its name, what came of every case, the seconds that each took, and whether to show all."""

    name: str
    results: Sequence[CaseResult]
    seconds: Mapping[int, float] = field(default_factory=dict)
    detail: bool = False

    def by_document(self) -> dict[tuple[str, str], list[CaseResult]]:
        """Return results by kind and name of their documents, in order."""
        found: dict[tuple[str, str], list[CaseResult]] = {}
        for result in self.results:
            found.setdefault((result.name.kind, result.name.test), []).append(result)
        return found


def rendered(run: Run, name: str, screen: Screen = PLAIN) -> str:
    """Return a run in a format; `json` and `yaml` hold the TestResult."""
    if name in ("json", "yaml"):
        return machine.rendered(to_document(run.results, run.name), name)
    if name in annotated.FORMATS:
        return annotated.rendered(_annotations(run), name)
    if name == "junit":
        return junit.rendered(list(_suites(run)), f"dovetail test {run.name}")
    return _markdown(run) if name == "md" else _table(run, screen)


def verdict(results: Sequence[CaseResult]) -> str:
    """Return how many cases pass, fail and are undecided."""
    count = Counter(result.verdict for result in results)
    if not results:
        return "nothing is tested"
    if count["pass"] == len(results):
        return f"{plural(len(results), 'case passes', 'cases pass')}"
    parts = [f"{count['fail']:,} FAIL"] if count["fail"] else []
    parts += [f"{count['undecided']:,} undecided"] if count["undecided"] else []
    return f"{count['pass']:,} of {plural(len(results), 'case passes', 'cases pass')}, {', '.join(parts)}"


def _table(run: Run, screen: Screen) -> str:
    rows = [(_mark(cases), kind, name, verdict(cases)) for (kind, name), cases in run.by_document().items()]
    lines: list[str] = []
    for result in run.results:
        if run.detail or result.verdict != "pass":
            lines += _case_lines(result, screen)
    head = headline((f"dovetail test: {run.name}", verdict(run.results)), screen)
    blocks = [head, layout(rows, screen), lines]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _mark(cases: Sequence[CaseResult]) -> str:
    worst = next((word for word in ("fail", "undecided") if any(case.verdict == word for case in cases)), "pass")
    return _MARKS[worst]


def _case_lines(result: CaseResult, screen: Screen) -> list[str]:
    rows = []
    for check in result.checks:
        if check.ok:
            rows.append(("holds", str(check.expectation)))
        else:
            rows += [("at", str(_position(check, result) or "")), ("expected", str(check.expectation))]
            rows.append(("found", _found(check, result)))
    return [*layout([(_MARKS[result.verdict], _called(result))], screen), *layout(rows, screen, indent=6)]


def _called(result: CaseResult) -> str:
    name = result.name
    return name.test if name.case == name.test else f"{name.test}: {name.case}"


def _found(check: Check, result: CaseResult) -> str:
    if result.verdict == "undecided":
        return "undecided: the search had no answer within its limits"
    if check.actual is None and result.status == "infeasible":
        conflict = f": {', '.join(result.conflict)} cannot hold" if result.conflict else ""
        return f"there is no plan{conflict}{' together' if len(result.conflict) > 1 else ''}"
    return comparison.found(check)


def _position(check: Check, result: CaseResult) -> Position | None:
    return check.expectation.spot.position or result.name.position


def _annotations(run: Run) -> Iterator[Annotation]:
    for result in run.results:
        missed = result.verdict == "fail"
        for check in result.missed:
            yield Annotation(
                "error" if missed else "warning",
                "expectation-missed" if missed else "undecided",
                f"{result.name.kind} {_called(result)}",
                f"expected {check.expectation}; found {_found(check, result)}",
                _position(check, result),
            )


def _suites(run: Run) -> Iterator[junit.Suite]:
    seconds = {id(result): run.seconds.get(index) for index, result in enumerate(run.results)}
    for (kind, name), results in run.by_document().items():
        cases = [
            junit.Case(r.name.case, f"{kind}.{name}", _trouble(r), r.name.position, seconds[id(r)]) for r in results
        ]
        yield junit.Suite(f"{kind} {name}", tuple(cases))


def _trouble(result: CaseResult) -> junit.Trouble | None:
    if result.verdict == "pass":
        return None
    said = [
        f"{_position(check, result)}: expected {check.expectation}; found {_found(check, result)}"
        for check in result.missed
    ]
    first = result.missed[0]
    message = f"expected {first.expectation}; found {_found(first, result)}"
    kind: junit.Kind = "failure" if result.verdict == "fail" else "error"
    return junit.Trouble(kind, "expectation-missed" if kind == "failure" else "undecided", message, "\n".join(said))


def _markdown(run: Run) -> str:
    opening = (
        markdown.marker("test", run.name),
        f"### dovetail test: {markdown.code(run.name)}",
        "",
        f"**{markdown.text(verdict(run.results))}**",
    )
    sections = [Section("opening", opening), _missed_section(run), _all_section(run)]
    return "\n".join(filter(None, (section.text() for section in markdown.shed(sections))))


def _missed_section(run: Run) -> Section:
    lines = []
    for result in run.results:
        for check in result.missed:
            place = f", {markdown.code(str(position))}" if (position := _position(check, result)) else ""
            words = f"expected {check.expectation}; found {_found(check, result)}"
            name = markdown.text(_called(result))
            lines.append(f"- {_SIGNS[result.verdict]} {name}: {markdown.text(words)}{place}")
    return Section("failures", tuple(lines), head=("**What does not hold**", ""))


def _all_section(run: Run) -> Section:
    start, end = markdown.folded("All cases")
    rows = [(_SIGNS[r.verdict], markdown.text(r.name.kind), markdown.text(_called(r))) for r in run.results]
    return Section("replicas", markdown.table_body(rows), (*start, *markdown.table_head(("", "kind", "case"))), end)

"""What verifying a plan finds, in every format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

from dovetail.faults import Position
from dovetail.verify import DIGEST, STATE, CheckResult, Verification, lines, to_document
from dovetail_cli.render import annotated, junit, machine
from dovetail_cli.render.annotation import Annotation
from dovetail_cli.render.columns import PLAIN, Screen, prose
from dovetail_cli.render.words import plural

FORMATS = ("table", "json", "yaml", "junit", *annotated.FORMATS)
_MOST = 100
"""Findings of a check that are told one by one; where there are more, the last one counts the rest."""

Where = Callable[[str], Position | None]
"""From the subject of a finding to where the plan speaks of it."""


def rendered(verification: Verification, name: str, where: Where, screen: Screen = PLAIN) -> str:
    """Return a verification in a format."""
    if name in ("json", "yaml"):
        return machine.rendered(to_document(verification), name)
    if name in annotated.FORMATS:
        return annotated.rendered(_annotations(verification, where), name)
    if name == "junit":
        cases = tuple(_case(check, where) for check in verification.checks)
        return junit.rendered([junit.Suite(f"plan {verification.name}", cases)], "dovetail verify")
    told = (prose(line.lstrip(), screen, indent=len(line) - len(line.lstrip())) for line in lines(verification))
    return "\n".join(chain.from_iterable(told)) + "\n"


def _annotations(verification: Verification, where: Where) -> Iterator[Annotation]:
    if verification.stale:
        said = "\n".join(f"plan {finding.subject} {finding.detail}" for finding in verification.checks[0].findings)
        yield Annotation("error", "stale-plan", "stale plan", said, where("inputs"))
        return
    for check in verification.broken:
        title = f"{check.code} {check.name}"
        for finding in check.findings[: _MOST - 1]:
            words = f"{finding.subject}: {finding.detail}"
            yield Annotation("error", check.code, title, words, where(finding.subject))
        if (rest := len(check.findings) - _MOST + 1) > 0:
            yield Annotation("error", check.code, title, f"and {plural(rest, 'more finding')}", where(""))
    if verification.without_state:
        names = ", ".join(check.name for check in verification.without_state)
        yield Annotation("notice", "not-checked", "not checked", f"needs {STATE}: {names}")


def _case(check: CheckResult, where: Where) -> junit.Case:
    if check.findings:
        said = "\n".join(f"{finding.subject}: {finding.detail}" for finding in check.findings[:_MOST])
        more = f"{plural(len(check.findings), 'finding')}"
        trouble = junit.Trouble("failure", check.code, more, said)
        subject = "inputs" if check.name == DIGEST.name else check.findings[0].subject
        return junit.Case(check.name, check.code, trouble, where(subject))
    if not check.ran:
        return junit.Case(check.name, check.code, junit.Trouble("skipped", check.code, f"needs {check.needs}"))
    return junit.Case(check.name, check.code)

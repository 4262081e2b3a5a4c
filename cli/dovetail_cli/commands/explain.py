"""`dovetail explain WORKLOAD|NODE|CODE [PATH]`."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.faults import CODES, Refused, nearest
from dovetail.placement import Places
from dovetail.plan import Plan, as_planned, combined, documents_digest, outside_digest
from dovetail.spec import Spec, Workload
from dovetail.verify import verify
from dovetail_cli import options, project, refusals, sound, streams
from dovetail_cli.exit_codes import ExitCode, Finding, first_of
from dovetail_cli.planner import Planner, running
from dovetail_cli.plans import read_plan
from dovetail_cli.problems import CommandError, usage
from dovetail_cli.render import whynot as formats
from dovetail_cli.render.columns import Screen
from dovetail_cli.render.words import printable

if TYPE_CHECKING:
    from dovetail.whynot import Explanation

_Thing = Annotated[
    str, typer.Argument(metavar="WORKLOAD|NODE|CODE", help="A workload, a node, or a code such as DT1103.")
]
_Plan = Annotated[
    str | None,
    typer.Option("--plan", metavar="PLAN", help="The plan to explain, a file or REV:path, instead of planning."),
]
_Ways = Annotated[
    int | None,
    typer.Option(
        "--ways", min=0, metavar="N", help="At most N plans for ways out or other places; 0 for none, default 12."
    ),
]
_MOST_WAYS = 12
_PATIENCE = 20.0  # seconds for all plans of ways together, unless it is said how long each may take
_WORK = 1.0  # units for each of them then
_CODE = re.compile(r"DT\d{4}", re.IGNORECASE | re.ASCII)


def run(
    thing: _Thing,
    path: options.LastPath = None,
    plan: _Plan = None,
    base: options.Base = None,
    current: options.Current = None,
    ways: _Ways = None,
    time_limit: options.EachTimeLimit = None,
    work: options.EachWork = None,
    jobs: options.Jobs = None,
    memory: options.Memory = None,
    as_of: options.AsOf = None,
    output: options.Output = "table",
    also: options.Also = None,
) -> ExitCode:
    """Explain.

    Of a workload: how far it is admitted, what it lacks in numbers, and ways out, each of them planned: without a
    hard policy, without other work, with more nodes. Of one that is admitted: what other nodes would change, tier by
    tier, and plans in which it keeps off where it is. These plans share 20 seconds, unless --work or --time-limit
    says how long each may take. Of a node: what it holds and has left. Of a code: what it means. Formats, of a
    workload: table, json, yaml.
    """
    shown = options.output(output, formats.FORMATS)
    wanted = options.renderings(also or (), formats.FORMATS)
    most = _MOST_WAYS if ways is None else ways
    searching = {"--time-limit": time_limit, "--work": work, "--jobs": jobs, "--memory": memory}
    if _CODE.fullmatch(thing):
        _check_table("codes", shown, wanted)
        of_plans = {"--plan": plan, "--base": base, "--current": current, "--ways": ways, "--as-of": as_of}
        given = {"PATH": path, **of_plans, **searching}
        _check_without("codes are explained without a project and its plans", given)
        return _code(thing.upper(), shown)
    limits = options.limits(time_limit, units=work, jobs=jobs, most=memory)
    try:
        before = read_plan(plan) if plan is not None else None
        today = read_plan(base) if base is not None else None
        found = project.load("." if path is None else path, project.Question(options.as_of(as_of), today, current))
    except Refused as refused:
        return refusals.tell(refused, shown)
    project.tell_warnings(found.warnings)
    spec = found.spec if before is None else _as_planned(found.spec, before)
    _check_known(spec, thing)
    workload = spec.declared.get(thing)
    if workload is None:
        _check_table("nodes", shown, wanted)
        _check_without("of a node no ways are planned", {"--ways": ways})
        _check_without("with --plan, a node is explained without a search", searching if before else {})
    with running(limits) as planner:
        made = planner(spec) if before is None else before
        asking = _Asking(planner, made.placements, shared=time_limit is None and work is None)
        found_out = _explained(spec, made, workload, asking, most) if workload else None
        interrupted = bool(planner.stop)
    planner.complain()
    places = project.Places(found.documents)

    def render(name: str, screen: Screen) -> str:
        if found_out is None:
            return formats.of_node(spec, made, thing, screen)
        return formats.of_workload(found_out, places, name, screen)

    streams.publish(render, shown, wanted)
    return first_of(_findings(made, planner, interrupted))


def _check_table(what: str, shown: str, wanted: Sequence[tuple[str, str]]) -> None:
    if shown != "table" or wanted:
        raise usage(f"{what} are explained as a table alone", "leave -o and --also out")


def _check_without(why: str, given: Mapping[str, object]) -> None:
    """Refuse options that would be ignored."""
    found = [name for name, value in given.items() if value is not None]
    if found:
        raise usage(why, f"leave {', '.join(found)} out")


class _Asking:
    """Plans ways out one after the other, within seconds that they share or, with limits, each within these.

    All start from the plan that is explained, so that they differ by what was asked for. `cut` tells whether time was
    up before all were planned.
    """

    def __init__(self, planner: Planner, places: Places, *, shared: bool) -> None:
        self.planner = planner
        self._places = places
        self._until = time.monotonic() + _PATIENCE if shared else None
        self.cut = False

    def __call__(self, spec: Spec) -> Plan:
        """Return a plan."""
        if self._until is not None:
            left = max(1.0, self._until - time.monotonic())
            self.planner.limits = replace(self.planner.limits, work=_WORK, time=left)
        return self.planner(spec, self._places)

    def over(self) -> bool:
        """Tell whether no more plans are to be made."""
        self.cut |= self._until is not None and time.monotonic() >= self._until
        return self.cut or bool(self.planner.stop)


def _explained(spec: Spec, plan: Plan, workload: Workload, asking: _Asking, most: int) -> Explanation:
    """Return what is known of a workload: ways out where it is not admitted in full, else other places."""
    from dovetail.whynot import Explanation, barring, tried, ways, without

    planner = asking.planner
    if plan.outcome.status not in ("optimal", "feasible"):
        return Explanation(spec, plan, workload)
    planner.timeline.phase("ways")
    if workload.id in plan.admitted:
        bars = barring(spec, plan, workload)
        outs = [way for way in ways(spec, plan, workload, asking, most, asking.over, bars) if not planner.stop]
        return Explanation(spec, plan, workload, bars, outs, tried(spec, plan, workload), cut=asking.cut)
    plans = [each for each in without(spec, plan, workload, asking, most, asking.over) if not planner.stop]
    return Explanation(spec, plan, workload, (), (), tried(spec, plan, workload), plans, asking.cut)


def _as_planned(spec: Spec, plan: Plan) -> Spec:
    """Return the Spec that a plan was made for, if the documents still say so and the plan verifies."""
    same = as_planned(spec, plan)
    if plan.inputs != combined(documents_digest(same), outside_digest(same)):
        message = "the plan was made for other documents, or from a state that is not known here"
        hint = "give what ran then by --base or --current, or leave --plan out to plan the documents as they are"
        raise CommandError(Finding.STALE, message, hint)
    sound.check(verify(same, plan))
    return same


def _check_known(spec: Spec, thing: str) -> None:
    if thing in spec.declared or thing in spec.cluster.by_name:
        return
    raise usage(f"there is no workload, node or code {printable(thing)}", _hint(spec, thing))


def _hint(spec: Spec, thing: str) -> str:
    if any(policy.name == thing for policy in spec.policies):
        return "it is a policy: dovetail policies tells of it"
    near = nearest(thing, [*spec.declared, *spec.cluster.by_name]) if len(spec.cluster.nodes) < 20_000 else None
    return f"did you mean {near}?" if near else "a workload is [namespace/]name, codes look like DT1103"


def _findings(plan: Plan, planner: Planner, interrupted: bool) -> Iterator[Finding]:
    if interrupted:
        yield Finding.INTERRUPTED
    if plan.outcome.status == "infeasible":
        yield Finding.INFEASIBLE
    if plan.outcome.status == "unknown":
        yield Finding.NO_PLAN
    if planner.broken:
        yield Finding.BROKEN


def _code(code: str, shown: str) -> ExitCode:
    if code not in CODES:
        near = nearest(code, CODES)
        raise usage(f"there is no code '{code}'", f"did you mean {near}?" if near else "codes look like DT1103")
    streams.publish(lambda _, screen: formats.of_code(code, screen), shown)
    return ExitCode.DONE

"""`dovetail policies [WORKLOAD] [PATH]`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from dovetail.build import contradictions, origins_of
from dovetail.faults import Refused, nearest, render_fault
from dovetail.policylist import PolicyList, Pricing, listing, priceable, priced
from dovetail.progress import Limits
from dovetail.spec import Spec
from dovetail_cli import options, planning, project, refusals, streams
from dovetail_cli.exit_codes import ExitCode, Finding, first_of
from dovetail_cli.planner import Planner, running
from dovetail_cli.plans import read_plan
from dovetail_cli.problems import usage
from dovetail_cli.render import policies as formats
from dovetail_cli.render.words import printable

_Workload = Annotated[
    str | None,
    typer.Argument(metavar="WORKLOAD", help="Only what applies to this workload; a lone file or directory is PATH."),
]
_Detail = Annotated[bool, typer.Option("--detail", help="Name all whom a policy binds, and say why it exists.")]
_Price = Annotated[bool, typer.Option("--price", help="Plan again without each hard policy, to tell what it costs.")]


def run(
    workload: _Workload = None,
    path: options.LastPath = None,
    price: _Price = False,
    base: options.Base = None,
    current: options.Current = None,
    time_limit: options.EachTimeLimit = None,
    work: options.EachWork = None,
    jobs: options.Jobs = None,
    memory: options.Memory = None,
    as_of: options.AsOf = None,
    detail: _Detail = False,
    output: options.Output = "table",
    also: options.Also = None,
) -> ExitCode:
    """List policies.

    Tells of each policy where it is written, how strict it is, whom it binds and whom a waiver excuses; then which
    policies of packs are replaced or left out. With --price every hard policy is left out once and the rest planned
    again; the price is how much better that can be, as a range that narrows to one number where both sides are
    proved. Loads a solver only for --price. Formats: table, json, yaml, md.
    """
    shown = options.output(output, formats.FORMATS)
    wanted = options.renderings(also or (), formats.FORMATS)
    limits = options.limits(time_limit, units=work, jobs=jobs, most=memory)
    if not price and limits != Limits():
        raise usage("limits of a search take --price: nothing else of this command searches", "add --price")
    name, where = options.told_apart(workload, path)
    try:
        before = read_plan(base) if base is not None else None
        found = project.load(where or ".", project.Question(options.as_of(as_of), before, current))
    except Refused as refused:
        return refusals.tell(refused, shown)
    listed = listing(found.spec, origins_of(found.documents), _known(found.spec, name))
    project.tell_warnings(found.warnings)
    for fault in contradictions(found.documents, found.spec):
        streams.say(render_fault(fault))  # not refused: leaving a policy out may be what is looked for
    pricing, findings = _priced(listed, limits) if price else (None, ())
    planning.tell_waivers(found)
    streams.publish(lambda form, screen: formats.rendered(listed, pricing, form, screen, detail), shown, wanted)
    return first_of((*findings, *((Finding.BROKEN,) if found.spec.expired_waivers() else ())))


def _known(spec: Spec, workload: str | None) -> str | None:
    known = {each.id for each in spec.workloads}
    if workload is None or workload in known:
        return workload
    near = nearest(workload, known)
    hint = f"did you mean {near}?" if near else "a workload is [namespace/]name; PATH comes after it"
    raise usage(f"there is no workload {printable(workload)}", hint)


def _priced(listed: PolicyList, limits: Limits) -> tuple[Pricing, tuple[Finding, ...]]:
    """Return what the listed hard policies cost, and what the run found out."""
    names = [name for name in priceable(listed.spec) if name in listed.by_name]
    with running(limits) as planner:
        pricing = priced(listed.spec, names, planner, lambda: bool(planner.stop))
    planner.complain()
    return pricing, tuple(_findings(pricing, planner))


def _findings(pricing: Pricing, planner: Planner) -> Iterator[Finding]:
    """Yield what planning found out; that another policy is in the way without one is an answer, no failure."""
    if planner.stop:
        yield Finding.INTERRUPTED
    if planner.broken:
        yield Finding.BROKEN
    if pricing.plan.outcome.status == "infeasible":
        yield Finding.INFEASIBLE
    if "unknown" in (pricing.plan.outcome.status, *(each.without.outcome.status for each in pricing.priced)):
        yield Finding.NO_PLAN

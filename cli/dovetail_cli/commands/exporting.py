"""`dovetail export FORMAT PLAN [PATH]`: one command per exporter of the table."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.exporters.table import EXPORTERS, Exporter
from dovetail.faults import Refused
from dovetail.importers.project import ImportedProject
from dovetail.plan import Plan
from dovetail.spec import Spec
from dovetail_cli import files, library, options, project, refusals, sound, streams
from dovetail_cli.exit_codes import WITHOUT_PLAN, ExitCode
from dovetail_cli.plans import certificate_of, read_plan
from dovetail_cli.problems import CommandError, usage
from dovetail_cli.render.words import plural

if TYPE_CHECKING:
    from dovetail.proof.certificate import Certificate

app = typer.Typer(help="Write a plan in the formats of other programs.", add_completion=False, rich_markup_mode=None)

_Plan = Annotated[str, typer.Argument(metavar="PLAN", help="The plan: a file or REV:path.")]
_Out = Annotated[
    str | None, typer.Option("--out", metavar="DIR", help="Write every file there; else the first goes to stdout.")
]
_Force = Annotated[bool, typer.Option("--force", help="Replace an older export in that directory.")]


@app.callback()
def _group() -> None:
    """Write a plan in the formats of other programs."""


def _command(exporter: Exporter) -> Callable[..., ExitCode]:
    def run(
        plan: _Plan,
        path: options.PathArgument = ".",
        base: options.Base = None,
        current: options.Current = None,
        certificate: options.Certificate = None,
        out: _Out = None,
        force: _Force = False,
        as_of: options.AsOf = None,
    ) -> ExitCode:
        if force and out is None:
            raise usage("--force replaces files of --out", "give --out, or leave --force out")
        try:
            chosen = read_plan(plan)
            proofs = certificate_of(chosen, plan, certificate)
            before = read_plan(base) if base is not None else None
            found = project.load(path, project.Question(options.as_of(as_of), before, current))
        except Refused as refused:
            return refusals.tell(refused, "table")
        _check(found.spec, chosen, proofs)
        for warning in exporter.warn(found.spec, chosen):
            streams.warn(warning)
        return _written(exporter, exporter.run(found.spec, chosen), out, force=force)

    return run


def _check(spec: Spec, plan: Plan, certificate: Certificate | None) -> None:
    """Refuse a plan that must not be carried out: one without places, or that does not verify to its last bound."""
    if plan.outcome.status in WITHOUT_PLAN:
        message = f"the outcome of plan {plan.name} is '{plan.outcome.status}': there are no places to export"
        raise CommandError(WITHOUT_PLAN[plan.outcome.status], message)
    sound.check(library.verify(spec, plan, certificate))
    if plan.current is not None and not spec.current.from_outside:
        streams.warn("what runs today is not given (--base, --current): what depends on it is not checked or told")


def _written(exporter: Exporter, texts: Mapping[str, str], out: str | None, *, force: bool) -> ExitCode:
    if out is None:
        streams.answer(texts[exporter.main])
        return ExitCode.DONE
    for file in (str(Path(out) / name) for name in texts):
        if force and os.path.lexists(file):
            files.check_replaceable(file)
    folder = ImportedProject(texts, frozenset(texts))
    written = files.write_folder(folder, Path(out), overwrite=force, older="an older export")
    streams.answer(f"wrote {plural(len(written), 'file')} to {out}")
    return ExitCode.DONE


for _exporter in EXPORTERS:
    _help = f"Export {_exporter.summary}."
    app.command(_exporter.name, help=_help, short_help=_help)(_command(_exporter))

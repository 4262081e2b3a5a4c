"""`dovetail import FORMAT ...`: one command per importer of the table."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from dovetail.faults import render_faults
from dovetail.importers.table import IMPORTERS, Importer
from dovetail_cli import files, streams
from dovetail_cli.exit_codes import ExitCode
from dovetail_cli.render.words import plural

app = typer.Typer(help="Turn files of other formats into documents.", add_completion=False, rich_markup_mode=None)

_OUT = Annotated[str, typer.Option("--out", metavar="DIR", help="The directory to write; made if it does not exist.")]
_FORCE = Annotated[bool, typer.Option("--force", help="Replace an older import in that directory.")]


@app.callback()
def _group() -> None:
    """Turn files of other formats into documents."""


def _command(importer: Importer) -> Callable[..., ExitCode]:
    """Return an importer as a function with one option for each of its inputs."""

    def run(out: str, force: bool, **inputs: str) -> ExitCode:
        return _imported(importer, {name: Path(file) for name, file in inputs.items()}, Path(out), force=force)

    given = {
        each.option: Annotated[str, typer.Option(f"--{each.option}", metavar=each.metavar, help=each.help)]
        for each in importer.inputs
    }
    kinds = {**given, "out": _OUT, "force": _FORCE}
    defaults = {"force": False}
    # typer reads options off the signature; this importer's are known only now.
    run.__annotations__ = dict(kinds)
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=kind,
                default=defaults.get(name, inspect.Parameter.empty),
            )
            for name, kind in kinds.items()
        ]
    )
    return run


def _imported(importer: Importer, inputs: dict[str, Path], out: Path, *, force: bool) -> ExitCode:
    project = importer.run(inputs)
    written = files.write_folder(project, out, overwrite=force, older="an older import")
    if project.warnings:
        streams.say(render_faults(project.warnings))
    lines = sum(text.count("\n") for text in project.files.values())
    streams.answer(f"wrote {plural(len(written), 'file')} with {plural(lines, 'line')} to {out}")
    return ExitCode.DONE


for _importer in IMPORTERS:
    _help = f"Import {_importer.summary}."
    app.command(_importer.name, help=_help, short_help=_help)(_command(_importer))

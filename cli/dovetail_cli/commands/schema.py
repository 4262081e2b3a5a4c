"""`dovetail schema [KIND]`."""

from __future__ import annotations

import typer

from dovetail.faults import nearest
from dovetail.resources import schemas_folder
from dovetail_cli import streams
from dovetail_cli.exit_codes import ExitCode
from dovetail_cli.problems import usage

_ENDING = ".schema.json"


def run(
    kind: str | None = typer.Argument(
        None, metavar="KIND", help="A kind such as Workload; without it, all kinds are listed."
    ),
) -> ExitCode:
    """Print the JSON Schema of a kind of document.

    The schema that dispatches on the kind, for editors, is called `all`.
    """
    known = _known()
    if kind is None:
        streams.answer("\n".join(sorted(known)))
        return ExitCode.DONE
    name = next((title for title in known if title.lower() == kind.lower()), None)
    if name is None:
        near = nearest(kind, known)
        raise usage(f"there is no kind '{kind}'", f"did you mean {near}?" if near else ", ".join(sorted(known)))
    streams.answer((schemas_folder() / known[name]).read_text(encoding="utf-8"))
    return ExitCode.DONE


def _known() -> dict[str, str]:
    """Return the file of each schema by the kind it is of."""
    from dovetail.documents.kinds import ALL_KINDS

    files = {kind: f"{kind.lower()}{_ENDING}" for kind in ALL_KINDS}
    return {kind: file for kind, file in files.items() if (schemas_folder() / file).is_file()} | {"all": "all.json"}

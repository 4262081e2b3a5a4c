"""The entry point: finds the command, runs it, and turns whatever happens into a message and an exit code."""

from __future__ import annotations

import importlib
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from dovetail.collector import collect_seldom
from dovetail_cli import streams
from dovetail_cli.commands import TABLE, Command
from dovetail_cli.exit_codes import ExitCode, Finding, first_of
from dovetail_cli.problems import CommandError, usage

if TYPE_CHECKING:
    from dovetail.faults import Refused

# typer carries or imports its parser depending on its version; this is the parser's class in either.
_UsageError: Any = typer.BadParameter.__mro__[1]
_INTERNAL = "internal error"
_EMPTY = re.compile(r"(?:--[a-z-]+=)?")


def _loaded(command: Command) -> Any:
    """Import a command's module and make its parser."""
    module = importlib.import_module(f"dovetail_cli.commands.{command.module}")
    app = getattr(module, "app", None)
    if app is None:
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(command.name, help=_help(command, module.run))(module.run)
    return typer.main.get_command(app)


def _help(command: Command, run: Callable[..., ExitCode]) -> str:
    """Return the help of a command: its summary, then what its function's docstring says beyond the first line."""
    _, _, rest = (run.__doc__ or "").partition("\n")
    return f"{command.summary}\n\n{rest}"


def _unknown(name: str) -> CommandError:
    from dovetail.faults import nearest

    near = nearest(name, (command.name for command in TABLE))
    return usage(f"there is no command '{name}'", f"did you mean {near}?" if near else "dovetail --help lists them")


class LazyGroup(TyperGroup):
    """A group that imports a command's module only when the command is called: `--help` stays quick."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, in the table's order."""
        return [command.name for command in TABLE]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the parser of one command, None for an unknown name."""
        found = next((command for command in TABLE if command.name == cmd_name), None)
        if found is None and not cmd_name.startswith("-"):
            raise _unknown(cmd_name)
        return _loaded(found) if found else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands into the help from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(command.name, command.summary) for command in TABLE])


app = typer.Typer(cls=LazyGroup, rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]})


def _print_version(wanted: bool) -> None:
    if wanted:
        from dovetail_cli.commands.version import run

        raise typer.Exit(run())


_VERSION = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version.")


@app.callback()
def _root(version: bool = _VERSION) -> None:
    """Plan a GPU cluster from declarative policy, and prove how good the plan is.

    PATH is a project's directory or a file; without it, the current directory. Exit codes: 0 done, 1 internal error,
    2 changes (with --exit-code), 3 documents refused, 4 a policy or check broken or a waiver expired, 5 proved
    infeasible, 6 expectation missed, 7 no plan within the limit or gap too large, 8 stale, 64 usage, 69 backend
    unavailable, 130 interrupted.
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    from dovetail.faults import Refused

    try:
        _check_given(sys.argv[1:] if arguments is None else arguments)
        code = app(arguments, prog_name="dovetail", standalone_mode=False)
    except CommandError as error:
        _complain(error.message, error.hint)
        return first_of([error.finding])
    except _UsageError as error:
        return _usage(error)
    except Refused as error:
        return _refused(error)
    except (KeyboardInterrupt, typer.Abort):
        streams.say("dovetail: interrupted")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        return ExitCode.DONE
    except Exception as error:
        return _internal(error)
    return int(code or 0)


def _check_given(arguments: Sequence[str]) -> None:
    """Refuse an empty argument, which would stand for the current directory or for nothing."""
    for argument in arguments:
        if _EMPTY.fullmatch(argument):
            named = argument.rstrip("=") or "an argument"
            raise usage(f"{named} is empty", "a variable of the shell that is not set leaves nothing")


def _complain(message: str, hint: str | None = None) -> None:
    streams.say(f"dovetail: {message}")
    if hint:
        streams.say(f"  hint: {hint}")


def _usage(error: Any) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":
        streams.say(error.format_message())
        return ExitCode.USAGE
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "dovetail"
    _complain(error.format_message().rstrip("."), f"{command} --help")
    return ExitCode.USAGE


def _refused(error: Refused) -> int:
    from dovetail.faults import render_faults

    streams.say(render_faults(error.faults))
    return first_of([Finding.REFUSED])


def _internal(error: Exception) -> int:
    if os.environ.get("DOVETAIL_DEBUG") == "1":
        traceback.print_exception(error)
    else:
        said = " ".join(str(error).split())[:200]
        _complain(f"{_INTERNAL}: {type(error).__name__}: {said}", "DOVETAIL_DEBUG=1 shows where")
    return ExitCode.INTERNAL


def main() -> None:
    """Run the command line of this process and end it with the exit code."""
    streams.prepare()
    collect_seldom()
    try:
        with suppress(ValueError):  # not in the main thread
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = run()
        with suppress(ValueError):
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is said and done
    except KeyboardInterrupt:  # just before or after
        code = ExitCode.INTERRUPTED
    sys.exit(code)

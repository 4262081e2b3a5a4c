"""The exact model of the whole as a file for other solvers: MPS and LP as text, and CP-SAT's own format.

CP-SAT's format keeps rows under a literal as they are; the others have them in plain form.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dovetail.engine.solvers.cpsat import CpSat
from dovetail.model.formats import lp_text, mps_text
from dovetail.model.written import TooLargeToWrite, WrittenModel, written_model
from dovetail.objectives import sign_of
from dovetail.problem import compile_problem
from dovetail.rules import context_of
from dovetail.spec import Spec

__all__ = ["FORMATS", "TooLargeToWrite", "write_model"]


def write_model(spec: Spec, suffix: str) -> bytes:
    """Return the exact model of a Spec in the format of a suffix, one of `FORMATS`.

    Raises
    ------
    TooLargeToWrite
        Before anything is built, where it has too many counts.
    """
    return FORMATS[suffix](written_model(compile_problem(context_of(spec))))


def _binary(written: WrittenModel) -> bytes:
    return _exported(written, "model.pb")


def _exported(written: WrittenModel, file: str) -> bytes:
    """Return what CP-SAT writes; it tells by the ending whether text is asked for."""
    model = CpSat(written.model).native
    proto = model.proto
    proto.name = written.title
    for variable, name in zip(proto.variables, written.names, strict=True):
        variable.name = name
    for constraint, name in zip(proto.constraints, written.row_names, strict=True):
        constraint.name = name
    if written.objective is not None:
        _aim(proto.objective, written.objective.variable, -sign_of(written.objective.sense))
    with tempfile.TemporaryDirectory(prefix="dovetail-") as folder:
        path = Path(folder) / file
        model.export_to_file(str(path))
        return path.read_bytes()


def _aim(objective: Any, variable: int, sign: int) -> None:
    """Minimise `sign` times a variable, and have the solver tell the variable itself."""
    objective.vars.extend([variable])
    objective.coeffs.extend([sign])
    objective.scaling_factor = sign


FORMATS: Mapping[str, Callable[[WrittenModel], bytes]] = MappingProxyType(
    {
        ".pb": _binary,
        ".mps": lambda written: mps_text(written).encode("ascii"),
        ".lp": lambda written: lp_text(written).encode("ascii"),
    }
)

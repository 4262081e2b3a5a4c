"""Band by band beside what runs: room is made for what waits of a band before lower ones are let in.

What comes anew of lower bands takes the room that a few moves would make large enough for a higher one, and those who
would have to move have nowhere to go.
"""

from __future__ import annotations

from collections.abc import Callable

from dovetail.engine.construction.clearing import Clearing, makes_room_for
from dovetail.engine.construction.construct import construct, fill_band
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.holding import hold
from dovetail.model.legal import legalise
from dovetail.model.state import State
from dovetail.problem import Problem
from dovetail.progress import Stop


def outrun(problem: Problem, state: State) -> bool:
    """Tell whether anything waits that others make way for, while something of a lower band has come."""
    band_of = {shape.index: problem.spec.band_of(shape.workload) for shape in problem.shapes}
    came = [band_of[shape] for shape, count in state.admitted().items() if count > problem.running[shape]]
    if not came:
        return False
    field, lowest = Field(problem, state), min(came)
    above = (shape.index for shape in problem.shapes if makes_room_for(shape) and band_of[shape.index] > lowest)
    return any(field.wanted(shape) > 0 for shape in above)


def filled_by_bands(problem: Problem, bare: State, stop: Stop, over: Callable[[], bool]) -> State:
    """Return today's state with each band let in, and room made for what waits of it, before the next one.

    Parameters
    ----------
    bare : today's state, with nothing added.
    over : tells when time has run out: then bands are let in only.
    """
    clearing = Clearing.of(problem, bare, lambda: bool(stop) or over())
    outlooks = clearing.outlooks
    hold(outlooks, hard=True)
    for band in problem.spec.bands:
        fill_band(outlooks, band, stop)
        clearing.clear(band, lambda: bool(stop) or over())
    return legalise(problem, construct(problem, clearing.field.state(), stop))

"""What one replica asks for, and what it really uses (S2.2, S2.9)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from dovetail.build.cursor import Cursor, frozen
from dovetail.quantities import format_memory, format_milli, parse_cpu, parse_fraction, parse_gpus, parse_memory
from dovetail.spec import Observed, Request, Share
from dovetail.spec.workload import MILLI

_memory_wanted: Final = partial(parse_memory, rounding="up")


def read_request(here: Cursor) -> Request:
    """Return a request; faults go to the log."""
    given = [key for key in ("gpus", "share", "mig") if key in here.value]
    if len(given) > 1:
        message = f"'{given[0]}' and '{given[1]}' together: a replica asks for whole GPUs or for part of one"
        here[given[1]].fault("DT1510", message, of_key=True)
    share = here.get("share")
    return Request(
        cpu=here.amount("cpu", parse_cpu),
        memory=here.amount("memory", _memory_wanted),
        gpus=0 if share or "mig" in here.value else here.raw("gpus", 0),
        share=_share(share) if share else None,
        resources=frozen({name: amount for name, amount in here.raw("resources", {}).items() if amount}),
        mig="" if share else here.raw("mig", ""),
    )


def _share(here: Cursor) -> Share:
    memory = here.get("memory")
    return Share(
        compute=here["compute"].quantity(parse_fraction, 1),
        memory=memory.quantity(_memory_wanted, 0) if memory else None,
    )


def check_share(request: Cursor, share: Share, cards: Sequence[int]) -> None:
    """Refuse a share with more memory than any of the cards it may land on."""
    if share.memory and cards and share.memory > max(cards):
        most = format_memory(max(cards))
        message = f"a share of {format_memory(share.memory)}, and the largest accelerator it accepts has {most}"
        request["share"]["memory"].fault("DT1512", message)


def read_observed(here: Cursor | None, request: Request) -> Observed | None:
    """Return what a replica was seen to use, None where nothing is said."""
    if here is None:
        return None
    compute, memory = here.get("compute"), here.get("memory")
    used = compute.quantity(parse_gpus, 0) if compute else None
    most = MILLI * request.gpu_count
    if compute and used and used > most > 0:
        compute.fault("DT1508", f"{format_milli(used)} GPUs in use, and the replica is on {request.gpu_count}")
    return Observed(used, memory.quantity(_memory_wanted, 0) if memory else None)

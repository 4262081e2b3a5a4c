"""The table of exporters, in the order in which help shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dovetail.exporters.mig_parted import CONFIG_FILE, export_mig_parted, uncounted
from dovetail.exporters.ranks import RANKS_FILE, export_ranks
from dovetail.placement.layouts import declared_layouts
from dovetail.plan import Plan
from dovetail.spec import Spec


@dataclass(frozen=True, slots=True)
class Exporter:
    """One format that a plan can be written in.

    Parameters
    ----------
    name
        The word after ``dovetail export``.
    summary
        What it writes, in one line.
    main
        The file that stands for all where only one can be shown.
    run
        From a plan that is valid for a Spec, whose current state is that of today, to texts by file name.
    warn
        From the same to what is odd about carrying the plan out so, a sentence each.
    """

    name: str
    summary: str
    main: str
    run: Callable[[Spec, Plan], Mapping[str, str]]
    warn: Callable[[Spec, Plan], Sequence[str]] = lambda _spec, _plan: ()


EXPORTERS: tuple[Exporter, ...] = (
    Exporter(
        name="mig-parted",
        summary="GPU layouts as configurations of mig-parted, with each node's label and what to drain",
        main=CONFIG_FILE,
        run=lambda spec, plan: export_mig_parted(spec, plan.gpus, declared_layouts(spec)),
        warn=uncounted,
    ),
    Exporter(
        name="ranks",
        summary="ranks of gangs with their nodes, GPUs and domains, as a RankList for launchers",
        main=RANKS_FILE,
        run=export_ranks,
    ),
)
"""Every exporter; a new one is one module and one entry here."""

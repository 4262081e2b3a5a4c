"""Codes of plan files (DT2xxx) and of work that a plan does not admit (DT4xxx)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dovetail.faults.info import CodeInfo

PLAN_FILES: Final[Mapping[str, CodeInfo]] = {
    "DT2001": CodeInfo("not a plan", "The file holds no document of kind Plan, or more than that one document."),
    "DT2002": CodeInfo("replica placed twice", "Two rows, or a row and a range, place the same replica."),
    "DT2003": CodeInfo(
        "malformed replica",
        "A row's key is a replica `[namespace/]workload[.role]#index`, or a range `#first-last` that runs forwards, "
        "with indices without leading zeros.",
    ),
    "DT2004": CodeInfo("too many replicas", "The rows of a plan may place at most two million replicas."),
    "DT2005": CodeInfo(
        "GPU indices out of order", "The GPU indices of a row ascend, so that equal places are equal text."
    ),
    "DT2006": CodeInfo(
        "gap does not follow", "A tier's gap is |bound - value| / max(|bound|, |value|, 1), rounded up to six digits."
    ),
    "DT2007": CodeInfo("tier given twice", "Each tier of a plan is told once."),
    "DT2008": CodeInfo(
        "not a certificate",
        "The file holds no document of kind Certificate, or one whose trees are none: a node of a tree is a branch "
        "or a leaf, and each tier has one proof.",
    ),
    "DT2009": CodeInfo(
        "instance not told in full", "A MIG instance is on one GPU, and is told once, with its start position."
    ),
    "DT2010": CodeInfo(
        "mode not told in full", "A GPU in MIG mode has instances; one that clients share says how many there may be."
    ),
    "DT2011": CodeInfo("figure too large", "A figure of a plan has at most 100 digits before its point."),
    "DT2012": CodeInfo("rate too fine", "A rate of a plan has at most three digits after its point."),
}

REASONS: Final[Mapping[str, CodeInfo]] = {
    "DT4100": CodeInfo(
        "the search found no place",
        "The plan leaves this work out, and nothing is proved about why. Unless the plan is proved to be the best, a "
        "longer search may find a place for it. Codes after this one say what stands in its way in this plan.",
    ),
    "DT4101": CodeInfo(
        "not enough free GPUs of an acceptable kind",
        "All nodes that this work may use have, together, fewer free GPUs than one replica asks for.",
    ),
    "DT4102": CodeInfo(
        "no single node has the GPUs free",
        "Enough GPUs are free in total, but on no one node; or no node has that many GPUs at all.",
    ),
    "DT4103": CodeInfo(
        "not enough cpu where GPUs are free", "No node that has the GPUs this work asks for has the cpu free as well."
    ),
    "DT4104": CodeInfo(
        "not enough memory or other resources",
        "No node that has the GPUs and cpu this work asks for has the memory and the other resources free as well.",
    ),
    "DT4105": CodeInfo(
        "kept away by taints, cordons or failed nodes",
        "Nodes of a fitting make exist, but each is cordoned or down, has failed GPUs, or has a taint that this work "
        "does not tolerate.",
    ),
    "DT4106": CodeInfo(
        "a policy forbids it",
        "Hard policies close every node that could host it, whatever is free there; or there is room, and they close "
        "or forbid every place that has it, or the amount as such (a quota), or admit it only with other work, which "
        "is left out (an `admission` with `orNone`).",
    ),
    "DT4107": CodeInfo(
        "outranked by higher priority",
        "Work of a higher priority runs on nodes that this work may use, and no room is left there.",
    ),
    "DT4108": CodeInfo(
        "only some of the replicas fit",
        "The workload runs with all its replicas, with its smallest number of them or a step more, or not at all; "
        "there is room for fewer, counted on one kind of accelerator where `mix` does not let it be on several.",
    ),
    "DT4109": CodeInfo(
        "no node can hold a share or an instance",
        "No node of an acceptable kind can hold this share or instance, were it empty: its sharing mechanism cannot, "
        "the modes that could are ruled out by policies or by what the work demands, its GPUs cannot be cut into an "
        "instance for it, or the service does not say what it sustains there.",
    ),
    "DT4110": CodeInfo(
        "it would take more moves than allowed",
        "All that the plan admits could stay admitted and this work join it, if more running replicas moved. A hard "
        "policy of the rule `move`, `--max-moves` or `--pin` does not allow so many moves, or these ones.",
    ),
    "DT4111": CodeInfo(
        "no single GPU has that much free",
        "No single GPU can give this share or instance what it asks for, however much is free on all of them: too "
        "little is free on each, or what is free is set, cut or shared in a way that does not serve it; where the "
        "share names its memory, perhaps no card is that large.",
    ),
    "DT4112": CodeInfo(
        "room is held free",
        "There would be room on nodes it may use, and policies of the rule `reserve` hold it free.",
    ),
    "DT4113": CodeInfo(
        "not enough room together",
        "There is room for the replicas, but not in one domain as the workload demands, or not for whole groups.",
    ),
    "DT4114": CodeInfo(
        "no single island or socket has the GPUs free",
        "Some node has enough GPUs free, but in no one NVLink island, or at no one socket, as the work demands; or "
        "no island or socket is that large. "
        "Where it can do without, `topology: {acrossIslands: true}` says so.",
    ),
    "DT4115": CodeInfo(
        "what runs of it may not move",
        "Some of its replicas run, and as it is not movable they would have to stay where they are. The plan has no "
        "place for the others beside them, and free GPUs, cpu and memory for all of it, were it to start anew. A "
        "gang is movable with `checkpointEvery`, or where it says `movable: true`.",
    ),
}

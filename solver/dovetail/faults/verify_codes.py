"""Codes of what `verify` finds broken (DT3xxx), one per check."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dovetail.faults.info import CodeInfo

VERIFICATION: Final[Mapping[str, CodeInfo]] = {
    "DT3001": CodeInfo("plan is stale", "The plan was made for documents that meant something else. Plan again."),
    "DT3002": CodeInfo(
        "outcome does not fit its plan",
        "Only an optimal or feasible outcome comes with places, tiers and figures, and only an infeasible one with a "
        "conflict: of hard policies that do not all hold where nothing is placed.",
    ),
    "DT3101": CodeInfo("replica does not exist", "A row places a replica that no workload declares."),
    "DT3102": CodeInfo("node does not exist", "A row names a node that the cluster does not have."),
    "DT3103": CodeInfo("GPU does not exist", "A row names GPU indices that the node does not have, or one twice."),
    "DT3104": CodeInfo("place is not healthy", "A row names a node that is down or a GPU that has failed."),
    "DT3105": CodeInfo("wrong number of GPUs", "A replica has more or fewer GPUs than it asks for."),
    "DT3201": CodeInfo("cpu exceeded", "The replicas of a node ask for more cpu than it has."),
    "DT3202": CodeInfo("memory exceeded", "The replicas of a node ask for more memory than it has."),
    "DT3203": CodeInfo("resource exceeded", "The replicas of a node ask for more of a resource than it has."),
    "DT3204": CodeInfo("whole GPU given twice", "A GPU that one replica has as a whole holds another one."),
    "DT3205": CodeInfo("GPU compute exceeded", "The shares on a GPU take more than all of it."),
    "DT3206": CodeInfo("GPU memory exceeded", "The shares on a GPU take more memory than it has."),
    "DT3207": CodeInfo(
        "instance does not fit", "A replica is on a MIG instance of another profile, or of less than it asks for."
    ),
    "DT3208": CodeInfo(
        "instance not there or taken twice",
        "An instance in use is not in its GPU's layout, or holds several replicas.",
    ),
    "DT3209": CodeInfo("layout is not legal", "A MIG layout that the plan tells cannot be made on that GPU."),
    "DT3210": CodeInfo("modes mixed on a GPU", "A GPU in MIG mode holds work that is on no instance of it."),
    "DT3211": CodeInfo(
        "too many clients of a GPU", "A GPU has more clients than it is set to, or one gets less than it asks for."
    ),
    "DT3212": CodeInfo(
        "mode that cannot be", "GPUs are told in a mode that their node does not have, or not for all of them alike."
    ),
    "DT3301": CodeInfo("accelerator not accepted", "A replica is on an accelerator that its workload does not list."),
    "DT3302": CodeInfo("node cannot hold shares", "A share is on a node whose sharing mechanism cannot hold it."),
    "DT3305": CodeInfo("no rate here", "A replica of a service is where its table has no rate for it."),
    "DT3303": CodeInfo("taint not tolerated", "A replica is on a node with a taint that it does not tolerate."),
    "DT3304": CodeInfo("cordoned node", "A cordoned node takes nothing that does not run there today."),
    "DT3306": CodeInfo(
        "GPUs apart", "The GPUs of a replica are in no one island or socket, and it does not run there today."
    ),
    "DT3401": CodeInfo("gang torn apart", "An atomic workload has some of its replicas, and neither all nor none."),
    "DT3402": CodeInfo("too few replicas", "A workload has fewer replicas than its smallest number, and not none."),
    "DT3403": CodeInfo("accelerators mixed", "A gang mixes accelerators that its `mix` keeps apart."),
    "DT3404": CodeInfo(
        "width not allowed", "An elastic role has neither its least number of replicas nor steps more."
    ),
    "DT3405": CodeInfo(
        "too few groups", "Of groups that may be there in part fewer are there than are worth admitting."
    ),
    "DT3406": CodeInfo(
        "ranks astray",
        "Replicas of a gang that share a domain do not follow each other, though nobody of it runs today.",
    ),
    "DT3501": CodeInfo("protected work evicted", "Work that runs today and is not preemptible is not admitted."),
    "DT3502": CodeInfo("fixed work moved", "Work that may not be moved is on another place than today."),
    "DT3503": CodeInfo(
        "preemptible work evicted for nothing", "Preemptible work goes only where a strictly higher priority gains."
    ),
    "DT3504": CodeInfo(
        "admitted out of turn",
        "Of a role's replicas those that run come before those whose place is gone or that wait.",
    ),
    "DT3601": CodeInfo("hard policy broken", "A hard policy is broken beyond what today's state excuses."),
    "DT3602": CodeInfo("policy result is wrong", "The plan tells another result of a policy than its rule gives."),
    "DT3603": CodeInfo(
        "held places are wrong", "What the plan says is held free does not count for its policy, or is left out."
    ),
    "DT3604": CodeInfo(
        "recovery does not hold",
        "A row of a recovery restarts what was not lost, or where there is no room for it then.",
    ),
    "DT3701": CodeInfo(
        "tiers are not the objective's", "The plan's tiers differ from those that the documents ask for."
    ),
    "DT3702": CodeInfo("tier value is wrong", "A tier claims another value than the placements give."),
    "DT3703": CodeInfo("bound is impossible", "A bound that nothing can beat is beaten by the plan itself."),
    "DT3704": CodeInfo(
        "proof is wrong", "A bound does not say what it rests on, or is not the arithmetic it claims."
    ),
    "DT3705": CodeInfo("wrong assumption", "A bound assumes values of earlier tiers that the plan does not have."),
    "DT3706": CodeInfo(
        "not as optimal as it says",
        "A plan is called optimal while a tier has a gap, or feasible while none has, or a search is told as stopped "
        "early that came to its end.",
    ),
    "DT3707": CodeInfo(
        "second opinion differs",
        "Another engine has an optimum that the plan says cannot be, or the plan tells of other tiers, of more or of "
        "fewer than were compared.",
    ),
    "DT3708": CodeInfo(
        "certificate does not show it",
        "A bound is said to rest on a certificate that is missing, belongs to another plan, or does not prove it.",
    ),
    "DT3801": CodeInfo("summary is wrong", "A figure of the summary is not what the placements give."),
    "DT3802": CodeInfo(
        "admission is wrong", "The plan tells other counts or reasons of workloads left out than it has."
    ),
    "DT3805": CodeInfo("broken promise told wrongly", "A workload misses more or less of its promise than is told."),
    "DT3803": CodeInfo(
        "layouts that nobody asked for",
        "The plan tells other MIG layouts than today's with what its places ask for.",
    ),
    "DT3804": CodeInfo(
        "modes that nobody asked for", "The plan tells other modes of shared GPUs than places and today's ask for."
    ),
}

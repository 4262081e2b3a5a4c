"""Checks of GPUs that are shared by equal parts: the modes that a plan tells, and who gets what in them (S3.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dovetail.quantities import format_milli
from dovetail.spec import EqualParts, Setting
from dovetail.spec.workload import MILLI
from dovetail.verify.case import Case, Row, untold
from dovetail.verify.model import Finding, Found

_ALONE = Setting("whole", 1)


def shared_by(case: Case) -> Mapping[str, Setting]:
    """Return how the GPUs are shared that rows name, as far as rows make sense."""
    sound = (row for row in case.rows if not row.place.instance and row.request.gpu_count == len(row.place.gpus))
    there = {row.replica: row.place for row in sound if set(row.place.gpus) <= set(range(row.node.gpus))}
    return case.context.view(there).shared


def clients(case: Case) -> Iterator[Finding]:
    """A GPU has no more clients than it is set to, and each gets the compute and memory that it asks for (S2.7)."""
    for node, index, rows in case.gpus():
        shares = [row for row in rows if row.request.share and not row.place.instance]
        if node.mechanism == "fraction" or node.sharing is None or not shares:
            continue
        setting = case.plan.shared.get(f"{node.name}/{index}", _ALONE)
        if len(shares) > setting.clients:
            yield Finding(f"{node.name}/{index}", f"has {len(shares)} clients in mode {_shown(setting)}")
        for row in shares:
            if (wrong := _lacking(case, row, setting)) is not None:
                yield Finding(str(row.replica), f"{wrong} in mode {_shown(setting)}")


def _lacking(case: Case, row: Row, setting: Setting) -> str | None:
    share, card = row.request.share, case.spec.accelerators[row.node.accelerator or ""].memory
    if share is None:
        return None
    if share.bars(setting.mode, row.node.accelerator):
        return "may not be"
    sharing = row.node.sharing
    ratios = {"mps": sharing.mps_oversubscription, "time-slice": sharing.oversubscription} if sharing else {}
    promised = ratios.get(setting.mode, MILLI)
    if share.compute * setting.clients > promised:
        return f"gets less than {share.compute} milli-GPU"
    asked = share.compute * card if share.memory is None else share.memory * MILLI
    if asked * setting.clients > card * MILLI:
        return f"gets less than {format_milli(asked)} MiB"
    return None


def settings(case: Case) -> Iterator[Finding]:
    """GPUs that clients share can be set so, by the device plugin all of a node alike, and nobody has one whole."""
    first: dict[str, Setting] = {}
    for gpu, setting in sorted(case.plan.shared.items()):
        name, _, index = gpu.rpartition("/")
        node = case.spec.cluster.by_name.get(name)
        if node is None or int(index) not in node.healthy_gpus():
            yield Finding(gpu, "the cluster has no such GPU in good health")
        elif node.mechanism == "fraction" or node.sharing is None:
            yield Finding(gpu, f"is told as {_shown(setting)}, and its node does not share GPUs by equal parts")
        elif (may := _may(node.sharing, setting)) is not None:
            yield Finding(gpu, f"is told as {_shown(setting)}, and {may}")
        elif node.mechanism == "devicePlugin" and first.setdefault(name, setting) != setting:
            yield Finding(gpu, f"is in mode {_shown(setting)}, another GPU of its node in {_shown(first[name])}")
        if gpu in case.plan.gpus:
            yield Finding(gpu, "is told in two modes")
    yield from _left_out(case, first)
    yield from _whole(case, first)


def _left_out(case: Case, shared: dict[str, Setting]) -> Iterator[Finding]:
    """Yield GPUs of which nothing is told, though the device plugin sets all of their node that are not cut alike."""
    told = {*case.plan.shared, *case.plan.gpus}
    for name, setting in shared.items():
        for index in case.spec.cluster.by_name[name].healthy_gpus():
            if (gpu := f"{name}/{index}") not in told:
                yield Finding(gpu, f"is told in no mode, another GPU of its node in {_shown(setting)}")


def _whole(case: Case, shared: dict[str, Setting]) -> Iterator[Finding]:
    told = {*shared, *case.plan.shared}
    for row in (row for row in case.rows if row.request.gpus):
        pooled = row.node.mechanism == "devicePlugin"
        if row.node.name in shared if pooled else not told.isdisjoint(row.place.gpu_names):
            yield Finding(str(row.replica), f"has whole GPUs of node {row.node.name}, which clients share")


def _may(sharing: EqualParts, setting: Setting) -> str | None:
    """Return why GPUs cannot be set so, None where they can."""
    most = {"mps": sharing.mps, "time-slice": sharing.time_slicing}.get(setting.mode, 0)
    if setting.clients > most:
        return f"there may be {most} clients"
    wrong = sharing.parts not in (None, setting.clients)
    return f"there are {sharing.parts} clients wherever GPUs are shared" if wrong else None


def unasked(case: Case) -> Iterator[Found]:
    """Modes are today's where that is enough, else the first that will do for those who are there (S5.3)."""
    yield from untold(case, case.plan.shared, case.by_places.shared if case.has_plan else {}, _ALONE, _shown)


def _shown(setting: Setting) -> str:
    return setting.mode if setting == _ALONE else f"{setting.mode} with {setting.clients} clients"

"""Checks of MIG: instances fit what runs on them, layouts are legal, and change no more than was asked for (S3.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dovetail.mig import legal, parse_instance
from dovetail.spec import Accelerator
from dovetail.spec.workload import MILLI
from dovetail.verify.case import Case, Row, untold
from dovetail.verify.model import Finding, Found


def instances(case: Case) -> Iterator[Finding]:
    """A MIG request is on an instance of its profile, a share on one that offers its peak and memory (S3.4)."""
    for row in case.rows:
        if row.place.instance:
            wrong = _misfit(case, row)
        else:
            wrong = f"asks for an instance {row.request.mig} and has none" if row.request.mig else None
        if wrong is not None:
            yield Finding(str(row.replica), wrong)


def _misfit(case: Case, row: Row) -> str | None:
    card, instance = _card(case, row.node.accelerator), parse_instance(row.place.instance)
    profile = card.mig.by_name.get(instance.profile) if card and card.mig else None
    if card is None or profile is None:
        return f"a GPU of {row.node.name} has no profile {instance.profile}"
    share = row.request.share
    if share is None:
        return None if row.request.mig == profile.name else f"does not ask for an instance {profile.name}"
    if "mig" not in share.modes:
        return "is a share that may not be on MIG"
    memory = share.compute * card.memory if share.memory is None else MILLI * share.memory
    if max(share.compute, share.peak) > profile.milli or memory > MILLI * profile.memory:
        return f"asks for more than {profile.name} offers: {profile.milli} milli-GPU and {profile.memory} MiB"
    return None


def _card(case: Case, name: str | None) -> Accelerator | None:
    return case.spec.accelerators.get(name) if name else None


def tenants(case: Case) -> Iterator[Finding]:
    """Every instance in use is one of its GPU's layout and holds one replica."""
    held = Counter((row.place.gpu_names[0], row.place.instance) for row in case.rows if row.place.instance)
    for (gpu, instance), count in sorted(held.items()):
        if parse_instance(instance) not in case.plan.gpus.get(gpu, ()):
            yield Finding(gpu, f"holds work on {instance}, which its layout does not have")
        if count > 1:
            yield Finding(gpu, f"{instance} holds {count} replicas")


def layouts(case: Case) -> Iterator[Finding]:
    """Every layout is on a GPU that exists and is legal on that product: profiles, starts, slices, engines (S3.3)."""
    for gpu, layout in sorted(case.plan.gpus.items()):
        name, _, index = gpu.rpartition("/")
        node = case.spec.cluster.by_name.get(name)
        card = _card(case, node.accelerator if node else None)
        if node is None or int(index) >= node.gpus:
            yield Finding(gpu, "the cluster has no such GPU")
        elif card is None or card.mig is None:
            yield Finding(gpu, f"{node.accelerator} cannot be cut")
        elif (wrong := legal(card.mig, layout)) is not None:
            yield Finding(gpu, wrong)


def modes(case: Case) -> Iterator[Finding]:
    """A GPU in MIG mode holds nothing but instances (S3.2)."""
    for node, index, rows in case.gpus():
        gpu = f"{node.name}/{index}"
        outside = [row for row in rows if not row.place.instance]
        if outside and (gpu in case.plan.gpus or len(outside) < len(rows)):
            yield Finding(gpu, f"is in MIG mode, and {outside[0].replica} is on no instance of it")


def unasked(case: Case) -> Iterator[Found]:
    """Layouts are today's, but for what the places ask for (S5.3, S5.4)."""
    yield from untold(case, case.plan.gpus, case.by_places.layouts if case.has_plan else {}, None, _shown)


def _shown(layout: object) -> str:
    return ", ".join(map(str, layout)) or "no instances" if isinstance(layout, tuple) else "not in MIG mode"

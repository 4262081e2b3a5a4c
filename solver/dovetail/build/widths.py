"""What elastic roles are worth at each of their widths (S2.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from dovetail.build.cursor import Cursor
from dovetail.quantities import parse_milli
from dovetail.spec import Role, Workload
from dovetail.spec.workload import MILLI


def with_worths(workload: Workload, here: Cursor) -> Workload:
    """Return a workload whose elastic roles know what each width is worth; faults go to the log."""
    owners = {each.raw("name"): each for each in here.items("roles")} or {"": here}
    return replace(workload, roles=tuple(_with_worths(role, owners[role.name]) for role in workload.roles))


def _with_worths(role: Role, owner: Cursor) -> Role:
    place = owner.get("replicas")
    if place is None or isinstance(place.value, int) or not {"values", "throughput"} & place.value.keys():
        return role
    if "values" in place.value and "throughput" in place.value:
        place["throughput"].fault("DT1110", "'throughput' beside 'values'", "leave one of them out", of_key=True)
        return role
    key = "values" if "values" in place.value else "throughput"
    before = place.log.size
    worths = [_worth(each, role) for each in place.items(key)]
    _check(place, key, role, worths)
    return replace(role, worths=tuple(worths)) if place.log.size == before else role


def _worth(each: Cursor, role: Role) -> int:
    if each.path[-2] == "values":
        return int(each.value)
    return role.value * each.quantity(parse_milli, 0) // MILLI


def _check(place: Cursor, key: str, role: Role, worths: Sequence[int]) -> None:
    """Refuse a list that does not have one entry per width, or that falls."""
    least = role.least or 0
    widths = [*range(least, role.replicas + 1, role.step)]
    if not least:
        place["min"].fault("DT1545", "what no replica at all is worth", "let 'min' be 1 or more")
    elif len(worths) != len(widths):
        told = ", ".join(map(str, widths[:4])) + (", ..." if len(widths) > 4 else "")
        message = f"{len(worths)} entries, and there are {len(widths)} widths"
        place[key].fault("DT1545", message, f"one for each of {told} replicas", of_key=True)
    for index, (narrow, wide) in enumerate(pairwise(worths), start=1):
        if wide < narrow:
            place.item(key, index).fault("DT1545", "more replicas are worth less", "values may stay, and never fall")

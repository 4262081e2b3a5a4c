"""How near the replicas of a workload must be (S2.5), and how many of an elastic one there are (S2.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from dovetail.build.cursor import Cursor, frozen
from dovetail.placement.nested import every_nest
from dovetail.spec import Group, Role, Topology
from dovetail.spec.inside import INNER_LEVELS, ISLAND_LEVEL

Levels = Sequence[str]  # of the cluster, outermost first


def read_topology(here: Cursor, roles: Sequence[Role], levels: Levels) -> Topology | None:
    """Return what a workload says of topology, None where it says nothing; faults go to the log.

    Of groups that are at fault nothing is kept: they need not nest.
    """
    place = here.get("topology")
    if place is None:
        return None
    before = place.log.size
    groups = tuple(_group(each, roles, levels) for each in place.items("groups"))
    within, prefer = _level(place.get("within"), levels), _level(place.get("prefer"), levels)
    found = Topology(within, prefer, groups, across=place.raw("acrossIslands", False))
    if found.across and ISLAND_LEVEL in {*found.levels, prefer}:
        message = "GPUs of a replica may be across islands, and one island is asked for"
        place["acrossIslands"].fault("DT1522", message, "leave one of them out", of_key=True)
    if place.log.size == before:
        _check_levels(place, found, levels)
        _check_groups(place, groups, roles, levels)
    return found if place.log.size == before else replace(found, groups=())


def _level(here: Cursor | None, levels: Levels) -> str | None:
    if here is None:
        return None
    return here.refer("DT1306", "level", (*levels, *INNER_LEVELS))


def _group(here: Cursor, roles: Sequence[Role], levels: Levels) -> Group:
    _check_members(here, {role.name for role in roles})
    return Group(
        within=_level(here["within"], levels) or "",
        of=here.raw("of"),
        roles=frozen(here.raw("roles", {})),
        minimum=here.raw("minimum"),
    )


def _check_members(here: Cursor, names: set[str]) -> None:
    """Refuse a group that does not say how many replicas of which role it has."""
    if ("of" in here.value) == ("roles" in here.value):
        here.fault("DT1520", "a group gives either 'of' or 'roles'", "say how many replicas a group has")
    elif "of" in here.value and names != {""}:
        names_told = ", ".join(sorted(names))
        hint = f"give 'roles' with how many of each of {names_told}"
        here["of"].fault("DT1520", "'of' counts replicas of a workload without roles", hint, of_key=True)
    for name, count in here.fields("roles"):
        if name not in names:
            count.fault("DT1521", f"there is no role '{name}'", here.log.suggest(name, names - {""}), of_key=True)


def _check_levels(here: Cursor, found: Topology, levels: Levels) -> None:
    """Refuse a preferred level, or one of groups, that is not inside what is demanded of all."""
    if found.within is None:
        return
    if found.prefer is not None and not _inside(found.prefer, found.within, levels):
        message = f"'{found.prefer}' is preferred, and one {found.within} is demanded, which is as near or nearer"
        here["prefer"].fault("DT1522", message, f"prefer a level inside {found.within}")
    for position, group in enumerate(found.groups):
        if not _inside(group.within, found.within, levels):
            message = f"groups within one {group.within}, and all replicas are within one {found.within} anyway"
            here.item("groups", position)["within"].fault("DT1522", message, f"name a level inside {found.within}")


def _inside(inner: str, outer: str, levels: Levels) -> bool:
    """Tell whether domains of a level may lie in those of another; islands may hold sockets and sockets islands."""
    if outer in INNER_LEVELS:
        return inner in INNER_LEVELS and inner != outer
    return inner in INNER_LEVELS or levels.index(inner) > levels.index(outer)


def _check_groups(here: Cursor, groups: Sequence[Group], roles: Sequence[Role], levels: Levels) -> None:
    """Refuse replicas that do not make whole groups, and groups that do not nest (S2.5)."""
    for position, group in enumerate(groups):
        _check_division(here.item("groups", position), group, roles)
    for (_, outer), (position, inner) in combinations(enumerate(groups), 2):
        if outer.sizes.keys() & inner.sizes.keys():
            _check_nesting(here.item("groups", position), outer, inner, levels)


def _check_division(here: Cursor, group: Group, roles: Sequence[Role]) -> None:
    place = here["of"] if group.of is not None else here["roles"]
    for role in roles:
        size = group.sizes.get(role.name)
        if size is None:
            continue
        uneven = next((count for count in _counts(role) if count % size), None)
        if uneven is not None:
            what = f"{role.name}: " if role.name else ""
            step = uneven not in (role.replicas, role.least)
            number = f"steps of {uneven} replicas" if step else f"{uneven} replicas"
            message = f"{what}{number} are no whole number of groups of {size}"
            place.fault("DT1523", message, f"make {'the step' if step else 'it'} a multiple of {size}")
            return
        if group.minimum is not None and group.minimum > role.replicas // size:
            message = f"at least {group.minimum} groups, and there are {role.replicas // size}"
            here["minimum"].fault("DT1525", message)
            return
    numbers = group.numbers({role.name: role.replicas for role in roles})
    if len(numbers) > 1:
        told = " and ".join(map(str, numbers))
        place.fault("DT1523", f"the replicas of the roles make {told} groups", "as many groups of each role")


def _counts(role: Role) -> tuple[int, ...]:
    """Return the numbers of replicas that say at which widths a role is admitted."""
    return (role.replicas, role.least or 0, *([role.step] if role.step > 1 else []))


def _check_nesting(here: Cursor, outer: Group, inner: Group, levels: Levels) -> None:
    if not _inside(inner.within, outer.within, levels):
        message = f"a group within one {inner.within} is listed after, so inside, one within one {outer.within}"
        here["within"].fault(
            "DT1522", message, f"list groups outermost first; levels are {', '.join([*levels, *INNER_LEVELS])}"
        )
        return
    place = here["of"] if inner.of is not None else here["roles"]
    ratios = set()
    for role, size in inner.sizes.items():
        around = outer.sizes.get(role, 0)
        if around % size or not around:
            message = f"a group of {size} does not divide the one of {around} around it"
            place.fault("DT1524", message, "make the outer size a multiple of the inner one")
            return
        ratios.add(around // size)
    if len(ratios) > 1:
        place.fault("DT1524", "the roles of the inner group divide those of the outer one into unlike numbers")
    elif inner.minimum is not None and ratios and inner.minimum > min(ratios):
        message = f"at least {inner.minimum} groups, and {min(ratios)} go into the group around them"
        here["minimum"].fault("DT1525", message)


def widths(here: Cursor) -> tuple[int, int | None, int]:
    """Return the most, the least and the step of a role's replicas; the least is None where it is not elastic."""
    place = here.get("replicas")
    if place is None or isinstance(place.value, int):
        return (1 if place is None else int(place.value)), None, 1
    most, least, step = place.raw("max"), place.raw("min"), place.raw("step", 1)
    if least > most:
        place["min"].fault("DT1525", f"at least {least} replicas, and at most {most}", "min is at most max")
    elif (most - least) % step:
        message = f"from {least} replicas on, steps of {step} do not reach {most}"
        place["max"].fault("DT1525", message, f"the nearest that is reached is {most - (most - least) % step}")
    return most, least, step


def with_floors(here: Cursor, roles: tuple[Role, ...], topology: Topology | None, atomic: bool) -> tuple[Role, ...]:
    """Return roles with the floors and steps that one another and groups give them.

    Where any role of an atomic workload is elastic, the others are all there or none.
    """
    nests = {role: nest for nest in (topology.nests if topology else ()) for role in nest.group.sizes}
    _check_empty(here, topology)
    found = []
    for role in roles:
        nest = nests.get(role.name)
        least = None if nest is None else nest.floor(role.name, role.replicas, atomic)
        if nest is not None and role.elastic and (least is not None or nest.loose):
            message = "'minimum' of groups beside replicas {min, max}: the least is said twice"
            here["topology"].fault("DT1526", message, "leave one of them out")
        elif nest is not None and least is not None:
            role = replace(role, least=least, step=nest.unit(role.name))
        elif nest is not None and role.elastic and role.step == 1:
            role = replace(role, step=nest.group.sizes[role.name])
        found.append(role)
    if atomic and any(role.elastic for role in found):
        found = [role if role.elastic else replace(role, least=role.replicas) for role in found]
    return tuple(found)


def _check_empty(here: Cursor, topology: Topology | None) -> None:
    """Refuse minima of groups by which the one around them could be there with nobody in it."""
    for nest in every_nest(topology.nests) if topology is not None else ():
        none = next((each.group for each in nest.counted_inner if each.group.minimum == 0), None)
        if topology is not None and none is not None and not any(map(nest.fewest, nest.group.sizes)):
            message = f"of groups within one {nest.group.within} none needs anybody: one could be there empty"
            place = here["topology"].item("groups", topology.groups.index(none))["minimum"]
            place.fault("DT1525", message, "give 1: a group is there as soon as anybody of it is")

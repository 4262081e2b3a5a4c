"""MIG in documents: tables of geometry, and what is said of profiles and layouts (S1.4, S3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import islice
from typing import Final

from dovetail.build.cursor import Cursor
from dovetail.catalogue import offered
from dovetail.mig import Geometry, Instance, Profile, affordable, arrange, legal, parse_instance
from dovetail.quantities import parse_memory
from dovetail.spec import Accelerator

_memory_offered: Final = partial(parse_memory, rounding="down")
_MOST_LAYOUTS: Final = 1_000  # multisets of profiles; the products that are built in have 128 at the most
_TABLE: Final = ("memorySlices", "computeSlices", "profiles")
_DRAWN: Final = "dovetail accelerators %s draws the layouts there are"
_OPT_IN: Final = "{kind: Accelerator, metadata: {name: %s}, spec: {mig: {allowUnverified: true}}} opts in"


def read_geometry(name: str, here: Cursor | None, built_in: Geometry | None) -> Geometry | None:
    """Return what an Accelerator document says of MIG, which goes before the catalogue; None if unusable.

    Parameters
    ----------
    name : the accelerator.
    here : its field `mig`, None where it is left out.
    built_in : what the catalogue has for it.
    """
    if here is None:
        return usable(built_in)
    written = here.value.keys() - {"allowUnverified"}
    if "allowUnverified" not in here.value:
        return _own(name, here)
    if written:
        message = "a table of its own needs no 'allowUnverified', which speaks of the built-in one"
        here["allowUnverified"].fault("DT1110", message, of_key=True)
    elif built_in is None or not built_in.known:
        what = "no MIG table" if built_in is None else "no placements of MIG instances"
        message = f"the catalogue has {what} for '{name}' that could be allowed"
        here["allowUnverified"].fault("DT1422", message, "give 'profiles', or import an observed table", of_key=True)
    return built_in if here.raw("allowUnverified") else usable(built_in)


def usable(geometry: Geometry | None) -> Geometry | None:
    """Return a geometry that may be planned with unasked: one that somebody has verified (S1.4)."""
    return geometry if geometry is not None and geometry.known and geometry.verified else None


def _own(name: str, here: Cursor) -> Geometry | None:
    """Return the table of a document."""
    missing = [key for key in _TABLE if key not in here.value]
    if missing:
        here.fault("DT1110", f"a MIG table needs '{missing[0]}' too")
        return None
    before = here.log.size
    geometry = Geometry(
        product=name,
        axis=here.raw("memorySlices"),
        compute=here.raw("computeSlices"),
        engines=dict(here.raw("engines", {})),
        profiles=tuple(_profile(profile, here, one) for profile, one in here.fields("profiles")),
        source="document",
        mode_toggle_needs_reset=here.raw("modeToggleNeedsReset", False),
    )
    if here.log.size == before and sum(1 for _ in islice(affordable(geometry), _MOST_LAYOUTS + 1)) > _MOST_LAYOUTS:
        message = f"a GPU of this table could be cut in more than {_MOST_LAYOUTS:,} ways, positions not counted"
        hint = "list what the driver tells of the product: the most instances of each profile, and shared engines"
        here["profiles"].fault("DT1436", message, hint, of_key=True)
        return None
    return geometry


def _profile(name: str, table: Cursor, here: Cursor) -> Profile:
    compute, size, sms = here.raw("computeSlices"), here.raw("memorySlices"), here.raw("sms")
    whole = table.raw("computeSlices")
    _check_profile(name, table, here)
    return Profile(
        name=name,
        compute=compute,
        size=size,
        memory=here["memory"].quantity(_memory_offered, 1),
        milli=min(1000, offered(compute, whole, sms, table.raw("sms"))),
        starts=tuple(sorted(here.raw("starts"))),
        maximum=here.raw("maxInstances"),
        engines=dict(here.raw("engines", {})),
        sms=sms,
        gi_profile_id=here.raw("id"),
    )


def _check_profile(name: str, table: Cursor, here: Cursor) -> None:
    """Refuse a profile that cannot be part of a GPU of its table."""
    for key, what in (("computeSlices", "compute slices"), ("memorySlices", "memory slices"), ("sms", "SMs")):
        most = table.raw(key)
        if most is not None and here.raw(key, 0) > most:
            here[key].fault("DT1421", f"{name} takes {here.raw(key)} {what}, and the GPU has {most}")
    for start in here.items("starts"):
        end = start.value + here.raw("memorySlices")
        if end > table.raw("memorySlices"):
            message = f"{name} at {start.value} would end at memory slice {end - 1}"
            start.fault("DT1421", f"{message}, and the last one is {table.raw('memorySlices') - 1}")
    for kind, number in here.fields("engines"):
        has = table.raw("engines", {}).get(kind, 0)
        if number.value > has:
            number.fault("DT1421", f"{name} takes {number.value} engines '{kind}', and the GPU has {has}")


def check_profile(here: Cursor, accepted: Iterable[Accelerator], held_back: Mapping[str, Geometry]) -> None:
    """Refuse a profile that none of the accelerators has on which its instance may be made.

    Parameters
    ----------
    here : where the name of the profile stands.
    accepted : the accelerators that its workload accepts.
    held_back : geometries that nobody has verified and no document allows, by accelerator.
    """
    name, cards = here.value, tuple(accepted)
    if any(card.mig is not None and name in card.mig.by_name for card in cards):
        return
    for card in cards:
        if card.name in held_back and name in held_back[card.name].by_name:
            _refuse_unverified(here, card.name)
            return
    known = sorted({profile.name for card in cards if card.mig is not None for profile in card.mig.profiles})
    whose = f"'{cards[0].name}'" if len(cards) == 1 else "any accelerator that it accepts"
    here.fault("DT1423", f"there is no MIG profile '{name}' on {whose}", _suggested(here, name, known))


def _refuse_unverified(here: Cursor, name: str) -> None:
    message = f"nobody has verified how MIG instances are placed on '{name}'"
    here.fault("DT1422", message, _OPT_IN % name)


def _suggested(here: Cursor, name: str, known: Iterable[str]) -> str | None:
    """Return a hint that names a profile of as many compute slices, else one that is spelt alike."""
    listed = tuple(known)
    if not listed:
        return "it cannot be cut by MIG"
    alike = [one for one in listed if one.partition(".")[0] == name.partition(".")[0]]
    return here.log.suggest(name, alike) or here.log.suggest(name, listed) or f"it has {', '.join(listed)}"


def read_layout(
    items: Iterable[Cursor], accelerator: Accelerator | None, held_back: Mapping[str, Geometry]
) -> tuple[Instance, ...] | None:
    """Return the instances of one GPU that a document lists, ascending by start; None after a fault.

    An instance without a start is put beside those with one, as `arrange` does it: what tools tell that know counts
    alone, such as mig-parted.

    Parameters
    ----------
    items : where the instances stand.
    accelerator : what the GPU is, None where that is refused elsewhere.
    """
    listed = tuple(items)
    if accelerator is None or not listed:
        return () if accelerator is not None else None
    before = listed[0].log.size
    geometry = _geometry_of(listed[0], accelerator, held_back)
    if geometry is None:
        return None
    pinned, floating = _instances(listed, geometry)
    if listed[0].log.size > before:
        return None
    return _arranged(listed[-1], geometry, pinned, floating)


def _geometry_of(here: Cursor, accelerator: Accelerator, held_back: Mapping[str, Geometry]) -> Geometry | None:
    if accelerator.mig is None and accelerator.name in held_back:
        _refuse_unverified(here, accelerator.name)
    elif accelerator.mig is None:
        here.fault("DT1423", f"an instance of MIG on '{accelerator.name}'", "it cannot be cut by MIG")
    return accelerator.mig


def _instances(listed: Iterable[Cursor], geometry: Geometry) -> tuple[list[Instance], dict[str, int]]:
    """Return the instances with a start, and the profiles of the others, counted."""
    pinned: list[Instance] = []
    floating: dict[str, int] = {}
    for here in listed:
        profile = here.value.partition("@")[0]
        if profile not in geometry.by_name:
            message = f"there is no MIG profile '{profile}' on '{geometry.product}'"
            here.fault("DT1423", message, _suggested(here, profile, geometry.by_name))
        elif profile == here.value:
            floating[profile] = floating.get(profile, 0) + 1
        else:
            pinned.append(parse_instance(here.value))
            _check_pinned(here, geometry, pinned)
    return pinned, floating


def _check_pinned(here: Cursor, geometry: Geometry, pinned: list[Instance]) -> None:
    """Refuse the last of some instances where it cannot stand beside those before it."""
    why = legal(geometry, pinned)
    if why is not None:
        here.fault("DT1424", f"no such layout: {why}", _DRAWN % geometry.product)
        pinned.pop()


def _arranged(
    here: Cursor, geometry: Geometry, pinned: list[Instance], floating: Mapping[str, int]
) -> tuple[Instance, ...] | None:
    placed = arrange(geometry, floating, pinned)
    if placed is None:
        asked = " + ".join(f"{number} x {name}" for name, number in floating.items())
        beside = f" beside {', '.join(map(str, pinned))}" if pinned else ""
        message = f"no such layout: {asked} do not fit on one '{geometry.product}'{beside}"
        here.fault("DT1424", message, _DRAWN % geometry.product)
        return None
    return tuple(sorted((*pinned, *placed), key=lambda one: one.start))

"""Accelerators and their MIG layouts, as text and as documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dovetail.build.acceleratorlist import Listed, Vouching, to_document
from dovetail.mig import Geometry, Instance, Profile, arrange, maximal, multisets, positional
from dovetail.quantities import format_milli
from dovetail_cli.render import machine
from dovetail_cli.render.columns import PLAIN, Screen, layout, prose
from dovetail_cli.render.words import amount, plural

FORMATS = ("table", "json", "yaml")
_MIB_PER_GIB = 1024
_WIDEST, _NARROWEST = 7, 3
_COLOURS = ("32", "36", "33", "35", "34")
_STATUS: Mapping[Vouching, str] = {
    "none": "-",
    "verified": "verified",
    "allowed": "unverified, allowed by a document",
    "unverified": "unverified, needs an opt-in",
    "unknown": "placements unknown, needs an observed table",
}
_WHAT_TO_DO: Mapping[Vouching, str] = {
    "unverified": "To plan with it: an Accelerator document of this name with mig: {allowUnverified: true}, or an "
    "observed table (dovetail import mig-geometry).",
    "unknown": "To plan with it: an observed table (dovetail import mig-geometry).",
}


def of_all(found: Sequence[Listed], name: str, screen: Screen = PLAIN) -> str:
    """Return all accelerators in a format."""
    if name != "table":
        return machine.rendered(to_document(found), name)
    head = ("accelerator", "memory", "MIG slices", "profiles", "layouts", "MIG table")
    rows = [head, *(_row(one) for one in found)]
    title = f"dovetail accelerators: {plural(len(found), 'product')}"
    return "\n".join([title, "", *layout(rows, screen, right=(1,))]) + "\n"


def _row(one: Listed) -> tuple[str, ...]:
    card, geometry = one.accelerator, one.geometry
    start = (card.name, _gib(card.memory))
    if geometry is None or not geometry.known:
        return (*start, "-", "-", "-", _STATUS[one.vouching])
    slices = f"{geometry.compute} / {geometry.axis}"
    return (*start, slices, amount(len(geometry.profiles)), amount(len(maximal(geometry))), _status(one))


def _status(one: Listed) -> str:
    inferred = one.geometry is not None and "inferred" in one.geometry.source.partition(";")[0]
    return "inferred by sources that agree" if inferred and one.vouching == "verified" else _STATUS[one.vouching]


def of_one(one: Listed, name: str, screen: Screen = PLAIN, *, detail: bool = False) -> str:
    """Return one accelerator in a format; `detail` draws the layouts with variants of profiles too."""
    if name != "table":
        return machine.rendered(to_document([one]), name)
    blocks = [_head(one, screen)]
    geometry = one.geometry
    if geometry is not None and geometry.known:
        drawn = _Drawing(geometry, screen)
        blocks += [_profiles(geometry, screen), drawn.starts(), drawn.layouts(detail)]
    if one.vouching in _WHAT_TO_DO:
        blocks.append(prose(_WHAT_TO_DO[one.vouching], screen, indent=0))
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _head(one: Listed, screen: Screen) -> list[str]:
    card, geometry = one.accelerator, one.geometry
    rows = [("memory", _gib(card.memory) + ("" if card.verified else ", unverified"))]
    if card.aliases:
        rows.append(("also called", ", ".join(card.aliases)))
    if card.source:
        rows.append(("source", card.source))
    if geometry is None:
        rows.append(("MIG", "cannot be cut"))
    else:
        rows += [("MIG table", _status(one)), ("its source", geometry.source)]
    if geometry is not None and geometry.known:
        rows.append(("slices", f"{geometry.compute} of compute, {geometry.axis} of memory"))
        rows.append(("engines", _engines(geometry.engines) or "not known"))
        resets = "resets the GPU" if geometry.mode_toggle_needs_reset else "needs no reset"
        rows.append(("switching MIG", resets))
    title = ", ".join(filter(None, (f"dovetail accelerators: {card.name}", one.display, one.arch)))
    return [*prose(title, screen, indent=0), "", *layout(rows, screen)]


def _profiles(geometry: Geometry, screen: Screen) -> list[str]:
    head = ("profile", "id", "compute", "slices", "memory", "of the GPU", "SMs", "most", "engines")
    rows = [head, *(_profile(profile) for profile in geometry.profiles)]
    return layout(rows, screen, right=range(1, 8))


def _profile(profile: Profile) -> tuple[str, ...]:
    return (
        profile.name,
        "-" if profile.gi_profile_id is None else str(profile.gi_profile_id),
        str(profile.compute),
        str(profile.size),
        _gib(profile.memory) + ("" if profile.verified else " ?"),
        format_milli(profile.milli),
        "-" if profile.sms is None else str(profile.sms),
        str(profile.maximum),
        _engines(profile.engines) or "-",
    )


def _engines(engines: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in engines.items() if number)


def _gib(mib: int) -> str:
    return f"{amount(mib / _MIB_PER_GIB, 2)} GiB"


class _Drawing:
    """Draws instances as boxes over the memory slices of one GPU."""

    def __init__(self, geometry: Geometry, screen: Screen) -> None:
        self._geometry = geometry
        self._screen = screen
        self._names = max(len(profile.name) for profile in geometry.profiles)
        room = _WIDEST if screen.width is None else (screen.width - self._names - 5) // geometry.axis
        self._cell = max(_NARROWEST, min(_WIDEST, room))

    def starts(self) -> list[str]:
        """Return, for each profile, where its instances may stand."""
        lines = ["Where instances may stand, by memory slice", "", self._ruler()]
        for profile in self._geometry.profiles:
            for row in self._rows(profile):
                lines.append(f"  {profile.name.ljust(self._names)}  {self._boxes(row)}")
        return lines

    def _rows(self, profile: Profile) -> Iterator[list[Instance]]:
        """Yield the positions of a profile, in as many rows as it takes for none to overlap."""
        left = [Instance(profile.name, start) for start in profile.starts]
        while left:
            row: list[Instance] = []
            for one in left:
                if not row or row[-1].start + profile.size <= one.start:
                    row.append(one)
            left = [one for one in left if one not in row]
            yield row

    def layouts(self, detail: bool) -> list[str]:
        """Return the layouts that take no further instance."""
        everything = maximal(self._geometry)
        shown = [counts for counts in everything if detail or not any(_variant(name) for name in counts)]
        told = [plural(len(everything), "layout") + " that take no further instance"]
        told.append(f"{amount(len(multisets(self._geometry)))} with smaller ones")
        told.append(f"{amount(positional(self._geometry))} by position")
        lines = [*prose(", ".join(told), self._screen, indent=0), "", self._ruler()]
        for counts in shown:
            lines += self._layout(counts)
        if len(shown) < len(everything):
            lines += ["", f"  {len(everything) - len(shown)} more with variants such as +me (--detail)"]
        return lines

    def _layout(self, counts: Mapping[str, int]) -> list[str]:
        """Return one layout and what it leaves idle: beside it, or below it where the screen ends before."""
        start = self._names + 4
        line = " " * start + self._boxes(arrange(self._geometry, counts) or ())
        waste = self._waste(counts)
        width = start + self._geometry.axis * self._cell + 1  # without the colours of the line
        if waste and self._screen.width is not None and width + 2 + len(waste) > self._screen.width:
            return [line, *prose(waste, self._screen, indent=start + 1)]
        return [f"{line}  {waste}".rstrip()]

    def _waste(self, counts: Mapping[str, int]) -> str:
        by_name = self._geometry.by_name
        compute = self._geometry.compute - sum(by_name[name].compute * number for name, number in counts.items())
        size = self._geometry.axis - sum(by_name[name].size * number for name, number in counts.items())
        idle = [(compute, "compute"), (size, "memory")]
        return ", ".join(f"{number} {what} idle" for number, what in idle if number)

    def _ruler(self) -> str:
        slices = "".join(str(index).ljust(self._cell) for index in range(self._geometry.axis))
        return f"  {''.ljust(self._names)}   {slices}".rstrip()

    def _boxes(self, instances: Sequence[Instance]) -> str:
        """Return one GPU as text; every box is as wide as its slices and begins with a bar, dots are free."""
        text, at = "", 0
        for one in instances:
            size = self._geometry.by_name[one.profile].size
            text += self._free(one.start - at) + "|" + self._label(one.profile, size * self._cell - 1)
            at = one.start + size
        return text + (self._free(self._geometry.axis - at) + "|" if at < self._geometry.axis else "|")

    def _free(self, slices: int) -> str:
        return ("|" + " . ".center(self._cell - 1)) * slices

    def _label(self, name: str, width: int) -> str:
        """Return the longest form of a profile's name that fits a box, filled up."""
        slices, _, rest = name.partition("g.")
        variant = rest[rest.find("gb") + 2 :]
        forms = (name, name.replace("gb", "", 1), f"{slices}g{variant}", f"{slices}g", "")
        text = next(form for form in forms if len(form) <= width).center(width)
        if not self._screen.colours:
            return text
        return f"\x1b[{_COLOURS[int(slices) % len(_COLOURS)]};7m{text}\x1b[0m"


def _variant(name: str) -> bool:
    return "+" in name or "-" in name

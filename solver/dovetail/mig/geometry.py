"""The nouns of MIG: a product's geometry, its profiles, and instances of them at start positions (S3.3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

Counts = Mapping[str, int]
"""Instances of a GPU by profile name, wherever they stand."""

_INSTANCE = re.compile(r"([1-9][0-9]*g\.[0-9]+gb(?:[+-][a-z]+(?:\.[a-z]+)*)?)@(0|[1-9][0-9]?)")


class Instance(NamedTuple):
    """One MIG instance of a GPU: a profile at a start, counted in memory slices; its text is `3g.40gb@4`."""

    profile: str
    start: int

    def __str__(self) -> str:
        """Return the text that documents have for it."""
        return f"{self.profile}@{self.start}"


def parse_instance(text: str) -> Instance:
    """Return the instance of a text such as `3g.40gb@4`.

    Raises
    ------
    ValueError
        If the text is no `profile@start`.
    """
    match = _INSTANCE.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is no MIG instance; write profile@start, such as 3g.40gb@4")
    return Instance(match[1], int(match[2]))


@dataclass(frozen=True, slots=True)
class Profile:
    """One MIG profile of one product; the same name means something else on another product.

    Parameters
    ----------
    compute, size : compute slices and memory slices that an instance takes.
    memory : MiB that a tenant of it can use, rounded down.
    milli : thousandths of the GPU's compute that it offers (S2.3).
    starts : memory slices where an instance may begin, ascending.
    maximum : most instances on one GPU.
    engines : copy and media engines that an instance takes, by kind.
    sms : streaming multiprocessors, None where nobody has verified them.
    verified : whether memory and starts were seen on hardware.
    gi_profile_id : the driver's number for it.
    """

    name: str
    compute: int
    size: int
    memory: int
    milli: int
    starts: tuple[int, ...]
    maximum: int
    engines: Mapping[str, int] = field(default_factory=dict)
    sms: int | None = None
    verified: bool = True
    gi_profile_id: int | None = None

    def __hash__(self) -> int:
        """Return a hash by name."""
        return hash(self.name)


@dataclass(frozen=True, slots=True)
class Geometry:
    """What one GPU of a product can be cut into.

    Parameters
    ----------
    product : catalogue id of the accelerator.
    axis, compute : memory slices and compute slices of the GPU; both 0 where nobody knows the placements.
    engines : copy and media engines of the GPU, by kind; a kind that is not named binds nothing.
    profiles : in canonical order, largest first.
    verified : whether the placements rest on hardware or on sources that agree; else planning needs an opt-in (S1.4).
    source : where the table comes from.
    mode_toggle_needs_reset : whether switching MIG on or off resets the GPU.
    by_name : the profiles by name; derived.
    """

    product: str
    axis: int
    compute: int
    engines: Mapping[str, int]
    profiles: tuple[Profile, ...]
    verified: bool = True
    source: str = ""
    mode_toggle_needs_reset: bool = False
    by_name: Mapping[str, Profile] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Order the profiles and index them by name."""
        ordered = tuple(sorted(self.profiles, key=lambda one: (-one.compute, -one.size, one.name)))
        object.__setattr__(self, "profiles", ordered)
        object.__setattr__(self, "by_name", {profile.name: profile for profile in ordered})

    def __hash__(self) -> int:
        """Return a hash by product, so that a geometry can be the key of a cache at no cost."""
        return hash(self.product)

    @property
    def known(self) -> bool:
        """Whether placements are known at all; without them nothing can be planned."""
        return self.axis > 0

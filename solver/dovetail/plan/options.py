"""The limits of a command line as hard policies of a Spec, on the way to a plan and back from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from dovetail.plan.model import Plan
from dovetail.rules.move import Move
from dovetail.spec import Options, Policy, Spec, WorkloadSelector

MAX_MOVES: Final = "cli-max-moves"
PINS: Final = "cli-pins"


class NameTaken(ValueError):
    """The documents have a policy of the name that a limit needs; `name` is that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the documents have a policy '{name}', which the command line needs the name of")
        self.name = name


def limited(spec: Spec, options: Options) -> Spec:
    """Return a Spec with limits of a command line; one that has limits already may not get others.

    Raises
    ------
    NameTaken
        If the documents have a policy of a limit's name.
    """
    if spec.options == options:
        return spec
    if spec.options:
        raise ValueError("the Spec has other limits already")
    added = tuple(_policies(options))
    taken = {policy.name for policy in spec.policies} & {policy.name for policy in added}
    if taken:
        raise NameTaken(min(taken))
    policies = sorted((*spec.policies, *added), key=lambda policy: policy.name)
    return replace(spec, policies=tuple(policies), options=options)


def as_planned(spec: Spec, plan: Plan) -> Spec:
    """Return what documents mean with the limits that a plan was made with; a Spec with limits keeps its own."""
    if spec.options:
        return spec
    try:
        return limited(spec, plan.options)
    except NameTaken:
        return spec  # such documents mean the same with their own policy, or the digest differs


def _policies(options: Options) -> Iterator[Policy]:
    if options.max_moves is not None:
        yield Policy(MAX_MOVES, Move(max_moves=options.max_moves), origin="--max-moves")
    if options.pins:
        yield Policy(PINS, Move(never=True), WorkloadSelector(names=options.pins), origin="--pin")

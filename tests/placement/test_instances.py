"""Which MIG profiles stand in for which, also in tables that somebody observed (S3.3, S3.4)."""

from __future__ import annotations

from dataclasses import replace

from tests.support.mig_specs import card
from tests.support.specs import make_spec, node, role, workload

from dovetail.engine import solve
from dovetail.mig import Geometry, Profile
from dovetail.placement.instances import least_profiles
from dovetail.spec import Request, Share
from dovetail.verify import verify

FAULT = Request(share=Share(250, 1000, modes=("mig",)))


def _slice(name: str, maximum: int, **engines: int) -> Profile:
    return Profile(name, 1, 1, 5000, 250, (0, 1, 2, 3), maximum, engines)


def test_a_profile_that_runs_out_stands_in_for_nobody() -> None:
    """Two plain slices and one with an engine fit one GPU; were the engine's left out, there would be two."""
    geometry = Geometry("T", 4, 4, {"jpeg": 1}, (_slice("1g.5gb", 2), _slice("1g.5gb+me", 1, jpeg=1)))
    accelerator = replace(card("A100-40GB"), name="T", memory=20_000, mig=geometry)
    assert [profile.name for profile in least_profiles(FAULT, accelerator)] == ["1g.5gb", "1g.5gb+me"]
    spec = make_spec([node("n", 1, accelerator="T")], [workload("w", roles=[role("", 4, FAULT)])])
    spec = replace(spec, accelerators={**spec.accelerators, "T": accelerator})
    plan = solve(spec)
    assert len(plan.placements) == 3
    assert plan.outcome.status == "optimal"
    assert verify(spec, plan).ok


def test_where_there_are_enough_the_plain_profile_does() -> None:
    names = [profile.name for profile in least_profiles(FAULT, card("A100-80GB"))]
    assert names
    assert not [name for name in names if "+me" in name]

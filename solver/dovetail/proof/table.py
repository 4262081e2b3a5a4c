"""The kinds of models that proofs argue about: `MODELS` has one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from dovetail.problem import Problem
from dovetail.proof.certificate import EXACT, FLEET, FLEET_COST, FLEET_PRICED
from dovetail.proof.fleet_models import FleetModels
from dovetail.proof.models import ExactModels, Models

MODELS: Mapping[str, Callable[[Problem], Models]] = MappingProxyType(
    {
        EXACT: ExactModels,
        FLEET: FleetModels,
        FLEET_PRICED: partial(FleetModels, priced=True),
        FLEET_COST: partial(FleetModels, priced=True, sided=False),
    }
)
"""Kinds of models, and how each is rebuilt from a Problem."""

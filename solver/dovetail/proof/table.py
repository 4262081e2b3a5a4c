"""The kinds of models that proofs argue about: `MODELS` has one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from dovetail.problem import Problem
from dovetail.proof.certificate import (
    EXACT,
    FLEET,
    FLEET_COST,
    FLEET_IDLE,
    FLEET_IDLE_SIDED,
    FLEET_PRICED,
    FLEET_STANDING,
)
from dovetail.proof.fleet import FleetModel
from dovetail.proof.fleet_models import FleetModels
from dovetail.proof.models import ExactModels, Models
from dovetail.proof.standing import StandingModel

MODELS: Mapping[str, Callable[[Problem], Models]] = MappingProxyType(
    {
        EXACT: ExactModels,
        FLEET: lambda problem: FleetModels(FleetModel(problem)),
        FLEET_PRICED: lambda problem: FleetModels(FleetModel(problem, priced=True)),
        FLEET_COST: lambda problem: FleetModels(FleetModel(problem, priced=True, sided=False)),
        FLEET_IDLE: lambda problem: FleetModels(FleetModel(problem, priced=True, sided=False, tells_idle=True)),
        FLEET_IDLE_SIDED: lambda problem: FleetModels(FleetModel(problem, priced=True, tells_idle=True)),
        FLEET_STANDING: lambda problem: FleetModels(StandingModel(problem)),
    }
)
"""Kinds of models, and how each is rebuilt from a Problem."""

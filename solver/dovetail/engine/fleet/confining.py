"""Closer limits of some variables of a fleet's LP, as a case of a tier assumes them."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.engine.solvers.highs import Lp
from dovetail.proof.fleet import FleetModel
from dovetail.proof.fleet_models import Within

_FIRM = 1e5  # per replica, that what is assumed is there: a hundred times the dearest coefficient of an objective


def case_of(tier: str, given: Mapping[str, int], limits: Within) -> tuple[object, ...]:
    """Return the name of what is optimised: a tier, given what earlier ones reach, within limits."""
    return tier, *given.items(), *limits.items()


class Confinement:
    """What is assumed of variables that no node has a part in.

    Parameters
    ----------
    lp : has a column per variable of the fleet, by its number.
    limits : what each of some variables is at the least and at the most.
    """

    def __init__(self, lp: Lp, fleet: FleetModel) -> None:
        self._lp, self._model = lp, fleet.model
        self._replicas = {flag: fleet.spec.by_id[name].replicas for name, flag in fleet.flags.items()}
        self._held: set[int] = set()
        self.limits: Within = {}

    def hold(self, costs: Mapping[int, float], *, push: bool) -> float:
        """Demand what is assumed, or `push` for it, as worth more than all else; return what that adds.

        Parameters
        ----------
        costs : the objective.
        """
        lower, upper, added = self._model.lower, self._model.upper, 0.0
        for variable in self._held - self.limits.keys():
            self._lp.limits(variable, lower[variable], upper[variable])
        self._held = set(self.limits)
        for variable, (least, most) in self.limits.items():
            pushed = push and least > lower[variable]
            self._lp.limits(variable, *((lower[variable], least) if pushed else (least, most)))
            if pushed:
                worth = _FIRM * self._replicas.get(variable, 1)
                self._lp.cost(variable, costs.get(variable, 0.0) + worth)
                added += worth * least
        return added

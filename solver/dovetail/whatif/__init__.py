"""What-ifs: typed changes to a project, both sides planned and compared, expectations judged (S7.1)."""

from dovetail.whatif.base import Patch
from dovetail.whatif.expect import Check, Expectation, check
from dovetail.whatif.patches import TABLE, Add, Cordon, Drop, Fail, Price, Scale, Set
from dovetail.whatif.recut import Repartition
from dovetail.whatif.result import WhatIfResult
from dovetail.whatif.run import Question, Solve, check_scenarios, prepare, run
from dovetail.whatif.scenario import Scenario, Step, applied, examined, read_scenario, redeclared, scenario_at, step
from dovetail.whatif.spot import SetDocument, Spot, Unfit, unknown

__all__ = [
    "TABLE",
    "Add",
    "Check",
    "Cordon",
    "Drop",
    "Expectation",
    "Fail",
    "Patch",
    "Price",
    "Question",
    "Repartition",
    "Scale",
    "Scenario",
    "Set",
    "SetDocument",
    "Solve",
    "Spot",
    "Step",
    "Unfit",
    "WhatIfResult",
    "applied",
    "check",
    "check_scenarios",
    "examined",
    "prepare",
    "read_scenario",
    "redeclared",
    "run",
    "scenario_at",
    "step",
    "unknown",
]

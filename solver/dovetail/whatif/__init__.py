"""What-ifs: typed changes to a project, both sides planned and compared, expectations judged (S7.1)."""

from dovetail.whatif.expect import Check, Expectation
from dovetail.whatif.patches import TABLE, Add, Cordon, Drop, Fail, Patch, Scale, Set
from dovetail.whatif.result import WhatIfResult
from dovetail.whatif.run import Question, Solve, check_scenarios, prepare, run
from dovetail.whatif.scenario import Scenario, Step, read_scenario, step
from dovetail.whatif.spot import Spot

__all__ = [
    "TABLE",
    "Add",
    "Check",
    "Cordon",
    "Drop",
    "Expectation",
    "Fail",
    "Patch",
    "Question",
    "Scale",
    "Scenario",
    "Set",
    "Solve",
    "Spot",
    "Step",
    "WhatIfResult",
    "check_scenarios",
    "prepare",
    "read_scenario",
    "run",
    "step",
]

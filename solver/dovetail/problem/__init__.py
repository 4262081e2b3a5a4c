"""Problems: a Spec compiled to integers and classes, ready for any engine."""

from dovetail.problem.classes import NodeClass
from dovetail.problem.present import NO_GROUP, Present
from dovetail.problem.problem import Problem, compile_problem
from dovetail.problem.shapes import Member, Shape

__all__ = ["NO_GROUP", "Member", "NodeClass", "Present", "Problem", "Shape", "compile_problem"]

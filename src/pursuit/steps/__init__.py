"""Step lengths along a direction, and the quadratic upper bound that most of them minimise.

A step rule is a frozen value; `begin` returns the function for one run. The smoothness constant L of the bound

    f(x + d) <= f(x) + <grad f(x), d> + L/2 ||d||^2

is the objective's, the user's, or found by `Backtracking`.
"""

from pursuit.steps.base import Decrease, Length, Move, Step, StepRule, begin_step, check_step, is_monotone
from pursuit.steps.bound import Backtracking, Smoothness, UpperBound, check_smoothness, guaranteed
from pursuit.steps.rules import AutoConditioned, CurvatureStep, DiameterStep, LineSearch, Monotone, OpenLoop, ShortStep

__all__ = [
    "AutoConditioned",
    "Backtracking",
    "CurvatureStep",
    "Decrease",
    "DiameterStep",
    "Length",
    "LineSearch",
    "Monotone",
    "Move",
    "OpenLoop",
    "ShortStep",
    "Smoothness",
    "Step",
    "StepRule",
    "UpperBound",
    "begin_step",
    "check_smoothness",
    "check_step",
    "guaranteed",
    "is_monotone",
]

"""Step lengths along a direction, and the quadratic upper bound that most of them minimise.

A step rule is a frozen value; `begin` returns the function for one run. The smoothness constant L of the bound

    f(x + d) <= f(x) + <grad f(x), d> + L/2 ||d||^2

is the objective's, the user's, or found by `Backtracking`.
"""

from pursuit.steps.base import Decrease as Decrease
from pursuit.steps.base import Length as Length
from pursuit.steps.base import Move, StepRule
from pursuit.steps.base import Step as Step
from pursuit.steps.base import as_rule as as_rule
from pursuit.steps.base import begin_step as begin_step
from pursuit.steps.base import clip as clip
from pursuit.steps.bound import Backtracking
from pursuit.steps.bound import Smoothness as Smoothness
from pursuit.steps.bound import UpperBound as UpperBound
from pursuit.steps.bound import check_smoothness as check_smoothness
from pursuit.steps.bound import guaranteed as guaranteed
from pursuit.steps.rules import AutoConditioned, CurvatureStep, DiameterStep, LineSearch, Monotone, OpenLoop, ShortStep

__all__ = [
    "AutoConditioned",
    "Backtracking",
    "CurvatureStep",
    "DiameterStep",
    "LineSearch",
    "Monotone",
    "Move",
    "OpenLoop",
    "ShortStep",
    "StepRule",
]

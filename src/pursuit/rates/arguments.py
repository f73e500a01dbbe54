"""The arguments of a bound, checked; of an interval, the end is used at which the bound holds for all its numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pursuit.arguments import as_int_or_nan, describe, number, numeric_array
from pursuit.arrays import Small, host
from pursuit.geometry import Interval

Constant = float | Interval
"""A constant of a bound: a number, or an interval that contains it."""


def update_counts(t: ArrayLike) -> Small:
    """Numbers of updates, t >= 0."""
    steps = numbers(t, "t")
    if not (steps >= 0).all():
        raise ValueError(f"t holds {steps.min()}; a number of updates must not be negative, so give t >= 0.")
    return steps


def quality(delta: float, name: str = "delta") -> float:
    """The quality of an oracle, in (0, 1]."""
    if not 0 < number(delta) <= 1:
        raise ValueError(f"{name} is {describe(delta)}; the quality of an oracle lies in (0, 1].")
    return float(delta)


def numbers(values: ArrayLike, name: str) -> Small:
    """One number or many as a float64 array."""
    return np.asarray(host(numeric_array(values, name)))


def _number(name: str, given: Any, least: float, strict: bool) -> float:
    value = number(given)
    if not (value > least if strict else value >= least):
        raise ValueError(
            f"{name} is {describe(given)}; give a number {'above' if strict else 'of at least'} {least:g}."
        )
    return value


def upper(name: str, value: Constant, least: float, strict: bool = False) -> float:
    """A constant with which the bound grows; of an interval, the upper end."""
    return _number(name, value.upper if isinstance(value, Interval) else value, least, strict)


def lower(name: str, value: Constant, least: float, strict: bool = False) -> float:
    """A constant with which the bound shrinks; of an interval, the lower end."""
    return _number(name, value.lower if isinstance(value, Interval) else value, least, strict)


def positive_width(mdw: Constant) -> float:
    """The lower end of mDW, which must be positive."""
    width = mdw.lower if isinstance(mdw, Interval) else number(mdw)
    if not width > 0:
        raise ValueError(
            f"mdw is {describe(mdw)}; this rate needs mDW > 0, so 0 inside conv(A): add the atoms' negatives."
        )
    return width


def atom_count(n: int) -> int:
    """A number of atoms, n >= 1."""
    if not as_int_or_nan(n) >= 1:
        raise ValueError(f"n is {describe(n)}; give the number of atoms, at least 1.")
    return int(n)


def scales(alpha: float, rho: float) -> tuple[float, float]:
    """The scale alpha of a set and a bound rho < alpha on atomic norms."""
    if not 0 <= number(rho) < number(alpha) < math.inf:
        raise ValueError(f"alpha is {describe(alpha)} with rho {describe(rho)}; the conversion needs 0 <= rho < alpha.")
    return float(alpha), float(rho)


def float_or_array(values: Any) -> Any:
    """A float where t is a number, an array where it is an array."""
    return float(values) if np.ndim(values) == 0 else values

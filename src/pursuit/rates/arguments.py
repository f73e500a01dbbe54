"""The arguments of a bound, checked; of an interval, the end is used at which the bound holds for all its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pursuit.arguments import as_int_or_nan, describe, number, numeric_array, require
from pursuit.arrays import Small, host
from pursuit.geometry import Interval

Constant = float | Interval
"""A constant of a bound: a number, or an interval that contains it."""

Numbers = Any
"""One number, or one for each t or eps."""


def numbers(values: ArrayLike, name: str) -> Small:
    """One number or many as a float64 array."""
    return np.asarray(host(numeric_array(values, name)))


def update_counts(t: ArrayLike) -> Small:
    """Numbers of updates, t >= 0."""
    counts = numbers(t, "t")
    if not (counts >= 0).all():
        raise ValueError(f"t holds {counts.min()}; a number of updates must not be negative, so give t >= 0.")
    return counts


def quality(delta: Numbers, name: str = "delta") -> Numbers:
    """The quality of an oracle, in (0, 1], or one for each t: the smallest so far."""
    values = numbers(delta, name) if isinstance(delta, np.ndarray) and delta.ndim else number(delta)
    require(bool(np.all((values > 0) & (values <= 1))), name, delta, "the quality of an oracle, a number in (0, 1]")
    return values


def upper(name: str, value: Constant, least: float = 0.0, strict: bool = False) -> float:
    """A constant with which the bound grows, at least (`strict`: above) `least`; of an interval, the upper end."""
    size = number(value.upper if isinstance(value, Interval) else value)
    holds = size > least if strict else size >= least
    require(holds, name, value, f"a number {'above' if strict else 'of at least'} {least:g}")
    return size


def lower(name: str, value: Constant, least: float = 0.0, strict: bool = False) -> float:
    """A constant with which the bound shrinks; of an interval, the lower end."""
    return upper(name, value.lower if isinstance(value, Interval) else value, least, strict)


def positive_width(mdw: Constant) -> float:
    """The lower end of mDW, which must be positive."""
    width = mdw.lower if isinstance(mdw, Interval) else number(mdw)
    require(width > 0, "mdw", mdw, "a width mDW > 0, which A has with the negatives of its atoms")
    return width


def share(name: str, part: Constant, of: str, whole: Constant) -> float:
    """part / whole, at its safe end: a number in [0, 1]."""
    ratio = lower(name, part) / upper(of, whole, strict=True)
    if ratio > 1 + 1e-9:
        raise ValueError(f"{name} is {describe(part)} with {of} {describe(whole)}; it cannot be larger, so check both.")
    return ratio


def atom_count(n: int) -> int:
    """A number of atoms, n >= 1."""
    require(as_int_or_nan(n) >= 1, "n", n, "the number of atoms, at least 1")
    return int(n)


def float_or_array(values: Numbers) -> Numbers:
    """A float where t is a number, an array where it is an array."""
    return float(values) if np.ndim(values) == 0 else values

"""Checks of parameters: `checks.count(value, "k")` raises one sentence unless the value is an integer of at least 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pursuit.arguments import as_bool, as_int_or_nan, as_list, number, require

Check = Callable[[Any, str], Any]
"""A function of the value and the name of a parameter."""


def table(**by_name: Check) -> Mapping[str, Check]:
    """The checks of an estimator's parameters."""
    return by_name


def rule(holds: Callable[[Any], bool], wanted: str) -> Check:
    """The check that a condition holds."""
    return lambda value, name: require(holds(value), name, value, wanted)


def optional(holds: Callable[[Any], bool], wanted: str) -> Check:
    """The check that a value is None, or a condition holds."""
    return rule(lambda value: value is None or holds(value), f"{wanted}, or None")


def one_of(*choices: Any) -> Check:
    """The check that a value is one of the choices."""

    def known(value: Any) -> bool:
        same = any(value is choice or (isinstance(value, str) and value == choice) for choice in choices)
        return same or (isinstance(value, np.bool_) and True in choices)

    return rule(known, repr(choices[0]) if len(choices) == 1 else f"one of {choices}")


def between(low: float, high: float) -> Check:
    """The check that a value is None or a finite number within these bounds."""
    return optional(lambda x: low <= number(x) <= high and number(x) < np.inf, f"a number from {low:g} to {high:g}")


def vector(values: Any, name: str, count: int, least: float = -np.inf) -> np.ndarray[Any, np.dtype[np.float64]]:
    """These numbers as an array, if they are finite and at least `least`."""
    numbers = np.array([number(v) for v in as_list(values)])
    fits = numbers.shape == (count,) and np.isfinite(numbers).all() and (numbers >= least).all()
    require(bool(fits), name, values, f"{count} finite numbers{', all positive' if least > 0 else ''}")
    return numbers


boolean = as_bool
count = rule(lambda n: as_int_or_nan(n) >= 1, "an integer of at least 1")
optional_count = optional(lambda n: as_int_or_nan(n) >= 1, "an integer of at least 1")
iterations = rule(lambda n: as_int_or_nan(n) >= 0, "an integer of at least 0")
optional_iterations = optional(lambda n: as_int_or_nan(n) >= 0, "an integer of at least 0")
amount = rule(lambda x: 0 <= number(x) < np.inf, "a number of at least 0")
optional_amount = optional(lambda x: 0 <= number(x) < np.inf, "a number of at least 0")
positive = rule(lambda x: number(x) > 0, "a positive number")

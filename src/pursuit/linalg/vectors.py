"""Euclidean norms and unit vectors of columns, safe at every scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from pursuit._arrays import Small

EPS = float(np.finfo(np.float64).eps)
"""The distance from 1 to the next float64, 2^-52."""

SQUARES = float(np.finfo(np.float64).tiny) / EPS, float(np.finfo(np.float64).max) * EPS
"""Between these a sum of squares has neither overflowed nor lost digits."""


def norms(V: Any, axis: int = 0) -> Small:
    r"""Euclidean norms along an axis: of the columns of a matrix, by default.

    Where a sum of squares leaves the range of float64, the vectors are divided by their largest entry first:
    :math:`\|v\| = \|v\|_\infty\,\|v/\|v\|_\infty\|`.

    >>> norms(np.array([[3.0, 3e-200, 3e200], [4.0, 4e-200, 4e200]]))
    array([5.e+000, 5.e-200, 5.e+200])
    """
    V = np.asarray(V, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        squares = np.asarray((V * V).sum(axis=axis))
    if (squares > SQUARES[0]).all() and (squares < SQUARES[1]).all():
        return np.asarray(np.sqrt(squares))
    largest = np.abs(V).max(axis=axis, keepdims=True, initial=0.0)
    scale = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
    with np.errstate(under="ignore"):
        return np.asarray(np.squeeze(scale, axis) * np.sqrt(((V / scale) ** 2).sum(axis=axis)))


def units_and_norms(V: Any) -> tuple[Small, Small]:
    r"""The columns divided by their norms, and the norms: :math:`V_{\cdot j} = \|V_{\cdot j}\| U_{\cdot j}`.

    A vector counts as one column. A column that is zero, or not finite, becomes the first basis vector. A column whose
    norm is 1 to rounding stays as it is, and where all do V itself is returned: dividing twice changes nothing.

    >>> units_and_norms(np.array([[3.0, 0.0], [4.0, 0.0]]))
    (array([[0.6, 1. ],
           [0.8, 0. ]]), array([5., 0.]))
    """
    V = np.asarray(V)
    sizes = norms(V)
    regular = (sizes > 0) & np.isfinite(sizes)
    divisors = np.where(regular & (np.abs(sizes - 1.0) > 1e-14), sizes, 1.0)
    if not regular.all():
        return np.where(regular, V / divisors, np.eye(len(V), 1).reshape(-1, *(1,) * (V.ndim - 1))), sizes
    return (V if (divisors == 1.0).all() else V / divisors), sizes


def unit(V: Any) -> Small:
    """The first of `units_and_norms`: unit columns, or a unit vector.

    >>> unit([0.0, -2.0]), unit([0.0, 0.0])
    (array([ 0., -1.]), array([1., 0.]))
    """
    return units_and_norms(V)[0]

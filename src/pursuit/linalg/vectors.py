"""Euclidean norms and unit vectors, safe at every scale."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pursuit.arrays import Small

EPS = float(np.finfo(np.float64).eps)
"""The distance from 1 to the next float64, 2^-52."""

SAFE_SQUARES = float(np.finfo(np.float64).tiny) / EPS, float(np.finfo(np.float64).max) * EPS
"""Between these a sum of squares has neither overflowed nor lost digits."""

ROUNDING = 1e-14
"""A norm that differs from 1 by no more than this is 1."""


def norm(v: Small) -> float:
    r"""The Euclidean norm of a vector.

    Where the sum of squares leaves the range of float64, the vector is divided by its largest entry first:
    :math:`\|v\| = \|v\|_\infty\,\|v/\|v\|_\infty\|`.

    >>> norm(np.array([3.0, 4.0])), norm(np.array([0.0, -4e200]))
    (5.0, 4e+200)
    """
    squared = float(np.vdot(v, v))
    if SAFE_SQUARES[0] < squared < SAFE_SQUARES[1]:
        return math.sqrt(squared)
    largest = float(np.abs(v).max(initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    v = v / largest
    return largest * math.sqrt(float(np.vdot(v, v)))


def norms(V: Small) -> Small:
    """The norms of the columns of a matrix, as `norm`.

    >>> norms(np.array([[3.0, 3e-200, 3e200], [4.0, 4e-200, 4e200]]))
    array([5.e+000, 5.e-200, 5.e+200])
    """
    squares = np.einsum("ij,ij->j", V, V)
    if SAFE_SQUARES[0] < squares.min(initial=1.0) and squares.max(initial=1.0) < SAFE_SQUARES[1]:
        return np.asarray(np.sqrt(squares))
    largest = np.abs(V).max(axis=0, initial=0.0)
    scale = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
    V = V / scale
    return np.asarray(scale * np.sqrt(np.einsum("ij,ij->j", V, V)))


def unit(v: Small) -> Small:
    """v / ||v||.

    A vector that is zero, or not finite, becomes the first basis vector. One whose norm is 1 to rounding is returned
    itself, so that dividing twice changes nothing.

    >>> unit(np.array([0.0, -2.0])), unit(np.array([0.0, 0.0]))
    (array([ 0., -1.]), array([1., 0.]))
    """
    size = norm(v)
    if size == 0.0 or not math.isfinite(size):
        return np.asarray(np.eye(1, len(v))[0])
    return v if abs(size - 1.0) <= ROUNDING else np.asarray(v / size)


def units_and_norms(V: Small) -> tuple[Small, Small]:
    r"""Unit columns, as `unit`, and the norms: :math:`V_{\cdot j} = \|V_{\cdot j}\| U_{\cdot j}`.

    >>> units_and_norms(np.array([[3.0, 0.0], [4.0, 0.0]]))
    (array([[0.6, 1. ],
           [0.8, 0. ]]), array([5., 0.]))
    """
    sizes = norms(V)
    divisors = np.where(np.abs(sizes - 1.0) > ROUNDING, sizes, 1.0)
    if sizes.min(initial=1.0) > 0.0 and math.isfinite(sizes.max(initial=1.0)):
        return V / divisors, sizes
    regular = (sizes > 0) & np.isfinite(sizes)
    return np.where(regular, V / np.where(regular, divisors, 1.0), np.eye(len(V), 1)), sizes


def unit_columns(V: Any) -> Small:
    """The columns divided by their norms: the first of `units_and_norms`.

    >>> unit_columns(np.array([[3.0, 0.0], [4.0, 2.0]]))
    array([[0.6, 0. ],
           [0.8, 1. ]])
    """
    return units_and_norms(V)[0]

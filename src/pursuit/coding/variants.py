r"""Problems that become the Lasso or NNLS on other columns, or with other numbers for each signal.

- :math:`\lambda \sum_j p_j |x_j| + \tfrac12 l_2 \|x\|^2`: the Lasso on columns :math:`(a_j, \sqrt{l_2} e_j) / p_j`.
- the smallest :math:`\|x\|_1` with :math:`\|y - Dx\| \le` tol: the Lasso with the penalty at which the residual is tol.
- the nearest point of a hull of atoms: NNLS with equal entries c below D, and below y the entry at which the weights
  sum to 1.

The last two look for the zero of a function that never falls and is linear, or nearly so, between few kinks: by chords.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from pursuit.arguments import describe, host_array, number, require
from pursuit.coding.gaps import gaps_of
from pursuit.coding.request import Arguments, Array, amounts, matrix, read_signals

Encode = Callable[[Any, Any, Arguments], Any]
Ask = Callable[[Array, Array], tuple[Array, sp.csr_array]]
Ends = tuple[Array, Array]
MAX_CHORDS = 200
CLOSE = 1e-10
"""How near to its value a number is met, relative to it."""
EPS = 2.0**-52


def encode_variant(encode: Encode, D: Any, Y: Any, arguments: Arguments) -> Any:
    """The codes; None where the call is none of these problems. `encode` solves the Lasso and NNLS."""
    method = arguments.method
    if not isinstance(method, str):
        return None  # it is refused later
    priced = arguments.prices is not None or number(arguments.l2) != 0
    if priced and method != "lasso":
        raise ValueError(f"l2 and prices belong to method='lasso'; leave them out with {method!r}.")
    by_error = method == "lasso" and arguments.tol is not None
    if not (priced or by_error or method == "simplex"):
        return None
    _refuse_others(arguments, priced, by_error)
    D, (Y, W) = matrix(D, "D"), read_signals(Y, arguments.weights)
    if D.shape[0] != Y.shape[1]:
        raise ValueError(f"Y has shape {Y.shape} and D {D.shape}; signals are rows of Y, as long as columns of D.")
    if priced:
        return _priced(encode, D, Y, replace(arguments, weights=W))
    return (_within_error if by_error else _on_simplex)(encode, D, Y, replace(arguments, weights=W))


def _refuse_others(arguments: Arguments, priced: bool, by_error: bool) -> None:
    """Refuse arguments that the problem cannot have."""
    lasso = arguments.method == "lasso"
    served = {"gram": False, "l2": not by_error, "tol": lasso, "penalty": not by_error and priced}
    served |= {"atoms": False, "gaps": not by_error, "prices": True, "positive": lasso}
    for name in [name for name, serves in served.items() if not serves]:
        value = getattr(arguments, name)
        if not (value is None or value is False or (name == "l2" and value == 0)):
            of_lasso = "the Lasso with tol" if by_error else "the Lasso with l2 or prices"
            kind = of_lasso if lasso else "codes on a simplex"
            raise ValueError(f"{name} is {describe(value)}, and {kind} cannot have it; leave it out.")


def _priced(encode: Encode, D: Array, Y: Array, arguments: Arguments) -> Any:
    """The Lasso with a price on each atom and a ridge."""
    n, l2, W = D.shape[1], number(arguments.l2), arguments.weights
    require(0 <= l2 < np.inf, "l2", arguments.l2, "a number of at least 0")
    prices = host_array(np.ones(n) if arguments.prices is None else arguments.prices, "prices")
    positive = prices.shape == (n,) and prices.dtype.kind in "iuf" and 0 < prices.min() <= prices.max() < np.inf
    require(bool(positive), "prices", prices, f"a positive number for each of the {n} atoms")
    if l2:
        D = np.vstack([D, (np.sqrt(l2) * np.eye(n)).astype(D.dtype)])
        Y = np.hstack([Y, np.zeros((len(Y), n), Y.dtype)])
        W = None if W is None else np.hstack([W, np.ones((len(W), n), W.dtype)])
    answer = encode(D / prices.astype(D.dtype), Y, replace(arguments, l2=0.0, prices=None, weights=W))
    codes = answer[0] if arguments.gaps else answer
    if arguments.gaps:  # of the columns as they are rounded: a relative eps of each may change this much
        squares = np.square(D / prices)
        lengths = np.sqrt(squares.sum(axis=0)[None] if W is None else W @ squares)
        reach = np.sqrt((Y * Y if W is None else W * Y * Y).sum(axis=1)) + (abs(codes) * lengths).sum(axis=1)
        answer[1][:] += 16 * np.finfo(D.dtype).eps * reach.astype(np.float64) ** 2
    codes.data /= prices[codes.indices].astype(codes.dtype)
    return answer


def _within_error(encode: Encode, D: Array, Y: Array, arguments: Arguments) -> sp.csr_array:
    """The codes of the smallest sum of sizes whose residuals are no longer than the tolerances."""
    W, tols = arguments.weights, amounts(arguments.tol, "tol", len(Y))
    require(tols.min(initial=1.0) > 0, "the least tol", tols.min(initial=1.0), "positive numbers with method='lasso'")
    y = Y.astype(np.float64) if W is None else np.where(W > 0, Y, 0.0)
    weighted = y if W is None else W * y
    energy, products = (weighted * y).sum(axis=1), weighted @ D
    high = np.square((products if arguments.positive else abs(products)).max(axis=1, initial=0.0))

    def ask(rows: Array, at: Array) -> tuple[Array, sp.csr_array]:
        """The squared error less that allowed, with the penalty whose square is given."""
        own = None if W is None else W[rows]
        codes = encode(D, y[rows].astype(Y.dtype), replace(arguments, tol=None, penalty=np.sqrt(at), weights=own))
        r = y[rows] - codes @ D.T
        return (r * r if own is None else own * r * r).sum(axis=1) - tols[rows] ** 2, codes

    near = CLOSE * tols**2 + 16 * EPS * energy
    left, codes = _zeros(ask, (np.zeros(len(Y)), -(tols**2)), (high, energy - tols**2), near)
    if (left > 1e4 * near + 1e-6 * tols**2).any():
        row = int(np.argmax(left > 1e4 * near + 1e-6 * tols**2))
        raise ValueError(f"tol is {tols[row]:.6g} for row {row} of Y, and no code comes so near; raise it.")
    return codes


def _on_simplex(encode: Encode, D: Array, Y: Array, arguments: Arguments) -> Any:
    """The codes of weights of at least 0 that sum to 1, with their gaps where these are wanted."""
    W, squares = arguments.weights, np.square(D.astype(np.float64)).sum(axis=0)
    c = float(np.sqrt(squares.max()))
    longest = c if W is None else np.sqrt((W @ np.square(D)).max(axis=1))
    y = Y.astype(np.float64) if W is None else np.where(W > 0, Y, 0.0)
    size = np.sqrt((y * y if W is None else W * y * y).sum(axis=1))
    reach = longest * (size + longest) / c**2  # the zero is no further from 1
    below = np.vstack([D, np.full((1, D.shape[1]), c, D.dtype)])

    def ask(rows: Array, at: Array) -> tuple[Array, sp.csr_array]:
        """The sum of the weights less 1."""
        own = None if W is None else np.hstack([W[rows], np.ones((len(rows), 1), W.dtype)])
        target = np.hstack([y[rows], c * at[:, None]]).astype(Y.dtype)
        codes = encode(below, target, replace(arguments, method="nnls", weights=own, gaps=False))
        return codes.sum(axis=1) - 1.0, codes

    one = np.ones(len(Y))
    _, codes = _zeros(ask, (1 - reach, -one), (1 + reach, one), 16 * float(np.finfo(D.dtype).eps) * one)
    astray = ~(abs(codes.sum(axis=1) - 1.0) <= 1e-3)  # y is so far away that rounding hides the sum
    if astray.any():
        w = np.ones(y.shape) if W is None else W
        nearest = ((w * y)[astray] @ D - 0.5 * w[astray] @ np.square(D)).argmax(axis=1)  # of |y - a_j|^2, less |y|^2
        keep, n = sp.diags_array((~astray).astype(D.dtype)), D.shape[1]
        ones = np.ones(len(nearest), D.dtype)
        codes = sp.csr_array(keep @ codes + sp.csr_array((ones, (np.flatnonzero(astray), nearest)), (len(y), n)))
        codes.eliminate_zeros()
        codes.sort_indices()
    codes.data /= np.repeat(codes.sum(axis=1), np.diff(codes.indptr))
    return (codes, gaps_of((D, Y, W), codes, "simplex")) if arguments.gaps else codes


def _zeros(ask: Ask, low: Ends, high: Ends, near: Array) -> tuple[Array, sp.csr_array]:
    """The codes at the zero of a function for each signal, by chords (Anderson and Bjoerck), and what is left there.
    The zero is between two places, given with values there, or beyond the high one where that is not positive."""
    rows: Array = np.arange(len(near))
    (a, f), (b, g) = low, high
    side: Array = np.zeros(len(near))
    left, parts, order = np.zeros(len(near)), [ask(rows[:0], near[:0])[1]], [rows[:0]]
    for turn in range(MAX_CHORDS):
        if not len(rows):
            break
        inside = g > 0
        at = np.where(inside, a - f * (b - a) / np.where(inside, g - f, 1.0), b)
        values, codes = ask(rows, at)
        done = (abs(values) <= near[rows]) | ~inside | (b - a <= 4 * EPS * (abs(a) + abs(b))) | (turn == MAX_CHORDS - 1)
        parts.append(codes[done])
        order.append(rows[done])
        left[rows[done]] = values[done]
        up = values > 0
        share = 1.0 - values / np.where(up, g, f)  # of the other value, where the same end moves twice
        share = np.where(side != np.where(up, 1, -1), 1.0, np.where(share > 0, share, 0.5))
        a, f, side = np.where(up, a, at), np.where(up, f * share, values), np.where(up, 1, -1)
        b, g = np.where(up, at, b), np.where(up, values, g * share)
        rows, a, f, b, g, side = (each[~done] for each in (rows, a, f, b, g, side))
    return left, sp.csr_array(sp.vstack(parts, format="csr")[np.argsort(np.concatenate(order))])

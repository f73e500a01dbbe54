r"""Codes of groups of signals that share their atoms, and complex codes: pursuits and the Lasso by products of whole
arrays, in NumPy or torch.

A group Y has a row for each channel, and so has its code X. Pursuits choose the atom with the largest
:math:`\|R \bar a\|` over the channels (simultaneous OMP; of one complex signal, complex OMP), and the Lasso is
:math:`\min_X \tfrac12\|Y - X D^\top\|^2 + \lambda \sum_j \|x_j\|` over columns x_j of X, by accelerated gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from pursuit.arguments import describe, host_array
from pursuit.arrays import namespace
from pursuit.coding.request import Arguments, Rules
from pursuit.native import MP_STEPS

BLOCK = 2**22
"""Numbers of the products of some groups with all atoms."""
EXACT = 1e-9
"""The duality gap of the Lasso, relative to the objective."""
MAX_STEPS = 20_000
CHECK = 10
"""Gradient steps from one gap to the next."""
METHODS = ("omp", "ols", "mp", "lasso")
NOT_SERVED = ("gram", "weights", "positive", "gaps", "dtype")


def is_complex(a: Any) -> bool:
    """Whether an array of any library, or a list, has complex entries."""
    if isinstance(a, list | tuple):
        try:
            a = np.asarray(a)
        except ValueError:  # ragged, which is refused by name where it is read
            return False
    return a.dtype.kind == "c" if isinstance(a, np.ndarray) else "complex" in str(getattr(a, "dtype", ""))


def is_joint(D: Any, Y: Any, arguments: Arguments) -> bool:
    """Whether this module serves a call."""
    return not (arguments.joint is None or arguments.joint is False) or is_complex(D) or is_complex(Y)


def encode_joint(D: Any, Y: Any, arguments: Arguments) -> sp.csr_array:
    """The codes, one row for each signal, on the host."""
    for name in NOT_SERVED:
        value = getattr(arguments, name)
        if value is not None and value is not False:
            advice = (
                "multiply D and Y by their roots where all signals share them" if name == "weights" else "leave it out"
            )
            raise ValueError(f"{name} is {describe(value)}; joint and complex codes have no {name}, {advice}.")
    if arguments.method not in METHODS:
        known = ", ".join(map(repr, METHODS))
        raise ValueError(f"method is {describe(arguments.method)}; joint and complex codes are by {known}.")
    xp, D, Y = _arrays(D, Y, arguments.method)
    groups, n = _groups(arguments.joint, len(Y)), D.shape[1]
    rules = Rules.from_arguments(arguments, tuple(D.shape), len(groups))
    if rules.is_lasso and not rules.penalties.min(initial=1.0) > 0:
        raise ValueError("penalty is 0 for some signal; joint and complex codes need a positive one.")
    room = max(map(len, groups), default=1)
    at, codes = max(1, BLOCK // (room * max(D.shape))), [sp.csr_array((0, n), dtype=_on_host(D[:0]).dtype)]
    unit, Y = _size(xp, D), xp.concat([Y, xp.zeros_like(D[:, 0])[None]])
    for first in range(0, len(groups), at):
        some = groups[first : first + at]
        rows = np.stack([np.pad(g, (0, room - len(g)), constant_values=len(Y) - 1) for g in some])  # the last is zero
        block, places = Y[rows.ravel()].reshape((len(some), room, -1)), slice(first, first + at)
        sizes = np.array([_size(xp, y) for y in block])
        limits, tols, penalties = rules.limits[places], rules.tols[places] / sizes, rules.penalties[places]
        block = block / _like(xp, sizes[:, None, None], block)
        if rules.is_lasso:
            X = _lasso(xp, D / unit, block, penalties / sizes / unit)
        elif rules.method == "mp":
            X = _matching(xp, D / unit, block, limits, tols)
        else:
            X = _orthogonal(xp, D / unit, block, (limits, tols, rules.method == "ols"))
        X = _on_host(X) * (sizes / unit)[:, None, None]
        codes.append(sp.csr_array(X.reshape(rows.size, n)[rows.ravel() < len(Y) - 1].astype(codes[0].dtype)))
    where = np.argsort(np.concatenate([np.zeros(0, np.intp), *groups]), kind="stable")
    return sp.csr_array(sp.vstack(codes, format="csr")[where])


def _arrays(D: Any, Y: Any, method: str) -> tuple[Any, Any, Any]:
    """The library, and both matrices in one dtype of it: on their device, or on the host."""
    if isinstance(D, LinearOperator):
        raise TypeError(f"D is {describe(D)}; joint and complex codes need an array (docs/signals.md has another way).")
    D, Y = (a.detach() if getattr(a, "is_cuda", False) else host_array(a, name) for a, name in ((D, "D"), (Y, "Y")))
    if D.ndim != 2 or Y.ndim != 2 or D.shape[0] != Y.shape[1] or not D.shape[1]:
        raise ValueError(f"Y has shape {tuple(Y.shape)} and D {tuple(D.shape)}; rows of Y are as long as columns of D.")
    xp, single = namespace(D), all(str(a.dtype).endswith(("float32", "complex64")) for a in (D, Y))
    single = single and method != "lasso"
    real, both = ("float32", "complex64") if single else ("float64", "complex128")
    dtype = getattr(xp, both if is_complex(D) or is_complex(Y) else real)
    D, Y = xp.astype(D, dtype), xp.astype(Y, dtype)
    for name, a in (("column {} of D", D.T), ("row {} of Y", Y)):
        finite = xp.all(xp.isfinite(a), axis=1)
        if not bool(xp.all(finite)):
            place = name.format(int(xp.argmin(xp.astype(finite, xp.int32))))
            raise ValueError(f"{place} contains NaN or infinity; remove or impute such entries first.")
    if not bool(xp.all(xp.any(D != 0, axis=0))):
        raise ValueError("a column of D is zero; drop it, since a zero atom has no direction.")
    return xp, D, Y


def _groups(joint: Any, count: int) -> list[Any]:
    """The rows of each group, in the order of the labels."""
    if joint is True:
        return [np.arange(count)] if count else []
    if joint is None or joint is False:
        return list(np.arange(count)[:, None])
    labels = host_array(joint, "joint")
    if labels.shape != (count,):
        raise ValueError(f"joint is {describe(joint)}; give True, or a label for each of the {count} signals.")
    _, which = np.unique(labels, return_inverse=True)
    return np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1]) if count else []


def _on_host(a: Any) -> Any:
    return a if isinstance(a, np.ndarray) else a.cpu().numpy()


def _like(xp: Any, a: Any, other: Any) -> Any:
    """An array of the host with the dtype and device of another."""
    return a.astype(other.dtype) if isinstance(other, np.ndarray) else xp.asarray(a).to(other)


def _size(xp: Any, a: Any) -> float:
    """A power of two about the largest entry, by which to divide, so that no square over- or underflows."""
    peak = float(xp.max(xp.abs(a)))
    return float(np.ldexp(1.0, np.frexp(peak)[1])) if peak else 1.0


def _squares(xp: Any, a: Any, axis: Any) -> Any:
    return xp.sum(xp.abs(a) ** 2, axis=axis)


def _noise(xp: Any, D: Any, Y: Any) -> Any:
    """Squares of the correlations of atoms with residuals that rounding makes, for each group and atom."""
    unit = (4.0 * xp.finfo(xp.abs(D).dtype).eps) ** 2 * D.shape[0]
    return unit * _squares(xp, Y, (1, 2))[:, None] * _squares(xp, D, 0)[None]


def _orthogonal(xp: Any, D: Any, Y: Any, rules: tuple[Any, Any, bool]) -> Any:
    """OMP, or OLS, of every group: an orthonormal basis Q of its atoms grows, D_S = Q T with a triangle T."""
    (limits, tols, by_decrease), (count, channels, d), n = rules, Y.shape, D.shape[1]
    most = int(limits.max())
    R, Q, chosen = xp.asarray(Y, copy=True), _zeros(xp, Y, (count, most, d)), np.zeros((count, most), np.intp)
    T, Z = _zeros(xp, Y, (count, most, most)) + _like(xp, np.eye(most), Y), _zeros(xp, Y, (count, most, channels))
    norms, noise, used = _squares(xp, D, 0), _noise(xp, D, Y), np.zeros(count, np.intp)
    rest = xp.zeros_like(noise) + norms[None]  # squared distances of atoms to the span of those that were chosen
    alive = np.arange(count)
    for t in range(most):
        errors = _on_host(_squares(xp, R[alive], (1, 2))) ** 0.5
        alive = alive[(limits[alive] > t) & (errors > tols[alive])]
        merit = _squares(xp, R[alive] @ xp.conj(D), 1)
        far = rest[alive] > 1e3 * xp.finfo(norms.dtype).eps * norms[None]
        gain = merit / xp.where(far, rest[alive], norms[None]) if by_decrease else merit
        merit = xp.where((merit > noise[alive]) & far, gain, 0.0 * merit)
        j = _on_host(xp.argmax(merit, axis=1))
        some = _on_host(xp.max(merit, axis=1)) > 0
        alive, j = alive[some], j[some]
        if not len(alive):
            break
        a, basis = D.T[j], Q[alive][:, :t]
        shares = xp.zeros_like(basis[:, :, 0])
        for _ in range(2):  # once more for what rounding left
            more = (xp.conj(basis) @ a[:, :, None])[:, :, 0]
            shares, a = shares + more, a - (more[:, None, :] @ basis)[:, 0]
        length = _squares(xp, a, 1) ** 0.5
        q = a / length[:, None]
        z = (R[alive] @ xp.conj(q)[:, :, None])[:, :, 0]
        R[alive] = R[alive] - z[:, :, None] * q[:, None, :]
        Q[alive, t], T[alive, :t, t], T[alive, t, t], Z[alive, t] = q, shares, length + 0 * q[:, 0], z
        rest[alive] = rest[alive] - xp.abs(xp.conj(q) @ D) ** 2
        rest[alive, j], chosen[alive, t], used[alive] = 0.0, j, t + 1
    weights, X = xp.linalg.solve(T, Z), _zeros(xp, Y, (count, channels, n))
    group, place = np.nonzero(np.arange(most) < used[:, None])
    X[group, :, chosen[group, place]] = weights[group, place]
    return X


def _zeros(xp: Any, like: Any, shape: tuple[int, ...]) -> Any:
    return _like(xp, np.zeros(shape), like)


def _matching(xp: Any, D: Any, Y: Any, limits: Any, tols: Any) -> Any:
    """Matching pursuit of every group: the weight of one atom moves at a time."""
    R, X = xp.asarray(Y, copy=True), _zeros(xp, Y, (*Y.shape[:2], D.shape[1]))
    norms, noise, alive = _squares(xp, D, 0), _noise(xp, D, Y), np.arange(len(Y))
    for t in range(MP_STEPS * int(limits.max())):
        errors = _on_host(_squares(xp, R[alive], (1, 2))) ** 0.5
        alive = alive[(limits[alive] * MP_STEPS > t) & (errors > tols[alive])]
        products = R[alive] @ xp.conj(D)
        merit = _squares(xp, products, 1)
        j, row = _on_host(xp.argmax(merit, axis=1)), np.arange(len(alive))
        active = xp.any(X[alive] != 0, axis=1)
        known, count = _on_host(active[row, j]), _on_host(xp.sum(active, axis=1))
        some = _on_host(merit[row, j] > noise[alive, j]) & (known | (count < limits[alive]))
        alive, j, row = alive[some], j[some], row[some]
        if not len(alive):
            break
        steps = products[row, :, j] / norms[j][:, None]
        X[alive, :, j] = X[alive, :, j] + steps
        R[alive] = R[alive] - steps[:, :, None] * D.T[j][:, None, :]
    return X


def _lasso(xp: Any, D: Any, Y: Any, penalties: Any) -> Any:
    """The Lasso of every group, by accelerated gradients with restarts, until the duality gap is small."""
    L, done = float(xp.linalg.matrix_norm(D, ord=2)) ** 2, _zeros(xp, Y, (*Y.shape[:2], D.shape[1]))
    alive, penalties = np.arange(len(Y)), _like(xp, penalties, xp.abs(Y))
    Y, price = xp.asarray(Y, copy=True), penalties[:, None, None]
    X = V = done + 0.0
    age = np.zeros(len(Y))
    for step in range(MAX_STEPS):
        if step % CHECK == 0:
            R = Y - X @ D.T
            products = R @ xp.conj(D)
            most = xp.max(_squares(xp, products, 1) ** 0.5, axis=1)
            theta = xp.where(most > price[:, 0, 0], price[:, 0, 0] / most, xp.ones_like(most))
            cost = price[:, 0, 0] * xp.sum(_squares(xp, X, 1) ** 0.5, axis=1)
            energy = 0.5 * _squares(xp, R, (1, 2))
            fit = xp.sum(xp.real(xp.conj(X) * products) if is_complex(X) else X * products, axis=(1, 2))
            gap = (1 - theta) ** 2 * energy + cost - theta * fit
            open_ = _on_host(gap > EXACT * (cost + energy))
            done[alive] = X
            if not open_.any():
                break
            alive, age, Y, X, V, price = (a[open_] for a in (alive, age, Y, X, V, price))
        U = V + ((Y - V @ D.T) @ xp.conj(D)) / L
        lengths = (_squares(xp, U, 1) ** 0.5)[:, None, :]
        after = U * (xp.clip(lengths - price / L, 0.0, np.inf) / xp.where(lengths > 0, lengths, 1.0 + lengths))
        turn = (V - after) * xp.conj(after - X) if is_complex(X) else (V - after) * (after - X)
        age = np.where(_on_host(xp.sum(xp.real(turn) if is_complex(X) else turn, axis=(1, 2))) > 0, 0.0, age + 1)
        V = after + _like(xp, (age / (age + 3.0))[:, None, None], after) * (after - X)
        X = after
    return done

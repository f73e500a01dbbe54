"""Linear operators of any kind: SciPy's, PyLops', or any object with `shape`, `matvec` and `rmatvec`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from pursuit.linalg.vectors import unit


def operator(M: object, name: str) -> Any:
    """M as a LinearOperator whose adjoint has passed the dot test; None where M is no operator but an array.

    >>> M = np.array([[1.0, 2.0], [0.0, 1.0]])
    >>> seen = LinearOperator((2, 2), matvec=lambda v: M @ v, rmatvec=lambda v: M.T @ v, dtype=np.float64)
    >>> operator(seen, "M") is seen, operator(M, "M")
    (True, None)
    """
    if not (hasattr(M, "shape") and hasattr(M, "matvec")):
        return None
    given = M
    if not isinstance(M, LinearOperator):
        adjoint, dtype = getattr(M, "rmatvec", None), getattr(M, "dtype", np.float64)
        given = LinearOperator(tuple(M.shape), matvec=M.matvec, rmatvec=adjoint, dtype=dtype)
    dot_test(given, name)
    return given


def dot_test(M: Any, name: str) -> None:
    r"""Refuse an operator that is complex, not finite, or whose adjoint is not the adjoint.

    One pair u, v must satisfy :math:`\langle Mu, v \rangle = \langle u, M^\top v \rangle` up to the rounding of its
    dtype; v is half :math:`Mu`, half random, so that a wrong factor or a wrong shift cannot hide in a product that is
    small by chance. It costs one product each way.
    """
    rows, columns = M.shape
    rng = np.random.default_rng(0)
    u, v = unit(rng.standard_normal(columns)), unit(rng.standard_normal(rows))
    forward = _real(M.matvec(u), name)
    v = v + unit(forward)
    try:
        backward = _real(M.rmatvec(v), name)
    except NotImplementedError:
        raise TypeError(f"{name} has no adjoint; give an operator with rmatvec, such as M.T @ v.") from None
    there, back = float(forward @ v), float(u @ backward)
    eps = max(_eps(forward.dtype), _eps(backward.dtype), _eps(M.dtype))
    scale = float(np.linalg.norm(forward)) * float(np.linalg.norm(v)) + float(np.linalg.norm(backward))
    if not abs(there - back) <= 100.0 * eps * math.sqrt(rows + columns) * scale:
        raise ValueError(
            f"{name} fails the dot test: <M u, v> = {there:.6g}, <u, M' v> = {back:.6g}; mend its adjoint (rmatvec)."
        )


def _real(a: object, name: str) -> Any:
    a = np.asarray(a)
    if a.dtype.kind == "c":
        raise TypeError(f"{name} is complex; pursuit works over real spaces, so stack real and imaginary parts.")
    if not np.isfinite(a).all():
        raise ValueError(f"{name} maps a finite vector to NaN or infinity; check its entries.")
    return a


def _eps(dtype: Any) -> float:
    kind = np.dtype(dtype)
    return float(np.finfo(kind if kind.kind == "f" else np.float64).eps)

"""Reading linear constraints: rows and their right-hand sides, bounds, which entries are integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from pursuit.arguments import as_list, describe, host_array, number, real_array, sparse_matrix
from pursuit.arrays import Small, host


def rows_of(A: Any, b: Any, name: str) -> tuple[Any, Small] | None:
    """A matrix and its right-hand side, checked; None where both are left out."""
    if A is None and b is None:
        return None
    if A is None or b is None:
        given, missing = ("b", "A") if A is None else ("A", "b")
        raise ValueError(f"{given}_{name} comes without {missing}_{name}; give both, or neither.")
    matrix = sparse_matrix(A, f"A_{name}") if sp.issparse(A) else host(real_array(A, f"A_{name}"))
    values = host(real_array(b, f"b_{name}"))
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise ValueError(f"A_{name} has shape {matrix.shape}; give a matrix with a column for each entry of x.")
    if values.shape != (matrix.shape[0],):
        raise ValueError(
            f"b_{name} has shape {values.shape}; give a number for each of the {matrix.shape[0]} rows of A_{name}."
        )
    real_array(matrix.data if sp.issparse(matrix) else matrix, f"A_{name}")
    return sp.csc_array(matrix), values


def box_of(bounds: Any, n: int) -> tuple[Small, Small]:
    """Lower and upper bounds of n entries, infinite where there are none."""
    pairs = as_list((None, None) if bounds is None else bounds)
    if len(pairs) == 2 and not any(hasattr(v, "__len__") and getattr(v, "ndim", 1) for v in pairs):
        pairs = [pairs] * n
    both = [as_list(pair) for pair in pairs]
    if len(both) != n or any(len(pair) != 2 for pair in both):
        raise ValueError(f"bounds are {describe(bounds)}; give a pair (lower, upper), or one for each of {n} entries.")
    box = np.array(
        [[-math.inf if low is None else number(low), math.inf if up is None else number(up)] for low, up in both]
    )
    if np.isnan(box).any():
        raise ValueError(
            f"bounds of entry {int(np.isnan(box).any(axis=1).argmax())} are no numbers; give numbers or None."
        )
    wrong = (box[:, 0] > box[:, 1]) | (box[:, 0] == math.inf) | (box[:, 1] == -math.inf)
    if wrong.any():
        j = int(wrong.argmax())
        raise ValueError(f"bounds of entry {j} are {tuple(box[j].tolist())}; the lower must not exceed the upper.")
    return box[:, 0].copy(), box[:, 1].copy()


def integers_of(integrality: Any, n: int) -> Any:
    """Which of n entries are integers, as an array of truth values."""
    if integrality is None:
        return np.zeros(n, dtype=bool)
    marks = host_array(integrality, "integrality")
    if marks.shape not in ((), (n,)):
        raise ValueError(f"integrality has shape {marks.shape}; give 0 or 1 for each of {n} entries.")
    if marks.dtype.kind not in "iufb" or not np.isin(marks, (0, 1)).all():
        raise ValueError(f"integrality is {describe(integrality)}; give 0 (real) or 1 (integer) for each entry.")
    return np.broadcast_to(marks == 1, (n,))

"""Reading linear constraints: rows and their right-hand sides, bounds, which entries are integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from pursuit.arguments import as_list, host_array, is_number, number, real_array, require, sparse_matrix
from pursuit.arrays import Small, host


def rows_of(A: object, b: object, name: str) -> tuple[Any, Small] | None:
    """A matrix and its right-hand side, checked; None where both are left out."""
    if A is None and b is None:
        return None
    if A is None or b is None:
        one, other = ("b", "A") if A is None else ("A", "b")
        raise ValueError(f"{one}_{name} comes without {other}_{name}; give both, or neither.")
    matrix = sparse_matrix(A, f"A_{name}") if sp.issparse(A) else host(real_array(A, f"A_{name}"))
    values = host(real_array(b, f"b_{name}"))
    has_columns = matrix.ndim == 2 and matrix.shape[1] > 0
    require(has_columns, f"A_{name}", matrix, "a matrix with a column for each entry of x")
    m = matrix.shape[0]
    require(values.shape == (m,), f"b_{name}", values, f"a number for each of the {m} rows of A_{name}")
    real_array(matrix.data if sp.issparse(matrix) else matrix, f"A_{name}")
    return sp.csc_array(matrix), values


def box_of(bounds: object, n: int) -> tuple[Small, Small]:
    """Lower and upper bounds of n entries, infinite where there are none."""
    pairs = as_list((None, None) if bounds is None else bounds)
    same = len(pairs) == 2 and all(v is None or is_number(v) for v in pairs)
    pairs = [pairs] if same else pairs
    both = [as_list(pair) for pair in pairs]
    paired = (same or len(both) == n) and all(len(pair) == 2 for pair in both)
    require(paired, "bounds", bounds, f"a pair (lower, upper), or one for each of {n} entries")
    box = np.array([[-math.inf if a is None else number(a), math.inf if b is None else number(b)] for a, b in both])
    empty = ~((box[:, 0] <= box[:, 1]) & (box[:, 0] < math.inf) & (box[:, 1] > -math.inf))  # or no numbers
    j = int(empty.argmax())
    need = "numbers or None, the lower not above the upper"
    require(not empty.any(), f"bounds[{j}]", tuple(both[j]), need)
    low, high = np.broadcast_to(box, (n, 2)).T.copy()
    return low, high


def integers_of(integrality: object, n: int) -> Any:
    """Which of n entries are integers, as an array of truth values."""
    if integrality is None:
        return np.zeros(n, dtype=bool)
    marks = host_array(integrality, "integrality")
    valid = marks.shape in ((), (n,)) and marks.dtype.kind in "iufb" and bool(np.isin(marks, (0, 1)).all())
    require(valid, "integrality", integrality, f"0 (real) or 1 (integer) for each of {n} entries")
    return np.broadcast_to(marks == 1, (n,))

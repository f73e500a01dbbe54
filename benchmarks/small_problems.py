"""The weight solver: what one more atom, or one less (the first, which costs most), costs with k active ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from common import Case, Contender
from scipy.linalg import qr_delete, qr_insert
from scipy.linalg.lapack import dpotrf

from pursuit.linalg import CholeskyFactor


def case(k: int) -> Case:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((2 * k, k + 1))
    A /= np.linalg.norm(A, axis=0)
    G = A.T @ A
    factor, order = CholeskyFactor(), list(range(k))
    factor.build(G[:k, :k])
    Q, R = np.linalg.qr(A[:, :k])

    def append() -> None:
        factor.append(*factor.row(G[order, k]))
        factor.drop(k)  # the last: no work

    def change() -> None:
        factor.drop(0)
        first = order.pop(0)
        factor.append(*factor.row(G[order, first]))
        order.append(first)

    def qr() -> None:
        q, r = qr_delete(Q, R, 0, which="col")
        qr_insert(q, r, A[:, 0], k - 1, which="col")

    contenders = [
        Contender("pursuit, drop one, append one", change),
        Contender("pursuit, append one", append),
        Contender("LAPACK, factor anew", lambda: dpotrf(G[:k, :k], lower=1)[1]),
        Contender("SciPy qr_delete, qr_insert", qr),
    ]
    return Case(f"weights{k}", f"weights{k}: the factor of {k:,} active atoms", contenders)


CASES: dict[str, Callable[[int], Case]] = {f"weights{k}": lambda _, k=k: case(k) for k in (50, 200, 1000)}

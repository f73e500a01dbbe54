"""Many signals at once: `encode` beside scikit-learn, SPAMS and SciPy, random signals and patches of a picture."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from common import Case, Contender, peer
from threadpoolctl import threadpool_limits

from pursuit import encode

OURS, OLS = "pursuit encode", "pursuit encode, ols"
SIZES = {"b": (20_000, 64, 256, 10), "c": (5_000, 256, 1024, 20)}
PART = 50
NOTES = [f"scikit-learn codes one signal in {PART}, on one BLAS thread; its time is multiplied by {PART}"]


def sklearn_omp(D: np.ndarray, Y: np.ndarray, k: int, G: np.ndarray) -> np.ndarray:
    from sklearn.linear_model import orthogonal_mp_gram

    with threadpool_limits(1):
        codes: np.ndarray = orthogonal_mp_gram(G, D.T @ Y[::PART].T, n_nonzero_coefs=k, copy_Xy=False).T
    return codes


def contenders(D: np.ndarray, Y: np.ndarray, k: int, threads: int) -> list[Contender]:
    G, spams = D.T @ D, peer("spams")
    D4, Y4 = D.astype(np.float32), Y.astype(np.float32)
    columns, signals = np.asfortranarray(D), np.asfortranarray(Y.T)
    other = np.ascontiguousarray(D) if D.flags.f_contiguous else columns
    return [
        Contender(OURS, lambda: encode(D, Y, atoms=k, n_jobs=threads)),
        Contender("pursuit encode, Gram given", lambda: encode(D, Y, atoms=k, n_jobs=threads, gram=G), OURS),
        Contender("pursuit encode, D in the other order", lambda: encode(other, Y, atoms=k, n_jobs=threads), OURS),
        Contender("pursuit encode, float32", lambda: encode(D4, Y4, atoms=k, n_jobs=threads), OURS),
        Contender(OLS, lambda: encode(D, Y, atoms=k, n_jobs=threads, method="ols")),
        Contender(
            "scikit-learn orthogonal_mp_gram",
            peer("sklearn.linear_model") and (lambda: sklearn_omp(D, Y, k, G)),
            OURS,
            every=PART,
        ),
        Contender(
            "SPAMS omp (chooses as ols)",
            spams and (lambda: spams.omp(signals, columns, L=k, eps=0.0, lambda1=0.0, numThreads=threads).T),
            OLS,
        ),
    ]


def random(key: str, threads: int) -> Case:
    signals, d, n, k = SIZES[key]
    rng = np.random.default_rng(0)
    D = rng.standard_normal((d, n))
    D /= np.linalg.norm(D, axis=0)
    Y = rng.standard_normal((signals, d))
    title = f"{key}: {signals:,} signals, {d} x {n}, {k} atoms each"
    return Case(key, title, contenders(D, Y, k, threads), NOTES)


def cosines(side: int, per_axis: int) -> np.ndarray:
    """The overcomplete DCT dictionary of side x side patches, with per_axis^2 atoms of unit norm."""
    t = np.arange(side)[:, None] + 0.5
    C = np.cos(np.pi * t * np.arange(per_axis)[None, :] / per_axis)
    C[:, 1:] -= C[:, 1:].mean(axis=0)
    D = np.kron(C, C)
    return np.asfortranarray(D / np.linalg.norm(D, axis=0))


def patches(threads: int) -> Case:
    from sklearn.datasets import load_sample_image

    picture = load_sample_image("china.jpg").mean(axis=2) / 255.0
    windows = np.lib.stride_tricks.sliding_window_view(picture, (8, 8))[::3, ::3].reshape(-1, 64)
    Y = windows - windows.mean(axis=1, keepdims=True)
    Y = Y[np.linalg.norm(Y, axis=1) > 0.1][:15_000]  # flat ones are combinations of fewer atoms, the rest is rounding
    D, k = cosines(8, 16), 8
    title = f"dct: {len(Y):,} textured patches of a picture, overcomplete DCT, 64 x 256, {k} atoms each"
    return Case("dct", title, contenders(D, Y, k, threads), NOTES)


def sklearn_lasso(D: np.ndarray, Y: np.ndarray, penalty: float) -> np.ndarray:
    from sklearn.decomposition import sparse_encode

    with threadpool_limits(1):
        codes: np.ndarray = sparse_encode(Y[::PART], D.T, algorithm="lasso_cd", alpha=penalty, n_jobs=1)
    return codes


def scipy_nnls(D: np.ndarray, Y: np.ndarray) -> np.ndarray:
    from scipy.optimize import nnls

    with threadpool_limits(1):
        return np.array([nnls(D, y)[0] for y in Y[::PART]])


def convex(key: str, threads: int) -> Case:
    """The Lasso and non-negative least squares; signals of norm 1 from few atoms and noise."""
    signals, d, n, k, penalty = {"lasso": (20_000, 64, 256, 12, 0.15), "lasso large": (2_000, 256, 1024, 40, 0.08)}[key]
    rng, spams = np.random.default_rng(0), peer("spams")
    D = rng.standard_normal((d, n))
    D /= np.linalg.norm(D, axis=0)
    chosen = rng.permuted(np.broadcast_to(np.arange(n), (signals, n)), axis=1) < k
    Y = np.where(chosen, rng.standard_normal((signals, n)), 0.0) @ D.T
    Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    Y += 0.5 * rng.standard_normal((signals, d)) / d**0.5
    Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    columns, rows = np.asfortranarray(D), np.asfortranarray(Y.T)

    def ours(**more: object) -> Callable[[], object]:
        return lambda: encode(D, Y, method="lasso", penalty=penalty, n_jobs=threads, **more)

    def others(positive: bool) -> Callable[[], object] | None:
        return spams and (
            lambda: spams.lasso(rows, columns, lambda1=penalty, mode=2, pos=positive, numThreads=threads).T
        )

    lasso, positive, nnls = "pursuit encode, lasso", "pursuit encode, lasso, positive", "pursuit encode, nnls"
    rows_of_table = [
        Contender(lasso, ours()),
        Contender(
            "pursuit encode, lasso, with gaps",
            lambda: encode(D, Y, method="lasso", penalty=penalty, n_jobs=threads, gaps=True)[0],
            lasso,
        ),
        Contender("SPAMS lasso", others(False), lasso),
        Contender(
            "scikit-learn lasso_cd",
            peer("sklearn.decomposition") and (lambda: sklearn_lasso(D, Y, penalty)),
            lasso,
            every=PART,
        ),
        Contender(positive, ours(positive=True)),
        Contender("SPAMS lasso, positive", others(True), positive),
        Contender(nnls, lambda: encode(D, Y, method="nnls", n_jobs=threads)),
        Contender("SciPy nnls", lambda: scipy_nnls(D, Y), nnls, every=PART),
    ]
    title = f"{key}: {signals:,} signals, {d} x {n}, penalty {penalty}"
    notes = [
        f"scikit-learn and SciPy code one signal in {PART}, on one BLAS thread; their times are multiplied by {PART}"
    ]
    return Case(key, title, rows_of_table, notes)


CASES: dict[str, Callable[[int], Case]] = {
    "b": lambda threads: random("b", threads),
    "c": lambda threads: random("c", threads),
    "dct": patches,
    "lasso": lambda threads: convex("lasso", threads),
    "lasso large": lambda threads: convex("lasso large", threads),
}

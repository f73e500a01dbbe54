"""Arguments of the geometry: metrics, vectors and objectives, checked."""

from __future__ import annotations

import math

import numpy as np

from pursuit.arguments import real_array
from pursuit.arrays import Array, Small, host
from pursuit.atoms import Atoms
from pursuit.atoms.closed import Map
from pursuit.geometry.shapes import Shape, shape_of
from pursuit.linalg import EPS
from pursuit.metrics import Diagonal, Metric, as_metric
from pursuit.objectives import Objective


def root(metric: Metric, n: int | None, definite: bool = True) -> Map:
    """T with T'T = M, as a number, a diagonal or a matrix; `definite`: M must have an inverse."""
    if metric.uniform:
        return math.sqrt(metric.h)
    size = host(metric.h).size if isinstance(metric, Diagonal) else math.prod(metric.shape)
    if n is not None and size != n:
        raise ValueError(f"metric acts on vectors of length {size}, the atoms have {n} entries; they must agree.")
    if metric.h is not None:
        h = np.sqrt(host(metric.h).ravel())
        return np.asarray(h if h.all() else np.diag(h))  # closed forms take diagonals without zeros
    M = host(metric.batch(np.eye(size)))
    if float(np.abs(M - M.T).max()) > 1e-10 * float(np.abs(M).max()):
        raise ValueError("metric is not symmetric; give (M + M.T) / 2.")
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    rounding = size * EPS * float(np.abs(values).max())
    if definite and not values[0] > rounding:
        raise ValueError(f"metric has the eigenvalue {values[0]:.3g}; give a positive definite matrix.")
    return np.asarray(np.sqrt(np.where(values > rounding, values, 0.0))[:, None] * vectors.T)


def shape_in_metric(A: Atoms, metric: object) -> Shape:
    """The shape of T A with T'T = M, so that its Euclidean quantities are those of A in the norm of the metric M."""
    shape = shape_of(A)
    return shape if metric is None else shape.image(root(as_metric(metric), shape.n))


def vector(A: Atoms, x: Array, name: str) -> Small:
    """A vector of H, checked and flattened."""
    x = real_array(x, name)
    if A.shape is not None and tuple(x.shape) != A.shape:
        raise ValueError(f"{name} has shape {tuple(x.shape)}, the atoms have shape {A.shape}; they must agree.")
    return host(x).ravel()


def check_objective(f: object, A: Atoms) -> None:
    """f is an objective on the space of the atoms."""
    if not isinstance(f, Objective):
        raise TypeError(f"f is {type(f).__name__}; give an objective such as LeastSquares(y), or wrap it in Smooth.")
    if f.space is not None and A.shape is not None and f.space.shape != A.shape:
        raise ValueError(
            f"f lives on vectors of shape {f.space.shape}, the atoms have shape {A.shape}; they must agree."
        )

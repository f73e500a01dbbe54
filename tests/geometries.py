"""Sets of atoms for the tests of geometry."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

import pursuit as ps

law = settings(deadline=None, derandomize=True, max_examples=25)
seeds = st.integers(0, 10_000)


class OracleOnly(ps.Atoms):
    """A set stripped of everything but its oracle, its shape and its radius."""

    def __init__(self, base):
        self.base, self.shape, self.symmetric, self.radius = base, base.shape, base.symmetric, base.radius

    def lmo(self, g):
        return ps.Atom(np.asarray(self.base.lmo(g).vector))


class Listed(ps.Atoms):
    """Any list of vectors, zero included."""

    def __init__(self, rows):
        self.rows = np.array(rows, dtype=float)
        self.size, self.shape = len(self.rows), self.rows.shape[1:]

    def lmo(self, g):
        return ps.Atom(self.rows[int((self.rows @ g).argmin())])

    def atom(self, i):
        return ps.Atom(self.rows[i])


def unit_columns(seed: int, r: int, n: int) -> np.ndarray:
    D = np.random.default_rng(seed).standard_normal((r, n))
    return D / np.linalg.norm(D, axis=0)


def positive_definite(seed: int, n: int) -> np.ndarray:
    root = np.random.default_rng(seed).standard_normal((n, n))
    return root @ root.T + 0.2 * np.eye(n)

"""Sets of atoms, updates, oracles, domains and objectives that laws are tried on, by the tests and `tools/soak.py`."""

import numpy as np

import pursuit as ps

ARCS = [(i, j) for i in range(4) for j in range(i + 1, 4)]


def sets(rng):
    """One of each kind of set: those of vectors in R^6, and those of 3 x 3 matrices."""
    return [
        ps.Dictionary(rng.standard_normal((6, 9))), ps.Dictionary(rng.standard_normal((6, 9)), signed=True),
        ps.SignedBasis(6), ps.Simplex(6), ps.Ball(6, 2), ps.Box(-np.ones(6), np.ones(6)), ps.KSparse(6, 2),
        ps.Hypersimplex(6, 3), ps.Groups([0, 0, 1, 1, 1, 2]), ps.KSupport(6, 2),
        ps.Groups([0, 0, 1, 1]).through(rng.standard_normal((6, 4))),
        ps.RankOne((3, 4)).at([0, 0, 1, 1, 2, 2], [0, 1, 2, 3, 1, 0]),
        ps.RankOneTensor((2, 2, 2)).at([[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 1], [0, 1, 1], [1, 0, 1]]),
        ps.RankOne((3, 3)), ps.SymmetricRankOne(3), ps.Spectrahedron(3), ps.Orthogonal((3, 3)), ps.Permutations(3),
        ps.NonnegativeRankOne((3, 3)), ps.Outer(ps.KSupport(3, 2), ps.Groups([0, 0, 1]), starts=2),
        ps.OrderedWeights([3, 2, 2, 1, 0.5, 0]), ps.Ellipsoid(np.eye(6) + 0.1, rng.standard_normal(6)),
        ps.Polytope(rng.standard_normal((3, 6)), np.ones(3), bounds=(-1, 1)), ps.Fantope(3, 2),
        ps.Transport([1, 2, 3], [2, 2, 2]), ps.SpanningTrees(ARCS), ps.Matchings([*ARCS[:5], (4, 3)]),
        ps.Paths(ARCS, 0, 3), ps.Flows(ARCS, np.triu(np.ones((4, 4)), 1)),
    ]  # fmt: skip


UPDATES = [
    None, ps.FullyCorrective(), ps.FullyCorrective(several=8), ps.NormCorrective(), ps.NormCorrective(several=8),
    ps.Plain(ps.LineSearch()), ps.Plain(ps.ShortStep()), ps.Away(), ps.Pairwise(), ps.BlendedPairwise(),
    ps.BlendedPursuit(), ps.AcceleratedPursuit(), ps.DecompositionInvariant(),
    ps.Plain(ps.Monotone(ps.OpenLoop("log"))),
    ps.Blocks(ps.FullyCorrective(), "gap"), ps.Blocks(ps.NormCorrective(several=4), "cyclic", certify=1),
]  # fmt: skip
ORACLES = [ps.Exact(), ps.Lazy(), ps.Approximate(0.5), ps.RandomAtom()]
DOMAINS = [
    ps.conv, ps.cone, ps.lin, lambda A: ps.conv(2.0 * A), lambda A: ps.conv(A) + ps.conv(0.5 * A),
    lambda A: ps.conv(A) + ps.lin(A), lambda A: ps.cone(A) + ps.conv(A),
]  # fmt: skip


# ---------------------------------------------------------------------- objectives

PLAIN = ("huber", "narrow", "logistic", "poisson", "multinomial")  # their conjugates have a bounded domain
BOUNDED = (*PLAIN, *(f"weighted {kind}" for kind in PLAIN if kind != "narrow"))
KINDS = ("squares", "weighted", "quadratic", *BOUNDED, "smooth")


def objective(kind: str, rng: np.random.Generator, n: int) -> ps.Objective:
    """A random objective on vectors of length n; the multinomial one on n x 3 matrices."""
    y = rng.standard_normal(n) + 2.0
    s = rng.uniform(0.1, 10.0, n) if kind.startswith("weighted") else None
    if kind == "quadratic":
        B = rng.standard_normal((n, n - 3))  # of rank n - 3: flat directions
        return ps.Quadratic(B @ B.T / n, B @ rng.standard_normal(n - 3))
    return {
        "squares": lambda: ps.LeastSquares(y),
        "weighted": lambda: ps.LeastSquares(y, weights=s),
        "huber": lambda: ps.Huber(y, 1.0, s),
        "narrow": lambda: ps.Huber(y, 0.1),
        "logistic": lambda: ps.Logistic(np.r_[0, 1, rng.integers(0, 2, n - 2)], s),
        "poisson": lambda: ps.Poisson(rng.poisson(2.0, n), s),
        "multinomial": lambda: ps.Multinomial(np.r_[0, 1, 2, rng.integers(0, 3, n - 3)], s),
        "smooth": lambda: ps.Smooth(
            lambda x: 0.25 * float(np.sum((x - y) ** 4)),
            lambda x: (x - y) ** 3,
            conjugate=lambda u: 0.75 * float(np.sum(np.abs(u) ** (4 / 3))) + float(u @ y),
        ),
    }[kind.removeprefix("weighted ")]()


def dictionary(X: np.ndarray, kind: str, signed: bool = False) -> ps.Dictionary:
    """The columns of X as atoms; for a multinomial objective, each in each class."""
    if "multinomial" in kind:
        X = np.stack([np.outer(x, e) for x in X.T for e in np.eye(3)], axis=-1)
    return ps.Dictionary(X, signed=signed)


class Listed(ps.Atoms):
    """Any list of vectors, zero included."""

    def __init__(self, rows):
        self.rows = np.array(rows, dtype=float)
        self.size, self.shape = len(self.rows), self.rows.shape[1:]

    def lmo(self, g):
        return self.atom(int((self.rows @ g).argmin()))

    def atom(self, i):
        return ps.Atom(self.rows[i])

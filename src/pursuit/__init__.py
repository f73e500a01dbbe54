"""pursuit: smooth convex functions over the hull, cone or span of a set of atoms, with a certificate.

Matching pursuit and Frank-Wolfe are one loop here, `minimize(f, domain, update)`. The modules, in the order data flows:

| module | what |
|---|---|
| `linalg` | the linear algebra that the others share |
| `objectives` | what to minimise |
| `atoms` | over which atoms |
| `active`, `weights` | the active set, and the small problems on it |
| `domains` | `conv`, `cone`, `lin`, and their sums |
| `oracles` | who names the next atom: exact, approximate, lazy, screened |
| `steps`, `updates` | how far, where to |
| `refine` | moving the atoms themselves |
| `certificates` | how good |
| `result` | states, rules to stop, traces, results |
| `defaults` | what is chosen when nothing is said |
| `guards` | f and the oracle as the loop calls them: checked and counted |
| `start` | where to begin |
| `solve` | the loop |
| `geometry`, `rates`, `promises` | the theory, as functions |
| `encode` | many signals at once |
"""

from pursuit import geometry, rates, refine
from pursuit.atoms import (
    Atom,
    Atoms,
    Ball,
    Box,
    Dictionary,
    Groups,
    Hypersimplex,
    KSparse,
    KSupport,
    NonnegativeRankOne,
    Orthogonal,
    Parametric,
    Permutations,
    RankOne,
    RankOneTensor,
    SignedBasis,
    Simplex,
    SparseAtom,
    Spectrahedron,
    SymmetricRankOne,
    families,
)
from pursuit.checks import check_atoms, check_objective
from pursuit.citation import citation
from pursuit.domains import cone, conv, lin
from pursuit.coding import encode
from pursuit.objectives import Huber, LeastSquares, Logistic, Multinomial, Objective, Poisson, Quadratic, Smooth
from pursuit.oracles import Approximate, Exact, Lazy, RandomAtom, Screened
from pursuit.path import Path, path
from pursuit.result import Result, State, Status, Stop, Trace
from pursuit.solve import iterate, minimize
from pursuit.steps import Backtracking, CurvatureStep, DiameterStep, LineSearch, OpenLoop, ShortStep
from pursuit.stochastic import Stochastic
from pursuit.updates import (
    AcceleratedPursuit,
    Away,
    BlendedPairwise,
    BlendedPursuit,
    FullyCorrective,
    NormCorrective,
    Pairwise,
    Plain,
)

__version__ = "0.1.0"

__all__ = [
    "AcceleratedPursuit",
    "Approximate",
    "Atom",
    "Atoms",
    "Away",
    "Backtracking",
    "Ball",
    "BlendedPairwise",
    "BlendedPursuit",
    "Box",
    "CurvatureStep",
    "DiameterStep",
    "Dictionary",
    "Exact",
    "FullyCorrective",
    "Groups",
    "Huber",
    "Hypersimplex",
    "KSparse",
    "KSupport",
    "Lazy",
    "LeastSquares",
    "LineSearch",
    "Logistic",
    "Multinomial",
    "NonnegativeRankOne",
    "NormCorrective",
    "Objective",
    "OpenLoop",
    "Orthogonal",
    "Pairwise",
    "Parametric",
    "Path",
    "Permutations",
    "Plain",
    "Poisson",
    "Quadratic",
    "RandomAtom",
    "RankOne",
    "RankOneTensor",
    "Result",
    "Screened",
    "ShortStep",
    "SignedBasis",
    "Simplex",
    "Smooth",
    "SparseAtom",
    "Spectrahedron",
    "State",
    "Status",
    "Stochastic",
    "Stop",
    "SymmetricRankOne",
    "Trace",
    "check_atoms",
    "check_objective",
    "citation",
    "cone",
    "conv",
    "encode",
    "families",
    "geometry",
    "iterate",
    "lin",
    "minimize",
    "path",
    "rates",
    "refine",
]

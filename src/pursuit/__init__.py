"""pursuit: smooth convex functions over the hull, cone or span of a set of atoms, with a certificate.

Matching pursuit and Frank-Wolfe are one loop here, `minimize(f, domain, update)`. The modules, in the order data flows:

| module | content |
|---|---|
| `linalg` | linear algebra that several modules share |
| `objectives`, `stochastic` | the functions to minimise |
| `atoms` | the sets of atoms |
| `active`, `weights` | the active set, and the small problems in its weights |
| `domains` | `conv`, `cone`, `lin`, `penalty`, their sums and products |
| `oracles` | the search for the next atom: exact, approximate, lazy, random |
| `steps`, `updates` | step lengths; the change of the weights |
| `refine` | the change of the atoms themselves |
| `certificates` | lower bounds on the minimum |
| `run` | what one run needs: method, first atoms, checks, states, stopping rules, results, files |
| `solve` | the loop, `minimize` |
| `paths` | `path`: one problem at several radii or sizes |
| `derivatives` | `differentiate`: how a solution changes with its problem |
| `coding` | `encode`: many signals at once; `encode_to`: from and to files |
| `cluster` | columns, samples and signals spread over the workers of a dask cluster |
| `dictionaries` | `learn`: dictionaries on which given signals have sparse codes |
| `geometry`, `rates`, `promises` | the theory, as functions |
| `estimators` | scikit-learn's estimators; needs scikit-learn, so import it by name |
| `models` | `load`: saved estimators |
| `plots`, `report` | figures; pages about results and models, in one HTML file each |
"""

from pursuit import geometry, plots, rates, refine
from pursuit.active import ActiveSet
from pursuit.arrays import Space
from pursuit.atoms import (
    Atom,
    Atoms,
    Ball,
    Box,
    Dictionary,
    Ellipsoid,
    Fantope,
    Flows,
    Groups,
    Hypersimplex,
    KSparse,
    KSupport,
    Matchings,
    NonnegativeRankOne,
    OrderedWeights,
    Orthogonal,
    Parametric,
    Paths,
    Permutations,
    Polytope,
    RankOne,
    RankOneTensor,
    SignedBasis,
    Simplex,
    SpanningTrees,
    SparseAtom,
    Spectrahedron,
    Streamed,
    SymmetricRankOne,
    Transport,
    families,
)
from pursuit.checks import check_atoms, check_objective
from pursuit.citing import citation
from pursuit.cluster.sharded import Sharded
from pursuit.cluster.sums import ShardedSum
from pursuit.coding import encode
from pursuit.coding.files import StoredCodes, encode_to
from pursuit.derivatives import differentiate
from pursuit.dictionaries import Learned, learn
from pursuit.domains import Answer, Domain, cone, conv, lin, penalty, product
from pursuit.line_search import UnboundedError
from pursuit.models import load
from pursuit.objectives import (
    Huber,
    LeastSquares,
    LogDet,
    Logistic,
    Multinomial,
    Objective,
    Poisson,
    Quadratic,
    Ridge,
    Smooth,
    TraceInverse,
)
from pursuit.oracles import Approximate, Exact, Lazy, Oracle, RandomAtom
from pursuit.paths import Path, path
from pursuit.refine import Refine
from pursuit.run.result import Result, State
from pursuit.run.stop import Status, Stop
from pursuit.run.trace import Trace
from pursuit.solve import iterate, minimize
from pursuit.state import Stateful
from pursuit.steps import (
    Backtracking,
    CurvatureStep,
    DiameterStep,
    LineSearch,
    Monotone,
    Move,
    OpenLoop,
    ShortStep,
    StepRule,
)
from pursuit.stochastic import Stochastic
from pursuit.updates import (
    AcceleratedPursuit,
    Away,
    BlendedPairwise,
    BlendedPursuit,
    Blocks,
    DecompositionInvariant,
    FullyCorrective,
    NormCorrective,
    Pairwise,
    Plain,
    Update,
)

__version__ = "0.1.0"

__all__ = [
    "AcceleratedPursuit",
    "ActiveSet",
    "Answer",
    "Approximate",
    "Atom",
    "Atoms",
    "Away",
    "Backtracking",
    "Ball",
    "BlendedPairwise",
    "BlendedPursuit",
    "Blocks",
    "Box",
    "CurvatureStep",
    "DecompositionInvariant",
    "DiameterStep",
    "Dictionary",
    "Domain",
    "Ellipsoid",
    "Exact",
    "Fantope",
    "Flows",
    "FullyCorrective",
    "Groups",
    "Huber",
    "Hypersimplex",
    "KSparse",
    "KSupport",
    "Lazy",
    "Learned",
    "LeastSquares",
    "LineSearch",
    "LogDet",
    "Logistic",
    "Matchings",
    "Monotone",
    "Move",
    "Multinomial",
    "NonnegativeRankOne",
    "NormCorrective",
    "Objective",
    "OpenLoop",
    "Oracle",
    "OrderedWeights",
    "Orthogonal",
    "Pairwise",
    "Parametric",
    "Path",
    "Paths",
    "Permutations",
    "Plain",
    "Poisson",
    "Polytope",
    "Quadratic",
    "RandomAtom",
    "RankOne",
    "RankOneTensor",
    "Refine",
    "Result",
    "Ridge",
    "Sharded",
    "ShardedSum",
    "ShortStep",
    "SignedBasis",
    "Simplex",
    "Smooth",
    "Space",
    "SpanningTrees",
    "SparseAtom",
    "Spectrahedron",
    "State",
    "Stateful",
    "Status",
    "StepRule",
    "Stochastic",
    "Stop",
    "StoredCodes",
    "Streamed",
    "SymmetricRankOne",
    "Trace",
    "TraceInverse",
    "Transport",
    "UnboundedError",
    "Update",
    "check_atoms",
    "check_objective",
    "citation",
    "cone",
    "conv",
    "differentiate",
    "encode",
    "encode_to",
    "families",
    "geometry",
    "iterate",
    "learn",
    "lin",
    "load",
    "minimize",
    "path",
    "penalty",
    "plots",
    "product",
    "rates",
    "refine",
]

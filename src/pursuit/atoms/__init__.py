"""Over which atoms: sets that answer one question, `lmo(g)`."""

from pursuit.atoms import families
from pursuit.atoms.base import Atoms
from pursuit.atoms.columns import Dictionary
from pursuit.atoms.convolutional import Convolutional
from pursuit.atoms.events import Events
from pursuit.atoms.frames import Atom
from pursuit.atoms.graphs import Flows, Paths, SpanningTrees
from pursuit.atoms.groups import Groups, KSupport
from pursuit.atoms.matchings import Matchings
from pursuit.atoms.matrices import RankOne, Spectrahedron, SymmetricRankOne
from pursuit.atoms.nonnegative import NonnegativeRankOne
from pursuit.atoms.norms import Ellipsoid, OrderedWeights
from pursuit.atoms.outer import Outer
from pursuit.atoms.parametric import Parametric
from pursuit.atoms.polytopes import Hypersimplex, KSparse, Permutations
from pursuit.atoms.programs import Polytope
from pursuit.atoms.projections import Fantope, Orthogonal
from pursuit.atoms.sparse import SparseAtom
from pursuit.atoms.streamed import Streamed
from pursuit.atoms.tensors import RankOneTensor
from pursuit.atoms.transport import Transport
from pursuit.atoms.vectors import Ball, Box, SignedBasis, Simplex

__all__ = [
    "Atom",
    "Atoms",
    "Ball",
    "Box",
    "Convolutional",
    "Dictionary",
    "Ellipsoid",
    "Events",
    "Fantope",
    "Flows",
    "Groups",
    "Hypersimplex",
    "KSparse",
    "KSupport",
    "Matchings",
    "NonnegativeRankOne",
    "OrderedWeights",
    "Orthogonal",
    "Outer",
    "Parametric",
    "Paths",
    "Permutations",
    "Polytope",
    "RankOne",
    "RankOneTensor",
    "SignedBasis",
    "Simplex",
    "SpanningTrees",
    "SparseAtom",
    "Spectrahedron",
    "Streamed",
    "SymmetricRankOne",
    "Transport",
    "families",
]

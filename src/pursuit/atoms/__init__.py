"""Over which atoms: sets that answer one question, `lmo(g)`."""

from pursuit.atoms.base import Atoms
from pursuit.atoms.frames import Atom, SparseAtom
from pursuit.atoms.groups import Groups, KSupport
from pursuit.atoms.matrices import Orthogonal, RankOne, Spectrahedron, SymmetricRankOne
from pursuit.atoms.nonnegative import NonnegativeRankOne
from pursuit.atoms.parametric import Parametric
from pursuit.atoms.polytopes import Hypersimplex, KSparse, Permutations
from pursuit.atoms.programs import Polytope
from pursuit.atoms.tensors import RankOneTensor
from pursuit.atoms.vectors import Ball, Box, Dictionary, SignedBasis, Simplex

__all__ = [
    "Atom",
    "Atoms",
    "Ball",
    "Box",
    "Dictionary",
    "Groups",
    "Hypersimplex",
    "KSparse",
    "KSupport",
    "NonnegativeRankOne",
    "Orthogonal",
    "Parametric",
    "Permutations",
    "Polytope",
    "RankOne",
    "RankOneTensor",
    "SignedBasis",
    "Simplex",
    "SparseAtom",
    "Spectrahedron",
    "SymmetricRankOne",
]

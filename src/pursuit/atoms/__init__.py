"""Over which atoms: sets that answer one question, `lmo(g)`."""

from pursuit.atoms.base import Atoms
from pursuit.atoms.frames import Atom, SparseAtom
from pursuit.atoms.matrices import Orthogonal, RankOne, Spectrahedron, SymmetricRankOne
from pursuit.atoms.nonnegative import NonnegativeRankOne
from pursuit.atoms.polytopes import Hypersimplex, KSparse, Permutations
from pursuit.atoms.vectors import Ball, Box, Dictionary, SignedBasis, Simplex

__all__ = [
    "Atom",
    "Atoms",
    "Ball",
    "Box",
    "Dictionary",
    "Hypersimplex",
    "KSparse",
    "NonnegativeRankOne",
    "Orthogonal",
    "Permutations",
    "RankOne",
    "SignedBasis",
    "Simplex",
    "SparseAtom",
    "Spectrahedron",
    "SymmetricRankOne",
]

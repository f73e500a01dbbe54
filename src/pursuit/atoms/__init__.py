"""Over which atoms: sets that answer one question, `lmo(g)`."""

from pursuit.atoms.base import Atoms
from pursuit.atoms.frames import Atom, SparseAtom
from pursuit.atoms.groups import Groups, KSupport
from pursuit.atoms.polytopes import Hypersimplex, KSparse, Permutations
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
    "Permutations",
    "SignedBasis",
    "Simplex",
    "SparseAtom",
]

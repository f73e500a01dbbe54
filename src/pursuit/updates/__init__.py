"""Updates: how the weights of the active set change once the oracle has named an atom.

`Plain` moves towards the new atom only (the paper's variant 0); `Away`, `Pairwise` and `BlendedPairwise` may also take
weight from active atoms, `DecompositionInvariant` from a face; `NormCorrective` and `FullyCorrective` correct all
weights; `Blocks` moves one summand at a time. An update is a frozen value, the same for all domains; `begin` returns
the function for one run, which holds the memory of that run.
"""

from __future__ import annotations

from pursuit.steps import Decrease as Decrease
from pursuit.updates.base import Now as Now
from pursuit.updates.base import Update
from pursuit.updates.blocks import Blocks
from pursuit.updates.corrective import FullyCorrective, NormCorrective
from pursuit.updates.faces import DecompositionInvariant
from pursuit.updates.pursuits import AcceleratedPursuit, BlendedPursuit
from pursuit.updates.walks import Away, BlendedPairwise, Pairwise, Plain

__all__ = [
    "AcceleratedPursuit",
    "Away",
    "BlendedPairwise",
    "BlendedPursuit",
    "Blocks",
    "DecompositionInvariant",
    "FullyCorrective",
    "NormCorrective",
    "Pairwise",
    "Plain",
    "Update",
]

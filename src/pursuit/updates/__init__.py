"""Where to: how the weights on the active set change once the oracle has named an atom.

`Plain` moves towards the new atom only (the paper's variant 0); `Away`, `Pairwise` and `BlendedPairwise` may also take
weight from old ones; `NormCorrective` and `FullyCorrective` correct all weights. An update is a frozen value and does
not know which domain it serves; `begin` gives the function that serves one run, and with it the memory of the run.
"""

from __future__ import annotations

from pursuit.updates.base import Now, Update
from pursuit.updates.corrective import FullyCorrective, NormCorrective
from pursuit.updates.pursuits import AcceleratedPursuit, BlendedPursuit
from pursuit.updates.walks import Away, BlendedPairwise, Pairwise, Plain

__all__ = [
    "AcceleratedPursuit",
    "Away",
    "BlendedPairwise",
    "BlendedPursuit",
    "FullyCorrective",
    "NormCorrective",
    "Now",
    "Pairwise",
    "Plain",
    "Update",
]

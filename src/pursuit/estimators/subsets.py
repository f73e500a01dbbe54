"""`search="swaps"` and `search="exact"` of greedy models: the best features of one size, and what is proved of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pursuit.arguments import require
from pursuit.atoms.columns import Dictionary
from pursuit.atoms.groups import Groups
from pursuit.domains import Domain, cone, lin
from pursuit.estimators.base import Array
from pursuit.estimators.design import Design, Loss, ModelPath, Row
from pursuit.run.stop import Stop
from pursuit.subsets import BestSubset, best


@dataclass
class SubsetSolver:
    """The model without features, and the best of `size` features: by exchanges, or `exact`."""

    size: int
    l2: float
    groups: Any
    positive: bool
    exact: bool

    def __call__(self, f: Loss, design: Design) -> ModelPath:
        first = design.without_features(f, 1e-12)
        if not design.q:
            return ModelPath.of(design, [first], 1)
        domain = design.with_intercepts(self._domain(f, design), f.space.shape)
        r = best(f, domain, self.size, l2=self.l2, stop=Stop(iterations=None if self.exact else 0))
        assert isinstance(r, BestSubset)
        B, c = (*r.coef, np.zeros(0))[:2] if isinstance(r.coef, tuple) else (r.coef, np.zeros(0))
        outputs = first.B.shape[1]
        c = np.reshape(c, -1) if len(c) else np.zeros(outputs)
        row = Row(float(len(r.chosen)), r.value, r.gap, np.reshape(B, (design.q, -1)), c)
        return ModelPath.of(design, [first, row], r.iterations + 1, r)

    def _domain(self, f: Loss, design: Design) -> Domain:
        several = len(f.space.shape) == 2
        if self.groups is None and not several:
            return (cone if self.positive else lin)(Dictionary(design.X))
        require(not self.positive, "positive", True, "False with groups or several outputs")
        labels: Array = np.arange(design.q) if self.groups is None else design.groups(self.groups)
        outputs = f.space.shape[1] if several else 1
        return lin(Groups(np.repeat(labels, outputs)).through(design.X, columns=outputs if several else None))

"""Fewer atoms: `Merge` joins nearly equal atoms, `Prune` drops atoms that hardly lower f."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pursuit.active import ActiveSet
from pursuit.arguments import number, require, use_python_numbers
from pursuit.arrays import Indices, Small
from pursuit.atoms.frames import Atom
from pursuit.domains import Domain, Part
from pursuit.metrics import Identity
from pursuit.objectives import Objective
from pursuit.refine.proposals import Proposal
from pursuit.weights import Mask, WeightProblem


def _check_share(share: float) -> None:
    what = "the share of the decrease of f that may be given back, from 0 to 1"
    require(0 <= number(share) <= 1, "share", share, what)


@dataclass(frozen=True)
class Merge:
    """Nearly equal atoms of one summand, those whose distance is at most `tolerance` times the larger norm, become one
    atom with the sum of their weights.

    Where the atoms have parameters in a box (`Parametric`), the merged one has their weighted mean; elsewhere it is the
    atom with the largest weight. Use it with `Slide`, which moves atoms together and lowers f again afterwards:
    ``refine=(Slide(), Merge(1e-3), Slide())``. A merger that gives back more than a `share` of the decrease of f in the
    update is refused.

    >>> import pursuit as ps
    >>> A = ps.Parametric(ps.families.Gaussian(np.linspace(0, 1, 50), 0.1), [(0, 1)])
    >>> start = [1.0, 3.0, 1.0], [A.rebuild(ps.Atom(np.zeros(50), (c,))) for c in (0.40, 0.41, 0.8)]
    >>> f = ps.LeastSquares(np.ones(50))
    >>> active = next(ps.iterate(f, ps.cone(A), start=start)).active
    >>> weights, atoms, blocks = Merge(0.1)(f, ps.cone(A), active)
    >>> weights, atoms[0].source
    (array([4., 1.]), (0.4075,))
    """

    tolerance: float
    share: float = 0.5

    def __post_init__(self) -> None:
        require(0 < number(self.tolerance) < 1, "tolerance", self.tolerance, "a relative distance between 0 and 1")
        _check_share(self.share)
        use_python_numbers(self)

    def __call__(self, f: Objective, domain: Domain, active: ActiveSet) -> Proposal | None:
        places = active.support
        if len(places) < 2:
            return None
        blocks, w = active.blocks[places], active.weights[places]
        near, signs = self._pairs(domain, blocks, active.gram(Identity(), places))
        weights, atoms, firsts, unmerged = [], [], [], np.ones(len(places), dtype=bool)
        for i in np.argsort(-np.abs(w), kind="stable"):  # the atom with the largest weight takes its neighbours
            if unmerged[i]:
                group = np.flatnonzero(near[i] & unmerged)
                group = np.append(i, group[group != i])
                unmerged[group] = False
                signed = w[group] * signs[i, group]
                weights.append(float(signed.sum()))
                atoms.append(_mean(domain.parts[blocks[i]], [active.atoms[places[j]] for j in group], signed))
                firsts.append(i)
        return None if len(atoms) == len(places) else Proposal(np.array(weights), atoms, blocks[firsts])

    def _pairs(self, domain: Domain, blocks: Indices, G: Small) -> tuple[Mask, Small]:
        """Which pairs are nearly equal, and with which sign: in a span an atom and its negative count as equal."""
        signless = np.array([part.signless for part in domain.parts])[blocks]
        signs = np.where(signless[:, None] & (G < 0), -1.0, 1.0)
        squares = G.diagonal()
        distance = squares[:, None] + squares[None, :] - 2.0 * signs * G
        near = distance <= self.tolerance**2 * np.maximum(squares[:, None], squares[None, :])
        return near & (blocks[:, None] == blocks[None, :]), signs


def _mean(part: Part, atoms: list[Atom], weights: Small) -> Atom:
    """One atom for several: that of the mean parameters where these are bounded, else the first."""
    chart = part.asked.chart()
    if chart is None or not np.isfinite(chart.bounds).all() or any(part.asked.rebuild(a) is None for a in atoms):
        return atoms[0]
    thetas = np.array([chart.parameters(a.source) for a in atoms])
    source, sign = chart.source(np.average(thetas, axis=0, weights=np.abs(weights)))
    return part.asked.rebuild(Atom(np.zeros(0), source, sign * atoms[0].coef)) or atoms[0]


@dataclass(frozen=True)
class Prune:
    r"""The truncation of CoGEnT: the atom whose removal raises f least is dropped and the others are refitted, as long
    as at most a `share` :math:`\eta` of the decrease of f in the update is given back:
    :math:`f(x_{t+1}) \le (1-\eta) f(x_{t+1/2}) + \eta f(x_t)`. So f still never increases.

    Let G be the Gram matrix of the atoms with weight, in the metric of the Hessian. Removing atom i and refitting the
    others raises a quadratic f by :math:`w_i^2 / (2 (G^{-1})_{ii})`; where the domain fixes sums of weights, the
    inverse is that on the directions which keep the sums. This ranks the atoms. The refit itself also respects the
    signs and is exact. For other f the refit is a Newton step, and the value of f decides whether it is accepted.

    >>> import pursuit as ps
    >>> rng = np.random.default_rng(4)
    >>> D = rng.standard_normal((40, 100))
    >>> y = D[:, :8] @ rng.choice([-1.0, 1.0], 8)
    >>> f, A, stop = ps.LeastSquares(y), ps.lin(ps.Dictionary(D)), ps.Stop(value=1e-9, iterations=40)
    >>> update = ps.FullyCorrective()
    >>> [len(ps.minimize(f, A, update, stop=stop, refine=refine).atoms) for refine in (None, Prune())]
    [9, 8]
    """

    share: float = 0.5

    def __post_init__(self) -> None:
        _check_share(self.share)
        use_python_numbers(self)

    def __call__(self, f: Objective, domain: Domain, active: ActiveSet) -> Proposal | None:
        places = active.support
        if len(places) < 2:
            return None
        q, w = active.analyze(f.value_and_grad(active.x)[1])[places], active.weights[places]
        G = active.gram(f.hessian(active.x) or Identity(float(f.L or 1.0)), places)
        stay, best, blocks = np.arange(len(places)), w, active.blocks[places]
        while len(stay) > 1 and not active.deadline.passed:
            trial = np.delete(stay, _cheapest(domain, blocks[stay], G[np.ix_(stay, stay)], best[stay]))
            weights = _refit(domain, blocks, G, q, w, trial)
            if weights is None:
                break
            full = np.zeros(len(active.weights))
            full[places] = weights
            if not f.value(active.synthesize(full)) <= active.ceiling:
                break
            stay, best = np.flatnonzero(weights), weights
        if len(stay) == len(places):
            return None
        return Proposal(best[stay], [active.atoms[i] for i in places[stay]], blocks[stay])


def _cheapest(domain: Domain, blocks: Indices, G: Small, w: Small) -> int:
    """The place of the atom whose removal raises the quadratic model least when the others are refitted."""
    hulls = [b for b, part in enumerate(domain.parts) if part.compact]
    sums = np.stack([np.equal(blocks, b) for b in hulls]).astype(float) if hulls else np.zeros((0, len(w)))
    G = G / (float(np.trace(G)) / len(w) or 1.0)
    inverse = np.linalg.pinv(np.block([[G, sums.T], [sums, np.zeros((len(hulls), len(hulls)))]]), hermitian=True)
    with np.errstate(divide="ignore"):  # 0: the last atom of a hull, which cannot go
        return int((w**2 / np.maximum(inverse.diagonal()[: len(w)], 0.0)).argmin())


def _refit(domain: Domain, blocks: Indices, G: Small, q: Small, w: Small, stay: Indices) -> Small | None:
    """Weights on `stay` alone that minimise the quadratic model at w; None where a hull would have no atom."""
    start = np.zeros(len(w))
    start[stay] = w[stay]
    if not domain.normalise(start, blocks):
        return None
    nonnegative = domain.signs[blocks[stay]]
    problem = WeightProblem.of(G[np.ix_(stay, stay)], nonnegative, blocks[stay], [part.total for part in domain.parts])
    slope = (q + G @ (start - w))[stay]
    out = np.zeros(len(w))
    out[stay] = problem.descend(slope, start[stay])
    return out

"""The figures of the executable paper, one panel per image, so that they are readable on a phone."""

from __future__ import annotations

from typing import Any

import numpy as np

import pursuit as ps
from pursuit import geometry, rates
from pursuit.linalg import unit_columns
from pursuit.paper.claims import Plan
from pursuit.paper.experiments import experiment
from pursuit.paper.problems import SHORT_STEP, Problem, Values, lower_bound, quadratic
from pursuit.report.figures import BLUE, GREEN, GREY, RED, Panel
from pursuit.report.html import Section


def appendix(plan: Plan) -> Section:
    angles = list(experiment(plan, angles=plan.problems))
    degrees = np.degrees([a.theta for a in angles])
    Q = np.array([a.Q for a in angles])
    ratio = Panel(
        "experiment-ratio", "How tight is the linear rate?", xlabel="angle θ (degrees)", ylabel="Q", yscale="log"
    )
    ratio.ax.fill_between(
        degrees, Q.min(axis=1), Q.max(axis=1), color=BLUE, alpha=0.18, lw=0, label="min to max of 20 starts"
    )
    ratio.ax.plot(degrees, Q.mean(axis=1), color=BLUE, marker=".", label="mean of 20 starts")
    ratio.ax.axhline(1.0, color=RED, ls="--", label="Q = 1: the rate is attained")
    ratio.ax.set(xticks=range(0, 91, 15), ylim=(0.85, 5 * Q.max()))  # room for the legend
    steps = Panel("experiment-steps", "Error kept by one step", xlabel="angle θ (degrees)", ylabel="ε after / ε before")
    first = np.array([(a.eps[:, 1] / a.eps[:, 0]).mean() for a in angles])
    later = np.array([(a.eps[:, 2] / a.eps[:, 1]).mean() for a in angles])
    steps.ax.plot(degrees, [a.factor for a in angles], color=RED, ls="--", label="promised: cos²(θ/2)")
    steps.ax.plot(degrees, first, color=BLUE, marker=".", label="first step, mean")
    steps.ax.plot(degrees, later, ".", color=GREEN, ms=8, label="later steps")
    steps.ax.plot(degrees, np.cos(np.radians(degrees)) ** 2, color=GREEN, lw=1.0, label="cos²(θ)")
    steps.ax.set(ylim=(0, 1.05), xticks=range(0, 91, 15))
    mean = f"Over all angles the mean of Q is {Q.mean():.2f}; its smallest value is {Q.min():.6f}."
    return Section(
        "The experiment of the appendix",
        [
            "f(x) = ‖x − x*‖² with x* = (−1, 1), so L = μ = 2, over the span of ±{(1, 0), (cos θ, sin θ)}, by "
            "Algorithm 4, variant 0, with an exact oracle. The width of this set is mDW = sin(θ/2), so Theorem 7 "
            "promises the factor cos²(θ/2) per step.",
            "<b>Definition.</b> The figure shows Q = cos²(θ/2) · ε<sub>0</sub> / ε<sub>1</sub>, the promised factor "
            "over the measured factor of the first step, from 20 random starts x<sub>0</sub> per angle, each a "
            "Dirichlet(1, 1, 1, 1) mixture of the four atoms. The paper plots a “ratio” that it does not define; this "
            "definition is ours. Theorem 7 says Q ≥ 1, and nothing bounds Q from above.",
        ],
        figures=[ratio.done(mean), steps.done("After the first step the error shrinks by exactly cos²(θ) per step.")],
    )


def promised_and_measured(plan: Plan) -> Section:
    """Short steps on quadratics over hulls and spans, with an exact oracle and an adversary, and what is promised."""
    rng, pair = plan.rng(20), np.array([[1.0, np.cos(np.pi / 6)], [0.0, 0.5]])
    D = unit_columns(rng.standard_normal((10, 30)))
    cases: list[tuple[str, str, Any, int]] = [
        ("l1-ball", "Frank-Wolfe, L1 ball", ps.conv(2.0 * ps.SignedBasis(20)), 200),
        ("simplex", "Frank-Wolfe, simplex", ps.conv(ps.Simplex(20)), 200),
        ("hull", "Frank-Wolfe, 30 pairs ±", ps.conv(ps.Dictionary(D, signed=True)), 200),
        ("basis", "matching pursuit, ± unit vectors", ps.lin(ps.SignedBasis(20)), 100),
        ("pair", "matching pursuit, two pairs ± at 30 degrees", ps.lin(ps.Dictionary(pair, signed=True)), 60),
    ]
    figures = []
    for name, title, domain, steps in cases:
        A, n, over_hull = domain.A, domain.A.shape[0], domain.compact
        target = rng.standard_normal(n)
        f, best = quadratic(rng, n, 0.6 * target / np.linalg.norm(target), condition=8.0 if over_hull else 2.0)
        first = ([1.0], [A.lmo(-f.value_and_grad(np.zeros(n))[1])]) if over_hull else None
        p = Problem(name, f, A, lower_bound(f, A, 1e-12, 500) if over_hull else best, first, target)
        panel = Panel(name, title, xlabel="updates t", ylabel="f(x) − f*", yscale="log")
        t, radius, known = np.arange(1.0, steps + 1), geometry.radius(A), {"L": f.L or 0.0}
        for delta, colour, who in ((1.0, BLUE, "exact"), (0.5, RED, "adversary, δ = 0.5")):
            eps = p.errors(p.states(domain, SHORT_STEP, steps, delta))
            at: Values = known | {"eps0": float(eps[0]), "delta": delta}
            if over_hull:
                bound = rates.frank_wolfe(t, diameter=geometry.diameter(A), **at)
            else:
                bound = rates.linear(t, mu=f.mu, mdw=geometry.mdw(A), radius=radius, **at)
            shown = eps[1:] > 1e-12 * eps[0]
            panel.ax.plot(t[shown], eps[1:][shown], color=colour, label=who)
            panel.ax.plot(t, bound, color=colour, ls="--", lw=1.3)
        panel.ax.plot([], [], color=GREY, ls="--", lw=1.3, label="promised")
        figures.append(panel.done("The promise is Theorem 1." if over_hull else "The promise is Theorem 7."))
    text = "Algorithm 2, variant 3, and Algorithm 4, variant 0, on quadratics."
    return Section("Promised and measured", [text], figures=figures)


FIGURES = (appendix, promised_and_measured)
"""In the order of the page."""

"""The figures of the executable paper, one panel per image, so that they are readable on a phone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pursuit as ps
from pursuit import geometry, rates
from pursuit.arrays import Small
from pursuit.atoms import Atoms
from pursuit.linalg import unit_columns
from pursuit.objectives import Objective
from pursuit.paper.claims import Plan
from pursuit.paper.equivalence import StepComparison
from pursuit.paper.experiments import experiment
from pursuit.paper.problems import SHORT_STEP, Problem, lower_bound, quadratic
from pursuit.report.figures import BLUE, GREEN, GREY, RED, Panel
from pursuit.report.html import Figure, Section

ADVERSARY_DELTA = 0.5
FIGURE_STEPS = 200


# ---------------------------------------------------------------------- the experiment of the appendix


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
    plain_ticks(ratio.ax.yaxis, Q.max())
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


def plain_ticks(axis: Any, top: float) -> None:
    """1, 2, 5, 10, ... instead of powers of ten."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    marks = [m * 10.0**k for k in range(9) for m in (1, 2, 5) if m * 10.0**k <= 1.5 * top]
    axis.set_major_locator(FixedLocator(marks if len(marks) < 9 else [m for m in marks if f"{m:.0e}"[0] == "1"]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))


# ---------------------------------------------------------------------- Frank-Wolfe tends to matching pursuit


def frank_wolfe_limit(plan: Plan) -> Section:
    alphas = np.geomspace(1.0, 1e4, 33)
    apart = Panel("one-over-alpha", "Frank-Wolfe on αA, matching pursuit on A", xlabel="α", ylabel="‖x(FW) − x(MP)‖")
    scaled = Panel("limit-constant", "The limit constant is exact", xlabel="α", ylabel="α ‖x(FW) − x(MP)‖ / limit")
    for i, colour in enumerate((BLUE, RED, GREEN)):
        m = StepComparison(plan, i)
        distance = np.array([m.distance(alpha) for alpha in alphas])
        apart.ax.loglog(alphas, distance, color=colour, label=f"problem {i + 1}")
        apart.ax.loglog(alphas, m.limit / alphas, color=colour, ls="--", lw=1.2)
        scaled.ax.semilogx(alphas, alphas * distance / m.limit, color=colour, label=f"problem {i + 1}")
    apart.ax.plot([], [], color=GREY, ls="--", lw=1.2, label="limit / α")
    scaled.ax.axhline(1.0, color=GREY, ls="--", lw=1.2)
    scaled.ax.set_ylim(0, 2)
    return Section(
        "Frank-Wolfe tends to matching pursuit",
        [
            "One step of Frank-Wolfe (Algorithm 2, variant 3) on αA and one of matching pursuit (Algorithm 4, variant "
            "0) on A, from the same x. Theorem 14 says that they approach each other as 1/α; the constant is "
            "‖(⟨g, x⟩ + 2a⟨z, x⟩/‖z‖²) z − a x‖ / (L‖z‖²) with a = ⟨−g, z⟩, <code>rates.frank_wolfe_limit</code>.",
        ],
        figures=[
            apart.done("Distance of the two iterates (solid) and limit / α (dashed)."),
            scaled.done("α times the distance, divided by the promised limit, tends to 1."),
        ],
    )


# ---------------------------------------------------------------------- promised and measured


Bound = Callable[[Small, float, float], Any]
"""(t, eps_0, delta) -> the promise."""


def _measured_and_promised(panel: Panel, p: Problem, domain: Any, bound: Bound, steps: int, caption: str) -> Figure:
    t = np.arange(1.0, steps + 1)
    for delta, colour, who in ((1.0, BLUE, "exact"), (ADVERSARY_DELTA, RED, f"adversary, δ = {ADVERSARY_DELTA:g}")):
        eps = p.errors(p.states(domain, SHORT_STEP, steps, delta))
        shown = eps[1:] > 1e-12 * eps[0]
        panel.ax.plot(t[shown], eps[1:][shown], color=colour, label=who)
        panel.ax.plot(t, bound(t, float(eps[0]), delta), color=colour, ls="--", lw=1.3)
    panel.ax.plot([], [], color=GREY, ls="--", lw=1.3, label="promised")
    return panel.done(caption)


def frank_wolfe(plan: Plan) -> Section:
    rng = plan.rng(20)
    sets: list[tuple[str, str, Atoms, int]] = [
        ("l1-ball", "L1 ball in dimension 20", 2.0 * ps.SignedBasis(20), 20),
        ("simplex", "simplex in dimension 20", ps.Simplex(20), 20),
        (
            "dictionary",
            "30 random pairs ± in dimension 10",
            ps.Dictionary(unit_columns(rng.standard_normal((10, 30))), signed=True),
            10,
        ),
    ]
    figures = []
    for name, title, A, n in sets:
        target = rng.standard_normal(n)
        f = quadratic(rng, n, 0.6 * target / float(np.linalg.norm(target)))[0]
        best = lower_bound(f, A, 1e-12, 500)
        p = Problem(name, f, A, best, ([1.0], [A.lmo(-f.value_and_grad(np.zeros(n))[1])]))
        diameter = geometry.diameter(A)
        panel = Panel(f"frank-wolfe-{name}", title, xlabel="updates t", ylabel="f(x) − f*", xscale="log", yscale="log")

        def bound(t: Small, eps0: float, delta: float, f: Objective = f, diameter: Any = diameter) -> Any:
            return rates.frank_wolfe(t, L=f.L or 0.0, diameter=diameter, eps0=eps0, delta=delta)

        caption = f"diameter {diameter.upper:.3g}, L = {f.L:.3g}"
        figures.append(_measured_and_promised(panel, p, ps.conv(A), bound, FIGURE_STEPS, caption))
    return Section(
        "Frank-Wolfe: promised and measured",
        ["Short steps (Algorithm 2, variant 3) on quadratics; the promise is Theorem 1."],
        figures=figures,
    )


def pursuit(plan: Plan) -> Section:
    rng, theta = plan.rng(21), np.pi / 6
    pair = np.array([[1.0, np.cos(theta)], [0.0, np.sin(theta)]])
    sets: list[tuple[str, str, Atoms, int, int]] = [
        ("basis", "± unit vectors in dimension 20", ps.SignedBasis(20), 20, 100),
        (
            "dictionary",
            "18 random pairs ± in dimension 6",
            ps.Dictionary(unit_columns(rng.standard_normal((6, 18))), signed=True),
            6,
            100,
        ),
        ("pair", "two pairs ± at 30 degrees", ps.Dictionary(pair, signed=True), 2, 60),
    ]
    figures = []
    for name, title, A, n, steps in sets:
        target = rng.standard_normal(n)
        f, best = quadratic(rng, n, target, condition=2.0)
        p = Problem(name, f, A, best, None, target)
        shape = {"mdw": geometry.mdw(A), "radius": geometry.radius(A)}
        rho = geometry.rho(A, f, p.first)
        panel = Panel(f"pursuit-{name}", title, xlabel="updates t", ylabel="f(x) − f*", yscale="log")

        def bound(t: Small, eps0: float, delta: float, f: Objective = f, shape: Any = shape, rho: Any = rho) -> Any:
            common = {"L": f.L or 0.0, "eps0": eps0, "delta": delta}
            sublinear = rates.matching_pursuit_sharp(t, radius=shape["radius"], rho=rho, **common)
            return np.minimum(rates.linear(t, mu=f.mu, **shape, **common), sublinear)

        caption = f"mDW = {shape['mdw'].upper:.3g}, μ = {f.mu:.3g}, L = {f.L:.3g}"
        figures.append(_measured_and_promised(panel, p, ps.lin(A), bound, steps, caption))
    return Section(
        "Matching pursuit: promised and measured",
        [
            "Algorithm 4, variant 0, on quadratics; the promise is the smaller of Theorem 7 and the sharp form of "
            "Theorem 2, with ρ known before the run.",
        ],
        figures=figures,
    )


# ---------------------------------------------------------------------- coherence and width


def coherence(plan: Plan) -> Section:
    panel = Panel(
        "coherence-and-width",
        "Width, and what coherence proves",
        xlabel="cumulative coherence μ(B, n−1)",
        ylabel="mDW(±B)",
    )
    grid = np.linspace(0, 1, 201)
    for n, colour in ((2, GREEN), (4, BLUE), (8, RED)):
        rng, found = plan.rng(22, n), []
        for noise in np.linspace(0.0, 0.5 if n > 2 else 1.5, plan.problems):
            D = unit_columns(np.eye(n) + noise / np.sqrt(n) * rng.standard_normal((n, n)))
            found.append((geometry.coherence(D, n - 1).upper, geometry.mdw(ps.Dictionary(D, signed=True)).upper))
        x, y = np.array(found).T
        panel.ax.plot(x, y, "o", ms=4, color=colour, alpha=0.75, label=f"n = {n}")
        bound = [rates.mdw_from_coherence(n=n, coherence=c) for c in grid]
        panel.ax.plot(grid, bound, color=colour, ls="--", lw=1.3)
    panel.ax.plot([], [], color=GREY, ls="--", lw=1.3, label="coherence bound")
    panel.ax.set_xlim(-0.03, 2)
    return Section(
        "Coherence and width",
        [
            "n unit atoms in dimension n, from orthonormal to random. Theorem 10 says that the width is at least "
            "√((1 − μ(B, n−1))/n), and nothing where the coherence exceeds 1. Two atoms attain it at every angle.",
        ],
        figures=[panel.done("Widths (dots) lie on or above the bound that coherence proves (dashed).")],
    )


FIGURES = (appendix, frank_wolfe_limit, frank_wolfe, pursuit, coherence)
"""In the order of the page."""

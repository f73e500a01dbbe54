"""The report of a result: certificate, atoms, convergence, fit and factors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import numpy as np

from pursuit.arguments import quantity
from pursuit.arrays import Small, host
from pursuit.atoms.factored import CP, LowRank
from pursuit.objectives import DataLoss
from pursuit.plots import plot_atoms, plot_path
from pursuit.report import fit_plots, text
from pursuit.report.figures import BLUE, GREEN, RED, Panel
from pursuit.report.html import Figure, Section, bar_table, fact_table, page
from pursuit.report.text import format_number

MAX_ROWS = 30
"""Rows of a table of atoms beyond this number are left out."""

MAX_PROMISED = 20_000
"""The theorems' constants of a listed set of at most this many numbers take seconds at most; of larger ones minutes."""

MAX_FACTORS, MAX_ENTRIES = 6, 600
"""How many factors are drawn, and how many entries of each."""


def result_page(result: Any, names: Sequence[str] | None, title: str, path: Any = None) -> str:
    """The page about a result, the best of a path where one is given."""
    along = [] if path is None else [_path(path, names)]
    results = [_convergence(result), *_fit(result), *_factors(result), _facts(result)]
    sections = [_certificate(result), _atoms(result, names), *along, *results]
    problem = f"{result.f.words} over {text.domain(result.domain)}"
    lead = f"A combination of {quantity(len(result.atoms), 'atom')}, found by minimising {escape(problem)}."
    bound = text.proved_bound(result.value, result.gap, result.f.infimum)
    tiles = [
        (format_number(result.value), "objective"),
        ("not proved", "distance to the minimum") if bound is None else (f"≤ {bound}", "above the minimum, proved"),
        (f"{len(result.atoms):,}", "atoms"),
        (f"{result.oracle_calls:,}", "oracle calls"),
        (f"{format_number(result.seconds, 3)} s", "time"),
    ]
    return page(title, lead, sections, text.footer(), tiles)


def _certificate(result: Any) -> Section:
    numbers = result.value, result.gap, result.f.infimum
    paragraphs = [f"<b>{escape(text.certificate(*numbers))}</b>"]
    if text.proved_bound(*numbers) is None:
        paragraphs.append(escape(_why_unproved(result)))
    else:
        paragraphs.append(
            "The bound is computed from gradients and oracle answers of this run; it does not depend on how the point "
            "was found. <code>result.check()</code> computes it anew."
        )
    failure = text.failure_probability(result.domain)
    if failure and math.isfinite(result.gap):
        paragraphs.append(f"The bound of each oracle call is wrong with probability at most {failure:g}.")
    return Section("How good it is", paragraphs)


def _why_unproved(result: Any) -> str:
    if result.status.name == "CONTRADICTION":
        return "f or the oracle contradicts itself or convexity: one of them is wrong."
    if result.status.name == "UNBOUNDED":
        return "The objective falls for ever along a direction of the set."
    if not result.f.exact:
        return "Values and gradients of f are estimates, and nothing can be proved from estimates."
    if not result.f.convex:
        at_x = f"the Frank-Wolfe gap is {result.stationarity:.3g}, and it is 0 where x is stationary"
        return f"The objective is not convex, so that gradients prove nothing about other points; at x {at_x}."
    if result.domain.bounded:
        return "A longer run may prove more." if math.isfinite(result.gap) else "The oracle's answers prove no bound."
    return "Over spans and cones a proof needs more than gradients: bounds on f, on its minimiser, or its conjugate."


# ---------------------------------------------------------------------- atoms


def _atoms(result: Any, names: Sequence[str] | None) -> Section:
    coef = result.coef
    if isinstance(coef, LowRank | CP):
        return _components(coef.s if isinstance(coef, LowRank) else coef.weights)
    sizes = result.weights * np.array([a.coef for a in result.atoms]) if len(result.atoms) else np.zeros(0)
    several, plain = len(result.domain.parts) > 1, bool((sizes == result.weights).all())
    rows = []
    for i in np.argsort(-np.abs(sizes), kind="stable")[:MAX_ROWS]:
        name = escape(_name(result.atoms[i], None if result.blocks[i] else names))
        name += f"<small>summand {result.blocks[i] + 1}</small>" if several else ""
        numbers = [float(result.weights[i]), float(sizes[i])][plain:]
        rows.append((name, [format_number(number) for number in numbers], float(sizes[i])))
    left = len(result.atoms) - len(rows)
    note = f"{left:,} more atoms have smaller coefficients." if left else ""
    meaning = "" if plain else "A coefficient is the weight of an atom times its sign and scale in the set. "
    table = bar_table(["Atom", *["Weight", "Coefficient"][plain:]], rows)
    return Section("The atoms", [f"{meaning}Blue is positive, orange negative."], table, note=note)


def _components(sizes: Small) -> Section:
    ordered = sizes[np.argsort(-np.abs(sizes), kind="stable")].tolist()
    rows = [(f"component {k}", [format_number(size)], size) for k, size in enumerate(ordered[:MAX_ROWS])]
    left = len(sizes) - len(rows)
    note = f"{left:,} more components are smaller." if left else ""
    rank = f"The solution has rank {len(sizes)}; a component is a product of unit vectors times its size."
    return Section("The components", [rank], bar_table(["Component", "Size"], rows), note=note)


def _name(atom: Any, names: Sequence[str] | None) -> str:
    source = atom.source
    if isinstance(source, int | np.integer):
        return names[int(source)] if names is not None and source < len(names) else f"atom {source}"
    parts = source if isinstance(source, tuple) else (source,)
    name = ", ".join(f"array of {p.size}" if getattr(p, "ndim", 0) else _short(p) for p in parts)
    return name if len(name) <= 60 else name[:59] + "…"


def _short(part: Any) -> str:
    return format_number(float(part)) if isinstance(part, float | np.floating) else str(part)


# ---------------------------------------------------------------------- path and convergence


def _path(path: Any, names: Sequence[str] | None) -> Section:
    by_size = bool(np.isnan(path.radius).all())
    columns = {"value": "Objective"} if np.isnan(path.score).all() else {"value": "Objective", "score": "Score"}
    figures = []
    for column, title in columns.items():
        panel = Panel(f"path-{column}", f"{title} along the path")
        plot_path(path, column=column, ax=panel.ax)
        if column == "value":
            level = (path.atoms if by_size else path.radius)[path.best]
            panel.ax.plot(level, path.value[path.best], "o", color=RED, markersize=9, fillstyle="none")
        figures.append(panel.done("The circle is the result of this report."))
    if all(isinstance(r.coef, np.ndarray) and r.coef.ndim == 1 for r in path.results):
        panel = Panel("path-coefficients", "Coefficients along the path")
        plot_path(path, names=names, labels=6, ax=panel.ax)
        figures.append(panel.done("The six largest at the end of the path are named.", legend_below=True))
    count = f"{len(path)} {'sizes' if by_size else 'radii'}; this is number {path.best}."
    return Section("The path", [count], figures=figures)


def _convergence(result: Any) -> Section:
    trace = result.trace
    t, marker = trace.iteration, "." if len(trace) < 30 else None
    rate = Panel("convergence", "Promised and measured", xlabel="iterations", yscale="log")
    curve, paragraphs = _promised(result)
    for y, colour, line, label in (
        (trace.gap, BLUE, "-", "certified gap"),
        (trace.value - result.lower, GREEN, "-.", "objective − lower bound"),
        (curve, RED, "--", "promised by theorems"),
    ):
        drawn = np.isfinite(y) & (y > 0)
        if drawn.any():
            rate.ax.plot(t[drawn], y[drawn], line, color=colour, marker=marker, label=label)
    value = Panel("objective", "Objective", xlabel="iterations", ylabel="objective")
    value.ax.plot(t, trace.value, color=BLUE, marker=marker)
    if trace.value.max() > 50.0 * trace.value.min() > 0.0:
        value.ax.set_yscale("log")
    atoms = Panel("atoms", "Active atoms", xlabel="iterations", ylabel="atoms")
    atoms.ax.plot(t, trace.atoms, color=BLUE, marker=marker)
    rates = rate.done("Upper bounds on how far the objective is above its minimum.")
    return Section("Convergence", paragraphs, figures=[rates, value.done("After each iteration."), atoms.done("")])


def _promised(result: Any) -> tuple[Small, list[str]]:
    """The bound that theorems promise at each iteration, and their sentences."""
    nothing = np.full(len(result.trace), math.inf)
    if max((part.A.size or 0) * math.prod(part.A.shape or ()) for part in result.domain.parts) > MAX_PROMISED:
        advice = "<code>result.promise()</code> computes them."
        return nothing, [f"The constants of the theorems take long for so many atoms; {advice}"]
    promise = result.promise()
    sentences = [
        f"{escape(b.theorem)} promises at most {text.rounded(float(b.curve[-1]), 3, up=True)} after the last "
        f"iteration ({escape(b.constants)})."
        for b in promise.bounds
        if math.isfinite(b.curve[-1])
    ]
    if sentences:
        return np.minimum(promise.curve, promise.eps0), sentences
    if promise.bounds:
        return nothing, ["No theorem promises a rate here: a constant of the set is not known."]
    return nothing, ["No theorem promises a rate for this combination of objective, set and update."]


# ---------------------------------------------------------------------- fit and factors


def _fit(result: Any) -> Iterator[Section]:
    f, x = result.f, host(result.x)
    target = f.target if isinstance(f, DataLoss) else None
    if target == "numbers":
        yield Section("The fit", figures=fit_plots.regression({"training": (host(f.y).ravel(), x.ravel())}))
    elif target == "labels":
        probability = 1.0 / (1.0 + np.exp(-np.clip(x.ravel(), -700, 700)))
        yield Section("The fit", figures=fit_plots.binary({"training": (host(f.y).ravel(), probability)}, (-1, 1)))
    elif target == "classes":
        truth, predicted = host(f.y).argmax(axis=1), x.argmax(axis=1)
        yield Section("The fit", figures=[fit_plots.confusion("training", truth, predicted, range(x.shape[1]))])


def _factors(result: Any) -> Iterator[Section]:
    coef = result.coef
    if isinstance(coef, LowRank):
        U, V = (_thinned(factor[:, :MAX_FACTORS]) for factor in (coef.U, coef.V))
        coef = LowRank(U, coef.s[:MAX_FACTORS], V)
        pictures = _drawn("pictures", "The first rank-one matrices", coef, (len(U), len(V)))
        yield Section("The factors", figures=[_drawn("factors", "The first factors", coef), pictures])
    elif isinstance(coef, CP):
        order = np.argsort(-np.abs(coef.weights), kind="stable")[:MAX_FACTORS]
        coef = CP(coef.weights[order], [_thinned(U[:, order]) for U in coef.factors])
        yield Section("The factors", figures=[_drawn("factors", "The first factors", coef)])


def _thinned(factor: Small) -> Small:
    """Evenly spaced rows of a long factor: a drawing has no room for more."""
    rows = np.linspace(0, len(factor) - 1, min(len(factor), MAX_ENTRIES)).astype(np.intp)
    return np.asarray(factor[rows])


def _drawn(name: str, title: str, coef: LowRank | CP, shape: tuple[int, int] | None = None) -> Figure:
    panel = Panel(name, title)
    panel.ax.grid(False)
    plot_atoms(coef, shape=shape, ax=panel.ax)
    sides = "left and right" if isinstance(coef, LowRank) else "all"
    if shape is None:
        return panel.done(f"The {sides} vectors of each component, side by side, all of one height.")
    return panel.done("u v' of each component, the largest first; red is positive, blue negative.")


def _facts(result: Any) -> Section:
    facts = [
        ("Objective", repr(result.f)),
        ("Set", repr(result.domain)),
        ("Update", repr(result.update)),
        ("Oracle", repr(result.oracle)),
        ("Refinement", repr(result.refine) if result.refine is not None else "none"),
        ("Ended because", result.status.value),
        ("Value", format_number(result.value, 10)),
        ("Lower bound", format_number(result.lower, 10) if math.isfinite(result.lower) else "none"),
        ("Gap", format_number(result.gap, 10) if math.isfinite(result.gap) else "not certified"),
        ("Iterations", f"{result.iterations:,}"),
        ("Oracle calls", f"{result.oracle_calls:,}"),
    ]
    return Section("The run", table=fact_table(facts))

"""The report of a result: certificate, atoms, convergence, fit and factors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import numpy as np

from pursuit.arrays import Small, host
from pursuit.atoms.cp import CP
from pursuit.atoms.factored import LowRank
from pursuit.objectives import DataLoss
from pursuit.plots import plot_atoms, plot_path
from pursuit.report import fits, words
from pursuit.report.figures import BLUE, GREEN, RED, Panel
from pursuit.report.page import Cell, Figure, Section, Table, Tile, page
from pursuit.report.words import shown

MAX_ROWS = 30
"""Rows of a table of atoms beyond this number are left out."""

MAX_PROMISED = 20_000
"""The theorems' constants of a listed set of at most this many numbers take seconds at most; of larger ones minutes."""

MAX_FACTORS, MAX_ENTRIES = 6, 600
"""How many factors are drawn, and how many entries of each."""


def result_page(result: Any, names: Sequence[str] | None, title: str, path: Any = None) -> str:
    """The page about a result, the best of a path where one is given."""
    sections = [_certificate(result), _atoms(result, names)]
    sections += [] if path is None else [_path(path, names)]
    sections += [_convergence(result), *_fit(result), *_factors(result), _facts(result)]
    problem = f"{result.f.words} over {words.domain(result.domain)}"
    lead = f"A combination of {_count(len(result.atoms), 'atom')}, found by minimising {escape(problem)}."
    return page(title, lead, sections, words.footer(), list(_tiles(result)))


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _tiles(result: Any) -> Iterator[Tile]:
    yield Tile(shown(result.value), "objective")
    bound = words.proved(result.value, result.gap, result.f.infimum)
    if bound is None:
        yield Tile("not proved", "how far it is above the smallest one")
    else:
        yield Tile(f"≤ {bound}", "above the smallest one, proved")
    yield Tile(f"{len(result.atoms):,}", "atoms")
    yield Tile(f"{result.oracle_calls:,}", "oracle calls")
    yield Tile(f"{shown(result.seconds, 3)} s", "time")


def _certificate(result: Any) -> Section:
    texts = [f"<b>{escape(words.certificate(result.value, result.gap, result.f.infimum))}</b>"]
    if words.proved(result.value, result.gap, result.f.infimum) is not None:
        texts.append(
            "The bound is computed from gradients and oracle answers of this run; it does not depend on how the point "
            "was found. <code>result.check()</code> computes it anew."
        )
    else:
        texts.append(escape(_why_unproved(result)))
    failure = words.failure(result.domain)
    if failure and math.isfinite(result.gap):
        texts.append(f"The bound of each oracle call is wrong with probability at most {failure:g}.")
    return Section("How good it is", texts)


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


def bar_table(heads: Sequence[str], rows: Sequence[tuple[str, Sequence[str], float]]) -> Table:
    """A row for each name: numbers, and a bar whose length is the last number; the colour is its sign."""
    top = max((abs(size) for *_, size in rows), default=0.0) or 1.0
    cells = [
        [Cell(name), *(Cell(text, "number") for text in texts), Cell(_bar(size / top), "bar")]
        for name, texts, size in rows
    ]
    return Table([*heads, ""], cells, narrow=True)


def _bar(share: float) -> str:
    kind = ' class="minus"' if share < 0 else ""
    return f'<i{kind} style="width:{100 * abs(share):.1f}%"></i>'


def _atoms(result: Any, names: Sequence[str] | None) -> Section:
    coef = result.coef
    if isinstance(coef, LowRank | CP):
        return _components(coef.s if isinstance(coef, LowRank) else coef.weights)
    sizes = result.weights * np.array([a.coef for a in result.atoms]) if len(result.atoms) else np.zeros(0)
    order = np.argsort(-np.abs(sizes), kind="stable")[:MAX_ROWS]
    several, plain = len(result.domain.parts) > 1, bool((sizes == result.weights).all())
    rows = []
    for i in order:
        name = escape(_name(result.atoms[i], None if result.blocks[i] else names))
        name += f"<small>summand {result.blocks[i] + 1}</small>" if several else ""
        numbers = [float(result.weights[i]), float(sizes[i])][plain:]
        rows.append((name, [shown(number) for number in numbers], float(sizes[i])))
    left = len(result.atoms) - len(rows)
    note = f"{left:,} more atoms have smaller coefficients." if left else ""
    text = "" if plain else "A coefficient is the weight of an atom times its sign and scale in the set. "
    heads = ["Atom", *["Weight", "Coefficient"][plain:]]
    return Section("The atoms", [f"{text}Blue is positive, orange negative."], bar_table(heads, rows), note=note)


def _components(sizes: Small) -> Section:
    order = np.argsort(-np.abs(sizes), kind="stable")
    rows = [(f"component {k}", (shown(float(sizes[i])),), float(sizes[i])) for k, i in enumerate(order[:MAX_ROWS])]
    left = len(sizes) - len(rows)
    note = f"{left:,} more components are smaller." if left else ""
    text = f"The solution has rank {len(sizes)}; a component is a product of unit vectors times its size."
    return Section("The components", [text], bar_table(["Component", "Size"], rows), note=note)


def _name(atom: Any, names: Sequence[str] | None) -> str:
    source = atom.source
    if isinstance(source, int | np.integer):
        return str(names[int(source)]) if names is not None and source < len(names) else f"atom {source}"
    parts = source if isinstance(source, tuple) else (source,)
    text = ", ".join(f"array of {p.size}" if getattr(p, "ndim", 0) else _short(p) for p in parts)
    return text if len(text) <= 60 else text[:59] + "…"


def _short(part: Any) -> str:
    return shown(float(part)) if isinstance(part, float | np.floating) else str(part)


# ---------------------------------------------------------------------- path and convergence


def _path(path: Any, names: Sequence[str] | None) -> Section:
    sizes = bool(np.isnan(path.radius).all())
    figures = []
    scored = not np.isnan(path.score).all()
    for column in ("value", "score") if scored else ("value",):
        panel = Panel(f"path-{column}", f"{'Objective' if column == 'value' else 'Score'} along the path")
        plot_path(path, column=column, ax=panel.ax)
        if column == "value":
            level = (path.atoms if sizes else path.radius)[path.best]
            panel.ax.plot(level, path.value[path.best], "o", color=RED, markersize=9, fillstyle="none")
        figures.append(panel.done("The circle is the result of this report."))
    if all(isinstance(r.coef, np.ndarray) and r.coef.ndim == 1 for r in path.results):
        panel = Panel("path-coefficients", "Coefficients along the path")
        plot_path(path, names=names, labels=6, ax=panel.ax)
        figures.append(panel.done("The six largest at the end of the path are named.", legend_below=True))
    text = f"{len(path)} {'sizes' if sizes else 'radii'}; this is number {path.best}."
    return Section("The path", [text], figures=figures)


def _convergence(result: Any) -> Section:
    trace = result.trace
    rate = Panel("convergence", "Promised and measured", xlabel="iterations", yscale="log")
    curve, texts = _promised(result)
    marker = "." if len(trace) < 30 else None
    t, above = trace.iteration, trace.value - result.lower
    for y, colour, line, label in (
        (trace.gap, BLUE, "-", "certified gap"),
        (above, GREEN, "-.", "objective − lower bound"),
        (curve, RED, "--", "promised by theorems"),
    ):
        drawn = np.isfinite(y) & (y > 0)
        if drawn.any():
            rate.ax.plot(t[drawn], y[drawn], line, color=colour, marker=marker, label=label)
    value = Panel("objective", "Objective", xlabel="iterations", ylabel="objective")
    value.ax.plot(t, trace.value, color=BLUE, marker=marker)
    value.ax.set_yscale("log" if _spread(trace.value) > 50 else "linear")
    atoms = Panel("atoms", "Active atoms", xlabel="iterations", ylabel="atoms")
    atoms.ax.plot(trace.iteration, trace.atoms, color=BLUE, marker=marker)
    captions = ("Upper bounds on how far the objective is above its minimum.", "After each iteration.", "")
    figures = [panel.done(text) for panel, text in zip((rate, value, atoms), captions, strict=True)]
    return Section("Convergence", texts, figures=figures)


def _spread(values: Small) -> float:
    low, high = float(values.min()), float(values.max())
    return high / low if low > 0 else 0.0


def _promised(result: Any) -> tuple[Small, list[str]]:
    """The bound that theorems promise at each iteration, and what they are."""
    nothing = np.full(len(result.trace), math.inf)
    listed = [(part.A.size or 0) * math.prod(part.A.shape or ()) for part in result.domain.parts]
    if max(listed) > MAX_PROMISED:
        text = "The constants of the theorems take long for so many atoms; <code>result.promise()</code> computes them."
        return nothing, [text]
    promise = result.promise()
    if not promise.bounds:
        return nothing, ["No theorem promises a rate for this combination of objective, set and update."]
    texts = [
        f"{escape(b.theorem)} promises at most {words.rounded(float(b.curve[-1]), 3, up=True)} after the last "
        f"iteration ({escape(b.constants)})."
        for b in promise.bounds
        if math.isfinite(b.curve[-1])
    ]
    if not texts:
        return nothing, ["No theorem promises a rate here: a constant of the set is not known."]
    return np.minimum(promise.curve, promise.eps0), texts


# ---------------------------------------------------------------------- fit and factors


def _fit(result: Any) -> Iterator[Section]:
    f, x = result.f, host(result.x)
    target = f.target if isinstance(f, DataLoss) else None
    if target == "numbers":
        y = host(f.y)
        yield Section("The fit", [], figures=fits.regression({"training": (y.ravel(), x.ravel())}))
    elif target == "labels":
        probability = 1.0 / (1.0 + np.exp(-np.clip(x.ravel(), -700, 700)))
        yield Section("The fit", [], figures=fits.binary({"training": (host(f.y).ravel(), probability)}, (-1, 1)))
    elif target == "classes":
        counts = fits.confusion(host(f.y).argmax(axis=1), x.argmax(axis=1), range(x.shape[1]))
        yield Section("The fit", [], figures=[fits.confusion_figure("training", counts, range(x.shape[1]))])


def _factors(result: Any) -> Iterator[Section]:
    coef = result.coef
    if isinstance(coef, LowRank):
        U, V = (_thinned(factor[:, :MAX_FACTORS]) for factor in (coef.U, coef.V))
        coef = LowRank(U, coef.s[:MAX_FACTORS], V)
        pictures = _drawn("pictures", "The first rank-one matrices", coef, (len(coef.U), len(coef.V)))
        yield Section("The factors", [], figures=[_drawn("factors", "The first factors", coef), pictures])
    elif isinstance(coef, CP):
        order = np.argsort(-np.abs(coef.weights), kind="stable")[:MAX_FACTORS]
        coef = CP(coef.weights[order], [_thinned(U[:, order]) for U in coef.factors])
        yield Section("The factors", [], figures=[_drawn("factors", "The first factors", coef)])


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
    return panel.done("u v' of each component, the largest first; red is positive, blue negative, pale is zero.")


def _facts(result: Any) -> Section:
    facts = [
        ("Objective", repr(result.f)),
        ("Set", repr(result.domain)),
        ("Update", repr(result.update)),
        ("Oracle", repr(result.oracle)),
        ("Refinement", repr(result.refine) if result.refine is not None else "none"),
        ("Ended because", result.status.value),
        ("Value", shown(result.value, 10)),
        ("Lower bound", shown(result.lower, 10) if math.isfinite(result.lower) else "none"),
        ("Gap", shown(result.gap, 10) if math.isfinite(result.gap) else "not certified"),
        ("Iterations", f"{result.iterations:,}"),
        ("Oracle calls", f"{result.oracle_calls:,}"),
    ]
    return Section("The run", table=fact_table(facts))


def fact_table(facts: Sequence[tuple[str, str]]) -> Table:
    """Names and texts, in two columns without heads."""
    return Table(("", ""), [[Cell(escape(name), "fact"), Cell(escape(text))] for name, text in facts], narrow=True)

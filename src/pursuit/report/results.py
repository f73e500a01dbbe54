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
from pursuit.report.html import Section, bar_table, fact_table, page
from pursuit.report.text import format_number

MAX_ROWS = 30
"""Rows of a table of atoms beyond this number are left out."""

MAX_PROMISED = 20_000
"""The theorems' constants of a listed set of at most this many numbers take seconds at most; of larger ones minutes."""

MAX_FACTORS, MAX_ENTRIES = 6, 600
"""How many factors are drawn, and how many entries of each."""


def result_page(result: Any, names: Sequence[str] | None, title: str, path: Any = None) -> str:
    """The page about a result, the best of a path where one is given."""
    sections = [_certificate(result), _atoms(result, names), *_path(path, names)]
    sections += [_convergence(result), *_fit(result), *_factors(result), _facts(result)]
    problem = f"{result.f.words} over {text.domain(result.domain)}"
    lead = f"A combination of {quantity(len(result.atoms), 'atom')}, found by minimising {escape(problem)}."
    return page(title, lead, sections, text.footer())


def _certificate(result: Any) -> Section:
    numbers = result.value, result.gap, result.f.infimum
    paragraphs = [f"<b>{escape(text.certificate(*numbers, result._subject))}</b>"]
    if text.proved_bound(*numbers) is not None:
        paragraphs.append(result._grounds)
    elif not result.f.exact:
        paragraphs.append("Values and gradients of f are estimates, and nothing can be proved from estimates.")
    elif not result.f.convex:
        gap = f"at x the Frank-Wolfe gap is {result.stationarity:.3g}, and it is 0 where x is stationary"
        paragraphs.append(f"Gradients of an objective that is not convex prove nothing about other points; {gap}.")
    failure = text.failure_probability(result.domain)
    if failure and math.isfinite(result.gap):
        paragraphs.append(f"The bound of each oracle call is wrong with probability at most {failure:g}.")
    return Section("How good it is", paragraphs)


def _atoms(result: Any, names: Sequence[str] | None) -> Section:
    coef, words = result.coef, "A coefficient is the weight of an atom times its sign and scale in the set."
    if isinstance(coef, LowRank | CP):
        sizes = coef.s if isinstance(coef, LowRank) else coef.weights
        labels = [f"component {k}" for k in range(len(sizes))]
        words = f"The solution has rank {len(sizes)}; a component is a product of unit vectors times its size."
    else:
        sizes = np.array([w * a.coef for w, a in zip(result.weights, result.atoms, strict=True)])
        parts = [f", summand {b + 1}" if len(result.domain.parts) > 1 else "" for b in result.blocks]
        named = [_name(a, None if b else names) for a, b in zip(result.atoms, result.blocks, strict=True)]
        labels = [name + part for name, part in zip(named, parts, strict=True)]
    order = np.argsort(-np.abs(sizes), kind="stable")
    rows = [(escape(labels[i]), [format_number(float(sizes[i]))], float(sizes[i])) for i in order[:MAX_ROWS]]
    left = len(order) - len(rows)
    note = f"{left:,} more have smaller coefficients." if left else ""
    return Section("The atoms", [words], bar_table(["Atom", "Coefficient"], rows), note=note)


def _name(atom: Any, names: Sequence[str] | None) -> str:
    source = atom.source
    if isinstance(source, int | np.integer):
        return names[int(source)] if names is not None and source < len(names) else f"atom {source}"
    parts = source if isinstance(source, tuple) else (source,)
    name = ", ".join(f"array of {p.size}" if getattr(p, "ndim", 0) else str(p) for p in parts)
    return name if len(name) <= 60 else name[:59] + "…"


PLURALS = {"atoms": "sizes", "radius": "radii", "penalty": "penalties"}


def _path(path: Any, names: Sequence[str] | None) -> Iterator[Section]:
    if path is None:
        return
    (levels, kind), figures = path.along(), []
    columns = ["value"] + ["score"] * (not np.isnan(path.score).all())
    columns += ["coef"] * all(isinstance(r.coef, np.ndarray) and r.coef.ndim == 1 for r in path.results)
    for column in columns:
        panel = Panel(f"path-{column}", {"value": "Objective", "score": "Score", "coef": "Coefficients"}[column])
        plot_path(path, column=column, names=names if column == "coef" else None, ax=panel.ax)
        if column == "value":
            panel.ax.plot(levels[path.best], path.value[path.best], "o", color=RED, markersize=9, fillstyle="none")
        figures.append(panel.done("The circle is the result of this report." if column == "value" else ""))
    count = f"{len(path)} {PLURALS[kind]}; this is number {path.best}."
    yield Section("The path", [count], figures=figures)


def _convergence(result: Any) -> Section:
    trace = result.trace
    marker = "." if len(trace) < 30 else None
    curve, paragraphs = _promised(result)
    rate = Panel("convergence", "Promised and measured", xlabel="iterations", yscale="log")
    for y, colour, line, label in (
        (trace.gap, BLUE, "-", "certified gap"),
        (trace.value - result.lower, GREEN, "-.", "objective − lower bound"),
        (curve, RED, "--", "promised by theorems"),
    ):
        drawn = np.isfinite(y) & (y > 0)
        if drawn.any():
            rate.ax.plot(trace.iteration[drawn], y[drawn], line, color=colour, marker=marker, label=label)
    figures = [rate.done("Upper bounds on how far the objective is above its minimum.")]
    for name, y in (("objective", trace.value), ("atoms", trace.atoms)):
        panel = Panel(name, name.capitalize(), xlabel="iterations", ylabel=name)
        panel.ax.plot(trace.iteration, y, color=BLUE, marker=marker)
        figures.append(panel.done("After each iteration."))
    return Section("Convergence", paragraphs, figures=figures)


def _promised(result: Any) -> tuple[Small, list[str]]:
    """The bound that theorems promise at each iteration, and their sentences."""
    nothing = np.full(len(result.trace), math.inf)
    if max((part.A.size or 0) * math.prod(part.A.shape or ()) for part in result.domain.parts) > MAX_PROMISED:
        return nothing, ["<code>result.promise()</code> computes what theorems promise; here it takes long."]
    promise = result.promise()
    sentences = [
        f"{escape(b.theorem)} promises at most {text.rounded(float(b.curve[-1]), 3, up=True)} after the last "
        f"iteration ({escape(b.constants)})."
        for b in promise.bounds
        if math.isfinite(b.curve[-1])
    ]
    if not sentences:
        return nothing, ["No theorem promises a rate here."]
    return np.minimum(promise.curve, promise.eps0), sentences


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
    if isinstance(result.coef, LowRank | CP):
        panel = Panel("factors", "The first factors")
        panel.ax.grid(False)
        rows = [np.linspace(0, len(U) - 1, min(len(U), MAX_ENTRIES)).astype(np.intp) for U in result.coef.curves(1)]
        first = [U[k] for U, k in zip(result.coef.curves(MAX_FACTORS), rows, strict=True)]
        plot_atoms(CP(np.ones(first[0].shape[1]), first), ax=panel.ax)
        yield Section("The factors", figures=[panel.done("The vectors of each component, side by side.")])


def _facts(result: Any) -> Section:
    parts = {name: repr(getattr(result, name)) for name in ("f", "domain", "update", "oracle", "refine")}
    counts = {name: f"{getattr(result, name):,}" for name in ("iterations", "oracle_calls")}
    numbers = {name: format_number(getattr(result, name), 10) for name in ("value", "lower", "gap", "seconds")}
    facts = parts | {n: "not certified" if text in ("inf", "−inf") else text for n, text in numbers.items()} | counts
    rows = [(name.replace("_", " "), text) for name, text in facts.items()]
    return Section("The run", table=fact_table([*rows, ("ended because", result.status.value)]))

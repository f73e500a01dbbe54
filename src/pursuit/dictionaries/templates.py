"""Templates that repeat in a recording, learned by alternating between events and templates."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
from scipy.linalg import toeplitz
from tqdm.auto import tqdm

from pursuit.arguments import as_int_or_nan, check_seed, real_array, require
from pursuit.arrays import Small
from pursuit.atoms.convolutional import Convolutional
from pursuit.atoms.events import Events
from pursuit.coding import encode
from pursuit.coding.event_lasso import solve_block
from pursuit.coding.events import Blocks, EndlessError, Recording, read_rules
from pursuit.dictionaries.stretches import by_worth, distinct_stretches, moved
from pursuit.run.stop import Status

ROUNDS = 3
"""The templates are corrected in turn so many times in a sweep."""
QUICK_PASSES = 2
"""Sweeps by matching pursuit after templates were replaced."""
SEARCHES = 2
"""A sweep searches again for events so many times, from others and with noise, and keeps the better stretches."""
FORGOTTEN = 0.65
"""The share of events that another search forgets."""
FIRST_PASSES = 40
"""Passes that look for templates before the first sweep; they may raise the objective."""


@dataclass(frozen=True, eq=False)
class LearnedTemplates:
    """Templates that were learned, with the events of the recording; `learn(..., start=learned)` goes on.

    `templates` is (templates, samples), or (templates, channels, samples), all of norm 1. `objective` has that of every
    sweep, which never rises: half the squared error, and half the threshold for each event (or the penalty times the
    weights). `seconds` is when each sweep ended.

    >>> import pursuit as ps
    >>> y = np.convolve(np.eye(1, 200, 20)[0] + np.eye(1, 200, 90)[0], [1.0, 3.0, -2.0, 1.0])
    >>> learned = ps.learn(y, convolutional=True, templates=1, length=4, code={"threshold": 1.0})
    >>> learned.templates.shape, len(learned.events)
    ((1, 4), 2)
    """

    templates: Small
    events: Events
    objective: Small
    seconds: Small
    status: Status

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.templates.shape))
        last = f", objective {self.objective[-1]:.6g}" if len(self.objective) else ""
        return f"LearnedTemplates({shape}, {len(self.events)} events, {len(self.objective)} sweeps{last})"


@dataclass(frozen=True)
class Plan:
    """What stays the same from sweep to sweep."""

    y: Small
    """The recording, channels x samples."""
    code: Mapping[str, Any]
    rank_one: bool
    rng: np.random.Generator

    @property
    def is_lasso(self) -> bool:
        return bool(self.code["method"] == "lasso")

    @property
    def quick(self) -> Plan:
        """The same with events by matching pursuit, which takes least time."""
        return self if self.is_lasso else replace(self, code={**self.code, "method": "mp"})

    def cost(self, events: Events, residual: Small) -> float:
        """The objective."""
        return 0.5 * float(np.vdot(residual, residual)) + float(self.prices(events).sum())

    def find(self, D: Small) -> Events:
        """The events of the templates D, (templates, channels, samples)."""
        return encode(Convolutional(D), self.y, **self.code)  # type: ignore[no-any-return]

    def find_again(self, D: Small, events: Events, noise: float) -> Events:
        """Events of a pursuit that begins with some of the old ones and first sees the recording with noise, so that it
        makes other choices."""
        A = Convolutional(D, shape=self.y.shape)
        rules = read_rules(self.code["threshold"], None, self.code["method"], None, False, (None, None, None))
        disturbed = self.y + noise * self.rng.standard_normal(self.y.shape)
        events = events[self.rng.random(len(events)) >= FORGOTTEN]
        for y in (disturbed, self.y):
            blocks = Blocks.choose(Recording(A, y, np.float64), rules, None, None)
            for i in range(blocks.count):
                events = solve_block(blocks, i, events)
        return events

    def prices(self, events: Events) -> Small:
        """What each event adds to the objective."""
        if self.is_lasso:
            return np.asarray(self.code["penalty"] * np.abs(events.weight))
        return np.full(len(events), 0.5 * self.code["threshold"])

    def residual(self, D: Small, events: Events) -> Small:
        return np.asarray(self.y - Convolutional(D, shape=self.y.shape).synthesize(events))


@dataclass(frozen=True)
class Fit:
    """Templates, events, and the objective there."""

    D: Small
    events: Events
    cost: float = math.inf


def learn_templates(recording: Any, templates: Any, length: Any, options: Mapping[str, Any]) -> LearnedTemplates:
    """The templates of a recording; `options` are the other arguments of `learn`."""
    if np.iscomplexobj(recording):
        raise TypeError("Y is complex; templates are real: give its real and imaginary parts as two channels.")
    y = np.asarray(real_array(recording, "Y"), dtype=np.float64)
    require(y.ndim in (1, 2), "Y", recording, "a recording: (samples,) or (channels, samples)")
    require(as_int_or_nan(templates) >= 1, "templates", templates, "the number of templates")
    require(
        1 <= as_int_or_nan(length) <= y.shape[-1], "length", length, "the samples of a template, which Y has room for"
    )
    require(options["rank"] in (None, 1), "rank", options["rank"], "None, or 1: "
            "a weight for each channel times one stretch of samples")  # fmt: skip
    sweeps, start = options["sweeps"], options["start"]
    require(sweeps is None or as_int_or_nan(sweeps) >= 0, "sweeps", sweeps, "an integer of at least 0")
    check_seed(options["seed"])
    many = y.reshape(-1, y.shape[-1])
    plan = Plan(many, read_code(many, options["code"], options["n_jobs"]), options["rank"] == 1,
                np.random.default_rng(options["seed"]))  # fmt: skip
    old = start if isinstance(start, LearnedTemplates) else None
    given = old.templates if old is not None else start
    D = (
        first_templates(plan, int(templates), int(length))
        if isinstance(given, str)
        else _read_start(given, plan, length)
    )
    shape = (len(D), int(length)) if y.ndim == 1 else D.shape
    first = LearnedTemplates(D.reshape(shape), Events.empty(1), np.empty(0), np.empty(0), Status.ITERATIONS)
    events = Events.empty(1) if old is None else old.events
    fit = Fit(D, events, math.inf if old is None else plan.cost(events, plan.residual(D, events)))
    return _run(first if old is None else old, improvements(plan, fit), 20 if sweeps is None else int(sweeps), options)


def read_code(y: Small, code: Any, n_jobs: Any) -> dict[str, Any]:
    """How events are found. Without a word from the user, an event lowers the squared error by 4 % of what the loudest
    hundredth of the samples have together, a hundredth of it each."""
    if code is None:
        energy = np.sort((y**2).sum(axis=0))
        loud = energy[-max(1, len(energy) // 100) :]
        code = {"threshold": 4.0 * float(loud.mean())}
    method = code.get("method", "omp")
    if method not in ("mp", "omp", "nnomp", "lasso"):
        raise ValueError(f"code names method {method!r}; give 'mp', 'omp', 'nnomp' or 'lasso' for templates.")
    needed = "penalty" if method == "lasso" else "threshold"
    if needed not in code:
        raise ValueError(f"code has no {needed!r}, which method {method!r} needs to learn templates; give it.")
    return {"method": method, "n_jobs": n_jobs} | dict(code)


def _read_start(start: Any, plan: Plan, length: Any) -> Small:
    D = np.asarray(real_array(start, "start"), dtype=np.float64)
    D = D.reshape(len(D), -1, D.shape[-1])
    fits = D.shape[1:] == (len(plan.y), int(length)) and bool(D.any(axis=(1, 2)).all())
    require(fits, "start", start, "'data', templates of the right channels and length, or what learn gave")
    return np.asarray(D / np.linalg.norm(D, axis=(1, 2), keepdims=True))


def _run(first: LearnedTemplates, steps: Iterator[Fit], sweeps: int, options: Mapping[str, Any]) -> LearnedTemplates:
    """The result after all sweeps, or after those up to where the callback or Ctrl-C ends them."""
    learned, shape = first, first.templates.shape
    began = time.perf_counter() - (first.seconds[-1] if len(first.seconds) else 0.0)
    callback: Callable[[Any], Any] | None = options["callback"]
    try:
        for _ in tqdm(range(sweeps), disable=None if options["progress"] else True, desc="learn", leave=False):
            fit = next(steps)
            learned = LearnedTemplates(
                fit.D.reshape(shape), fit.events, np.append(learned.objective, fit.cost),
                np.append(learned.seconds, time.perf_counter() - began), Status.ITERATIONS,
            )  # fmt: skip
            if callback is not None and callback(learned):
                return replace(learned, status=Status.CALLBACK)
    except KeyboardInterrupt:
        return replace(learned, status=Status.INTERRUPTED)
    return learned


# ---------------------------------------------------------------------- sweeps


def improvements(plan: Plan, fit: Fit) -> Iterator[Fit]:
    """The fit after every sweep, each at least as good as the one before.

    Every second sweep tries the templates with copies and unused ones replaced, and moved to where their energy is.
    Where that does not lower the objective, they stay; where new events do not, the old ones stay.
    """
    quick = plan.quick
    for i in count():
        tried = fit
        if len(fit.events) and i % 2 == 0:
            D = repaired(plan, fit, int(plan.rng.integers(1, 2 + len(fit.D) // 16)))
            for _ in range(QUICK_PASSES):  # new templates have a few sweeps to become good
                D = sweep(quick, Fit(D, Events.empty(1))).D
            tried = sweep(plan, Fit(D, Events.empty(1)))
        fit = tried if tried.cost < fit.cost else sweep(plan, fit)
        yield fit


def sweep(plan: Plan, fit: Fit) -> Fit:
    """New events in every stretch of the recording where they are better, then better templates."""
    events = plan.find(fit.D)
    if fit.cost < math.inf and plan.code.get("atoms") is None:
        events = better_of(plan, fit.D, fit.events, events)
    again = plan.code["method"] in ("omp", "nnomp") and plan.code.get("atoms") is None
    for _ in range(SEARCHES if again else 0):
        noise = float(plan.residual(fit.D, events).std())
        with suppress(EndlessError):  # it was worth a try
            events = better_of(plan, fit.D, events, plan.find_again(fit.D, events, noise))
    r = plan.residual(fit.D, events)
    cost = plan.cost(events, r)
    if cost > fit.cost:  # by rounding
        events, r, cost = fit.events, plan.residual(fit.D, fit.events), fit.cost
    D, weighed, r = corrected(plan, fit.D, events, r)
    better = plan.cost(weighed, r)
    return Fit(D, weighed, better) if better <= cost else Fit(fit.D, events, cost)


def better_of(plan: Plan, D: Small, a: Events, b: Events) -> Events:
    """The events of either where they are better, stretch by stretch: stretches meet where neither has an event."""
    starts = np.zeros(plan.y.shape[1] + 1)
    for events in (a, b):
        np.add.at(starts, events.position, 1)
        np.add.at(starts, events.position + D.shape[2], -1)
    stretch = np.cumsum(np.cumsum(starts[:-1]) == 0)
    costs = [
        0.5 * np.bincount(stretch, (plan.residual(D, events) ** 2).sum(axis=0), stretch[-1] + 1)
        + np.bincount(stretch[events.position], plan.prices(events), stretch[-1] + 1)
        for events in (a, b)
    ]
    second = costs[1] < costs[0]
    return Events.joined([a[~second[stretch[a.position]]], b[second[stretch[b.position]]]])


def corrected(plan: Plan, D: Small, events: Events, r: Small) -> tuple[Small, Events, Small]:
    """Templates that fit the events best, one after the other; each is the exact minimum while the others stay.

    The normal equations of template k are H d = b: H is the Toeplitz matrix of the autocorrelation of its events, b
    their correlation with the residual to which its own part was added. Returns templates of norm 1, events, residual.
    """
    D, r, weight = D.copy(), r.copy(), events.weight.copy()
    length = D.shape[2]
    used = []
    for k in np.unique(events.template):
        which = events.template == k
        H = toeplitz(autocorrelation(events.position[which], weight[which], length))
        places = events.position[which][:, None] + np.arange(length)
        used.append((k, weight[which], places, H, np.linalg.eigh(H)))
    for _ in range(ROUNDS):
        for k, w, places, H, spectrum in used:
            b = np.einsum("e,cel->cl", w, r[:, places]) + D[k] @ H
            d = best_template(plan, D[k], spectrum, b)
            by = (d - D[k])[:, None, :] * w[None, :, None]
            for row, change in zip(r, by, strict=True):
                np.subtract.at(row, places, change)
            D[k] = d
    norms = np.linalg.norm(D, axis=(1, 2))
    keep = norms > 0
    scale = np.where(keep & (not plan.is_lasso), norms, 1.0)
    D /= scale[:, None, None]
    return D, replace(events, weight=weight * scale[events.template]), r


def autocorrelation(position: Any, weight: Small, length: int) -> Small:
    """sum of w_e w_f over events e, f at distance d, for d = 0, ..., length - 1."""
    order = np.argsort(position)
    p, w = position[order], weight[order]
    out = np.zeros(length)
    for step in range(len(p)):
        distance = p[step:] - p[: len(p) - step]
        near = distance < length
        if not near.any():
            break
        np.add.at(out, distance[near], (w[step:] * w[: len(p) - step])[near])
        if step:  # two events at one place are two pairs
            out[0] += float((w[step:] * w[: len(p) - step])[distance == 0].sum())
    return out


def best_template(plan: Plan, d: Small, spectrum: tuple[Small, Small], b: Small) -> Small:
    """The minimum of 1/2 <d, d H> - <b, d>, of rank one where asked, and of norm at most 1 for the Lasso.

    `spectrum` are the eigenvalues and eigenvectors of H."""
    values, vectors = spectrum
    if not plan.rank_one:
        return _solve(values, vectors, b, plan.is_lasso)
    u = np.linalg.svd(d, full_matrices=False)[0][:, 0]
    v = u @ d
    for _ in range(ROUNDS):
        v = _solve(values, vectors, (u @ b)[None], plan.is_lasso)[0]
        along = b @ v
        if not np.linalg.norm(along) > 0:
            return d
        u = along / np.linalg.norm(along)
    return np.asarray(np.multiply.outer(u, _solve(values, vectors, (u @ b)[None], plan.is_lasso)[0]))


def _solve(values: Small, vectors: Small, b: Small, bounded: bool) -> Small:
    """b H^-1, or where that is longer than 1, b (H + s)^-1 with the s > 0 that makes it 1."""
    c, floor = b @ vectors, 1e-10 * float(values[-1])

    def at(s: float) -> Small:
        return np.asarray(c / (np.maximum(values, floor) + s))

    low, high = 0.0, float(np.linalg.norm(c))
    if bounded and np.linalg.norm(at(0.0)) > 1:
        for _ in range(100):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if np.linalg.norm(at(middle)) > 1 else (low, middle)
        return np.asarray(at(high) @ vectors.T)
    return np.asarray(at(0.0) @ vectors.T)


# ---------------------------------------------------------------------- where templates come from


def first_templates(plan: Plan, count: int, length: int) -> Small:
    """Templates after passes over the recording that replace many at first and few at last; the best fit of all.

    They begin with stretches around its loudest places that look least like one another.
    """
    quick, many = plan.quick, count + 2 * (count // 4)  # the most valuable are kept for the last passes
    D = distinct_stretches((plan.y, plan.rng), plan.y, [], many, length)
    best = Fit(D[:count], Events.empty(1))
    for i in range(FIRST_PASSES):
        fit = sweep(quick, Fit(D, Events.empty(1)))
        best = fit if len(D) == count and fit.cost < best.cost else best
        if not len(fit.events):
            break
        if i == FIRST_PASSES * 7 // 8:
            valuable = by_worth(fit.D, fit.events)
            D = fit.D[[*valuable, *sorted(set(range(many)).difference(valuable))][:count]]
        else:
            D = repaired(quick, fit, round(len(D) * 0.12 * (1 - i / FIRST_PASSES)))
    return best.D


def repaired(plan: Plan, fit: Fit, replaced: int) -> Small:
    """The templates, moved to where their energy is. Copies of others, and the `replaced` least valuable ones, at least
    one, give way to stretches of the recording where most is left."""
    length, r = fit.D.shape[2], plan.residual(fit.D, fit.events)
    D = np.stack([moved(d, r, fit.events[fit.events.template == k]) for k, d in enumerate(fit.D)])
    kept = by_worth(D, fit.events)[: len(D) - max(1, replaced)]
    lost = sorted(set(range(len(D))).difference(kept))
    D[lost] = distinct_stretches((plan.y, plan.rng), r, [D[k] for k in kept], len(lost), length)
    return D

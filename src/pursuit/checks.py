"""Laws that atom sets and objectives must obey, for authors of their own: `check_atoms(A)`, `check_objective(f)`.

Each raises AssertionError with a sentence that says which law is broken, and returns None where all hold.
"""

from __future__ import annotations

import math

import numpy as np

from pursuit._arrays import Small, Space, host
from pursuit.atoms.base import Atoms, as_atom
from pursuit.objectives import Objective


def check_atoms(A: Atoms, *, shape: tuple[int, ...] | None = None, trials: int = 20, seed: int = 0) -> None:
    """The oracle beats every atom it ever names, is blind to scale, deterministic, symmetric where it says so, leaves g
    alone, and what the set knows of itself (radius, diameter, width, gauge, list) is true.

    >>> import pursuit as ps
    >>> check_atoms(ps.Ball(4, 3))
    >>> class Wrong(ps.Atoms):
    ...     shape = (2,)
    ...     def lmo(self, g):
    ...         return np.sign(g)                              # the maximum, not the minimum
    >>> check_atoms(Wrong())
    Traceback (most recent call last):
    AssertionError: lmo(g) is not the best: another atom has <g, a> = -..., its own has ...
    """
    shape = shape or A.shape
    if shape is None:
        raise ValueError("the set has no shape; give check_atoms(A, shape=...).")
    space = A.space or Space.default(shape)
    rng = np.random.default_rng(seed)
    directions = [space.put(rng.standard_normal(shape)) for _ in range(trials)]
    named = np.stack([_ask(A, space, g) for g in directions])
    for g, own in zip(directions, named, strict=True):
        flat, scale = host(g).reshape(-1), float(np.abs(named).max()) * float(np.abs(host(g)).sum())
        best, others = float(own @ flat), named @ flat
        tolerance = 1e3 * space.eps * scale
        assert others.min() >= best - tolerance, (
            f"lmo(g) is not the best: another atom has <g, a> = {others.min():.6g}, its own has {best:.6g}."
        )
        assert np.array_equal(_ask(A, space, g), own), (
            "lmo(g) gives two answers to the same g; it must be deterministic."
        )
        twice = _ask(A, space, 2.0 * g)
        assert abs(float(twice @ flat) - best) <= tolerance, "lmo(2 g) is worse than lmo(g); only the direction counts."
        if A.symmetric:
            opposite = float(_ask(A, space, -g) @ flat)
            assert abs(opposite + best) <= tolerance, (
                "the set says it is symmetric, but lmo(-g) does not mirror lmo(g)."
            )
        if A.size is not None:
            listed = A.scores(g)
            assert len(listed) == A.size, f"the set has size {A.size}, but scores(g) has {len(listed)} entries."
            assert abs(float(listed.min()) - best) <= tolerance, "scores(g) and lmo(g) do not agree on the best atom."
    _check_sizes(A, named, space)
    _check_width(A, named, space, rng)


def _ask(A: Atoms, space: Space, g: Small) -> Small:
    before = host(g).copy()
    answer = as_atom(A.lmo(g))
    assert np.array_equal(host(g), before), "lmo changed its argument g; it must leave it alone."
    problem = answer.fits(space)
    assert problem is None, f"lmo(g) answered with an atom of {problem}."
    return host(answer.dense(space)).reshape(-1)


def _check_sizes(A: Atoms, named: Small, space: Space) -> None:
    slack = 1.0 + 1e3 * space.eps
    if A.radius is not None:
        longest = float(np.linalg.norm(named, axis=1).max())
        assert longest <= A.radius * slack, f"the radius is not {A.radius}: an atom has norm {longest}."
    if A.diameter is not None:
        widest = float(np.linalg.norm(named[:, None] - named[None], axis=2).max())
        assert widest <= A.diameter * slack + 1e-300, f"the diameter is not {A.diameter}: two atoms are {widest} apart."
    for row in named:
        gauge = A.gauge(space.put(row.reshape(space.shape)))
        assert gauge is None or gauge <= 1.0 + 1e3 * space.eps, f"an atom has gauge {gauge}, which must be at most 1."


def _check_width(A: Atoms, named: Small, space: Space, rng: np.random.Generator) -> None:
    """max <d, a> >= width ||d|| for directions d in the span of the atoms, the only ones that count."""
    if A.width is None:
        return
    for _ in range(len(named)):
        d = rng.standard_normal(len(named)) @ named
        most = float(_ask(A, space, space.put(-d.reshape(space.shape))) @ d)
        slack = 1e3 * space.eps * float(np.abs(named).max()) * float(np.abs(d).sum())
        assert most >= A.width * float(np.linalg.norm(d)) - slack, f"the width is not {A.width}: it is smaller."


def check_objective(f: Objective, *, shape: tuple[int, ...] | None = None, trials: int = 20, seed: int = 0) -> None:
    """The gradient is that of the value, f is convex, and L, mu, infimum and the Hessian are true, along random lines.

    >>> import pursuit as ps
    >>> check_objective(ps.Logistic([0, 1, 1]))
    >>> check_objective(ps.Smooth(lambda x: float(x @ x), lambda x: x), shape=(3,))
    Traceback (most recent call last):
    AssertionError: the gradient is not that of the value: along d it says ..., differences say ...
    """
    if shape is None and f.space is None:
        raise ValueError("the objective has no space; give check_objective(f, shape=...).")
    space = f.space or Space.default(shape or ())
    rng = np.random.default_rng(seed)
    for _ in range(trials):
        x, d = (space.put(rng.standard_normal(space.shape)) for _ in range(2))
        value, grad = f.value_and_grad(x)
        slope, h = space.dot(grad, d), space.eps ** (1 / 3)
        numeric = (f.value(x + h * d) - f.value(x - h * d)) / (2 * h)
        noise = 50 * h * h * (1.0 + abs(value) / h + abs(slope) + space.norm(grad))
        assert abs(slope - numeric) <= noise, (
            f"the gradient is not that of the value: along d it says {slope:.6g}, differences say {numeric:.6g}."
        )
        new, square = f.value(x + d), space.dot(d, d)
        slack = 1e3 * space.eps * (abs(value) + abs(new) + abs(slope) + square)
        assert new >= value + slope + 0.5 * f.mu * square - slack, (
            f"f is not convex with mu = {f.mu:g}: it lies below its lower model by {value + slope - new:.3g}."
        )
        if f.L is not None:
            assert new <= value + slope + 0.5 * f.L * square + slack, f"L is not {f.L:g}: f rises faster than that."
        assert value >= f.infimum - slack, f"the infimum is not {f.infimum:g}: f is {value:g} somewhere."
        hessian = f.hessian(x)
        if hessian is not None:
            assert space.dot(d, hessian(d)) >= -slack, "the Hessian has negative curvature; f is not convex."
            assert math.isfinite(space.dot(d, hessian(d))), "the Hessian is not finite."

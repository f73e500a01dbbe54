"""Laws that every set of atoms and every objective must satisfy: `check_atoms(A)`, `check_objective(f)`.

Each raises AssertionError with a sentence that names the broken law, and returns None where all laws hold.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np

from pursuit.arguments import as_int_or_nan, check_seed, describe, real_array, require
from pursuit.arrays import Array, Space, everywhere, host
from pursuit.atoms.base import Atoms, as_atom
from pursuit.atoms.combinations import Derived
from pursuit.atoms.frames import Atom
from pursuit.objectives import Objective, inside
from pursuit.oracles import as_atom_of

RANDOM_ATOMS = 1000
"""The number of random atoms that the oracle's answers are compared with."""


def check_atoms(A: Atoms, *, shape: tuple[int, ...] | None = None, trials: int = 20, seed: int = 0) -> None:
    """Check the laws of a set of atoms.

    The answers of the oracle are atoms of the set. None is worse than another answer, or than any of 1,000 random atoms
    where the set draws them. The answer depends on the direction of g only, is deterministic, is symmetric where the
    set says so, and neither g nor an earlier answer is changed; g may be 0. What `begin` proves holds. Atoms of one
    source and `coef` are equal, and an atom can be rebuilt from them. Radius, diameter, width, gauge, membership, list
    and chart, where the set has them, are true, and so is its closed form, `A.geometry()`.

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
    if not isinstance(A, Atoms):
        raise TypeError(f"A is {describe(A)}; give a set of atoms, such as Dictionary(matrix).")
    shape = _check_arguments(shape, trials, seed) or A.shape
    if shape is None:
        raise ValueError("the set has no shape; give check_atoms(A, shape=...).")
    space = A.space or Space.default(shape)
    rng = np.random.default_rng(seed)
    directions = [space.put(rng.standard_normal(shape)) for _ in range(trials)]
    named = [_ask(A, space, directions[0])]
    first = host(named[0].dense(space)).copy()
    named += [_ask(A, space, g) for g in directions[1:]]
    _ask(A, space, space.zeros())
    kept = np.array_equal(host(named[0].dense(space)), first)
    assert kept, "a later answer of lmo changed the array of an earlier one; return a new array each time."
    drawn = _draw(A, space, rng, trials)
    rivals = np.stack([[a.dot(space, g) for g in directions] for a in named + drawn]).min(axis=0)
    longest = max(a.norm(space) for a in named)
    for g, own, rival in zip(directions, named, rivals, strict=True):
        tolerance, best = 1e3 * space.eps * longest * space.norm(g), own.dot(space, g)
        assert rival >= best - tolerance, (
            f"lmo(g) is not the best: another atom has <g, a> = {rival:.6g}, its own has {best:.6g}."
        )
        _check_answer(A, space, g, own, tolerance)
        _check_search(A, space, g, rival, tolerance)
        _check_gauge(A, g, own, named, rng)
    _check_names(space, named + drawn[:trials])
    for a in named + drawn[:trials]:
        _check_atom(A, space, a)
    _check_chart(A, space, named, rng)
    _check_sizes(A, space, named, drawn[:trials], rng)


def _check_search(A: Atoms, space: Space, g: Array, rival: float, tolerance: float) -> None:
    """What the search of a run answers and proves."""
    for seed in (0, 1):
        atoms, lower = A.begin(seed)(g, 2, -math.inf)
        assert len(atoms), "the search of begin() named no atom; it must name one for every g."
        values = [as_atom(a).dot(space, g) for a in atoms]
        assert lower <= rival + tolerance, f"begin() claims <g, a> >= {lower:.6g}, but an atom has {rival:.6g}."
        assert not A.exact or values[0] <= rival + tolerance, "the search of begin() does not begin with the best atom."


def _check_gauge(A: Atoms, g: Array, own: Atom, named: Sequence[Atom], rng: np.random.Generator) -> None:
    """z = lmo(g) with <g, z> < 0 lies on the boundary: c conv(A) has it for c >= 1 only. The gauge is homogeneous and
    convex, and at least <d, x> / max <d, a> for every d."""
    space = Space.of(g)
    z, best, slack = own.dense(space), own.dot(space, g), 1e4 * space.eps
    gauge = A.gauge(z)
    outside = best < -slack * own.norm(space) * space.norm(g) and A.exact
    assert not outside or A.contains(1.5 * z) is not True, "the set contains 1.5 lmo(g), which lies outside its hull."
    if gauge is None:
        return
    assert not outside or gauge >= 1.0 - slack, f"lmo(g) has gauge {gauge}, and lies on the boundary: it must be 1."
    weights = rng.exponential(size=min(3, len(named)))
    x = sum((w * a.dense(space) for w, a in zip(weights, named, strict=False)), space.zeros())
    total, gauge = float(weights.sum()), A.gauge(x)
    assert gauge is None or gauge <= total * (1.0 + slack), f"gauge(x) = {gauge}, but x has weights of sum {total}."
    double = A.gauge(3.0 * x)
    assert gauge is None or double is None or abs(double - 3.0 * gauge) <= slack * double, (
        "gauge(3 x) is not 3 gauge(x)."
    )
    most, along = -best, -space.dot(g, x)
    true = gauge is None or not A.exact or gauge * most >= along - slack * space.norm(g) * space.norm(x)
    assert true, f"gauge(x) = {gauge} is too small: <d, x> = {along:.6g} for a d with <d, a> <= {most:.6g}."


def _check_names(space: Space, atoms: Sequence[Atom]) -> None:
    """Atoms that share a source and `coef` are equal."""
    firsts: dict[Hashable, Atom] = {}
    for a in atoms:
        twin = firsts.setdefault(a.key(False), a)
        same = a.distance(space, twin) <= 1e3 * space.eps * a.norm(space)
        assert same, f"two different atoms have the source {a.source!r} and coef {a.coef:g}; one of them must differ."


def _check_chart(A: Atoms, space: Space, named: Sequence[Atom], rng: np.random.Generator) -> None:
    """The chart combines the atoms of its parameters, and its slopes are theirs."""
    chart, rebuilt = A.chart(), [a for a in named[:3] if A.rebuild(a) is not None]
    if chart is None or not rebuilt:
        return
    thetas, coefs = np.array([chart.parameters(a.source) for a in rebuilt]), np.array([a.coef for a in rebuilt])
    x, pull = chart.combine(thetas, coefs)
    made = sum((a.dense(space) for a in rebuilt), space.zeros())
    error, size = space.norm(space.put(host(x)) - made), sum(a.norm(space) for a in rebuilt)
    assert error <= 1e-6 * size, "the chart does not combine the atoms that its parameters name."
    g, step = space.put(rng.standard_normal(space.shape)), 1e-5
    dots, slopes = pull(g)
    spans = np.ptp(np.where(np.isfinite(chart.bounds), chart.bounds, [0.0, 1.0]), axis=1)
    for j, span in enumerate(spans):
        ends = [np.clip(thetas + c * step * span * np.eye(1, len(spans), j), *chart.bounds.T) for c in (-1.0, 1.0)]
        low, high = (chart.combine(end, coefs)[1](g)[0] for end in ends)
        rise = (ends[1] - ends[0])[:, j]
        wrong = np.abs((high - low) - rise * slopes[:, j]) > 1e-3 * (np.abs(high - low) + step * size * space.norm(g))
        assert not wrong.any(), f"the chart's slope along parameter {j} is not that of <g, a>."
    assert np.allclose(dots * coefs, [a.dot(space, g) for a in rebuilt]), (
        "the chart's <g, a> are not those of the atoms."
    )


def _check_arguments(shape: Sequence[int] | None, trials: int, seed: int) -> tuple[int, ...] | None:
    """The shape, where it is given, once all three arguments are checked."""
    check_seed(seed)
    require(as_int_or_nan(trials) >= 1, "trials", trials, "a number of at least 1")
    positive = shape is None or (isinstance(shape, Sequence) and all(as_int_or_nan(n) >= 1 for n in shape))
    require(positive, "shape", shape, "a tuple of positive integers")
    return None if shape is None else tuple(map(int, shape))


def _ask(A: Atoms, space: Space, g: Array) -> Atom:
    before = host(g).copy()
    answer = as_atom(A.lmo(g))
    assert np.array_equal(host(g), before), "lmo changed its argument g; it must leave it alone."
    problem = answer.mismatch(space)
    assert problem is None, f"lmo(g) answered with an atom of {problem}."
    return answer


def _draw(A: Atoms, space: Space, rng: np.random.Generator, trials: int) -> list[Atom]:
    """Random atoms of the set; fewer where each is an answer of the oracle, none where there is no shape."""
    try:
        drawn = [as_atom_of(space, A.sample(rng)) for _ in range(RANDOM_ATOMS if _draws(A) else trials)]
    except NotImplementedError:
        return []
    problem = drawn[0].mismatch(space)
    assert problem is None, f"sample(rng) drew an atom of {problem}."
    return drawn


def _draws(A: Atoms) -> bool:
    """Whether random atoms are drawn without the oracle."""
    if isinstance(A, Derived):
        return all(map(_draws, A.terms))
    return A.size is not None or type(A).sample is not Atoms.sample


def _check_answer(A: Atoms, space: Space, g: Array, own: Atom, tolerance: float) -> None:
    """The answers to g again, to multiples of g, and to -g; the best few atoms, and the list of all."""
    best = own.dot(space, g)
    same = np.array_equal(host(_ask(A, space, g).dense(space)), host(own.dense(space)))
    assert same, "lmo(g) gives two answers to the same g; it must be deterministic."
    for c in (2.0, 2.0**-30, 2.0**30):
        other = _ask(A, space, c * g).dot(space, g)
        assert abs(other - best) <= tolerance, f"lmo({c:g} g) is worse than lmo(g); only the direction counts."
    if A.symmetric:
        opposite = _ask(A, space, -g).dot(space, g)
        assert abs(opposite + best) <= tolerance, "the set says it is symmetric, but lmo(-g) does not mirror lmo(g)."
    if A.size is not None:
        scores = A.scores(g)
        assert len(scores) == A.size, f"the set has size {A.size}, but scores(g) has {len(scores)} entries."
        assert abs(float(scores.min()) - best) <= tolerance, "scores(g) and lmo(g) do not agree on the best atom."
        first = int(scores.argmin())
        listed = as_atom(A.atom(first)).dot(space, g)
        assert abs(listed - best) <= tolerance, f"scores(g) and atom({first}) do not agree on <g, a>."
    several = [as_atom(a) for a in A.best(g, 3)]
    assert 1 <= len(several) <= 3, f"best(g, 3) named {len(several)} atoms."
    begins = abs(several[0].dot(space, g) - best) <= tolerance
    assert begins, "best(g, several) does not begin with an atom as good as lmo(g)."
    owned = all(A.contains(a.dense(space)) is not False for a in several)
    assert owned, "best(g, several) names what the set does not contain."


def _check_atom(A: Atoms, space: Space, a: Atom) -> None:
    """The atom is one of the set, no longer than its radius, of gauge at most 1, and what its source says."""
    vector, slack = a.dense(space), 1e3 * space.eps
    assert A.contains(vector) is not False, "the set does not contain an atom of its own: lmo and contains disagree."
    if A.entry_bounds is not None:
        (low, high), most = A.entry_bounds, slack * (A.radius or 1.0)
        within = everywhere((vector >= low - most) & (vector <= high + most))
        assert within, "an atom has an entry outside the bounds."
    gauge = A.gauge(vector)
    assert gauge is None or gauge <= 1.0 + slack, f"an atom has gauge {gauge}, which must be at most 1."
    twin = A.rebuild(a)
    if twin is not None:
        error = space.norm(twin.dense(space) - vector)
        assert error <= slack * a.norm(space), f"rebuild gives another atom for the source {a.source!r}."
        assert (twin.source, twin.coef) == (a.source, a.coef), f"rebuild renames the atom of source {a.source!r}."


def _check_sizes(
    A: Atoms, space: Space, named: Sequence[Atom], drawn: Sequence[Atom], rng: np.random.Generator
) -> None:
    """Radius, diameter and width are true: the set's, and those of its closed form."""
    closed = A.geometry()
    for sizes in (A, closed) if closed is not None else (A,):
        _check_radius(sizes.radius, space, [*named, *drawn])
        _check_diameter(sizes.diameter, space, [*named, *drawn])
    for width in (A.width, None if closed is None else closed.mdw):
        _check_width(A, width, space, named, rng)


def _check_radius(radius: float | None, space: Space, atoms: Sequence[Atom]) -> None:
    longest = max(a.norm(space) for a in atoms)
    true = radius is None or longest <= radius * (1.0 + 1e3 * space.eps)
    assert true, f"the radius is not {radius}: an atom has norm {longest}."


def _check_diameter(diameter: float | None, space: Space, atoms: Sequence[Atom]) -> None:
    if diameter is None:
        return
    rows = np.stack([host(a.dense(space)).ravel() for a in atoms])
    widest = max(float(np.linalg.norm(rows - row, axis=1).max()) for row in rows)
    limit = diameter * (1.0 + 1e3 * space.eps) + 1e-300
    assert widest <= limit, f"the diameter is not {diameter}: two atoms are {widest} apart."


def _check_width(A: Atoms, width: float | None, space: Space, named: Sequence[Atom], rng: np.random.Generator) -> None:
    """max <d, a> >= width ||d|| for directions d in the span of the atoms."""
    if width is None:
        return
    for _ in named:
        d = space.zeros()
        for a in named:
            d = a.add_to(space, d, float(rng.standard_normal()))
        answer = _ask(A, space, -d)
        slack = 1e3 * space.eps * answer.norm(space) * space.norm(d)
        most = answer.dot(space, d)
        assert most >= width * space.norm(d) - slack, f"the width is not {width}: it is smaller."


def check_objective(
    f: Objective, *, shape: tuple[int, ...] | None = None, trials: int = 20, seed: int = 0, center: object = None
) -> None:
    """Check along random lines that the gradient is that of f, f is convex, and L, mu, infimum, Hessian and conjugate
    are true.

    Points are drawn around `center`, 0 without it, as far from it as f is finite. A function that is convex only on a
    part of the space, as a power of flows is where they are positive, should be infinite elsewhere. `shape` is that of
    x, for an f without data; `trials` is the number of lines.

    >>> import pursuit as ps
    >>> check_objective(ps.Logistic([0, 1, 1]))
    >>> check_objective(ps.LogDet(), center=np.eye(3))
    >>> check_objective(ps.Smooth(lambda x: float(x @ x), lambda x: x), shape=(3,))
    Traceback (most recent call last):
    AssertionError: the gradient is not that of the value: along d it says ..., differences say ...
    """
    if not isinstance(f, Objective):
        raise TypeError(f"f is {describe(f)}; give an objective such as LeastSquares(y), or wrap it in Smooth.")
    shape = _check_arguments(shape, trials, seed)
    middle = None if center is None else real_array(center, "center")
    if shape is None and f.space is None and middle is None:
        raise ValueError("the objective has no space; give check_objective(f, shape=...).")
    space = f.space or (Space.default(shape or ()) if middle is None else Space.of(middle))
    if middle is not None and tuple(middle.shape) != space.shape:
        raise ValueError(f"center has shape {tuple(middle.shape)}, f lives on vectors of shape {space.shape}.")
    rng = np.random.default_rng(seed)
    for _ in range(trials):
        x, d, value, grad = _draw_point(f, space, space.zeros() if middle is None else middle, rng)
        slope, h, new = space.dot(grad, d), space.eps ** (1 / 3), f.value(x + d)
        numeric = (f.value(x + h * d) - f.value(x - h * d)) / (2 * h)
        noise = 50 * h * h * (1.0 + abs(value) / h + abs(slope) + space.norm(grad))
        assert abs(slope - numeric) <= noise, (
            f"the gradient is not that of the value: along d it says {slope:.6g}, differences say {numeric:.6g}."
        )
        slack = 1e3 * space.eps * (abs(value) + abs(new) + abs(slope) + space.dot(d, d))
        assert value >= f.infimum - slack, f"the infimum is not {f.infimum:g}: f is {value:g} somewhere."
        _check_models(f, new - value - slope, space.dot(d, d), slack)
        _check_hessian(f, space, x, d, slack)
        product = space.dot(grad, x)
        _check_conjugate(f, grad, product, value, slack + 1e3 * space.eps * abs(product))


def _check_models(f: Objective, rise: float, square: float, slack: float) -> None:
    """mu/2 ||d||^2 <= f(x + d) - f(x) - <grad f(x), d> <= L/2 ||d||^2."""
    assert not f.convex or rise >= 0.5 * f.mu * square - slack, (
        f"f is not convex with mu = {f.mu:g}: it lies below its lower model by {-rise:.3g}; "
        "where it is meant to be only on a part of the space, let it be infinite elsewhere."
    )
    if f.L is not None:
        assert rise <= 0.5 * f.L * square + slack, f"L is not {f.L:g}: f rises faster than that."


def _check_hessian(f: Objective, space: Space, x: Array, d: Array, slack: float) -> None:
    """The Hessian along d is that of the gradients."""
    hessian, h = f.hessian(x), space.eps ** (1 / 3)
    if hessian is None:
        return
    curvature = space.dot(d, hessian(d))
    assert not f.convex or curvature >= -slack, "the Hessian has negative curvature; f is not convex."
    assert math.isfinite(curvature), "the Hessian is not finite."
    change = (f.value_and_grad(x + h * d)[1] - f.value_and_grad(x - h * d)[1]) / (2 * h)
    wrong, size = space.norm(change - hessian(d)), space.norm(change) + space.norm(hessian(d))
    assert wrong <= 1e2 * h * (size + space.norm(f.value_and_grad(x)[1])) or not f.twice_differentiable(x), (
        f"the Hessian is not that of f: along d it differs from gradients' by {wrong:.3g} of {size:.3g}."
    )


def _check_conjugate(f: Objective, grad: Array, product: float, value: float, slack: float) -> None:
    """f*(u) >= <u, x> - f(x) at the gradient u; `product` is <u, x>."""
    conjugate = f.conjugate(grad) if f.convex else None
    low = conjugate is not None and conjugate < product - value - slack
    assert not low, f"the conjugate at a gradient is {conjugate:.6g}, below <u, x> - f(x) there."


def _draw_point(
    f: Objective, space: Space, center: Array, rng: np.random.Generator
) -> tuple[Array, Array, float, Array]:
    """A random point and a random direction, along which f is finite on both sides, with its value and gradient."""
    x, d = (space.put(rng.standard_normal(space.shape)) for _ in range(2))
    for _ in range(60):
        value, grad = f.value_and_grad(center + x)
        if inside(space, value, grad) and math.isfinite(f.value(center + x + d) + f.value(center + x - d)):
            return center + x, d, value, grad
        x, d = 0.5 * x, 0.5 * d
    raise ValueError("f is not finite around center, 0 by default; give center= a point inside the domain of f.")

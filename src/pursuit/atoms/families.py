r"""Families of atoms a(theta) for `Parametric`: a function of the parameters, with its derivatives as `grad`.

Positions t are a vector, or an array whose last axis holds coordinates, as of the pixels of an image. `Unit` makes the
atoms of a family unit vectors, so that none is preferred for its length.

>>> import numpy as np, pursuit as ps
>>> t = np.linspace(0.0, 1.0, 50)
>>> bump = ps.families.Gaussian(t, width=0.1)
>>> f, domain = ps.LeastSquares(2.0 * bump(np.array([0.37]))), ps.lin(ps.Parametric(bump, [(0.0, 1.0)]))
>>> r = ps.minimize(f, domain, stop=ps.Stop(atoms=1))
>>> r.weights.round(6), np.round(r.atoms[0].source, 6)
(array([2.]), array([0.37]))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pursuit.arguments import check_function, number, real_array, require
from pursuit.arrays import Small

Family = Callable[[Small], Any]


class _Sampled:
    """A family of functions, evaluated at the positions t."""

    def __init__(self, t: object) -> None:
        self.t: Small = np.asarray(real_array(t, "t"), dtype=np.float64)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'x'.join(map(str, self.t.shape))} positions)"


class Translates(_Sampled):
    r"""Translates of a template, :math:`\varphi(t - \theta)`: point sources seen by an instrument.

    The template is a function of an array of (differences of) positions; `slope` is its derivative (the gradient, along
    the last axis, where positions have coordinates).

    >>> family = Translates(np.cos, np.linspace(0, 1, 3), slope=lambda s: -np.sin(s))
    >>> family(np.array([0.5])).round(3), family.grad(np.array([0.5])).round(3)
    (array([0.878, 1.   , 0.878]), array([[-0.479,  0.   ,  0.479]]))
    """

    def __init__(self, template: Family, t: object, slope: Family | None = None) -> None:
        super().__init__(t)
        check_function(template, "template", "an array of positions")
        self.template = template
        if slope is not None:
            check_function(slope, "slope", "an array of positions")
            self.grad = lambda theta: -self._first(slope(self.t - self._shift(theta)))

    def _shift(self, theta: Small) -> Any:
        if len(theta) != (1 if self.t.ndim == 1 else self.t.shape[-1]):
            raise ValueError(f"theta has {len(theta)} entries; give one shift for each coordinate of a position.")
        return theta[0] if self.t.ndim == 1 else theta

    def _first(self, slopes: Small) -> Small:
        return slopes[None] if self.t.ndim == 1 else np.moveaxis(slopes, -1, 0)

    def __call__(self, theta: Small) -> Small:
        return np.asarray(self.template(self.t - self._shift(theta)))


class Gaussian(_Sampled):
    r"""Bumps :math:`\exp(-\|t - c\|^2 / 2 s^2)`; theta is the centre c, followed by the width s where `width` is None.

    >>> Gaussian([0.0, 1.0], 1.0)(np.array([0.0])).round(4)
    array([1.    , 0.6065])
    """

    def __init__(self, t: object, width: float | None = None) -> None:
        super().__init__(t)
        positive = width is None or 0 < number(width) < np.inf
        require(positive, "width", width, "a positive number, or None to make it a parameter")
        self.width = None if width is None else float(width)

    def _parts(self, theta: Small) -> tuple[Small, Small, float]:
        """Offsets t - c with the coordinates first, their squared length, the width."""
        width = float(theta[-1]) if self.width is None else self.width
        offsets = self.t[None] if self.t.ndim == 1 else np.moveaxis(self.t, -1, 0)
        if len(theta) != len(offsets) + (self.width is None):
            needed = "the coordinates of the centre, and the width if it is free"
            raise ValueError(f"theta has {len(theta)} entries; give {needed}.")
        offsets = offsets - theta[: len(offsets)].reshape(-1, *[1] * (offsets.ndim - 1))
        return offsets, np.sum(offsets**2, axis=0), width

    def __call__(self, theta: Small) -> Small:
        _, squares, width = self._parts(theta)
        return np.asarray(np.exp(-squares / (2.0 * width**2)))

    def grad(self, theta: Small) -> Small:
        offsets, squares, width = self._parts(theta)
        bump = np.exp(-squares / (2.0 * width**2))
        by_centre = offsets / width**2 * bump
        return by_centre if self.width is not None else np.concatenate([by_centre, (squares / width**3 * bump)[None]])


class Unit:
    r"""The atoms of a family at length one, :math:`a(\theta)/\|a(\theta)\|`.

    >>> float(np.linalg.norm(Unit(Gaussian(np.linspace(0, 1, 50), 0.1))(np.array([0.3]))).round(12))
    1.0
    """

    def __init__(self, family: Any) -> None:
        check_function(family, "family", "a (p,) array of parameters")
        self.family = family
        if hasattr(family, "grad"):
            self.grad = self._grad

    def __call__(self, theta: Small) -> Small:
        a = self.family(theta)
        return np.asarray(a / np.linalg.norm(a))

    def _grad(self, theta: Small) -> Small:
        a, slopes = self.family(theta), self.family.grad(theta)
        norm = np.linalg.norm(a)
        along = np.tensordot(slopes, a, axes=a.ndim) / norm**2
        return np.asarray((slopes - np.multiply.outer(along, a)) / norm)

    def __repr__(self) -> str:
        return f"Unit({self.family!r})"

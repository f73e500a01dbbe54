"""Nesterov's accelerated gradient method with restart."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from pursuit.arrays import Small


def accelerated_gradient(step: Callable[[Small], Small], x: Small) -> Iterator[Small]:
    r"""The iterates of accelerated (projected, proximal) gradient descent from x, an infinite iterator.

    `step` is one plain step, such as :math:`y \mapsto P(y - \nabla f(y)/L)` with a projection P. With :math:`t_0 = 1`
    and :math:`y_0 = x_0`,

    .. math:: x_{k+1} = \mathrm{step}(y_k), \quad t_{k+1} = \tfrac12\Big(1 + \sqrt{1 + 4t_k^2}\Big), \quad
              y_{k+1} = x_{k+1} + \frac{t_k - 1}{t_{k+1}} (x_{k+1} - x_k)

    (FISTA: Beck and Teboulle, 2009). Where the momentum points uphill, :math:`\langle y_k - x_{k+1}, x_{k+1} - x_k
    \rangle > 0`, it starts anew with :math:`t_{k+1} = 1` and :math:`y_{k+1} = x_{k+1}` (O'Donoghue and Candes, 2015);
    so a strongly convex f is minimised at a linear rate, although mu is not given.

    >>> from itertools import islice
    >>> H = np.array([1.0, 0.01])                                      # f(x) = <x, H x> / 2, L = 1
    >>> *_, x = islice(accelerated_gradient(lambda y: y - H * y, np.ones(2)), 200)
    >>> bool(np.abs(x).max() < 1e-6 < (1.0 - H[1]) ** 200)             # plain steps are still at 0.13
    True
    """
    y, t = x, 1.0
    while True:
        new = step(y)
        if float(np.vdot(y - new, new - x)) > 0:
            x, y, t = new, new, 1.0
        else:
            after = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
            x, y, t = new, new + (t - 1.0) / after * (new - x), after
        yield x

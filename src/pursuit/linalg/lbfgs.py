"""L-BFGS, SciPy's, with one way to stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scipy  # its parts are imported when they are first used

from pursuit.arrays import Small
from pursuit.threads import single_threaded_blas


def lbfgs(
    value_and_grad: Callable[[Small], tuple[float, Small]],
    start: Small,
    bounds: object = None,
    stop: Callable[[], bool] = lambda: False,
    **options: Any,
) -> Any:
    """A local minimiser near `start`, within bounds, as SciPy's result. After each step `stop` is asked.

    The gradient and the decrease stop the search only where `gtol` or `ftol` is given: by default they are 0.

    >>> import numpy as np
    >>> lbfgs(lambda x: (float(x @ x), 2 * x), np.array([3.0, -1.0]), bounds=[(1.0, 4.0), (-1.0, 1.0)]).x.tolist()
    [1.0, 0.0]
    """

    def callback(intermediate_result: object) -> None:
        if stop():
            raise StopIteration

    minimize: Any = scipy.optimize.minimize
    options = {"ftol": 0.0, "gtol": 0.0} | options
    with single_threaded_blas:  # it factors matrices of a few dozen rows
        return minimize(
            value_and_grad, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options, callback=callback
        )

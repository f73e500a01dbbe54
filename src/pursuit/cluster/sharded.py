"""A dictionary whose columns are spread over the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pursuit.arguments import as_bool, describe
from pursuit.atoms.pieces import Piece, Pieces
from pursuit.cluster.workers import Held, current_client, is_dask_array


class Sharded(Pieces):
    r"""A `Dictionary` whose columns are held by the workers of a dask cluster.

    One question sends g to every worker and gets back the best few columns of each, by number and product; the best of
    these are the answer. Only their columns travel (those of all workers, where together they take at most 1 MB, since
    a second question costs more). The answer does not depend on how many workers there are: it is that of a
    `Dictionary` of all columns, where rounding does not decide, and ties go to the lowest number. After two questions
    a worker makes an 8-bit copy of its columns, as `Dictionary` does, and reads that first.

    A worker that dies takes its columns with it. Another one loads them again, and the question is answered.

    Parameters
    ----------
    columns : dask array of shape (..., n), or sequence of functions
        A function has no arguments and returns the next columns, an array of shape (..., n_i) or a sparse matrix. It
        runs on a worker, and again if that worker dies: it must return the same. A dask array is cut into as many
        pieces as there are workers.
    signed : bool
        Whether the negatives of the columns are atoms, too.
    client : distributed.Client, optional
        By default the current one.

    Examples
    --------
    >>> import pytest
    >>> distributed = pytest.importorskip("distributed")
    >>> import numpy as np, pursuit as ps
    >>> def columns(seed):
    ...     return np.random.default_rng(seed).standard_normal((20, 50))
    >>> with distributed.Client(processes=False, n_workers=2, dashboard_address=None):
    ...     A = ps.Sharded([lambda: columns(0), lambda: columns(1)])
    ...     y = columns(0)[:, 3] - 2.0 * columns(1)[:, 7]
    ...     r = ps.minimize(ps.LeastSquares(y), ps.lin(A), stop=ps.Stop(atoms=2))
    >>> A, sorted(a.source for a in r.atoms)
    (Sharded(20 x 100 in 2 pieces), [3, 57])
    """

    def __init__(self, columns: Any, signed: bool = False, client: Any = None) -> None:
        signed = as_bool(signed, "signed")
        if not is_dask_array(columns) and not (isinstance(columns, Sequence) and all(map(callable, columns))):
            raise TypeError(f"columns is {describe(columns)}; give a dask array, or functions that return columns.")
        if not len(columns):
            raise ValueError("columns is empty; give at least one function that returns columns.")
        client = current_client(client, "Sharded")
        if is_dask_array(columns):
            tasks = _blocks(columns, len(client.nthreads()))
        else:
            tasks = [partial(_loaded, load, i) for i, load in enumerate(columns)]
        self._held = Held(client, tasks)
        self._describe(self._held.ask(range(len(tasks)), Piece.facts, range(len(tasks))), signed)

    def ask(self, which: Sequence[int], function: Callable[..., Any], each: Sequence[Any], *shared: Any) -> list[Any]:
        return self._held.ask(which, function, each, *shared)


def _loaded(load: Callable[[], Any], number: int) -> Piece:
    return Piece.of(load(), number)


def _blocks(columns: Any, workers: int) -> list[Any]:
    """Tasks that make one piece for each worker."""
    from dask.delayed import delayed

    if columns.ndim < 2 or not columns.shape[-1]:
        raise ValueError(f"columns has shape {columns.shape}; give a matrix whose columns are the atoms.")
    whole = dict.fromkeys(range(columns.ndim - 1), -1)
    cut = columns.rechunk(whole | {columns.ndim - 1: -(-columns.shape[-1] // max(workers, 1))})
    return [delayed(Piece.of)(block, i) for i, block in enumerate(cut.to_delayed().ravel())]

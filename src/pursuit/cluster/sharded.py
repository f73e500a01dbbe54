"""A dictionary whose columns are spread over the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pursuit.arguments import as_bool
from pursuit.atoms.pieces import Piece, Pieces
from pursuit.cluster.workers import WorkerValues, check_functions, current_client, is_dask_array


class Sharded(Pieces):
    r"""A `Dictionary` whose columns are held by the workers of a dask cluster.

    A question sends g to every worker and gets back the numbers and products of its best few columns; the best of these
    are the answer. Only their columns travel (those of all workers, where together they take at most 1 MB). The answer
    does not depend on how many workers there are: it is that of a `Dictionary` of all columns, where rounding does not
    decide. After two questions of a run the workers make 8-bit copies of their columns, as `Dictionary` does. A worker
    that dies takes its columns with it: another one loads them again, and the question is answered.

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
        if not is_dask_array(columns):
            check_functions(columns, "columns", "columns, or a dask array")
        client = current_client(client, "Sharded")
        if is_dask_array(columns):
            tasks = _blocks(columns, len(client.nthreads()))
        else:
            tasks = [partial(_loaded, load, i) for i, load in enumerate(columns)]
        self._values = WorkerValues(client, tasks)
        self._describe(self.map(Piece.description, range(len(tasks))), signed)

    def map(self, function: Callable[..., Any], which: Sequence[int], *arguments: Any) -> list[Any]:
        return self._values.map(function, which, *arguments)

    def screened(self) -> Sharded:
        """The same set whose workers make their 8-bit copies when they are first asked."""
        return self._with(copies_made=True)


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

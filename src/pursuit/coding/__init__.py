"""Many signals at once: sparse codes of the rows of Y on the columns of a dictionary."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from pursuit.arguments import describe
from pursuit.atoms.convolutional import Convolutional
from pursuit.cluster.arrays import encode_blocks
from pursuit.cluster.workers import is_dask_array
from pursuit.coding.device import encode_on_device, is_on_device
from pursuit.coding.gaps import duality_gaps
from pursuit.coding.joint import encode_joint, is_joint
from pursuit.coding.operators import encode_on_operator
from pursuit.coding.recordings import encode_recording
from pursuit.coding.request import Arguments, Request, thread_count
from pursuit.coding.scheduling import solve_in_tiles
from pursuit.coding.variants import encode_variant
from pursuit.threads import at_most

__all__ = ["encode"]


def encode(
    D: Any,
    Y: Any,
    *,
    atoms: Any = None,
    tol: Any = None,
    method: str = "omp",
    gram: Any = None,
    n_jobs: int | None = None,
    dtype: Any = None,
    progress: bool = False,
    weights: Any = None,
    penalty: Any = None,
    positive: bool = False,
    gaps: bool = False,
    joint: Any = None,
    l2: float = 0.0,
    prices: Any = None,
    threshold: float | None = None,
    prior: float | None = None,
    bounds: Any = None,
    refractory: int | None = None,
    block: int | None = None,
    halo: int | None = None,
    checkpoint: Any = None,
) -> Any:
    r"""Sparse codes of many signals: every row y of Y as a combination of few columns of D.

    Pursuits add atoms until there are enough or the residual :math:`r = y - D x` is small enough (ties go to the lowest
    index); the last two methods solve a convex problem to rounding:

    ========= ===================================================== ================================================
    method    the next atom                                         the weights
    ========= ===================================================== ================================================
    ``omp``   largest :math:`|\langle r, a_j\rangle|`               least squares on the active atoms
    ``mp``    largest :math:`|\langle r, a_j\rangle|`               that of this atom alone moves
    ``ols``   largest decrease of :math:`\|r\|` after the refit     least squares on the active atoms
    ``nnomp`` largest :math:`\langle r, a_j\rangle > 0`             non-negative least squares; zeros leave
    ``lasso`` :math:`\min_x \tfrac12\|y - Dx\|^2 + \lambda\|x\|_1`  over all x or (`positive`) :math:`x \ge 0`
    ``nnls``  the same with :math:`\lambda = 0`                     over :math:`x \ge 0`
    simplex   the same                                              over :math:`x \ge 0` with the sum 1 (unmixing)
    ========= ===================================================== ================================================

    Parameters
    ----------
    D : array of shape (n_features, n_atoms), or Convolutional
        Columns are atoms, of any norm but zero. D and Y may be complex (see `joint`). Sparse matrices, here and for Y,
        are made dense. A SciPy
        `LinearOperator` is used by its products alone, one signal after the other and in float64, by ``omp``,
        ``nnomp``, ``lasso`` and ``nnls`` without weights. A stack of dictionaries codes a stack of Y. With the
        translates of templates, Y is one recording (see Notes) and the answer its events.
    Y : array of shape (n_signals, n_features)
        Rows are signals. Masked entries of a masked array are missing, as with weight 0.
    atoms : int or one per signal, optional
        The most atoms of a code. ``mp`` ends where a step would need one more, or after 10 steps for each. A code has
        fewer where no atom correlates with the residual beyond rounding, so never more than the rank.
    tol : float or one per signal, optional
        Stop where :math:`\|y - Dx\| \le` tol, a norm, not its square. With `atoms`, whichever comes first. Of
        ``lasso``, instead of `penalty`: the smallest :math:`\|x\|_1` with this error, for the time of some Lassos.
    method : {"omp", "mp", "ols", "nnomp", "lasso", "nnls", "simplex"}
        The first four take `atoms` or `tol` or both; ``lasso`` takes `penalty`, or `tol`.
    gram : array of shape (n_atoms, n_atoms), optional
        D.T @ D, if you have it.
    n_jobs : int, optional
        Threads, no more than there are cores (or than OMP_NUM_THREADS says); None or -1: all of them (for a block of
        a dask array one).
    dtype : numpy.float32 or numpy.float64, optional
        Of the computation and the codes, by default that of D and Y. ``lasso`` and ``nnls`` compute in float64 and
        round at the end.
    progress : bool
        Show a bar where there is a terminal.
    weights : array of Y's shape, optional
        Of entries, in inner products and norms :math:`\langle u, v\rangle_w = \sum_t w_t u_t v_t`. Non-negative; 0
        marks a missing entry, where Y may hold anything, NaN too.
    penalty : float or one per signal, optional
        :math:`\lambda \ge 0` of ``lasso``.
    positive : bool
        Whether the weights of ``lasso`` are non-negative.
    gaps : bool
        For ``lasso``, ``nnls`` and ``simplex``: return ``codes, gaps``, where ``gaps[i]`` is a proved upper bound on
        the objective of code i minus its minimum, rounding errors included. For ``nnls`` it is small where some vector
        has a positive product with every atom (a non-negative dictionary) or the residual is 0.
    joint : True or a label for each signal, optional
        Signals with one label (True: all) share their atoms: ``omp`` (then SOMP), ``ols`` and ``mp`` choose by the norm
        over the signals, ``lasso`` is :math:`\tfrac12\|Y - XD^\top\|^2 + \lambda\sum_j\|x_j\|` over columns of X.
        `atoms`, `tol` (of the whole residual) and `penalty` are one number, or one for each label in sorted order.
        These codes and complex ones are products of arrays on one thread (the device of CUDA tensors) and have no
        weights, gram or gaps; ``lasso`` ends at a gap of 1e-9, after some hundred products.
    l2, prices : float; array of shape (n_atoms,), optional
        Of ``lasso``, :math:`\lambda \sum_j p_j |x_j| + \tfrac12 l_2 \|x\|^2` as the penalty. With `l2`, signals become
        longer by n_atoms entries.
    threshold : float, optional
        This and all that follow are for recordings. An event enters where it lowers :math:`\|r\|^2` by more than this.
    prior : float, optional
        Of ``mp``, for weights near 1: an event of weight w costs :math:`\text{prior}\,\|a\|^2 (w - 1)^2`; inf: w = 1.
    bounds : (least, most), optional
        Of ``mp``: all weights lie between these, 0 <= least <= most.
    refractory : int, optional
        Of ``mp``: two events of one template are further apart than this many samples.
    block, halo : int, optional
        A recording is searched in blocks of so many positions, each with a halo on both sides. Where the events that
        two neighbours find near their seam differ, the seam is listed in `Events.unverified`.
    checkpoint : path, optional
        A file to which finished blocks are written. A call with the same arguments goes on where it ended.

    Returns
    -------
    scipy.sparse.csr_array of shape (n_signals, n_atoms)
        ``Y ~ codes @ D.T``, indices in increasing order; with `gaps`, a pair of it and an array. Of a stack: a list,
        one for each dictionary, and rules hold for all of them. Of a dask array Y: a dask array of sparse blocks, not
        computed yet; D goes to each worker once. Of torch tensors or CuPy arrays on a CUDA device: a CSR tensor or
        CuPy matrix there, found there without weights or gaps (with them, on the host). Where D or Y requires
        gradients, they go through the values, for the active atoms that were found. Of a recording: `Events`.

    Notes
    -----
    Of a recording, Y is an array, memory map, Zarr, HDF5 or dask array with time as its last axis, or a function
    (start, stop) -> samples. It is read block by block and computed with in float32, unless its numbers are larger.
    ``mp`` and ``omp`` add the event that lowers :math:`\|r\|^2` most; ``omp`` and ``nnomp`` then solve for the
    weights of the 32 events that overlap it most directly, and of others until all are exact to rounding. ``lasso``,
    in float64, ends at a gap of 1e-10 of the objective, or as close as rounding allows; `Events.gap` is proved. With
    `atoms`, events are counted over the whole recording, which is then one block. Memory: for every thread the
    samples of a block, and 4 (or 8) bytes for each position of it and each template; the products of templates, as
    many bytes as `Convolutional` allows; and the events. `docs/recordings.md` is a guide.

    Memory does not grow with the number of signals. Besides D, Y, the codes, two copies of the codes and three of D, it
    is the Gram matrix (``n_atoms**2`` numbers, and copies in 4 and 2 bytes, at most 1 GiB; beyond that, for few
    signals, and with weights, it is not formed) plus, for every thread, 32 MiB and ``8 k**2`` numbers, k the largest
    code allowed (or what one signal needs, if that is more).

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit import encode
    >>> D = np.array([[1.0, 0.0, 0.6], [0.0, 2.0, 0.8]])
    >>> Y = np.array([[3.0, 0.0], [0.0, 5.0], [1.2, 1.6]])
    >>> encode(D, Y, atoms=1, method="ols").toarray()
    array([[3. , 0. , 0. ],
           [0. , 2.5, 0. ],
           [0. , 0. , 2. ]])
    >>> codes, gaps = encode(D, Y, method="lasso", penalty=1.0, gaps=True)
    >>> codes.toarray()[:2], bool((gaps < 1e-12).all())
    (array([[2.  , 0.  , 0.  ],
           [0.  , 2.25, 0.  ]]), True)
    """
    recording = {"threshold": threshold, "prior": prior, "bounds": bounds, "refractory": refractory, "block": block,
                 "halo": halo, "checkpoint": checkpoint}  # fmt: skip
    arguments = Arguments(atoms, tol, method, gram, n_jobs, dtype, progress, weights, penalty, positive, gaps,
                          joint, l2, prices)  # fmt: skip
    if isinstance(D, Convolutional):
        return encode_recording(D, Y, vars(arguments) | recording)
    refuse_options(recording)
    if is_dask_array(D) or is_dask_array(Y):
        return encode_blocks(encode, D, Y, vars(arguments))
    if getattr(D, "ndim", 2) == 3:
        return [encode(d, y, **vars(one)) for d, y, one in unstack(D, Y, arguments)]
    if is_on_device(D) or is_on_device(Y):
        return encode_on_device(encode_on_host, D, Y, arguments)
    return encode_on_host(D, Y, arguments)


def refuse_options(recording: dict[str, Any]) -> None:
    """Refuse options of recordings where D is a matrix."""
    for name, value in recording.items():
        if value is not None:
            raise ValueError(
                f"{name} is {describe(value)}, which is for recordings; give D as ps.Convolutional(templates)."
            )


def encode_on_host(D: Any, Y: Any, arguments: Arguments) -> Any:
    """The codes of one matrix of signals in the memory of the host."""
    with at_most(thread_count(arguments.n_jobs)):
        if is_joint(D, Y, arguments):
            return encode_joint(D, Y, arguments)
        codes = encode_variant(encode_on_host, D, Y, arguments)
        if codes is not None:
            return codes
        request = Request.from_arguments(D, Y, arguments)
        if isinstance(D, LinearOperator):
            codes, gaps = encode_on_operator(request)
        else:
            codes = solve_in_tiles(request).astype(request.code_dtype, copy=False)
            gaps = duality_gaps(request, codes) if request.gaps else np.empty(0)
    return (codes, gaps) if request.gaps else codes


def unstack(D: Any, Y: Any, arguments: Arguments) -> Iterator[tuple[Any, Any, Arguments]]:
    """Each dictionary of a stack, the signals that it codes, and their arguments."""
    for name, stack in {"Y": Y, "gram": arguments.gram, "weights": arguments.weights}.items():
        if stack is not None and (getattr(stack, "ndim", 0) != 3 or len(stack) != len(D)):
            raise ValueError(f"{name} is {describe(stack)}, D {describe(D)}; give as many matrices of each.")
    for i in range(len(D)):
        gram, weights = (None if stack is None else stack[i] for stack in (arguments.gram, arguments.weights))
        yield D[i], Y[i], replace(arguments, gram=gram, weights=weights)

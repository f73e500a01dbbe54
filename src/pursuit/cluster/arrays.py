"""`encode` of dask arrays: every block of signals is coded by whichever worker is free."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np
import scipy.sparse as sp

from pursuit.arguments import describe
from pursuit.cluster.workers import is_dask_array

EACH_SIGNAL = ("atoms", "tol", "penalty", "weights")
"""Arguments of `encode` that may have an entry, or a row, for each signal."""


def encode_blocks(encode: Callable[..., Any], D: Any, Y: Any, options: dict[str, Any]) -> Any:
    """The codes of a dask array Y, not computed yet: a dask array of sparse blocks; with `gaps` a pair of dask arrays.

    `encode` is that of arrays of the host, `options` are its other arguments. The dictionary is one task of the graph,
    so that each worker gets it once.
    """
    import dask.array as da
    from dask.delayed import delayed

    _refuse(Y, options)
    each = {name: options[name] for name in EACH_SIGNAL if is_dask_array(options[name]) or np.ndim(options[name])}
    fixed = {name: value for name, value in options.items() if name not in each} | {"progress": False}
    fixed["n_jobs"] = fixed["n_jobs"] or 1  # the blocks are what runs in parallel
    Y = Y.rechunk({1: -1})
    arrays: list[Any] = [Y, "ij"]
    for name, value in each.items():
        arrays += [_by_blocks(da, name, value, Y), "ij" if name == "weights" else "i"]
    if is_dask_array(D):
        D, dtype = D.rechunk(-1), options["dtype"] or D.dtype
        dictionary = delayed(np.asarray)(D.to_delayed().item())
    else:
        dtype = _check(encode, D, Y, fixed, each)
        dictionary = delayed(D, traverse=False)
    how = {"encode": encode, "dictionary": dictionary, "names": tuple(each), "options": fixed}
    codes = {"new_axes": {"k": np.shape(D)[1]}, "dtype": dtype, "meta": sp.csr_array((0, 0), dtype=dtype)}
    if not fixed["gaps"]:
        return _not_storable(da.blockwise(_encode_block, "ik", *arrays, concatenate=True, **codes, **how))
    pairs = da.blockwise(_encode_block, "i", *arrays, concatenate=True, meta=np.empty(0), **how)
    gaps = da.blockwise(itemgetter(1), "i", pairs, "i", meta=np.empty(0))
    return _not_storable(da.blockwise(itemgetter(0), "ik", pairs, "i", **codes)), gaps


def _refuse(Y: Any, options: dict[str, Any]) -> None:
    """Refuse what cannot be done by blocks."""
    if not is_dask_array(Y):
        raise TypeError(f"D is a dask array and Y is {describe(Y)}; give Y as a dask array, or D.compute().")
    if Y.ndim != 2:
        raise ValueError(f"Y has shape {Y.shape}; give a matrix, one signal a row: Y.reshape(-1, {Y.shape[-1]}).")
    if options["progress"]:
        raise ValueError("progress was asked of a dask array, whose codes are computed later; leave it out.")
    if options["joint"] is not None and options["joint"] is not False:
        raise ValueError("joint was given with a dask array, whose blocks are coded alone; map encode over its blocks.")


def _not_storable(codes: Any) -> Any:
    """The same dask array, whose methods that would write sparse blocks as dense ones say what to do."""
    for name in ("store", "to_zarr", "to_hdf5"):
        setattr(codes, name, _refuse_to_store)
    return codes


def _refuse_to_store(*args: Any, **options: Any) -> Any:
    dense = "codes.map_blocks(lambda block: block.toarray(), dtype=codes.dtype, meta=np.empty((0, 0)))"
    raise TypeError(f"codes have sparse blocks; write them with encode_to(path, D, Y, ...), or store {dense}.")


def _encode_block(Y: Any, *each: Any, encode: Any, dictionary: Any, names: tuple[str, ...], options: Any) -> Any:
    return encode(dictionary, Y, **dict(zip(names, each, strict=True)), **options)


def _check(encode: Callable[..., Any], D: Any, Y: Any, fixed: dict[str, Any], each: dict[str, Any]) -> Any:
    """Refuse now what every block would refuse, by coding a signal of zeros; the dtype of the codes."""
    first = {
        name: np.ones((1, *value.shape[1:]), value.dtype) if is_dask_array(value) else np.asarray(value)[:1]
        for name, value in each.items()
    }
    codes = encode(D, np.zeros((1, Y.shape[1]), Y.dtype), **fixed, **first)
    return (codes[0] if fixed["gaps"] else codes).dtype


def _by_blocks(da: Any, name: str, value: Any, Y: Any) -> Any:
    """An argument with an entry for each signal, cut as Y is."""
    shape, chunks = (Y.shape, Y.chunks) if name == "weights" else (Y.shape[:1], Y.chunks[:1])
    value = value if is_dask_array(value) else np.asarray(value)
    if tuple(value.shape) != shape and not any(math.isnan(length) for length in (*value.shape, *shape)):
        advice = "one weight per entry of Y" if name == "weights" else "one number, or one for each signal"
        raise ValueError(f"{name} has shape {tuple(value.shape)} where Y has {Y.shape}; give {advice}.")
    if any(math.isnan(length) for length in chunks[0]):
        if is_dask_array(value) and value.numblocks[0] == Y.numblocks[0]:
            return value
        raise ValueError(f"Y has blocks of unknown length; give {name} as a dask array with the same blocks.")
    return value.rechunk(chunks) if is_dask_array(value) else da.from_array(value, chunks)

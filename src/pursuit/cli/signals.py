"""`pursuit encode` and `pursuit learn`: sparse codes of signals, and dictionaries for them, from files.

Signals are the rows of a .npy matrix, or of a table of numbers (CSV or Parquet) with or without a line of column names.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp

import pursuit
from pursuit.cli import errors
from pursuit.cli.errors import AsJson, CtrlC, Interrupted, UsageError, argument, check_file, check_outputs, option
from pursuit.files import replacing

Array = np.ndarray[Any, np.dtype[Any]]

Method = StrEnum("Method", ["omp", "mp", "ols", "nnomp", "lasso", "nnls"])
"""The methods of `pursuit.encode`."""
Signals = Annotated[Path, argument("SIGNALS", "The signals: rows of a .npy matrix or of a table.")]


def encode(
    dictionary: Annotated[Path, argument("DICTIONARY", "The dictionary, .npy or a table; its columns are the atoms.")],
    signals: Signals,
    output: Annotated[Path, option("FILE", "Where to write the codes: a sparse matrix of SciPy's, .npz.")],
    atoms: Annotated[int | None, option("N", "The most atoms of a code.", min=1)] = None,
    tol: Annotated[float | None, option("R", "The norm of the error at which a code is good enough.")] = None,
    method: Annotated[Method, option("METHOD", "omp, mp, ols, nnomp, lasso or nnls.")] = Method.omp,
    penalty: Annotated[float | None, option("R", "The factor of the L1 norm, for lasso.")] = None,
    as_json: AsJson = False,
) -> None:
    """Code signals sparsely on a dictionary: signals ~ codes times transposed dictionary.

    Example: pursuit encode D.npy signals.npy --atoms 5 --output codes.npz
    """
    check_outputs({"--output": output}, [dictionary, signals])
    check_suffix(output, ".npz")
    if atoms is None and tol is None and method not in (Method.lasso, Method.nnls):
        raise UsageError("--atoms and --tol are missing; give one of them, or --method lasso with --penalty.")
    D, Y = read_matrix(dictionary), read_matrix(signals)
    if Y.shape[1] != len(D):
        lengths = f"{signals} has signals of {Y.shape[1]} numbers, and {dictionary} has atoms (columns) of {len(D)}"
        raise UsageError(f"{lengths}; give signals and atoms of one length.")
    with CtrlC(keeps=False), errors.refusals():
        codes = pursuit.encode(D, Y, atoms=atoms, tol=tol, method=method, penalty=penalty, progress=True)
    with replacing(output) as new, new.open("wb") as file:
        sp.save_npz(file, codes)
    error, each = float(np.linalg.norm(Y - codes @ D.T) / (np.linalg.norm(Y) or 1.0)), codes.nnz / len(Y)
    if as_json:
        numbers = {"signals": len(Y), "atoms_each": each, "relative_error": error}
        errors.print_json(numbers | {"output": str(output)})
    else:
        print(f"{len(Y)} signals, {each:.3g} atoms each, relative error {error:.3g}: {output}")


def learn(
    signals: Signals,
    output: Annotated[Path, option("FILE", "Where to write the dictionary, .npy; its columns are the atoms.")],
    atoms: Annotated[int, option("N", "How many atoms to learn.", min=1)] = 256,
    code_atoms: Annotated[int, option("N", "The most atoms of a code.", min=1)] = 5,
    sweeps: Annotated[int, option("N", "How often to go through all signals.", min=1)] = 10,
    seed: Annotated[int, option("N", "Seed of the choice of the first atoms.", min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """Learn a dictionary on which signals have sparse codes (K-SVD).

    Example: pursuit learn signals.npy --atoms 256 --code-atoms 5 --output D.npy
    """
    check_outputs({"--output": output}, [signals])
    check_suffix(output, ".npy")
    Y = read_matrix(signals)
    with CtrlC() as ctrl_c, errors.refusals():
        learned = pursuit.learn(Y, atoms, code={"atoms": code_atoms}, sweeps=sweeps, seed=seed, progress=True)
    if not len(learned.trace):
        raise Interrupted
    with replacing(output) as new, new.open("wb") as file:
        np.save(file, learned.dictionary, allow_pickle=False)
    sweep, _, error, used, _ = learned.trace.rows[-1]
    if as_json:
        numbers = {"signals": len(Y), "atoms": atoms, "used": int(used), "relative_error": float(error)}
        errors.print_json(numbers | {"sweeps": int(sweep), "interrupted": bool(ctrl_c.code), "output": str(output)})
    else:
        reached = f"relative error {error:.3g} after {sweep} sweeps"
        print(f"{used} of {atoms} atoms used by {len(Y)} signals, {reached}: {output}")
    ctrl_c.finish("the dictionary of the last complete sweep")


def check_suffix(output: Path, suffix: str) -> None:
    """Refuse a name that says another kind of file."""
    if output.suffix != suffix:
        raise UsageError(f"--output is {output}; give a name that ends in {suffix}.")


def read_matrix(path: Path) -> Array:
    """The matrix of a .npy file, or of a table of numbers, whose first line may have names."""
    check_file(path, "give a file of signals")
    if path.suffix != ".npy":
        from pursuit.cli.encoding import Encoding
        from pursuit.cli.tables import read_table

        frame = read_table(path, header=False)
        encoding = Encoding.of(frame, path, impute=False)
        if encoding.texts:
            raise UsageError(f"the column {encoding.texts[0]} of {path} has text; give numbers only.")
        return encoding.matrix(frame, path)[0]
    try:
        matrix = np.load(path, allow_pickle=False)
    except (OSError, EOFError, SyntaxError, ValueError):
        raise UsageError(f"{path} is not an array of numbers that numpy.save wrote; write it again.") from None
    if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or not matrix.size or matrix.dtype.kind not in "biuf":
        what = f"shape {matrix.shape} and dtype {matrix.dtype}" if isinstance(matrix, np.ndarray) else "several arrays"
        raise UsageError(f"{path} has {what}; give a matrix of real numbers.")
    if not np.isfinite(matrix).all():
        raise UsageError(f"{path} holds NaN or infinite numbers; replace them first.")
    return matrix if matrix.dtype == np.float32 else matrix.astype(np.float64)

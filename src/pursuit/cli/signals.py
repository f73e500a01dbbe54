"""`pursuit encode` and `pursuit learn`: sparse codes of signals, and dictionaries for them, from files.

========== ============================================================================================
file       signals
========== ============================================================================================
.npy       rows of the matrix
.csv, ...  rows of the table (CSV or Parquet), with or without a line of column names
.png       patches of the picture, row by row; grey values from 0 to 1, of a colour picture its luminance
.wav       frames of the sound, amplitudes from -1 to 1; of several channels their mean
========== ============================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from struct import error as StructError
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp

import pursuit
from pursuit.cli import errors
from pursuit.cli.errors import AsJson, CtrlC, Interrupted, UsageError, argument, check_file, check_outputs, option
from pursuit.files import replacing

Array = np.ndarray[Any, np.dtype[Any]]

LUMINANCE = (0.299, 0.587, 0.114)
"""Shares of red, green and blue in the brightness that people see (ITU-R BT.601)."""
PATCH, FRAME = 8, 256
"""The side of patches and the length of frames, by default."""
OTHER_FORMATS = (".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".mp3", ".ogg", ".flac", ".m4a")

Method = StrEnum("Method", ["omp", "mp", "ols", "nnomp", "lasso", "nnls"])
"""The methods of `pursuit.encode`."""
Signals = Annotated[Path, argument("SIGNALS", "Signals: .npy or a table (rows), .png (patches) or .wav (frames).")]
Patch = Annotated[
    int | None,
    option("N", "Side of patches, or length of frames. By default as the atoms have it, or 8 and 256.", min=1),
]
Step = Annotated[
    int | None,
    option("N", "Pixels or samples from one patch or frame to the next. By default they do not overlap.", min=1),
]


def encode(
    dictionary: Annotated[Path, argument("DICTIONARY", "The dictionary, .npy or a table; its columns are the atoms.")],
    signals: Signals,
    output: Annotated[Path, option("FILE", "Where to write the codes: a sparse matrix of SciPy's, .npz.")],
    atoms: Annotated[int | None, option("N", "The most atoms of a code.", min=1)] = None,
    tol: Annotated[float | None, option("R", "The norm of the error at which a code is good enough.")] = None,
    method: Annotated[Method, option("METHOD", "omp, mp, ols, nnomp, lasso or nnls.")] = Method.omp,
    penalty: Annotated[float | None, option("R", "The factor of the L1 norm, for lasso.")] = None,
    patch: Patch = None,
    step: Step = None,
    as_json: AsJson = False,
) -> None:
    """Code signals sparsely on a dictionary: signals ~ codes times transposed dictionary.

    Example: pursuit encode D.npy photo.png --atoms 5 --output codes.npz
    """
    check_outputs({"--output": output}, [dictionary, signals])
    check_suffix(output, ".npz")
    if atoms is None and tol is None and method not in (Method.lasso, Method.nnls):
        raise UsageError("--atoms and --tol are missing; give one of them, or --method lasso with --penalty.")
    D = read_matrix(dictionary)
    Y = read_signals(signals, patch, step, len(D))
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
    patch: Patch = None,
    step: Step = None,
    seed: Annotated[int, option("N", "Seed of the choice of the first atoms.", min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """Learn a dictionary on which signals have sparse codes (K-SVD).

    Example: pursuit learn photo.png --atoms 256 --code-atoms 5 --step 1 --output D.npy
    """
    check_outputs({"--output": output}, [signals])
    check_suffix(output, ".npy")
    Y = read_signals(signals, patch, step)
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
    a = _load(path, lambda file: np.load(file, allow_pickle=False), "an array of numbers that numpy.save wrote")
    if not isinstance(a, np.ndarray) or a.ndim != 2 or not a.size or a.dtype.kind not in "biuf":
        what = f"shape {a.shape} and dtype {a.dtype}" if isinstance(a, np.ndarray) else "several arrays"
        raise UsageError(f"{path} has {what}; give a matrix of real numbers.")
    return _finite(a if a.dtype == np.float32 else a.astype(np.float64), path)


def _load(path: Path, load: Callable[[Path], Any], kind: str) -> Any:
    """What a function reads from a file."""
    try:
        return load(path)
    except (OSError, EOFError, SyntaxError, StructError, ValueError):
        raise UsageError(f"{path} is not {kind}, or a damaged one; write it again.") from None


def _finite(a: Array, path: Path) -> Array:
    if not np.isfinite(a).all():
        raise UsageError(f"{path} holds NaN or infinite numbers; replace them first.")
    return a


def read_signals(path: Path, size: int | None, step: int | None, length: int | None = None) -> Array:
    """The signals of a file as rows; `size` is that of patches or frames, by default so that signals have `length`."""
    if path.suffix.lower() in OTHER_FORMATS:
        raise UsageError(f"{path} is a picture or a sound in a format that is not read; convert it to PNG or WAV.")
    if path.suffix not in (".png", ".wav"):
        if size is not None or step is not None:
            raise UsageError(f"--patch and --step are for pictures and sounds; leave them out for {path}.")
        return read_matrix(path)
    check_file(path, "give a file of signals")
    picture = path.suffix == ".png"
    samples = _read_picture(path) if picture else _read_sound(path)
    if size is None:
        size = (PATCH if picture else FRAME) if length is None else math.isqrt(length) if picture else length
    if min(samples.shape) < size:
        shape = " x ".join(map(str, samples.shape))
        raise UsageError(f"{path} has the size {shape}; give a --patch smaller than {size}.")
    windows = np.lib.stride_tricks.sliding_window_view(samples, (size,) * samples.ndim)
    windows = windows[(slice(None, None, step or size),) * samples.ndim]
    return np.ascontiguousarray(windows.reshape(-1, size**samples.ndim))


def _read_picture(path: Path) -> Array:
    try:
        from matplotlib.image import imread
    except ImportError:
        raise UsageError("pictures need matplotlib; pip install matplotlib.") from None
    pixels: Array = np.atleast_3d(_load(path, lambda file: imread(file, format="png"), "a PNG picture")).astype(float)
    if pixels.shape[2] < 3:  # grey, perhaps with an opacity
        return pixels[..., 0]
    if (pixels[..., :3] != pixels[..., :1]).any():
        errors.note(f"{path} is a colour picture; its luminance is used.")
    return np.asarray(pixels[..., :3] @ LUMINANCE)


def _read_sound(path: Path) -> Array:
    from scipy.io import wavfile

    _, samples = _load(path, wavfile.read, "a WAV sound")
    if not samples.size:
        raise UsageError(f"{path} holds no sound; record some.")
    silence, loudest = 0.0, 1.0
    if samples.dtype.kind in "iu":  # unsigned ones have silence in the middle
        limits = np.iinfo(samples.dtype)
        silence, loudest = (limits.max + limits.min + 1) / 2, (limits.max - limits.min + 1) / 2
    amplitudes = _finite((samples.astype(np.float64) - silence) / loudest, path).reshape(len(samples), -1)
    if amplitudes.shape[1] > 1:
        errors.note(f"{path} has {amplitudes.shape[1]} channels; their mean is used.")
    return np.asarray(amplitudes.mean(axis=1))

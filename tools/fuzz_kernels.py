"""Real and degenerate signals through every method, option and dtype of `encode`, for a build with sanitizers.

python tools/fuzz_kernels.py --signals 1000000 (or --seconds 600)

The data are patches of photographs (scikit-learn's), windows of a recording and their spectra, counts of words in our
own pages, and a table of measurements; dictionaries are parts of the same data, so that atoms are nearly equal,
dependent, zero in places, or of very different lengths. A seed is a case: `--seed 12` runs one.
"""

from __future__ import annotations

import argparse
import collections
import os
import re
import sys
import time
import wave
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

if folder := os.environ.get("PURSUIT_FOLDER"):  # another build than the one that is installed
    sys.meta_path[:] = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
    sys.path.insert(0, folder)

import pursuit as ps
from pursuit import native

ROOT = Path(__file__).resolve().parent.parent
METHODS = ("omp", "mp", "ols", "nnomp", "lasso", "nnls", "simplex")


@cache
def photographs() -> np.ndarray[Any, Any]:
    from sklearn.datasets import load_sample_images

    return np.stack([image.mean(axis=2) for image in load_sample_images().images])


@cache
def recording() -> np.ndarray[Any, Any]:
    with wave.open(str(ROOT / "examples" / "data" / "trumpet.wav")) as file:
        return np.frombuffer(file.readframes(file.getnframes()), dtype=np.int16)[:: file.getnchannels()] / 32768.0


@cache
def words() -> np.ndarray[Any, Any]:
    """How often each of the 120 most frequent words occurs in each paragraph of the pages."""
    pages = [path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("**/*.md")) if ".venv" not in path.parts]
    paragraphs = [re.findall(r"[a-z]+", text.lower()) for page in pages for text in page.split("\n\n")]
    frequent = collections.Counter(word for text in paragraphs for word in text).most_common(120)
    place = {word: i for i, (word, _) in enumerate(frequent)}
    counts = np.zeros((len(paragraphs), len(place)))
    for i, text in enumerate(paragraphs):
        np.add.at(counts[i], [place[word] for word in text if word in place], 1.0)
    return counts[counts.any(axis=1)]


@cache
def table() -> np.ndarray[Any, Any]:
    from sklearn.datasets import load_breast_cancer

    return np.asarray(load_breast_cancer().data)


def rows(rng: np.random.Generator, count: int, source: str, d: int) -> np.ndarray[Any, Any]:
    """So many signals of one source; those of patches, windows and spectra have about d entries."""
    if source == "patches":
        side, images = max(1, round(d**0.5)), photographs()
        _, height, width = images.shape
        places = zip(*(rng.integers(most, size=count) for most in (2, height - side, width - side)), strict=True)
        return np.stack([images[k, i : i + side, j : j + side].ravel() for k, i, j in places])
    if source in ("windows", "spectra"):
        sound, length = recording(), d if source == "windows" else 2 * d
        windows = np.stack([sound[i : i + length] for i in rng.integers(len(sound) - length, size=count)])
        return windows if source == "windows" else np.abs(np.fft.rfft(windows))[:, :d]
    data = words() if source == "words" else table()
    return data[rng.integers(len(data), size=count)]


def dictionary(rng: np.random.Generator, source: str, d: int, n: int, widest: float) -> np.ndarray[Any, Any]:
    """Atoms from the same source, spoilt in one of several ways."""
    D = rows(rng, n, source, d).T.astype(float)
    way = rng.integers(9)
    if way == 1 and n > 1:  # nearly equal columns
        D[:, n // 2 :] = D[:, : n - n // 2] * (1.0 + 1e-7 * rng.standard_normal((len(D), n - n // 2)))
    elif way == 2:  # low rank
        k = max(1, min(D.shape) // 3)
        D = D[:, :k] @ rng.random((k, n))
    elif way == 3:  # lengths from 1e-8 to 1e8
        D = D * 10.0 ** rng.uniform(-8, 8, n)
    elif way == 4:  # equal columns
        D = D[:, rng.integers(max(1, n // 4), size=n)]
    elif way == 5:
        D = D - D.mean(axis=0)
    elif way == 6:
        D = np.round(D / (np.abs(D).max() or 1.0) * 3.0)
    elif way == 7:
        D = D * 10.0 ** rng.uniform(-widest, widest)
    elif way == 8:
        D = D / np.maximum(np.linalg.norm(D, axis=0), 1e-30)
    D[:, ~D.any(axis=0)] = 1.0
    return D


def weights_for(rng: np.random.Generator, shape: tuple[int, int], way: int) -> np.ndarray[Any, Any] | None:
    """None, a mask, weights of any size, or weights near 0."""
    if way < 3:
        return None
    if way == 3:
        mask = (rng.random(shape) < rng.uniform(0.1, 0.9)).astype(float)
        mask[:, 0] = 1.0
        return mask
    return rng.random(shape) if way == 4 else 10.0 ** rng.uniform(-20, 3, shape)


def case(seed: int) -> tuple[int, str]:
    """Run one case; returns the number of signals and the outcome."""
    rng = np.random.default_rng([30, seed])
    source = str(rng.choice(["patches", "patches", "windows", "spectra", "words", "table"]))
    method, dtype = str(rng.choice(METHODS)), rng.choice([np.float64, np.float32])
    d, n = int(rng.choice([1, 3, 16, 36, 64, 65, 100])), int(rng.choice([1, 2, 7, 33, 64, 130, 256, 400]))
    count = int(rng.choice([1, 5, 64, 300, 1000, 4000]))
    if rng.random() < 0.1:
        dtype = np.float32
    widest = 60.0 if dtype == np.float64 else 10.0  # powers of ten by which data are scaled
    D, Y = dictionary(rng, source, d, n, widest), rows(rng, count, source, d).astype(float)
    way = rng.integers(6)
    if way == 1:
        Y[rng.random(count) < 0.3] = 0.0
    elif way == 2:
        Y = D[:, rng.integers(D.shape[1], size=count)].T * rng.standard_normal((count, 1))  # multiples of atoms
    elif way == 3:
        Y = Y * 10.0 ** rng.uniform(-widest / 2, widest / 2, (count, 1))
    w = weights_for(rng, Y.shape, int(rng.integers(6)))
    options: dict[str, Any] = {"method": method, "weights": w, "n_jobs": int(rng.integers(1, 3))}
    if method == "lasso":
        scale, way = float(np.abs(Y @ D).max()) or 1.0, rng.integers(6)
        options |= {"penalty": scale * 10.0 ** rng.uniform(-6, 0), "positive": bool(rng.integers(2))}
        options |= {"gaps": bool(rng.integers(2))} if way > 1 else {}
        options |= {"l2": scale * 10.0 ** rng.uniform(-9, 0)} if way == 0 else {}
        options |= {"prices": rng.uniform(0.1, 3.0, D.shape[1])} if way < 2 else {}
        if way == 5 and count <= 64:
            del options["penalty"], options["gaps"]
            options["tol"] = float(rng.uniform(0.0, 1.1)) * float(np.linalg.norm(Y[0]))
    elif method not in ("nnls", "simplex"):
        most = min(int(rng.choice([4, 20, 200])) if method != "mp" and count <= 300 else 16, *D.shape)
        options["atoms"] = rng.integers(1, most + 1, count) if rng.random() < 0.3 else int(rng.integers(1, most + 1))
        if rng.random() < 0.3:
            options["tol"] = float(rng.choice([0.0, 1e-3, 1.0])) * float(np.linalg.norm(Y[0]))
        if rng.random() < 0.2 and w is None:
            options["gram"] = (D.T @ D).astype(dtype)
    D, Y = D.astype(dtype), Y.astype(dtype)
    D = np.asfortranarray(D) if rng.random() < 0.5 else D
    if options["weights"] is not None:
        options["weights"] = options["weights"].astype(dtype)
    try:
        codes = ps.encode(D, Y, **options)
    except (ValueError, TypeError) as why:  # a sentence
        return 0, re.sub(r"[-+.\d]+(e[-+]\d+)?", "#", str(why))[:60]
    codes = codes[0] if isinstance(codes, tuple) else codes
    if not (sp.issparse(codes) and np.isfinite(codes.data).all() and codes.shape == (count, D.shape[1])):
        raise AssertionError(f"seed {seed}: codes are not finite")
    return count, method


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--signals", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    if options.seed is not None:
        print(case(options.seed))
        return
    print(f"kernels of {native.core().__file__}")
    began, coded, outcomes, seed = time.monotonic(), 0, collections.Counter[str](), options.first
    while coded < options.signals and time.monotonic() - began < options.seconds:
        print(f"\rseed {seed}", end="", file=sys.stderr, flush=True)  # the one that a crash belongs to
        signals, outcome = case(seed)
        coded, seed = coded + signals, seed + 1
        outcomes[outcome] += signals or 1
    print(f"\n{coded:,} signals of seeds {options.first} to {seed - 1}:", dict(outcomes))


if __name__ == "__main__":
    main()

"""Figures: traces of runs, paths, atoms and codes, each drawn on matplotlib axes that are given or made, and returned.

A path has the methods `along` and `coefficients`, a thing made of atoms the method `curves`: whatever has them can be
drawn. matplotlib is imported where it is used: `pip install matplotlib`, or the extra `plot`.

>>> import pursuit as ps
>>> r = ps.minimize(ps.LeastSquares([3.0, 1.0, 2.0]), ps.conv(ps.Simplex(3)), ps.Away())
>>> ps.plots.plot_traces(r).get_ylabel()
'certified gap'
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp

from pursuit.arguments import as_int_or_nan, as_list, describe, host_array, number, require
from pursuit.arrays import Small

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AGAINST = {"iteration": "iterations", "oracle_calls": "oracle calls", "seconds": "seconds"}
COLUMNS = {"gap": "certified gap", "value": "objective", "atoms": "atoms"}
PATH_COLUMNS = {"coef": "coefficient", "value": "objective", "gap": "certified gap", "score": "score"}

GREY = "#777777"
"""Readable on white and on black."""

MAX_CURVES, MAX_PICTURES = 24, 144
"""Atoms beyond these numbers are left out of a drawing."""

MAX_LINES = 300
"""Coefficients of a path beyond this number, those that are smallest at its end, are left out of a drawing."""

MAX_PICTURE = 256
"""Of the rows and columns of a larger picture of an atom, evenly spaced ones are drawn."""

__all__ = ["plot_atoms", "plot_path", "plot_traces"]


@runtime_checkable
class PathLike(Protocol):
    """A path: `along` has its levels and what they are, `coefficients` a row for each level."""

    def along(self) -> tuple[Small, str]: ...
    def coefficients(self) -> Small: ...


@runtime_checkable
class AtomsLike(Protocol):
    """A thing made of atoms: `curves` has the first ones as columns, in a matrix for each of their factors."""

    def curves(self, most: int) -> list[Small]: ...


def plot_traces(
    traces: object, *, column: str = "gap", against: str = "oracle_calls", offset: float = 0.0, ax: Axes | None = None
) -> Axes:
    """One line per run, on log axes: `column - offset` against iterations, oracle calls or time.

    `traces` is a Result or a Trace, or a mapping from labels to them; `column` is 'gap', 'value' or 'atoms', `against`
    'iteration', 'oracle_calls' or 'seconds'. With column="value" and offset = f*, the suboptimality is drawn. Zeros,
    such as the gap of a run that ended at a proved minimum, are triangles at the lower edge. Negative numbers, and
    those that are not finite, are left out.

    >>> import pursuit as ps
    >>> f, domain = ps.LeastSquares([3.0, 1.0, 2.0]), ps.conv(ps.Simplex(3))
    >>> runs = {name: ps.minimize(f, domain, update) for name, update in [("away", ps.Away()), ("default", None)]}
    >>> ax = ps.plots.plot_traces(runs, against="iteration")
    >>> [line.get_label() for line in ax.lines], ax.get_xlabel()
    (['away', 'default'], 'iterations')
    """
    column, against = _one_of(column, "column", COLUMNS), _one_of(against, "against", AGAINST)
    require(math.isfinite(number(offset)), "offset", offset, "a number")
    runs = {str(k): _trace(v) for k, v in traces.items()} if isinstance(traces, Mapping) else {"": _trace(traces)}
    if not runs:
        raise ValueError("traces is empty; give at least one run.")
    ax = _axes(ax)
    for i, (label, trace) in enumerate(runs.items()):
        x, y = np.asarray(getattr(trace, against), dtype=float), getattr(trace, column) - number(offset)
        x = np.maximum(x, 1.0) if against != "seconds" else x  # the start, on a log axis
        shown = np.isfinite(y) & (y > 0) & (x > 0)
        line = ("-", "--", "-.", ":")[i % 4]  # equal curves stay visible, one below the other
        (drawn,) = ax.plot(x[shown], y[shown], line, marker="." if shown.sum() < 30 else None, label=label)
        zero = (y == 0) & (x > 0)
        if zero.any():
            height = np.full(zero.sum(), 0.02)  # of the axes
            ax.scatter(x[zero], height, marker="v", color=drawn.get_color(), transform=ax.get_xaxis_transform())
            ax.update_datalim(np.column_stack([x[zero], height]), updatey=False)
    ax.set(xscale="log", yscale="log", xlabel=AGAINST[against])
    ax.set_ylabel(COLUMNS[column] if not offset else f"{COLUMNS[column]} − {number(offset):.6g}")
    ax.grid(alpha=0.3)
    if len(runs) > 1:
        ax.legend(frameon=False, fontsize="small")
    return ax


def plot_path(
    path: object,
    *,
    column: str = "coef",
    names: Iterable[object] | None = None,
    labels: int = 6,
    ax: Axes | None = None,
) -> Axes:
    """Coefficients, values, gaps or scores along a path, against its radii or sizes.

    `path` is that of `pursuit.path`, or a fitted estimator with a `path_`. `column` 'coef' draws one line for each
    coefficient that is ever nonzero (the 300 largest at the end of the path); the number `labels` of the largest are
    named in the legend, by `names` or by their numbers. 'value', 'gap' and 'score' draw that column of the path; the
    best score is marked.

    >>> import numpy as np, pursuit as ps
    >>> X = np.random.default_rng(0).standard_normal((60, 100))
    >>> path = ps.path(ps.LeastSquares(X[:, 5] - 2 * X[:, 9]), ps.Dictionary(X), atoms=[1, 2])
    >>> [line.get_label() for line in ps.plots.plot_path(path).lines]
    ['9', '5']
    """
    column = _one_of(column, "column", PATH_COLUMNS)
    require(as_int_or_nan(labels) >= 0, "labels", labels, "an integer of at least 0")
    rows = getattr(path, "path_", path)
    if not isinstance(rows, PathLike) or isinstance(rows, type):
        raise TypeError(f"path is {describe(rows)}; give a Path, or a fitted estimator with a path.")
    level, kind = rows.along()
    if column == "coef":
        lines = rows.coefficients()
        texts = _names(names, lines.shape[1])
        ax = _axes(ax)
        _draw_coefficients(ax, level, lines, texts, int(labels))
    else:
        values = getattr(rows, column, None)
        if values is None or not np.isfinite(values).any():
            raise ValueError(f"column is {column!r}, and this path has no such numbers; give another column.")
        ax = _axes(ax)
        ax.plot(level, values, marker="." if len(level) < 30 else None)
        if column == "score":
            best = int(np.argmin(values))
            ax.plot(level[best], values[best], "o", markersize=9, fillstyle="none", color="C1")
    ax.set(xlabel=kind, ylabel=PATH_COLUMNS[column])
    ax.grid(alpha=0.3)
    return ax


def _draw_coefficients(ax: Axes, level: Small, lines: Small, texts: list[str], labels: int) -> None:
    used = np.flatnonzero(np.abs(lines).max(axis=0))
    faint: Any = {"color": GREY, "linewidth": 0.6, "alpha": 0.6, "zorder": 1}
    for rank, j in enumerate(used[np.argsort(-np.abs(lines[-1, used]), kind="stable")][:MAX_LINES]):
        if rank < labels:
            ax.plot(level, lines[:, j], marker="." if len(level) < 30 else None, label=_short(texts[j]))
        else:
            ax.plot(level, lines[:, j], **faint)
    if len(used) and labels:
        for text in ax.legend(frameon=False, fontsize="small").get_texts():
            text.set_parse_math(False)  # a name may have dollar signs


def plot_atoms(atoms: object, *, shape: object = None, ax: Axes | None = None) -> Axes:
    """The first atoms of a dictionary or of a result: as signals, pictures or factors.

    `atoms` is an array of columns, a Result (its atoms of largest weight), a Learned, a `LowRank` or a `CP`. They are
    curves, one above the other, each scaled to the same height; the vectors of a component of low rank stand side by
    side. With a `shape` (rows, columns) they are pictures, side by side, and a component of a matrix of low rank is the
    matrix u v'.

    >>> import numpy as np, pursuit as ps
    >>> D = np.random.default_rng(0).standard_normal((16, 6))
    >>> len(ps.plots.plot_atoms(D).lines), len(ps.plots.plot_atoms(D, shape=(4, 4)).images)
    (6, 1)
    """
    curves = _curves(atoms, MAX_CURVES if shape is None else MAX_PICTURES)
    if shape is not None:
        pictures = _pictures(curves, shape)
        ax = _axes(ax)
        ax.imshow(_mosaic(pictures), cmap="RdBu_r", vmin=-1.0, vmax=1.0, interpolation="nearest")
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        return ax
    ax = _axes(ax)
    begin = 0.0
    for block in curves:
        if begin:
            ax.axvspan(begin - 0.045 * len(block), begin - 0.015 * len(block), color=GREY, alpha=0.3, linewidth=0)
        tops = np.abs(block).max(axis=0, initial=0.0)
        for i, (curve, top) in enumerate(zip(block.T, tops, strict=True)):
            ax.plot(begin + np.arange(len(curve)), 0.45 * curve / (top or 1.0) - i, linewidth=1.2, color=f"C{i % 10}")
        begin += 1.06 * len(block)
    count, alone = curves[0].shape[1], len(curves) == 1
    ax.set(xlabel="entry" if alone else "entry of each factor", ylabel="atom" if alone else "component")
    ax.set_yticks(-np.arange(count), [str(i) for i in range(count)])
    if not alone:
        ax.set_xticks([])
    return ax


def _one_of(value: object, name: str, known: Mapping[str, str]) -> str:
    require(isinstance(value, str) and value in known, name, value, f"one of {', '.join(map(repr, known))}")
    return str(value)


def _axes(ax: Axes | None) -> Axes:
    """The given axes, or those of a new figure."""
    if ax is not None:
        if not hasattr(ax, "get_xaxis") or isinstance(ax, type):
            raise TypeError(f"ax is {describe(ax)}; give matplotlib axes, or leave it out.")
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as missing:
        raise ImportError("figures need matplotlib; pip install matplotlib.") from missing
    new: Axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")[1]
    return new


def _trace(run: object) -> Any:
    trace = getattr(run, "trace", run)
    if not hasattr(trace, "oracle_calls") or isinstance(run, type):
        raise TypeError(f"traces has {describe(run)}; give results or traces.")
    return trace


def _names(names: Iterable[object] | None, count: int) -> list[str]:
    texts = list(map(str, range(count) if names is None else as_list(names)))
    if len(texts) != count:
        raise ValueError(f"names has {len(texts)} entries for {count} coefficients; give one each.")
    return texts


def _short(text: str) -> str:
    """A name for a legend, which leaves out names that begin with an underscore."""
    text = text if len(text) <= 24 else text[:23] + "…"
    return " " + text if text.startswith("_") else text


def _curves(atoms: object, most: int) -> list[Small]:
    """The first atoms as columns, in a matrix for each of their factors."""
    if isinstance(atoms, AtomsLike) and not isinstance(atoms, type):
        return atoms.curves(most)
    columns: Any = atoms
    D = host_array(columns.toarray() if sp.issparse(atoms) else atoms, "atoms")
    if D.ndim != 2 or 0 in D.shape or D.dtype.kind not in "biuf":
        raise TypeError(f"atoms is {describe(atoms)}; give a matrix with an atom in each column, or a result.")
    return [np.asarray(D[:, :most], dtype=np.float64)]


def _pictures(curves: list[Small], shape: object) -> list[Small]:
    """The atoms as pictures, thinned out where they are large."""
    sides = [int(as_int_or_nan(n)) if as_int_or_nan(n) >= 1 else 0 for n in as_list(shape)]
    require(len(sides) == 2 and all(sides), "shape", shape, "the numbers of rows and columns of a picture")
    lengths = tuple(map(len, curves))
    if len(curves) == 2:
        if list(lengths) != sides:
            raise ValueError(f"shape is {tuple(sides)}, and the matrix has shape {lengths}; give that.")
        return [np.outer(_thin(u), _thin(v)) for u, v in zip(curves[0].T, curves[1].T, strict=True)]
    if math.prod(lengths) != math.prod(sides):
        size = math.prod(lengths)
        raise ValueError(f"shape is {tuple(sides)}, and an atom has {size} entries; give a shape of as many.")
    atoms = (reduce(np.multiply.outer, factors) for factors in zip(*(block.T for block in curves), strict=True))
    return [_thin(_thin(a.reshape(sides)).T).T for a in atoms]


def _thin(a: Small) -> Small:
    """At most `MAX_PICTURE` rows, evenly spaced."""
    return a[np.linspace(0, len(a) - 1, MAX_PICTURE).astype(int)] if len(a) > MAX_PICTURE else a


def _mosaic(pictures: Sequence[Small]) -> Small:
    """Pictures in a grid, each scaled to the range from -1 to 1, with empty lines between them."""
    (h, w), count = pictures[0].shape, len(pictures)
    across = min(count, max(1, round(math.sqrt(count * 1.6 * h / w))))
    down, space = -(-count // across), 1 + max(h, w) // 16
    out = np.full((down * (h + space) - space, across * (w + space) - space), np.nan)
    for k, picture in enumerate(pictures):
        i, j = divmod(k, across)
        top = float(np.abs(picture).max()) or 1.0
        out[i * (h + space) : i * (h + space) + h, j * (w + space) : j * (w + space) + w] = picture / top
    return np.ma.masked_invalid(out)

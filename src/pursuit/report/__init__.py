"""Reports: one self-contained HTML file about a result or a fitted model, for a screen, a phone and paper.

| module | contents |
|---|---|
| `html`, `style.css` | a page from sections, tables and figures |
| `figures` | drawings (needs matplotlib) |
| `text` | numbers, problems and certificates as text |
| `scores` | scores of predictions, the loss in cross-validation (needs scikit-learn) |
| `fit_plots` | figures of predictions |
| `results` | the report of a `pursuit.Result` |
| `models` | the report of a fitted model of `pursuit.estimators` |
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from pursuit.arguments import as_list, describe
from pursuit.files import write_whole
from pursuit.report.figures import style
from pursuit.report.models import ModelReport
from pursuit.report.results import result_page

__all__ = ["write_model_report", "write_result_report"]


def write_result_report(
    path: Any, result: Any, *, names: Any = None, title: str | None = None, along: Any = None
) -> Path:
    """Write the report of a `Result`, the best of the path `along` where one is given; see `Result.report`."""
    file = _check_file(path, title)
    coef = result.coef[0] if type(result.coef) is tuple else result.coef  # of a sum of domains, the first
    if names is not None:
        names = _check_names(names, len(coef) if getattr(coef, "ndim", 0) == 1 else None, "coefficients")
    with style():
        page = result_page(result, names, "A sparse combination of atoms" if title is None else title, along)
    return _write(page, file)


def write_model_report(
    path: Any,
    model: Any,
    X: Any,
    y: Any,
    *,
    names: Any = None,
    test: tuple[Any, Any] | None = None,
    title: str | None = None,
) -> Path:
    """Write the report of a fitted model: scores, features, path, fit and certificate, in one HTML file.

    Parameters
    ----------
    path : str or path
        The file, which is returned; it is replaced as a whole, or not at all.
    model : fitted GreedyRegressor, GreedyClassifier, AtomicRegressor or AtomicClassifier, or their CV forms
    X, y : arrays or data frames, the training data
    names : sequence of str, optional
        The names of the columns of X; by default those of the data frame.
    test : (X, y), optional
        Held-out data.
    title : str, optional

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pursuit.estimators import GreedyRegressor
    >>> from pursuit.report import write_model_report
    >>> X = np.random.default_rng(0).standard_normal((50, 4))
    >>> y = 3.0 * X[:, 1]
    >>> model = GreedyRegressor(n_nonzero=1).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_model_report(f"{folder}/report.html", model, X, y, names=["age", "height", "mass", "dose"])
    ...     "height" in page.read_text(encoding="utf-8")
    True
    """
    file = _check_file(path, title)
    if not hasattr(model, "coef_") or not hasattr(model, "n_iter_"):
        raise TypeError(f"model is {describe(model)}; give a fitted greedy or atomic estimator of pursuit.estimators.")
    sets = {"training": _data(X, y, "X", model)}
    if test is not None:
        pair = as_list(test)
        if len(pair) != 2:
            raise ValueError(f"test is {describe(test)}; give a pair (X, y).")
        sets["test"] = _data(pair[0], pair[1], "test", model)
    count = sets["training"][0].shape[1]
    if names is None:
        names = getattr(X, "columns", getattr(model, "feature_names_in_", [f"x{j}" for j in range(count)]))
    names = _check_names(names, count, "columns of X")
    with style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")  # the arrays of a data frame
        page = ModelReport(model, sets, names).page(title)
    return _write(page, file)


def _check_file(path: Any, title: Any) -> Path:
    if not isinstance(path, str | os.PathLike) or not Path(path).name or Path(path).is_dir():
        raise TypeError(f"path is {describe(path)}; give the name of a file.")
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title is {describe(title)}; give a text.")
    return Path(path)


def _check_names(names: Any, count: int | None, noun: str) -> list[str]:
    texts = [str(name) for name in as_list(names)]
    if count is not None and len(texts) != count:
        raise ValueError(f"names has {len(texts)} entries for {count} {noun}; give one each.")
    return texts


def _data(X: Any, y: Any, name: str, model: Any) -> tuple[Any, Any]:
    """Arrays of as many samples, with the columns that the model knows."""
    X, y = X if sp.issparse(X) else np.asarray(X, dtype=np.float64), np.asarray(y)
    p = np.shape(model.coef_)[-1]
    if X.ndim != 2 or X.shape[1] != p or not X.shape[0]:
        raise ValueError(f"{name} has data of shape {X.shape}; give samples of the {p} features of the model.")
    if y.ndim == 0 or len(y) != X.shape[0]:
        raise ValueError(f"{name} has {X.shape[0]} samples and targets of shape {y.shape}; give one target for each.")
    return X, y


def _write(page: str, file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(page, file)
    return file

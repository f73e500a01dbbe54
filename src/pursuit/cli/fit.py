"""`pursuit fit`: a sparse model of one column of a table."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from pursuit.cli import errors
from pursuit.cli.errors import AsJson, CtrlC, UsageError, argument, option, refusals, switch, waiting
from pursuit.cli.summary import FitSummary
from pursuit.cli.tasks import Loss, Task
from pursuit.files import replacing

SKLEARN_NAMES = {Loss.squared: "squared_error", Loss.huber: "huber", Loss.poisson: "poisson"}


def fit(
    data: Annotated[Path, argument("DATA", "A CSV or Parquet file with column names.")],
    target: Annotated[str, option("NAME", "The column to predict.")],
    loss: Annotated[
        Loss | None,
        option("LOSS", "squared, huber, poisson, logistic or multinomial. By default it follows from the target."),
    ] = None,
    atoms: Annotated[int | None, option("N", "Choose N columns, one at a time. [default: 10]", min=1)] = None,
    radius: Annotated[
        float | None, option("R", "Bound the weights instead: for columns at unit scale, their sizes sum to at most R.")
    ] = None,
    cv: Annotated[bool, switch("--cv", "Choose the number of columns by cross-validation instead.")] = False,
    test: Annotated[Path | None, option("FILE", "A table of the same columns, to score the model on.")] = None,
    without: Annotated[list[str] | None, option("NAME", "A column to leave out. May be given repeatedly.")] = None,
    impute: Annotated[
        bool, switch("--impute", "Fill missing values: with the median, or the most frequent text.")
    ] = False,
    report: Annotated[Path | None, option("FILE", "Write a page about the model here, as HTML.")] = None,
    save: Annotated[Path | None, option("FILE", "Write the model here, as JSON for pursuit predict.")] = None,
    as_json: AsJson = False,
) -> None:
    """Fit a sparse linear model to one column of a table.

    Text columns become a column of zeros and ones for each value, such as colour=red; dates are days since 1970.
    Weights are in the units of the data. Rows without a target are left out. CSV may be compressed (.csv.gz).

    Example: pursuit fit houses.csv --target price --atoms 5 --save model.json
    """
    if (atoms is not None) + (radius is not None) + cv > 1:
        raise UsageError("--atoms, --radius and --cv exclude each other; give one of them.")
    if radius is not None and not 0 < radius < math.inf:
        raise UsageError(f"--radius is {radius}; give a positive number.")
    errors.check_outputs({"--report": report, "--save": save}, [data, test])
    with waiting(f"reading {data.name}"):
        task = Task.read(data, target, without or [], impute, loss)
        held_out = None if test is None else task.read_test(test)
    model = estimator(task, atoms, radius, cv)
    with waiting("fitting"), CtrlC(keeps=not cv) as ctrl_c, refusals(errors.FAILED):
        model.fit(task.X, task.y)
    if not (np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()):
        sentence = "the fit gave weights that are not finite numbers; scale the columns, or use fewer."
        raise UsageError(sentence, errors.FAILED)
    summary = FitSummary(model, task, held_out)
    if save is not None:
        save_model(model, task, save)
    if report is not None:
        from pursuit.report import write_model_report

        with waiting("writing the report"), replacing(report) as new:
            title, names = f"{target}, from {data.name}", task.encoding.names
            write_model_report(new, model, task.X, task.y, names=names, test=held_out, title=title)
    if as_json:
        errors.print_json(summary.plain() | {"interrupted": bool(ctrl_c.code)})
    else:
        summary.show({"the model": save, "the report": report})
    ctrl_c.finish("the model that was there by then")


def estimator(task: Task, atoms: int | None, radius: float | None, cv: bool) -> Any:
    """The model to fit."""
    from pursuit import estimators

    kind = "Classifier" if task.classes else "Regressor"
    options: dict[str, Any] = {} if task.classes else {"loss": SKLEARN_NAMES[task.loss]}
    if radius is not None:
        ball = "group" if task.loss is Loss.multinomial else "l1"
        return getattr(estimators, f"Atomic{kind}")(radius=radius, ball=ball, **options)
    if cv:
        return getattr(estimators, f"Greedy{kind}CV")(**options)
    return getattr(estimators, f"Greedy{kind}")(n_nonzero=atoms or 10, **options)


def save_model(model: Any, task: Task, path: Path) -> None:
    """Save the model with the encoding of its table, and with feature names for those who load it in Python."""
    model.table_ = {"target": task.target} | asdict(task.encoding)
    model.feature_names_in_ = np.array(task.encoding.names, dtype=object)
    model.save(path)
    del model.feature_names_in_  # matrices of the encoding have no names

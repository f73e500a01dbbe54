"""`pursuit predict`: a saved model on another table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from pursuit.cli.manners import Problem, argument, check_file, check_outputs, note, option, print_json, switch, waiting
from pursuit.cli.tasks import note_unknown

if TYPE_CHECKING:
    from pursuit.cli.encoding import Encoding


def predict(
    model: Annotated[Path, argument("MODEL", "A file that pursuit fit --save wrote.")],
    data: Annotated[Path, argument("DATA", "A CSV or Parquet file with the columns that the model needs.")],
    output: Annotated[
        Path | None, option("FILE", "Write the predictions here, as CSV (or .parquet), instead of printing them.")
    ] = None,
    as_json: Annotated[bool, switch("--json", "Print one JSON object.")] = False,
) -> None:
    """Apply a saved model to a table: a prediction for every row, and for classes the probability of each.

    Columns that the model does not know are ignored. A category that it does not know counts as none of those it does.

    Example: pursuit predict model.json new.csv --output predictions.csv
    """
    from pursuit.cli.tables import read_table, table_of, write_table

    check_outputs({"--output": output}, [model, data])
    fitted, encoding, target = load_model(model)
    with waiting(f"reading {data.name}"):
        frame = read_table(data, encoding.texts)
        X, unknown = encoding.matrix(frame, data, encoding.used(fitted.coef_))
    note_unknown(unknown, data)
    with np.errstate(over="ignore"):
        columns = {target: fitted.predict(X)}
    if hasattr(fitted, "classes_"):
        chances = fitted.predict_proba(X)
        columns |= {f"probability of {c}": chances[:, j] for j, c in enumerate(fitted.classes_.tolist())}
    frame = table_of(columns)
    if output is not None:
        write_table(frame, output)
    if as_json:
        told = {"output": str(output)} if output is not None else {"predictions": frame.to_dict(as_series=False)}
        print_json({"target": target, "rows": frame.height, "unknown_categories": unknown} | told)
    elif output is not None:
        note(f"wrote {frame.height} predictions of {target} to {output}.")
    else:
        print(frame.write_csv(), end="")


def load_model(path: Path) -> tuple[Any, Encoding, str]:
    """The model of a file, how tables are encoded for it, and the name of what it predicts."""
    from pursuit.cli.encoding import Encoding
    from pursuit.models import load

    check_file(path, "give a file that pursuit fit --save wrote")
    fitted = load(path)
    vars(fitted).pop("feature_names_in_", None)  # matrices of the encoding have no names
    try:
        table = fitted.table_
        encoding, target = Encoding.from_plain(table), table["target"]
        if not isinstance(target, str) or np.atleast_2d(fitted.coef_).shape[1] != len(encoding.names):
            raise ValueError
    except (AttributeError, KeyError, TypeError, ValueError):
        raise Problem(
            f"{path} does not say which columns it needs; give a file that pursuit fit --save wrote."
        ) from None
    return fitted, encoding, target

"""`pursuit predict`: a saved model on another table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from pursuit.cli import errors
from pursuit.cli.errors import AsJson, UsageError, argument, option, waiting
from pursuit.cli.tasks import note_unknown

if TYPE_CHECKING:
    from pursuit.cli.encoding import Encoding


def predict(
    model: Annotated[Path, argument("MODEL", "A file that pursuit fit --save wrote.")],
    data: Annotated[Path, argument("DATA", "A CSV or Parquet file with the columns that the model needs.")],
    output: Annotated[
        Path | None, option("FILE", "Write the predictions here, as CSV (or .parquet), instead of printing them.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Apply a saved model to a table: a prediction for every row, and for classes the probability of each.

    Columns that the model does not know are ignored. A category that it does not know counts as none of those it does.

    Example: pursuit predict model.json new.csv --output predictions.csv
    """
    from pursuit.cli.tables import pl, read_table, write_table

    errors.check_outputs({"--output": output}, [model, data])
    fitted, encoding, target = load_model(model)
    with waiting(f"reading {data.name}"):
        frame = read_table(data, encoding.texts)
        X, unknown = encoding.matrix(frame, data, encoding.used(fitted.coef_))
    note_unknown(unknown, data)
    with np.errstate(over="ignore"):
        columns = {target: fitted.predict(X)}
    if hasattr(fitted, "classes_"):
        probabilities = zip(fitted.classes_.tolist(), fitted.predict_proba(X).T, strict=True)
        columns |= {f"probability of {c}": column for c, column in probabilities}
    predictions = pl.DataFrame(columns)
    if output is not None:
        write_table(predictions, output)
    if as_json:
        place = {"predictions": predictions.to_dict(as_series=False)} if output is None else {"output": str(output)}
        errors.print_json({"target": target, "rows": frame.height, "unknown_categories": unknown} | place)
    elif output is not None:
        errors.note(f"wrote {frame.height} predictions of {target} to {output}.")
    else:
        print(predictions.write_csv(), end="")


def load_model(path: Path) -> tuple[Any, Encoding, str]:
    """The model of a file, the encoding of its tables, and the name of its target."""
    from pursuit.cli.encoding import Encoding
    from pursuit.models import load

    errors.check_file(path, "give a file that pursuit fit --save wrote")
    with errors.refusals():
        fitted = load(path)
    vars(fitted).pop("feature_names_in_", None)  # matrices of the encoding have no names
    try:
        table = fitted.table_
        encoding, target = Encoding(dict(table["columns"]), dict(table["fill"])), table["target"]
    except (AttributeError, KeyError, TypeError, ValueError):
        advice = "give a file that pursuit fit --save wrote"
        raise UsageError(f"{path} does not say which columns it needs; {advice}.") from None
    return fitted, encoding, target

"""Saved models: an estimator as one JSON file that people can read, that runs no code and is never half-written.

The file has the class, its parameters, and what it learned. Numbers, strings, booleans, None and lists are themselves;
an object is one of those of the table. Arrays of up to 64 numbers are lists, larger ones base64 of their bytes
(little-endian, row by row).

======================================================= ==================================================
object                                                  value
======================================================= ==================================================
``{"array": "float32", "shape": [2], "values": [1, 2]}`` NumPy array; without axes, a NumPy scalar
``{"array": "float64", "shape": [9, 9], "base64": ...}`` the same
``{"float": "nan"}``                                     a number that JSON has no word for
``{"tuple": [1, 2]}``, ``{"dict": [["a", 1]]}``           tuple, dictionary of pairs
======================================================= ==================================================
"""

from __future__ import annotations

import base64
import binascii
import inspect
import json
import math
import os
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from pursuit import predictions
from pursuit.arguments import describe
from pursuit.files import write_whole

__all__ = ["load", "save"]

VERSION = 1
"""Of the layout of the file. It grows where an older pursuit could misread a newer file."""
READABLE_ENTRIES = 64
"""Larger arrays are written in base64."""
NUMBERS = ("bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "float32", "float64")
TEXTS = ("str", "object")
HEAD = ("pursuit", "version", "class", "parameters", "state")
SKLEARN_STATE = ("_sklearn_output_config",)
"""What `set_output` leaves in an estimator."""


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write an estimator to a file that `load` reads.

    What `fit` learned is in attributes whose names end in an underscore. The class may name others that belong to it in
    `_saved`, and in `_not_saved` those that only describe the fit and stay out of the file.
    """
    cls, parameters = type(model), model.get_params(deep=False)
    if _classes().get(cls.__name__) is not cls:
        raise TypeError(f"{cls.__name__} is not a class of pursuit.estimators, and load would not know it.")
    state = {name: value for name, value in vars(model).items() if name not in {*parameters, *cls._not_saved}}
    if unknown := [name for name in state if not _is_state(cls, name)]:
        raise TypeError(
            f"{cls.__name__} has the attribute {unknown[0]}, which is not part of a saved model; delete it."
        )
    lines = [f'"pursuit": "model",\n"version": {VERSION},\n"class": {json.dumps(cls.__name__)}']
    for part, values in {"parameters": parameters, "state": state}.items():
        rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(_told(v, name))}" for name, v in sorted(values.items()))
        lines.append(f'"{part}": {{\n{rows}\n}}')
    write_whole("{\n" + ",\n".join(lines) + "\n}\n", _file(path))


def load(path: str | os.PathLike[str]) -> Any:
    """The estimator that `model.save(path)` wrote; runs nothing that the file contains.

    Without scikit-learn, linear models still predict: then they have `predict`, and classifiers `predict_proba`, alone.

    >>> import tempfile, pursuit
    >>> from pursuit.estimators import OrthogonalMatchingPursuit
    >>> model = OrthogonalMatchingPursuit(n_nonzero_coefs=1).fit([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], [0.0, 4.0, 2.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/m.json")
    ...     pursuit.load(f"{folder}/m.json").predict([[0.0, 3.0]])
    array([6.])
    """
    found = _read(_file(path))
    try:
        classes = _classes()
    except ImportError:
        predictor = _predictor(found, path)
        if predictor is None:
            raise
        return predictor
    cls = _class_of(found, classes, path)
    model = cls(**{name: _value(value, name, path) for name, value in found["parameters"].items()})
    for name, value in found["state"].items():
        setattr(model, name, _value(value, name, path))
    return model


def _predictor(found: dict[str, Any], path: Any) -> Any:
    """A stored linear model, which needs no scikit-learn; None for others."""
    values = {name: _value(v, name, path) for name, v in {**found["parameters"], **found["state"]}.items()}
    return predictions.stored(str(found["class"]), values)


def _class_of(found: dict[str, Any], classes: dict[str, Any], path: object) -> Any:
    """The class of a file, which knows all of its parameters and attributes."""
    cls = classes.get(found["class"]) if isinstance(found["class"], str) else None
    if cls is None:
        _refuse(path, f"has the class {describe(found['class'])}, which pursuit.estimators does not know")
    given, known = found["parameters"], inspect.signature(cls).parameters
    if unknown := [name for name in given if name not in known]:
        _refuse(path, f"has the parameter {unknown[0]}, which {cls.__name__} does not know")
    if missing := [name for name, p in known.items() if p.default is p.empty and name not in given]:
        _refuse(path, f"lacks the parameter {missing[0]} of {cls.__name__}")
    if unknown := [name for name in found["state"] if not _is_state(cls, name)]:
        _refuse(path, f"has the attribute {unknown[0]}, which {cls.__name__} does not know")
    return cls


def _classes() -> dict[str, Any]:
    """The classes of `pursuit.estimators` by name."""
    estimators = import_module("pursuit.estimators")  # which imports this module
    return {name: cls for name in estimators.__all__ if inspect.isclass(cls := getattr(estimators, name))}


def _is_state(cls: Any, name: str) -> bool:
    """Whether an attribute of this name holds what was learned and goes into a file."""
    learned = name.endswith("_") and not name.startswith("_") and name not in cls._not_saved
    return learned or name in {*cls._saved, *SKLEARN_STATE}


def _told(value: object, name: str) -> Any:
    """What JSON has for a value."""
    if value is None or isinstance(value, bool | str) or type(value) is int:
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if type(value) is list:
        return [_told(v, name) for v in value]
    if type(value) is tuple:
        return {"tuple": [_told(v, name) for v in value]}
    if type(value) is dict:
        return {"dict": [[_told(k, name), _told(v, name)] for k, v in value.items()]}
    if isinstance(value, np.generic) or type(value) is np.ndarray:
        return _told_array(np.asarray(value), name)
    raise TypeError(
        f"{name} is {describe(value)}, which cannot be saved; give numbers, strings, lists or NumPy arrays."
    )


def _told_array(a: Any, name: str) -> Any:
    kind = "str" if a.dtype.kind == "U" else a.dtype.name
    texts = kind in TEXTS and all(isinstance(v, str) for v in a.flat)
    if not texts and kind not in NUMBERS:
        raise TypeError(f"{name} has dtype {a.dtype}, which cannot be saved; give an array of numbers or of strings.")
    head = {"array": kind, "shape": list(a.shape)}
    if texts or (a.size <= READABLE_ENTRIES and np.isfinite(a).all()):
        return head | {"values": a.ravel().tolist()}
    return head | {"base64": base64.b64encode(a.astype(a.dtype.newbyteorder("<")).tobytes()).decode("ascii")}


def _value(found: object, name: str, path: object) -> Any:
    """The value that `_told` had."""
    if isinstance(found, list):
        return [_value(v, name, path) for v in found]
    if not isinstance(found, dict):
        return found
    keys = set(found)
    if keys == {"float"} and found["float"] in ("nan", "inf", "-inf"):
        return float(found["float"])
    if keys == {"tuple"} and isinstance(found["tuple"], list):
        return tuple(_value(found["tuple"], name, path))
    if keys == {"dict"} and isinstance(found["dict"], list) and all(_is_pair(pair) for pair in found["dict"]):
        return {_value(k, name, path): _value(v, name, path) for k, v in found["dict"]}
    if keys in ({"array", "shape", "values"}, {"array", "shape", "base64"}):
        try:
            return _array(found)
        except (ValueError, TypeError, OverflowError, binascii.Error):
            pass
    return _refuse(path, f"has a value of {name} that is no number, string, list or array")


def _is_pair(found: object) -> bool:
    return isinstance(found, list) and len(found) == 2 and not isinstance(found[0], list | dict)


def _array(found: dict[str, Any]) -> Any:
    kind, shape = found["array"], tuple(found["shape"])
    if kind not in NUMBERS + TEXTS or any(type(n) is not int or n < 0 for n in shape):
        raise ValueError
    if "base64" in found and kind in NUMBERS:
        flat = np.frombuffer(base64.b64decode(found["base64"], validate=True), np.dtype(kind).newbyteorder("<"))
        return flat.astype(kind).reshape(shape)[()]
    values = found.get("values")
    plain = str if kind in TEXTS else bool if kind == "bool" else int if "int" in kind else (int, float)
    if not isinstance(values, list) or not all(isinstance(v, plain) for v in values):
        raise ValueError
    return np.array(values, kind).reshape(shape)[()]


def _file(path: object) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path is {describe(path)}; give the name of a file.")
    return Path(path)


def _read(path: Path) -> dict[str, Any]:
    """The parts of a file, after a look at its head."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist; give a file that model.save wrote.") from None
    except (ValueError, RecursionError):
        run = path.suffix == ".npz"
        _refuse(
            path,
            "is not JSON" if not run else "may be a run, which minimize(..., checkpoint=) continues: it is no model",
        )
    if not isinstance(found, dict) or found.get("pursuit") != "model":
        _refuse(path, "is not a model of pursuit")
    if found.get("version") != VERSION:
        _refuse(path, f"has version {describe(found.get('version'))}, and this pursuit reads version {VERSION}")
    if set(found) != set(HEAD):
        odd = min(set(found) ^ set(HEAD))
        _refuse(path, f"{'has the unknown' if odd in found else 'lacks the'} field {odd}")
    if not isinstance(found["parameters"], dict) or not isinstance(found["state"], dict):
        _refuse(path, "has parameters or a state that are no objects")
    return found


def _refuse(path: Any, fault: str) -> NoReturn:
    raise ValueError(
        f"{os.fspath(path)} {fault}; give a file that model.save wrote, and a pursuit as new as the one that did."
    )

"""Saved models: what is written is what is read, files are readable and whole, and unknown things are refused."""

import inspect
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from codes import run_python
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import KFold

import pursuit
from pursuit import estimators, models, predictions
from pursuit.estimators import OrthogonalMatchingPursuit, OrthogonalMatchingPursuitCV, SparseCoder

rng = np.random.default_rng(0)
X = rng.standard_normal((40, 8))
SETTINGS = {"SparseCoder": {"dictionary": rng.standard_normal((12, 8))}}
"""Parameters of the classes that cannot be made without."""


def fitted(name):
    model = getattr(estimators, name)(**SETTINGS.get(name, {}))
    target = X[:, 0] > 0 if is_classifier(model) else X[:, 0] - X[:, 3] if is_regressor(model) else None
    return model.fit(X, target)


def assert_same(a, b):
    """Equal in value, type and dtype, into lists and dictionaries."""
    assert type(a) is type(b)
    if isinstance(a, np.ndarray | np.generic):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for left, right in zip(a, b, strict=True):
            assert_same(left, right)
    else:
        assert a == b or (np.isnan(a) and np.isnan(b))


CLASSES = [name for name in estimators.__all__ if inspect.isclass(getattr(estimators, name))]


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.filterwarnings("ignore")
def test_every_estimator_comes_back_as_it_was(name, tmp_path):
    model = fitted(name)
    model.save(tmp_path / "m.json")
    again = pursuit.load(tmp_path / "m.json")
    assert type(again) is type(model)
    expected = {key: value for key, value in vars(model).items() if key not in type(model)._not_saved}
    assert vars(again).keys() == expected.keys()
    for key, value in expected.items():
        assert_same(vars(again)[key], value)
    method = "predict" if hasattr(model, "predict") else "transform"
    np.testing.assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))
    clone(again).fit(X, X[:, 0] > 0 if is_classifier(model) else X[:, 0])


def test_names_and_output_are_part_of_a_model(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"ä {i}" for i in range(8)])
    coder = SparseCoder(**SETTINGS["SparseCoder"]).set_output(transform="pandas").fit(frame)
    coder.save(tmp_path / "m.json")
    again = pursuit.load(str(tmp_path / "m.json"))
    pandas.testing.assert_frame_equal(again.transform(frame), coder.transform(frame))
    assert list(again.feature_names_in_) == list(frame.columns)


def test_an_estimator_that_is_not_fitted_comes_back_so(tmp_path):
    OrthogonalMatchingPursuit(tol=0.5).save(tmp_path / "m.json")
    again = pursuit.load(tmp_path / "m.json")
    assert again.get_params() == OrthogonalMatchingPursuit(tol=0.5).get_params()
    assert not hasattr(again, "coef_")


VALUES = [
    None, True, 3, -1.5, 0.1, np.inf, -np.inf, np.nan, "text", "", [1, "a", [None]], (1, 2.0), {"a": (1,), 2: None},
    np.float32(0.1), np.int64(-3), np.bool_(True), np.array(2.5)[()], np.arange(6).reshape(2, 3), np.zeros((0, 4)),
    np.array([0.1, 1e-300, 5e-324, -0.0]), np.array([0.1], np.float32), np.array([np.nan, np.inf]),
    np.random.default_rng(0).standard_normal((20, 7)), np.arange(100, dtype=">i2").astype(np.int16),
    np.array([True, False]), np.array(["a", "bcd"]), np.array(["a", "bcd"], dtype=object),
    np.asfortranarray(np.random.default_rng(0).standard_normal((20, 7))), np.array([2**63], np.uint64),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:30])
def test_values_come_back_in_every_bit_and_type(value, tmp_path):
    model = OrthogonalMatchingPursuit()
    model.extra_ = value
    model.save(tmp_path / "m.json")
    again = pursuit.load(tmp_path / "m.json").extra_
    assert_same(again, value)
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(again), np.signbit(value))
    assert not isinstance(again, np.ndarray) or again.flags.writeable


PREDICT = """
import sys
absent = "sklearn joblib matplotlib polars pandas rich typer triton dask distributed zarr h5py faiss highspy".split()
sys.modules.update(dict.fromkeys([*absent, "pursuit.native._core"]))
import numpy as np, pursuit
from concurrent.futures import ThreadPoolExecutor
assert "scipy" not in sys.modules  # import pursuit loads NumPy alone
X = np.load(sys.argv[1])
for path in sys.argv[2:]:
    model = pursuit.load(path)
    with ThreadPoolExecutor(20) as threads:
        assert all((answer == model.predict(X)).all() for answer in threads.map(model.predict, [X] * 200))
    print(model.predict(X[:5]).tolist(), getattr(model, "predict_proba", model.predict)(X[:5]).round(12).tolist())
try:
    model.predict(X[:, 1:])
except ValueError as problem:
    print(problem)
"""


def test_linear_models_predict_from_twenty_threads_with_numpy_and_scipy_alone(tmp_path):
    target = X @ [1, 0, 0, -1, 0.5, 0, 0.2, 0]
    fits = [
        OrthogonalMatchingPursuit(n_nonzero_coefs=2).fit(X, np.c_[target, X @ np.arange(8)]),
        estimators.AtomicRegressor(radius=0.5, loss="poisson").fit(X, np.exp(target)),
        estimators.GreedyClassifier(n_nonzero=2).fit(X, target > 0),
        estimators.GreedyClassifier(n_nonzero=3).fit(X, np.digitize(target, [-1.0, 1.0])),
    ]
    np.save(tmp_path / "X.npy", X)
    for i, model in enumerate(fits):
        model.save(tmp_path / f"{i}.json")
    *found, refusal = run_python(PREDICT, tmp_path / "X.npy", *(tmp_path / f"{i}.json" for i in range(4))).splitlines()
    for model, line in zip(fits, found, strict=True):
        chances = getattr(model, "predict_proba", model.predict)(X[:5])
        assert line == f"{model.predict(X[:5]).tolist()} {chances.round(12).tolist()}"
    assert refusal == "X is ndarray of shape (40, 7); give a matrix of 8 columns."


def test_other_models_say_that_they_need_scikit_learn(tmp_path, monkeypatch):
    SparseCoder(**SETTINGS["SparseCoder"]).fit(X).save(tmp_path / "m.json")
    monkeypatch.setitem(sys.modules, "pursuit.estimators", None)
    with pytest.raises(ImportError):
        pursuit.load(tmp_path / "m.json")


def test_predictions_without_scikit_learn_look_at_the_names_of_columns():
    frame = pytest.importorskip("pandas").DataFrame({"a": [1.0], "b": [2.0]})
    model = predictions.stored(
        "GreedyRegressor", {"coef_": np.ones(2), "intercept_": 1, "feature_names_in_": ["a", "b"]}
    )
    assert model.predict(frame) == [4.0]
    with pytest.raises(ValueError, match="X has the columns \\['b', 'a'\\]; give those of the fit"):
        model.predict(frame[["b", "a"]])


def test_a_file_is_json_with_a_line_for_each_parameter(tmp_path):
    path = tmp_path / "m.json"
    OrthogonalMatchingPursuit(n_nonzero_coefs=2).fit(X, X[:, 0] - X[:, 3]).save(path)
    text = path.read_text(encoding="utf-8")
    found = json.loads(text, parse_constant=pytest.fail)
    assert found["class"] == "OrthogonalMatchingPursuit" and found["version"] == models.VERSION
    assert '\n  "n_nonzero_coefs": 2,\n' in text
    assert '"coef_": {"array": "float64", "shape": [8], "values": [' in text


def test_a_file_is_small(tmp_path):
    path = tmp_path / "m.json"
    SparseCoder(rng.standard_normal((256, 64)).astype(np.float32)).fit(rng.standard_normal((10_000, 64))).save(path)
    assert path.stat().st_size < 1.34 * 4 * 256 * 64 + 1000


def test_a_class_says_what_else_belongs_to_it_and_what_only_describes_the_fit(tmp_path, monkeypatch):
    monkeypatch.setattr(OrthogonalMatchingPursuit, "_saved", ("_statistics",))
    monkeypatch.setattr(OrthogonalMatchingPursuit, "_not_saved", ("path_",))
    model = OrthogonalMatchingPursuit()
    model._statistics, model.path_ = np.eye(2), object()
    model.save(tmp_path / "m.json")
    again = pursuit.load(tmp_path / "m.json")
    np.testing.assert_array_equal(again._statistics, np.eye(2))
    assert not hasattr(again, "path_")
    (tmp_path / "m.json").write_text(changed(state={"path_": 1}), encoding="utf-8")
    with pytest.raises(ValueError, match="has the attribute path_, which"):
        pursuit.load(tmp_path / "m.json")


# ------------------------------------------------------------------------------ whole or not at all


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(step, tmp_path, monkeypatch):
    path = tmp_path / "m.json"
    OrthogonalMatchingPursuit(n_nonzero_coefs=2).save(path)
    before = path.read_bytes()

    def fail(*arguments):
        raise OSError("no space left")

    monkeypatch.setattr(*((os, "fsync") if step == "fsync" else (Path, "replace")), fail)
    with pytest.raises(OSError, match="no space left"):
        OrthogonalMatchingPursuit(n_nonzero_coefs=3).save(path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["m.json"]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (OrthogonalMatchingPursuitCV(cv=KFold(3)), r"cv is KFold\(.*, which cannot be saved; give numbers"),
        (OrthogonalMatchingPursuit(tol=np.array([1j])), "tol has dtype complex128, which cannot be saved"),
        (OrthogonalMatchingPursuit(tol=np.array([None])), "tol has dtype object, which cannot be saved"),
    ],
)
def test_what_cannot_be_saved_is_refused_and_writes_nothing(model, message, tmp_path):
    with pytest.raises(TypeError, match=message):
        model.save(tmp_path / "m.json")
    assert os.listdir(tmp_path) == []


def test_classes_and_attributes_that_load_would_not_know_are_refused(tmp_path):
    class Own(OrthogonalMatchingPursuit):
        pass

    with pytest.raises(TypeError, match=r"Own is not a class of pursuit\.estimators"):
        Own().save(tmp_path / "m.json")
    model = OrthogonalMatchingPursuit()
    model.note = "mine"
    with pytest.raises(TypeError, match="has the attribute note, which is not part of a saved model"):
        model.save(tmp_path / "m.json")


# ------------------------------------------------------------------------------ what load refuses


def changed(**parts):
    file = {"pursuit": "model", "version": 1, "class": "OrthogonalMatchingPursuit", "parameters": {}, "state": {}}
    return json.dumps({key: value for key, value in (file | parts).items() if value is not ...})


def state(value):
    return changed(state={"coef_": value})


REFUSED = [
    ("", "is not JSON"),
    ("[" * 100_000, "is not JSON"),
    (changed()[:-5], "is not JSON"),
    ("[]", "is not a model of pursuit"),
    ("{}", "is not a model of pursuit"),
    (changed(pursuit="result"), "is not a model of pursuit"),
    (changed(version=2), "has version 2, and this pursuit reads version 1"),
    (changed(author="me"), "has the unknown field author"),
    (changed(state=...), "lacks the field state"),
    (changed(state=[]), "no objects"),
    (changed(**{"class": "Pipeline"}), "has the class 'Pipeline', which pursuit.estimators does not know"),
    (changed(**{"class": "orthogonal_mp"}), "has the class 'orthogonal_mp'"),
    (changed(**{"class": "SparseCoder"}), "lacks the parameter dictionary of SparseCoder"),
    (changed(parameters={"alpha": 1}), "has the parameter alpha, which OrthogonalMatchingPursuit does not know"),
    (changed(state={"__class__": 1}), "has the attribute __class__, which"),
    (changed(state={"_private_": 1}), "has the attribute _private_, which"),
    (changed(state={"predict": 1}), "has the attribute predict, which"),
    (state({"pickle": "gASVAAAA"}), "has a value of coef_ that is no number, string, list or array"),
    (state({"dict": [[{"dict": []}, 2]]}), "has a value of coef_"),
    (state({"array": "object", "shape": [1], "values": [3]}), "has a value of coef_"),
    (state({"array": "float64", "shape": [2], "values": [3.0]}), "has a value of coef_"),
    (state({"array": "int8", "shape": [1], "values": [300]}), "has a value of coef_"),
    (state({"array": "float64", "shape": [1], "base64": "AAAA"}), "has a value of coef_"),
    (state({"array": "str", "shape": [1], "base64": "AAAA"}), "has a value of coef_"),
    (state({"array": ["float64"], "shape": [1], "values": [3.0]}), "has a value of coef_"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=range(len(REFUSED)))
def test_files_that_are_not_understood_are_refused_in_one_sentence(text, message, tmp_path):
    path = tmp_path / "m.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError) as info:
        pursuit.load(path)
    assert str(info.value).startswith(f"{path} {message}") or message in str(info.value)
    assert str(info.value).endswith(".") and "\n" not in str(info.value)


def test_a_file_that_is_not_there_is_an_error_of_its_own():
    with pytest.raises(FileNotFoundError, match=r"does not exist; give a file that model.save wrote"):
        pursuit.load("no such file.json")

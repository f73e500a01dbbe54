"""The command line: what it computes is what the functions compute; wrong input is one sentence, and writes nothing."""

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import pursuit as ps
from pursuit import estimators
from pursuit.cli import app
from pursuit.cli.doctor import EXTRAS

pl = pytest.importorskip("polars")

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ROOT / "examples" / "data" / "breast_cancer.csv"


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(line):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, line.split())


def good(line):
    result = run(line)
    assert result.exit_code == 0, result.output
    return result


def as_json(line):
    return json.loads(good(f"{line} --json").stdout, parse_constant=pytest.fail)


def table(rng, n=60):
    """Numbers, categories, and targets of every kind."""
    numbers = rng.standard_normal((n, 4)) * [1.0, 10.0, 0.1, 1.0]
    colour = rng.choice(["blue", "green", "red"], n)
    price = 3.0 + numbers[:, 0] - 0.2 * numbers[:, 1] + 2.0 * (colour == "red") + 0.1 * rng.standard_normal(n)
    return pl.DataFrame(
        {
            **{f"x{j}": numbers[:, j] for j in range(4)},
            "colour": colour,
            "price": price,
            "sold": np.where(price > 3.5, "yes", "no"),
            "class": np.array(["low", "mid", "top"])[np.digitize(price, [2.5, 4.0])],
            "count": rng.poisson(np.exp(0.5 + 0.3 * numbers[:, 0])),
        }
    )


TARGETS = ("price", "sold", "class", "count")
NAMES = ["x0", "x1", "x2", "x3", "colour=blue", "colour=green", "colour=red"]


def fit(target, file="data.csv"):
    """The command that fits a target to the columns that are none."""
    return f"fit {file} --target {target}" + "".join(f" --without {name}" for name in TARGETS if name != target)


def matrix(frame):
    """The matrix that the columns x0 to x3 and colour stand for, by hand."""
    colours = [(frame["colour"] == value).to_numpy().astype(float) for value in ("blue", "green", "red")]
    return np.array([*(frame[f"x{j}"].to_numpy() for j in range(4)), *colours]).T


@pytest.fixture
def data(rng, _folder):
    frame = table(rng)
    frame.write_csv("data.csv")
    return frame


# ------------------------------------------------------------------------------ fit and predict

MODELS = [
    ("price", "--atoms 3", estimators.GreedyRegressor(n_nonzero=3)),
    ("price", "--atoms 3 --loss huber", estimators.GreedyRegressor(n_nonzero=3, loss="huber")),
    ("count", "--atoms 2 --loss poisson", estimators.GreedyRegressor(n_nonzero=2, loss="poisson")),
    ("sold", "--atoms 3", estimators.GreedyClassifier(n_nonzero=3)),
    ("class", "", estimators.GreedyClassifier(n_nonzero=10)),
    ("price", "--radius 1.5", estimators.AtomicRegressor(radius=1.5)),
    ("sold", "--radius 1.5", estimators.AtomicClassifier(radius=1.5)),
    ("class", "--radius 1.5", estimators.AtomicClassifier(radius=1.5, ball="group")),
    ("price", "--cv", estimators.GreedyRegressorCV()),
    ("sold", "--cv", estimators.GreedyClassifierCV()),
]


@pytest.mark.parametrize(("target", "options", "model"), MODELS, ids=[f"{m[0]} {m[1]}" for m in MODELS])
def test_fit_and_predict_are_the_estimator_on_the_encoded_table(target, options, model, data):
    summary = as_json(f"{fit(target)} {options} --save m.json")
    X, y = matrix(data), data[target].to_numpy()
    model.fit(X, y.astype(str) if y.dtype == object else y)
    weights = np.atleast_2d(model.coef_)
    by_name = {row["column"]: row["weight"] for row in summary["weights"]}
    for j, name in enumerate(NAMES):
        expected = by_name.get(name, np.zeros(len(weights)))
        expected = list(expected.values()) if isinstance(expected, dict) else np.ravel(expected)
        np.testing.assert_allclose(weights[:, j], expected, rtol=1e-12)
    good("predict m.json data.csv --output out.csv")
    written = pl.read_csv("out.csv", schema_overrides={} if data[target].dtype != pl.String else {target: pl.String})
    if target in ("sold", "class"):
        assert written[target].to_list() == model.predict(X).tolist()
        chances = written.select(f"probability of {c}" for c in model.classes_).to_numpy()
        np.testing.assert_array_equal(chances, model.predict_proba(X))
        assert summary["scores"]["fit"]["accuracy"] == pytest.approx(model.score(X, y.astype(str)))
    else:
        np.testing.assert_array_equal(written[target].to_numpy(), model.predict(X))
    loaded = ps.load("m.json")
    named = pd.DataFrame(X, columns=loaded.feature_names_in_)
    np.testing.assert_array_equal(loaded.predict(named), model.predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(named.iloc[:, ::-1])
    assert type(loaded) is type(model) and summary["model"] == type(model).__name__


def test_the_loss_is_guessed_from_the_target_and_said(data):
    guesses = {"price": "squared", "sold": "logistic", "class": "multinomial", "count": "squared"}
    for target, loss in guesses.items():
        guess = as_json(fit(target))["loss"]
        assert guess["name"] == loss and target in guess["because"]
        assert f"loss: {loss} ({target} has" in good(f"fit data.csv --target {target}").stdout
    two = data.select("x0", "x1", level=(pl.col("price") > 3).cast(pl.Int64), flag=pl.col("price") > 3)
    two.write_csv("two.csv")
    for target in ("level", "flag"):  # numbers and booleans of two values
        assert as_json(f"fit two.csv --target {target}")["loss"]["name"] == "logistic"


def test_tables_in_csv_and_parquet_are_the_same(data):
    data.with_columns(pl.col("colour").cast(pl.Categorical)).write_parquet("data.parquet")
    data.write_csv("semicolons.txt", separator=";")
    spaced = Path("data.csv").read_text().replace(",", " ,  ")
    Path("spaced.csv").write_text("\ufeff" + spaced + "\n\n", encoding="utf-8")
    files = ("data.csv", "data.parquet", "semicolons.txt", "spaced.csv")
    summaries = [as_json(fit("price", name)) for name in files]
    assert summaries[1:] == summaries[:-1] and summaries[0]["rows"] == 60 and summaries[0]["columns"] == 7


def test_types_are_those_of_all_rows_not_of_the_first():
    late = [*(f"{i},,{i % 3},red" for i in range(200)), "4.5,1.5,6,9", "5,NA,7,7", "6,2.5,9,8", "7,3,8,red"]
    Path("late.csv").write_text("\n".join(["a,b,y,c", *late]))
    summary = as_json("fit late.csv --target y --impute --save m.json")
    assert summary["columns"] == 2 + 4 and summary["rows"] == 204
    assert list(ps.load("m.json").table_["columns"]) == ["a", "b", "c"]


def test_scores_of_a_test_table_are_those_of_the_estimator(data, rng):
    other = table(rng)
    other.write_csv("test.csv")
    command = f"{fit('price')} --atoms 3 --test test.csv"
    score = as_json(command)["scores"]["test"]["R²"]
    model = estimators.GreedyRegressor(n_nonzero=3).fit(matrix(data), data["price"])
    assert score == pytest.approx(model.score(matrix(other), other["price"].to_numpy()))
    shown = good(command).stdout
    assert f"{score:.4g}" in shown and "test" in shown and "mean absolute error" in shown


@pytest.mark.parametrize("target", ["price", "sold"])
def test_cross_validation_tells_the_loss_that_chose_the_model(target, data):
    told = as_json(f"{fit(target)} --cv")["cross_validation"]
    cls = estimators.GreedyClassifierCV if target == "sold" else estimators.GreedyRegressorCV
    model = cls().fit(matrix(data), data[target].to_numpy() if target == "price" else data[target].to_list())
    assert told["loss"] == pytest.approx(model.cv_losses_.mean(axis=2).min()) and told["folds"] == 5
    shown = f"cross-validated loss: {told['loss']:.4g} ± {told['standard_error']:.2g}"
    assert shown in good(f"{fit(target)} --cv").stdout
    assert as_json(f"{fit(target)} --atoms 2")["cross_validation"] is None


def test_a_target_of_booleans_is_the_same_in_a_test_table(data):
    for name, rows in (("train.csv", data[:40]), ("test.csv", data[40:])):
        lines = [f"{x},{bool(p > 3)}" for x, p in rows.select("x0", "price").iter_rows()]  # True and False, as pandas
        Path(name).write_text("\n".join(["x0,dear", *lines]))
    summary = as_json("fit train.csv --target dear --test test.csv")
    assert summary["classes"] == ["false", "true"] and summary["scores"]["test"]["accuracy"] > 0.5


def test_missing_values_are_filled_by_the_median_and_the_most_frequent_text_and_the_model_remembers(data):
    x0, colour = data["x0"].to_list(), data["colour"].to_list()
    colour = ["red" if i % 2 else c for i, c in enumerate(colour)]
    full = data.with_columns(colour=pl.Series(colour))
    x0[3] = colour[4] = colour[7] = None
    holes = full.with_columns(x0=pl.Series(x0), colour=pl.Series(colour))
    holes.write_csv("holes.csv")
    command = f"{fit('price', 'holes.csv')} --atoms 5"
    assert "missing values: x0 (1), colour (2); fill them, or fit with --impute." in run(command).stderr
    good(f"{command} --impute --save m.json")
    x0[3], colour[4], colour[7] = float(np.nanmedian(np.array(x0, float))), "red", "red"
    X = matrix(full.with_columns(x0=pl.Series(x0), colour=pl.Series(colour)))
    model = estimators.GreedyRegressor(n_nonzero=5).fit(X, data["price"])
    predictions = as_json("predict m.json holes.csv")["predictions"]["price"]
    np.testing.assert_allclose(predictions, model.predict(X), rtol=1e-12)
    holes[4:5].write_csv("one.csv")  # medians and frequencies are those of the data that were fitted
    predictions = as_json("predict m.json one.csv")["predictions"]["price"]
    np.testing.assert_allclose(predictions, model.predict(X[4:5]), rtol=1e-12)


def test_whole_numbers_are_filled_by_medians_that_are_none():
    Path("whole.csv").write_text("a,y\n1,1\n2,2\n,2.5\n3,3\n4,4\n")
    assert as_json("fit whole.csv --target y --impute")["scores"]["fit"]["R²"] == pytest.approx(1.0)


def test_a_category_that_the_model_does_not_know_counts_as_none_and_is_told(data):
    good(f"{fit('price')} --save m.json")
    strange = data.with_columns(colour=pl.when(pl.col("colour") == "red").then(pl.lit("7")).otherwise("colour"))
    strange.select("colour", "x3", "x2", "x1", "x0", pl.lit("extra").alias("unused")).write_csv("new.csv")
    result = good("predict m.json new.csv")
    reds = (data["colour"] == "red").sum()
    assert f"new to the model and count as none: colour ({reds})." in result.stderr
    X = matrix(data)
    X[:, -1] = 0.0
    shown = np.array(result.stdout.splitlines()[1:], float)
    model = ps.load("m.json")
    np.testing.assert_allclose(shown, model.predict(pd.DataFrame(X, columns=model.feature_names_in_)), rtol=1e-12)


def test_predictions_need_only_the_columns_that_the_model_uses(data):
    good(f"{fit('price')} --atoms 1 --save m.json")
    model = ps.load("m.json")
    (used,) = model.feature_names_in_[model.coef_ != 0]
    column = used.partition("=")[0]
    data.select(column).write_csv("one.csv")
    assert good("predict m.json one.csv").stdout == good("predict m.json data.csv").stdout
    data.drop(column).write_csv("other.csv")
    result = run("predict m.json other.csv")
    assert result.exit_code == 2 and f"has no column {column}, which the model needs; add it." in result.stderr


def test_categories_that_look_like_numbers_stay_categories_when_predicting():
    rows = [("01", 1.0), ("02", 2.0), ("b", 3.0), ("c", 4.5)] * 5
    Path("fit.csv").write_text("code,y\n" + "".join(f"{code},{value}\n" for code, value in rows))
    Path("new.csv").write_text("code\n01\n02\n")
    good("fit fit.csv --target y --save m.json")
    told = as_json("predict m.json new.csv")
    np.testing.assert_allclose(told["predictions"]["y"], [1.0, 2.0], atol=1e-9)
    assert told["unknown_categories"] == {}


def test_a_certificate_is_told_in_words_that_are_not_rounded_down(data):
    proof = as_json(f"{fit('price')} --radius 1")["certificate"]
    model = estimators.AtomicRegressor(radius=1.0).fit(matrix(data), data["price"])
    gap = proof["relative_gap"]
    assert gap == pytest.approx(model.dual_gap_ / model.path_.value[-1])
    percent = re.match("No model of this kind is better by more than (.*) % of the objective", proof["words"])[1]
    assert 100 * gap <= float(percent) <= max(112 * gap, 1e-6)
    assert f"proved: {proof['words']}" in " ".join(good(f"{fit('price')} --radius 1").stdout.split())
    greedy = f"{fit('price')} --atoms 3"
    assert as_json(greedy)["certificate"] is None and "proved" not in good(greedy).stdout


def test_constant_columns_are_named(data):
    data.with_columns(one=pl.lit(1.0)).write_csv("one.csv")
    assert as_json("fit one.csv --target price")["constant_columns"] == ["one"]
    assert "constant, and so left out: one." in good("fit one.csv --target price").stdout


def test_a_report_is_written_from_the_model_and_its_data(data, monkeypatch):
    calls = []

    def write_model_report(path, model, X, y, *, names, test=None, title=None):
        Path(path).write_text("<html>", encoding="utf-8")
        calls.append((model, X, y, names, test, title))

    monkeypatch.setattr("pursuit.report.write_model_report", write_model_report)
    good(f"{fit('price')} --test data.csv --report r.html")
    ((model, X, y, names, (X_test, y_test), title),) = calls
    np.testing.assert_array_equal(X, matrix(data))
    np.testing.assert_array_equal(X_test, X)
    np.testing.assert_array_equal(y, y_test)
    assert isinstance(model, estimators.GreedyRegressor) and names == NAMES and title == "price, from data.csv"
    assert Path("r.html").read_text() == "<html>"


def test_a_report_that_fails_leaves_the_old_one(data, monkeypatch):
    def half_a_report(path, *arguments, **options):
        Path(path).write_text("<ht", encoding="utf-8")
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("pursuit.report.write_model_report", half_a_report)
    Path("r.html").write_text("old")
    result = run("fit data.csv --target price --report r.html")
    assert result.exit_code == 2 and "no space left on device" in result.stderr
    assert Path("r.html").read_text() == "old" and sorted(os.listdir()) == ["data.csv", "r.html"]


def test_the_shipped_table_fits_a_terminal_of_80_columns():
    shutil.copy(SHIPPED, "table.csv")
    result = good("fit table.csv --target diagnosis --cv")
    assert "worst concave points" in result.stdout and "weights are for malignant, against benign" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80 and result.stderr == ""


@pytest.mark.parametrize("command", ["", "fit", "predict", "encode", "learn", "paper", "doctor"])
def test_help_fits_80_columns(command):
    shown = good(f"{command} --help").stdout
    assert max(map(len, shown.splitlines())) <= 80 and "…" not in shown


# ------------------------------------------------------------------------------ signals


def save(**arrays):
    for name, array in arrays.items():
        np.save(f"{name}.npy", array)


def test_encode_is_encode(rng):
    D, Y = rng.standard_normal((12, 30)), rng.standard_normal((50, 12))
    save(D=D, Y=Y)
    np.savetxt("plain.csv", Y, delimiter=",", fmt="%.17g")
    pl.DataFrame(Y, schema=[f"t{j}" for j in range(12)], orient="row").write_csv("named.csv")
    expected = ps.encode(D, Y, atoms=3)
    for signals in ("Y.npy", "plain.csv", "named.csv"):
        told = as_json(f"encode D.npy {signals} --atoms 3 --output codes.npz")
        assert (sp.load_npz("codes.npz") != expected).nnz == 0
    assert told["signals"] == 50 and told["atoms_each"] == expected.nnz / 50
    assert told["relative_error"] == pytest.approx(np.linalg.norm(Y - expected @ D.T) / np.linalg.norm(Y))
    good("encode D.npy Y.npy --method lasso --penalty 0.5 --output lasso.npz")
    codes = ps.encode(D, Y, method="lasso", penalty=0.5)
    assert (sp.load_npz("lasso.npz") != codes).nnz == 0 and codes.nnz


def test_learn_is_learn(rng):
    Y = rng.standard_normal((80, 9))
    save(Y=Y)
    told = as_json("learn Y.npy --atoms 12 --code-atoms 2 --sweeps 3 --output D.npy --seed 4")
    expected = ps.learn(Y, 12, code={"atoms": 2}, sweeps=3, seed=4).dictionary
    np.testing.assert_array_equal(np.load("D.npy"), expected)
    assert told["signals"] == 80 and told["atoms"] == 12 and told["sweeps"] == 3 and not told["interrupted"]


# ------------------------------------------------------------------------------ doctor


def test_doctor_tells_versions_kernels_threads_and_extras():
    told = as_json("doctor")
    assert told["pursuit"] == ps.__version__ and told["packages"]["numpy"] == np.__version__
    assert told["kernels"]["level"] == ps.native.core().level and told["threads"]["kernels"] >= 1
    assert told["extras"]["cli"]["installed"] and told["extras"]["torch"]["install"] == "pip install torch"
    shown = good("doctor").stdout
    assert ps.__version__ in shown and max(map(len, shown.splitlines())) <= 80


def test_doctor_says_what_an_extra_that_is_absent_would_add(monkeypatch):
    monkeypatch.setattr("pursuit.cli.doctor._version", lambda name: None if name == "torch" else "1")
    shown = " ".join(good("doctor").stdout.split())
    assert "torch no arrays of PyTorch" in shown and "pip install torch" in shown


def test_doctor_knows_every_extra_for_users():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(EXTRAS) == set(extras)
    for name, (packages, _) in EXTRAS.items():
        required = {re.split("[><=]", package)[0] for package in extras[name] if not package.startswith("pursuit")}
        assert required == set(packages.split(", "))


# ------------------------------------------------------------------------------ wrong input

X = "fit data.csv --target price "
P = "predict m.json "
E = "encode D.npy "
O = " --atoms 2 --output new.npz"  # noqa: E741

WRONG = [  # a command line, and what its error says
    # command lines
    ("fit data.csv", "Missing option '--target'"),
    ("train data.csv --target price", "No such command 'train'"),
    (X + "--atoms 0", "Invalid value for '--atoms'"),
    (X + "--radius -1", "--radius is -1.0; give a positive number."),
    (X + "--atoms 3 --radius 1", "--atoms, --radius and --cv exclude each other"),
    (E + "Y.npy --output new.npz --method lasso", "penalty"),
    (E + "Y.npy --atoms 2 --tol -1 --output new.npz", "tol"),
    # names of files and columns
    ("fit none.csv --target price", "none.csv does not exist; give a CSV or Parquet file."),
    ("fit folder --target price", "folder is not a file; give a CSV or Parquet file."),
    (
        "fit data.csv --target cost",
        "--target is 'cost', and data.csv has the columns x0, x1, x2, x3, colour and 4 more",
    ),
    (X + "--without colors", "--without is 'colors', and data.csv has the columns"),
    (X + "--without price", "--without names the target"),
    (X + "--test none.csv", "none.csv does not exist"),
    (X + "--test other.csv", "other.csv has no column price, the target; add it."),
    (X + "--save nowhere/m.json", "is not a folder; create it first."),
    (X + "--save folder", "--save names folder, which is not a file"),
    (X + "--save data.csv", "--save names data.csv, which is the input"),
    (X + "--save a.json --report a.json", "which is the file of --report"),
    (P + "data.csv --output m.json", "--output names m.json, which is the input"),
    # tables
    ("fit empty.csv --target y", "empty.csv is empty; give a CSV or Parquet file."),
    ("fit blank.csv --target y", "blank.csv is empty"),
    ("fit head.csv --target y", "head.csv has no rows"),
    ("fit binary.csv --target y", "binary.csv is not text in UTF-8; save the table as CSV in UTF-8"),
    ("fit fake.parquet --target y", "fake.parquet is not a Parquet file, or a damaged one"),
    ("fit cut.parquet --target price", "cut.parquet is not a Parquet file, or a damaged one"),
    ("fit twice.csv --target y", "twice.csv has the column a more than once"),
    ("fit unnamed.csv --target y", "unnamed.csv has no name for column 2"),
    ("fit ragged.csv --target y", "ragged.csv is not a CSV file: its quotes do not match, or a row is longer"),
    ("fit quotes.csv --target y", "quotes.csv is not a CSV file: its quotes do not match"),
    ("fit text.csv --target y", "the column a of text.csv has text, 'many', in row 3; correct it, or leave it out"),
    ("fit infinite.csv --target y", "the column a of infinite.csv has an infinite number, inf, in row 2"),
    ("fit holes.csv --target y", "holes.csv has missing values: a (2), b (1); fill them, or fit with --impute."),
    ("fit hollow.csv --target y", "the column b of hollow.csv is empty; fill it, or leave it out with --without 'b'."),
    ("fit names.csv --target y", "the column name of names.csv has 200 different texts in 200 rows, too many for cat"),
    ("fit alone.csv --target y", "alone.csv has no column besides y"),
    ("fit loop.csv --target y", "loop.csv does not exist"),
    # targets
    ("fit constant.csv --target y", "the target y of constant.csv has one value, yes; there is nothing to predict."),
    ("fit long.csv --target y", "has text, 'wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww'..., in row 3"),
    (
        "fit huge.csv --target y",
        "the target y of huge.csv has values up to 3e+200, whose squares are no numbers; use other",
    ),
    (X + "--loss logistic", "the target price of data.csv has 60 classes; give --loss multinomial."),
    (X + "--loss poisson", "--loss is poisson, and the target price of data.csv has negative values"),
    ("fit data.csv --target sold --loss squared", "--loss is squared, and the target sold of data.csv has text"),
    ("fit data.csv --target sold --loss multinomial", "has 2 classes; give --loss logistic."),
    ("fit names.csv --target name", "has 200 different values, too many for classes"),
    ("fit data.csv --target sold --test maybe.csv", "the target sold of maybe.csv has the new class maybe"),
    # models
    ("predict none.json data.csv", "none.json does not exist; give a file that pursuit fit --save wrote."),
    ("predict data.csv data.csv", "data.csv is not JSON"),
    ("predict cut.json data.csv", "cut.json is not JSON"),
    ("predict future.json data.csv", "future.json has version 99, and this pursuit reads version 1"),
    (
        "predict bare.json data.csv",
        "bare.json does not say which columns it needs; give a file that pursuit fit --save",
    ),
    ("predict odd.json data.csv", "odd.json does not say which columns it needs"),
    (P + "other.csv", "other.csv has no column x0, x1, x2, x3, colour, which the model needs"),
    (P + "wordy.csv", "the column x1 of wordy.csv has text, 'big', in row 2; the model was fitted on numbers"),
    (P + "gaps.csv", "gaps.csv has missing values: x2 (1)"),
    # signals
    ("encode none.npy Y.npy" + O, "none.npy does not exist; give a file of signals."),
    ("encode data.csv Y.npy" + O, "the column colour of data.csv has text; give numbers only."),
    ("encode fake.npy Y.npy" + O, "fake.npy is not an array of numbers that numpy.save wrote"),
    ("encode line.npy Y.npy" + O, "line.npy has shape (5,) and dtype float64; give a matrix of real numbers."),
    ("encode nan.npy Y.npy" + O, "nan.npy holds NaN or infinite numbers"),
    ("encode zero.npy Y.npy" + O, "D"),
    (
        E + "D.npy" + O,
        "D.npy has signals of 30 numbers, and D.npy has atoms (columns) of 12; give signals and atoms of",
    ),
    (E + "Y.npy --atoms 2 --output Y.npy", "--output names Y.npy, which is the input"),
    ("learn Y.npy --output new.json", "give a name that ends in .npy."),
    (E + "Y.npy --atoms 2 --output new.npy", "give a name that ends in .npz."),
    (E + "Y.npy --output new.npz", "--atoms and --tol are missing; give one of them"),
]


@pytest.fixture(scope="module")
def wrong_files(tmp_path_factory):
    """A folder of good and of wrong files."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "folder").mkdir()
    rng = np.random.default_rng(0)
    frame = table(rng)
    frame.write_csv(folder / "data.csv")
    frame.write_parquet(folder / "whole.parquet")
    (folder / "cut.parquet").write_bytes((folder / "whole.parquet").read_bytes()[:-100])
    frame.with_columns(sold=pl.lit("maybe")).write_csv(folder / "maybe.csv")
    frame.with_columns(x1=pl.when(pl.int_range(60) == 1).then(pl.lit("big")).otherwise("x1")).write_csv(
        folder / "wordy.csv"
    )
    frame.with_columns(x2=pl.when(pl.int_range(60) != 1).then("x2")).write_csv(folder / "gaps.csv")
    texts = {
        "empty.csv": "", "blank.csv": "\n \n", "head.csv": "a,y\n", "twice.csv": "a,a,y\n1,2,3\n4,5,6\n",
        "unnamed.csv": "a,,y\n1,2,3\n4,5,6\n", "ragged.csv": "a,y\n1,2\n1,2,3\n", "quotes.csv": 'a,y\n1,"2\n3,4\n',
        "text.csv": "a,y\n1,2\n2,3\nmany,5\n4,7\n", "infinite.csv": "a,y\n1,2\ninf,3\n4,7\n",
        "holes.csv": "a,b,y\n,1,2\nNA,2,3\n3,,5\n3,4,7\n", "hollow.csv": "a,b,y\n1,,2\n2,,3\n3,,5\n",
        "names.csv": "name,y\n" + "".join(f"n{i},{i}\n" for i in range(200)), "alone.csv": "y\n1\n2\n4\n",
        "constant.csv": "a,y\n1,yes\n2,yes\n",
        "other.csv": "a,b\n1,2\n3,4\n", "fake.parquet": "a,y\n1,2\n", "fake.npy": "1,2\n",
        "huge.csv": "a,y\n1,1e200\n2,3e200\n3,0\n",
        "long.csv": f"a,y\n1,2\n2,3\n{'w' * 500},5\n4,7\n",
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "loop.csv").symlink_to(folder / "loop.csv")
    (folder / "binary.csv").write_bytes(bytes(range(256)) * 20)
    arrays = {
        "D": rng.standard_normal((12, 30)), "Y": rng.standard_normal((20, 12)), "line": np.ones(5),
        "zero": np.zeros((12, 3)), "nan": np.full((12, 3), np.nan),
    }  # fmt: skip
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    good(f"{fit('price', folder / 'data.csv')} --save {folder / 'm.json'}")
    model = (folder / "m.json").read_text(encoding="utf-8")
    (folder / "cut.json").write_text(model[: len(model) // 2], encoding="utf-8")
    (folder / "future.json").write_text(model.replace('"version": 1', '"version": 99'), encoding="utf-8")
    estimators.GreedyRegressor(n_nonzero=1).fit(rng.standard_normal((9, 3)), np.arange(9.0)).save(folder / "bare.json")
    (folder / "odd.json").write_text(model.replace('["fill", ', '["filling", '), encoding="utf-8")
    return folder


@pytest.mark.parametrize(("line", "message"), WRONG, ids=[line for line, _ in WRONG])
def test_wrong_input_is_one_sentence_and_exit_code_2_and_nothing_is_written(line, message, wrong_files, monkeypatch):
    monkeypatch.chdir(wrong_files)
    before = {path: path.read_bytes() for path in wrong_files.rglob("*") if path.is_file()}
    result = run(line)
    assert result.exit_code == 2, (result.output, result.exception)
    assert message in result.stderr
    assert result.stdout == ""
    assert result.stderr.endswith(".\n") and result.stderr.count("\n") == 1 and len(result.stderr) < 300
    assert {path: path.read_bytes() for path in wrong_files.rglob("*") if path.is_file()} == before


def test_links_and_devices_are_not_replaced_by_files(data):
    Path("real.json").write_text("old")
    Path("link.json").symlink_to("real.json")
    good("fit data.csv --target price --save link.json")
    assert Path("link.json").is_symlink() and ps.load("real.json").n_nonzero == 10
    if hasattr(os, "mkfifo"):
        os.mkfifo("pipe")
        assert "which is not a file" in run("fit data.csv --target price --save pipe").stderr


def test_where_one_may_not_write_is_said_before_the_work(data, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # tests may run as root
    result = run("fit data.csv --target price --save m.json")
    assert result.exit_code == 2 and "where you may not write; give another folder" in result.stderr


# ------------------------------------------------------------------------------ Ctrl-C, pipes, numbers


def interrupt_in_evaluation(monkeypatch, at, number=signal.SIGINT):
    """Send a signal at these evaluations of the least-squares objective, on the plain path."""
    original, seen = ps.LeastSquares.value_and_grad, iter(range(10**9))

    def value_and_grad(self, x):
        if next(seen) in at:
            signal.raise_signal(number)
        return original(self, x)

    monkeypatch.setattr(ps.LeastSquares, "value_and_grad", value_and_grad)
    for kind in (estimators.GreedyRegressor, estimators.GreedyRegressorCV):
        monkeypatch.setattr(kind, "_plain", True)


@pytest.mark.parametrize(("number", "name", "code"), [(signal.SIGINT, "Ctrl-C", 130), (signal.SIGTERM, "SIGTERM", 143)])
def test_a_signal_keeps_the_model_that_is_there(number, name, code, ctrl_c, data, monkeypatch):
    interrupt_in_evaluation(monkeypatch, {8}, number)
    before = signal.getsignal(number)
    result = run(f"{fit('price')} --save m.json")
    assert result.exit_code == code and "intercept" in result.stdout
    assert f"interrupted by {name}; this is the model that was there by then." in result.stderr
    assert 0 < np.count_nonzero(ps.load("m.json").coef_) < 5
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(
    ("options", "at"), [("", {0}), ("", {1, 6}), ("--cv", {5})], ids=["before a model", "twice", "choosing a size"]
)
def test_ctrl_c_without_a_model_or_twice_writes_nothing(ctrl_c, options, at, data, monkeypatch):
    interrupt_in_evaluation(monkeypatch, at)
    result = run(f"fit data.csv --target price {options} --save m.json")
    assert result.exit_code == 130 and result.stderr == "interrupted; nothing was written.\n"
    assert os.listdir() == ["data.csv"]


def test_ctrl_c_keeps_the_dictionary_of_the_last_sweep(ctrl_c, rng, monkeypatch):
    from pursuit.dictionaries import learning

    original, seen = learning.sweep_steps, []

    def interrupted(*arguments):
        for step in original(*arguments):
            seen.append(step.D.copy())
            yield step
            if len(seen) == 2:
                signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("pursuit.dictionaries.sweep_steps", interrupted)
    save(Y=rng.standard_normal((50, 8)))
    result = run("learn Y.npy --atoms 10 --code-atoms 2 --output D.npy")
    assert result.exit_code == 130 and "the dictionary of the last complete sweep" in result.stderr
    np.testing.assert_array_equal(np.load("D.npy"), seen[1])


def test_a_fit_without_finite_weights_is_a_failure_of_the_run(data, monkeypatch):
    original = estimators.GreedyRegressor.fit

    def broken(self, X, y):
        original(self, X, y).coef_[0] = np.nan
        return self

    monkeypatch.setattr(estimators.GreedyRegressor, "fit", broken)
    result = run("fit data.csv --target price --save m.json")
    assert result.exit_code == 1 and "weights that are not finite numbers" in result.stderr
    assert os.listdir() == ["data.csv"]


@pytest.mark.parametrize("problem", [np.linalg.LinAlgError("no convergence"), MemoryError(), FloatingPointError("nan")])
def test_a_run_that_fails_for_numerical_reasons_has_exit_code_1(problem, data, monkeypatch):
    def fail(*_):
        raise problem

    monkeypatch.setattr(estimators.GreedyRegressor, "fit", fail)
    result = run("fit data.csv --target price")
    assert result.exit_code == 1 and re.fullmatch("the run failed: .*[.]\n", result.stderr)


@pytest.mark.parametrize("line", ["predict m.json long.csv", "fit long.csv --target price", "--help"])
def test_a_reader_that_has_seen_enough_is_no_error(line, data):
    pl.concat([data] * 2000).write_csv("long.csv")
    good(f"{fit('price')} --save m.json")
    command = [sys.executable, "-m", "pursuit", *line.split()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("library", "line"),
    [
        ("polars", "fit data.csv --target price"),
        ("matplotlib", "fit data.csv --target price --report r.html"),
    ],
)
def test_what_is_not_installed_is_named_with_what_to_install(library, line, data, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    for module in ("tables", "encoding") if library == "polars" else ():
        monkeypatch.delitem(sys.modules, f"pursuit.cli.{module}", raising=False)
    result = run(line)
    assert result.exit_code == 2 and re.search(r"needs? (polars|matplotlib); pip install ", result.stderr)


def test_mistakes_in_the_program_itself_are_not_hidden(data, monkeypatch):
    def mistaken_import(*_):
        from pursuit.cli import nothing  # noqa: F401

    for name, broken in (("estimator", lambda *_: np.linspace("a", 2)), ("waiting", 3), ("estimator", mistaken_import)):
        with monkeypatch.context() as patch:
            patch.setattr(f"pursuit.cli.fit.{name}", broken)
            assert not isinstance(run("fit data.csv --target price").exception, SystemExit)


# ------------------------------------------------------------------------------ ordinary tables


def test_compressed_tables_dates_and_rows_without_a_target_are_read(rng):
    day = np.datetime64("2020-01-01") + rng.integers(0, 2000, 50)
    price = ((day - np.datetime64("2020-01-01")).astype(int) + rng.standard_normal(50)).round(3)
    plain = "größe,day,price\n" + "".join(f"{s:.3f},{d},{p}\n" for s, d, p in zip(price / 7, day, price, strict=True))
    Path("plain.csv").write_text(plain, encoding="utf-8")
    Path("packed.csv.gz").write_bytes(gzip.compress(plain.encode()))
    Path("holes.csv").write_text(plain + "12,2020-03-04,\n12,2020-03-04,NA\n", encoding="utf-8")
    pl.read_csv("plain.csv", try_parse_dates=True).write_parquet("dates.parquet")
    Path("times.csv").write_text(re.sub(r"(\d-\d\d),", r"\1T00:00:00,", plain), encoding="utf-8")
    models = {}
    for name in ("plain.csv", "packed.csv.gz", "holes.csv", "dates.parquet", "times.csv"):
        result = good(f"fit {name} --target price --atoms 2 --save m.json")
        assert ("2 row(s) without price, the first of them row 51" in result.stderr) == (name == "holes.csv")
        models[name] = ps.load("m.json")
        np.testing.assert_allclose(models[name].coef_, models["plain.csv"].coef_, rtol=1e-9)
        assert list(models[name].feature_names_in_) == ["größe", "day"]


def test_all_complaints_come_in_one_run():
    rows = "".join(f"n{i},{i},{'x' if i == 3 else i},,{i}\n" for i in range(40))
    Path("t.csv").write_text("id,a,b,c,y\n" + rows)
    result = run("fit t.csv --target y")
    assert result.exit_code == 2 and result.stderr.count("\n") == 1
    for words in (
        "the column id of t.csv has 40 different texts in 40 rows",
        "the column b of",
        "the column c of t.csv is empty",
    ):
        assert words in result.stderr
    Path("cut.csv.gz").write_bytes(gzip.compress(b"a,y\n1,2\n2,3\n" * 100)[:-20])
    assert "cut.csv.gz is a damaged gzip file; write it again." in run("fit cut.csv.gz --target y").stderr
    Path("none.csv").write_text("a,y\n1,\n2,\n")
    assert "the target y of none.csv is empty" in run("fit none.csv --target y").stderr

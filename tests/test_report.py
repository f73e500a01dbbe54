"""Reports: what they say is true, and they need nothing else."""

import html
import math
import re
import sys
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import array_api_strict
import matplotlib as mpl
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from pages import assert_self_contained
from sklearn import metrics

import pursuit as ps
from pursuit.estimators import (
    AtomicClassifier,
    AtomicRegressor,
    AtomicRegressorCV,
    GreedyClassifier,
    GreedyClassifierCV,
    GreedyRegressor,
    GreedyRegressorCV,
)
from pursuit.report import write_model_report
from pursuit.report.html import Section
from pursuit.report.scores import model_scores
from pursuit.report.text import certificate, failure_probability, format_number, percent, rounded

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 12))
SIGNAL = 3.0 * X[:, 2] - 2.0 * X[:, 7] + 0.3 * RNG.standard_normal(80)
TARGETS = {
    "number": SIGNAL,
    "numbers": np.column_stack([SIGNAL, X[:, 1], SIGNAL**2, X[:, 0]]),
    "count": np.floor(np.exp(SIGNAL / 4)),
    "two": (SIGNAL > 0).astype(int),
    "three": np.digitize(SIGNAL, [-1.0, 1.0]),
}
LONG = "a_name_without_any_space_" * 4
EVIL = "<b>&\"$x$'</td>"
NAMES = [f"mean of feature number {j}" for j in range(11)] + [EVIL]

MODELS = {
    "GreedyRegressor": (GreedyRegressor(n_nonzero=4), "number"),
    "GreedyRegressor, several outputs": (GreedyRegressor(n_nonzero=4), "numbers"),
    "GreedyRegressor, Poisson": (GreedyRegressor(loss="poisson", n_nonzero=3), "count"),
    "GreedyRegressor, Huber, ridge": (GreedyRegressor(loss="huber", n_nonzero=3, l2=0.01), "number"),
    "GreedyRegressorCV": (GreedyRegressorCV(max_nonzero=6, l2=[0.0, 0.1]), "number"),
    "GreedyClassifier": (GreedyClassifier(n_nonzero=4), "two"),
    "GreedyClassifierCV": (GreedyClassifierCV(max_nonzero=5), "two"),
    "AtomicRegressor": (AtomicRegressor(radius=3.0), "number"),
    "AtomicRegressor, penalty": (AtomicRegressor(penalty=0.1), "number"),
    "AtomicRegressor, nothing chosen": (AtomicRegressor(penalty=1e3), "number"),
    "AtomicRegressor, Poisson": (AtomicRegressor(radius=1.0, loss="poisson"), "count"),
    "AtomicRegressor, nuclear": (AtomicRegressor(radius=2.0, ball="nuclear"), "numbers"),
    "AtomicRegressorCV": (AtomicRegressorCV(radii=6), "number"),
    "AtomicClassifier": (AtomicClassifier(radius=2.0), "two"),
    "AtomicClassifier, three classes": (AtomicClassifier(radius=2.0, ball="group"), "three"),
}


pytestmark = pytest.mark.filterwarnings("ignore:.*was the best one")


@cache
def model_page(name):
    """A fitted model, and the text of its report."""
    estimator, target = MODELS[name]
    y = TARGETS[target]
    model = estimator.fit(X[:60], y[:60])
    with TemporaryDirectory() as folder:
        file = Path(folder) / "r.html"
        write_model_report(file, model, X[:60], y[:60], names=NAMES, test=(X[60:], y[60:]), title=f"{name} {LONG}")
        return model, file.read_text(encoding="utf-8")


def lasso(**options):
    domain = ps.conv(4 * ps.Dictionary(X, signed=True))
    return ps.minimize(ps.LeastSquares(SIGNAL), domain, **options)


def low_rank(rows=12, columns=9):
    M = RNG.standard_normal((rows, 2)) @ RNG.standard_normal((2, columns))
    places = np.nonzero(RNG.random(M.shape) < 0.7)
    return ps.minimize(ps.LeastSquares(M[places]), ps.conv(20 * ps.RankOne(M.shape).at(*places)))


def tensor():
    T = ps.RankOneTensor((4, 5, 3))
    return ps.minimize(ps.LeastSquares(T.lmo(RNG.standard_normal((4, 5, 3))).vector), ps.conv(T))


RESULTS = {
    "hull": lasso,
    "matching pursuit": lambda: ps.minimize(
        ps.LeastSquares(SIGNAL), ps.lin(ps.Dictionary(X)), ps.Plain(ps.LineSearch()), stop=ps.Stop(iterations=9)
    ),
    "matrix": low_rank,
    "tensor": tensor,
    "labels and an intercept": lambda: ps.minimize(
        ps.Logistic(TARGETS["two"]),
        ps.conv(2 * ps.Dictionary(X, signed=True)) + ps.lin(ps.Dictionary(np.ones((80, 1)))),
    ),
    "classes": lambda: ps.minimize(
        ps.Multinomial(TARGETS["three"]), ps.conv(ps.SignedBasis(36).through(X, columns=3)), stop=ps.Stop(iterations=5)
    ),
    "penalty": lambda: ps.minimize(ps.LeastSquares(SIGNAL), ps.penalty(9.0 * ps.Dictionary(X, signed=True))),
    "bumps": lambda: ps.minimize(
        ps.LeastSquares(np.exp(-((np.arange(30) - 11.3) ** 2) / 8)),
        ps.conv(ps.Parametric(ps.families.Gaussian(np.arange(30.0), 2.0), [(0, 29)])),
    ),
    "no atom": lambda: ps.minimize(ps.LeastSquares(np.zeros(3)), ps.lin(ps.SignedBasis(3))),
    "own function": lambda: ps.minimize(
        ps.Smooth(lambda x: float(np.sum(x**4)) / 4 - 1.0, lambda x: x**3), ps.conv(ps.Simplex(3))
    ),
    "estimates": lambda: ps.minimize(
        ps.Stochastic(lambda x, rng: float(x @ x) / 2, lambda x, rng: x + 0.1 * rng.standard_normal(3)),
        ps.conv(ps.Simplex(3)),
        stop=ps.Stop(iterations=5),
    ),
}


@cache
def result_page(name):
    """A result, and the text of its report."""
    result = RESULTS[name]()
    coef = result.coef[0] if type(result.coef) is tuple else result.coef
    names = [LONG] * (len(coef) if isinstance(coef, np.ndarray) else 12)
    with TemporaryDirectory() as folder:
        return result, result.report(f"{folder}/r.html", names=names).read_text(encoding="utf-8")


# ---------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("value", "gap", "infimum", "text"),
    [
        (2.0, 0.25, 0.0, "No model is better by more than 13\u00a0% of the objective, which is 2 here."),
        (2.0, 0.0, 0.0, "No model is better: the objective 2 is the smallest one."),
        (0.0, 0.0, 0.0, "No model is better: the objective 0 is the smallest one."),
        (2.0, 1e-15, 0.0, "No model is better by more than 0.000001\u00a0% of the objective, which is 2 here."),
        (2.0, math.inf, 0.0, "Nothing is proved about how much better another model could be."),
        (2.0, math.inf, -math.inf, "Nothing is proved about how much better another model could be."),
        (
            2.0,
            2.0,
            0.0,
            "Nothing is proved about how much better another model could be: "
            "the only known bound is that no objective is below 0.",
        ),
        (2.0, 5.0, -math.inf, "No model is better by more than 5; the objective is 2 here."),
        (-2.0, 0.25, -math.inf, "No model is better by more than 0.25; the objective is −2 here."),
        (0.0, 0.25, -math.inf, "No model is better by more than 0.25; the objective is 0 here."),
    ],
)
def test_the_certificate_in_words_is_true(value, gap, infimum, text):
    assert certificate(value, gap, infimum, "model") == text


@given(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300))
def test_percentages_never_understate(part, whole):
    number, sign = percent(part, whole).split("\u00a0")
    exact = 100 * Fraction(part) / Fraction(whole)
    assert sign == "%"
    assert exact <= Fraction(number) <= max(exact * Fraction(111, 100), Fraction(1, 10**6))


@given(st.floats(-1e300, 1e300), st.booleans())
def test_bounds_are_rounded_to_the_safe_side(value, up):
    found = Fraction(rounded(value, 3, up=up).replace("−", "-"))
    assert found >= Fraction(value) if up else found <= Fraction(value)
    assert abs(found - Fraction(value)) <= abs(Fraction(value)) / 100


@pytest.mark.parametrize("status", ps.Status)
def test_a_report_says_why_the_run_ended_and_proves_nothing_without_a_gap(status, tmp_path, monkeypatch):
    for name in ("_convergence", "_fit"):  # figures take their time
        monkeypatch.setattr(
            f"pursuit.report.results.{name}", lambda r, name=name: Section(name) if name[1] == "c" else []
        )
    unproved = replace(result_page("hull")[0], status=status, gap=math.inf, lower=-math.inf)
    text = unproved.report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert html.escape(status.value) in text
    assert "Nothing is proved about how much better another point of this set could be." in text
    assert "not certified" in text
    assert "No point of this set is better" not in text
    certified = replace(unproved, gap=0.5, lower=unproved.value - 0.5)
    text = certified.report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert f"No point of this set is better by more than {percent(0.5, certified.value)} of the objective" in text
    assert "Nothing is proved" not in text


def test_a_bound_that_holds_with_high_probability_says_so(tmp_path):
    r, text = result_page("matrix")
    assert "with probability" not in text
    large = ps.conv(3 * ps.RankOne((700, 800), failure=1e-6))
    assert failure_probability(ps.lin(ps.RankOne((700, 800), failure=0)) + large) == 1e-6
    assert failure_probability(ps.conv(ps.RankOne((700, 800), failure=0) | ps.RankOne((700, 800)))) == 1e-6
    r = ps.minimize(ps.LeastSquares(np.eye(700, 800)), large, stop=ps.Stop(iterations=1))
    text = r.report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert "The bound of each oracle call is wrong with probability at most 1e-06." in text


# ---------------------------------------------------------------------- results


@pytest.mark.parametrize("name", RESULTS)
def test_reports_of_results_need_nothing_else_and_show_their_numbers(name):
    r, text = result_page(name)
    assert_self_contained(text)
    assert format_number(r.value, 10) in text and f'<td class="">{r.iterations:,}</td>' in text
    assert html.escape(certificate(r.value, r.gap, r.f.infimum)) in text
    assert html.escape(repr(r.domain)) in text and html.escape(repr(r.update)) in text
    if name in ("hull", "penalty", "matching pursuit"):
        sizes = [w * a.coef for w, a in zip(r.weights, r.atoms, strict=True)]
        assert all(f">{format_number(float(size))}</td>" in text for size in sizes)
    if name in ("matrix", "tensor"):
        sizes = r.coef.s if name == "matrix" else r.coef.weights
        assert all(f">{format_number(float(size))}</td>" in text for size in sizes)
        assert "The first factors" in text


def test_promised_bounds_are_shown_and_large_sets_are_not_measured(tmp_path, monkeypatch):
    r, text = result_page("matching pursuit")
    for bound in r.promise().bounds:
        assert f"{bound.theorem} promises at most {rounded(float(bound.curve[-1]), 3, up=True)}" in text
    monkeypatch.setattr("pursuit.report.results.MAX_PROMISED", 10)
    monkeypatch.setattr(ps.Result, "promise", lambda self: pytest.fail("takes minutes"))
    assert "result.promise()" in r.report(tmp_path / "r.html").read_text(encoding="utf-8")


def test_names_of_atoms_and_titles_are_escaped(tmp_path):
    r = lasso(stop=ps.Stop(rgap=1e-9))
    assert 2 in [a.source for a in r.atoms]
    names = [EVIL if j == 2 else f"feature {j}" for j in range(12)]
    text = r.report(tmp_path / "r.html", names=names, title=EVIL).read_text(encoding="utf-8")
    assert EVIL not in text and f"<h1>{html.escape(EVIL)}</h1>" in text
    assert f'<td class="">{html.escape(EVIL)}</td>' in text


def test_results_on_arrays_of_other_libraries_have_reports(tmp_path):
    y = array_api_strict.asarray(SIGNAL)
    r = ps.minimize(ps.LeastSquares(y), ps.conv(4 * ps.Dictionary(array_api_strict.asarray(X), signed=True)))
    assert_self_contained(r.report(tmp_path / "r.html").read_text(encoding="utf-8"))


def test_a_path_reports_its_best_row(tmp_path):
    path = ps.path(ps.LeastSquares(SIGNAL), ps.Dictionary(X), atoms=range(1, 6), score=lambda r: abs(len(r.atoms) - 3))
    text = path.report(tmp_path / "r.html", names=NAMES).read_text(encoding="utf-8")
    assert_self_contained(text)
    assert "5 sizes; this is number 2." in text and "A combination of 3 atoms" in text
    radii = ps.path(ps.LeastSquares(SIGNAL), ps.Dictionary(X, signed=True), radii=[1.0, 2.0])
    assert "2 radii; this is number 1." in radii.report(tmp_path / "r.html").read_text(encoding="utf-8")


# ---------------------------------------------------------------------- models


@pytest.mark.parametrize("name", MODELS)
def test_reports_of_models_need_nothing_else_and_show_their_numbers(name):
    model, text = model_page(name)
    assert_self_contained(text)
    assert EVIL not in text
    used = np.flatnonzero(np.atleast_2d(model.coef_).any(axis=0))
    for j, feature in enumerate(NAMES):
        cell = re.search(rf'<td class="">{re.escape(html.escape(feature))}</td>', text)
        assert (cell is not None) == (j in used)
    if np.atleast_2d(model.coef_).shape[0] == 1:
        assert all(f">{format_number(float(np.ravel(model.coef_)[j]), 5)}</td>" in text for j in used)
    y = TARGETS[MODELS[name][1]]
    for part in (slice(0, 60), slice(60, None)):
        assert f">{format_number(model.score(X[part], y[part]), 5)}</td>" in text
        if hasattr(model, "classes_"):
            loss = metrics.log_loss(y[part], model.predict_proba(X[part]), labels=model.classes_)
            assert f">{format_number(loss, 5)}</td>" in text
        else:
            error = metrics.root_mean_squared_error(y[part].ravel(), model.predict(X[part]).ravel())
            assert f">{format_number(error, 5)}</td>" in text


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("Atomic")])
def test_the_certificate_of_a_model_is_its_duality_gap(name):
    model, text = model_page(name)
    value = model.path_.value[model.path_.at(getattr(model, "radius_", math.inf))]
    infimum = -math.inf if model.loss == "poisson" else 0.0
    assert certificate(float(value), model.dual_gap_, infimum, "model of this kind") in text
    assert format_number(float(value), 10) in text


def test_a_greedy_model_claims_no_proof_for_its_choice():
    _, text = model_page("GreedyRegressor")
    assert "Nothing is proved about other choices of as many features." in text
    assert "model of this kind" not in text


def test_scores_are_those_of_sklearn_and_undefined_ones_are_nan():
    y = TARGETS["two"]
    model = GreedyClassifier(n_nonzero=2).fit(X, y)
    scores = model_scores(model, X, y)
    assert scores["ROC AUC"] == metrics.roc_auc_score(y, model.decision_function(X))
    assert scores["log loss"] == metrics.log_loss(y, model.predict_proba(X))
    assert math.isnan(model_scores(model, X[y == 1], y[y == 1])["ROC AUC"])
    counts = TARGETS["count"]
    poisson = GreedyRegressor(loss="poisson", n_nonzero=2).fit(X, counts)
    scores = model_scores(poisson, X, counts)
    assert scores["deviance explained"] == metrics.d2_tweedie_score(counts, poisson.predict(X), power=1)
    assert scores["mean absolute error"] == metrics.mean_absolute_error(counts, poisson.predict(X))
    assert all(map(math.isnan, model_scores(poisson, 1e300 * X, counts).values()))  # infinite predictions


def test_the_chosen_level_of_cross_validation_is_marked_and_told():
    model, text = model_page("GreedyClassifierCV")
    assert f"{model.cv_losses_.shape[2]} folds" in text
    assert f"{model.n_nonzero_} of 12 features" in text
    assert "Held-out loss" in text and ">chosen</text>" in text


def test_a_class_that_was_never_seen_has_infinite_log_loss_and_is_no_error(tmp_path):
    model = GreedyClassifier(n_nonzero=2).fit(X, TARGETS["two"])
    odd = TARGETS["two"][:20].copy()
    odd[3] = 7
    file = write_model_report(tmp_path / "r.html", model, X, TARGETS["two"], names=NAMES, test=(X[:20], odd))
    assert ">∞</td>" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("target", ["number", "two", "three"])
def test_a_test_set_of_one_sample_has_a_report(target, tmp_path):
    y = TARGETS[target]
    model = (GreedyRegressor if target == "number" else GreedyClassifier)(n_nonzero=2).fit(X, y)
    file = write_model_report(tmp_path / "r.html", model, X, y, names=NAMES, test=(X[:1], y[:1]))
    assert (">–</td>" in file.read_text(encoding="utf-8")) == (target != "three")  # no R², and no AUC


def test_a_bound_for_greedy_models_names_the_models_that_it_is_about(tmp_path):
    model = GreedyRegressor(n_nonzero=2, positive=True).fit(X, SIGNAL)
    model.path_ = replace(model.path_, gap=0.25 * model.path_.value)
    text = write_model_report(tmp_path / "r.html", model, X, SIGNAL, names=NAMES).read_text(encoding="utf-8")
    subject = "No linear model of these 12 features with coefficients of at least 0, however many it uses, is better by"
    assert subject in text


def test_a_greedy_model_without_features_proves_nothing_about_models_with_features(tmp_path, rng):
    noise = rng.standard_normal(80)
    model = GreedyRegressorCV(max_nonzero=3).fit(X, noise)
    assert model.n_nonzero_ == 0
    text = write_model_report(tmp_path / "r.html", model, X, noise, names=NAMES).read_text(encoding="utf-8")
    assert "is better by more than" not in text and "not certified" in text and "The model uses no feature." in text


def test_sparse_data_and_loaded_models_have_reports(tmp_path):
    model = AtomicRegressor(radius=2.0).fit(sp.csr_array(X), SIGNAL)
    file = write_model_report(tmp_path / "r.html", model, sp.csr_array(X), SIGNAL, names=NAMES)
    assert "expect less on new ones" in file.read_text(encoding="utf-8")
    model.save(tmp_path / "m.json")
    file = write_model_report(tmp_path / "r.html", ps.load(tmp_path / "m.json"), X, SIGNAL, names=NAMES)
    text = file.read_text(encoding="utf-8")
    assert "does not keep its certificate" in text


def test_a_long_table_of_features_says_how_many_it_leaves_out(tmp_path, rng):
    wide = rng.standard_normal((100, 60))
    model = GreedyRegressor(n_nonzero=50).fit(wide, rng.standard_normal(100))
    names = [f"f{j}" for j in range(60)]
    text = write_model_report(tmp_path / "r.html", model, wide, wide[:, 0], names=names).read_text(encoding="utf-8")
    assert len(re.findall(r'<td class="">f\d+</td>', text)) == 30 and "20 more features have smaller effects." in text


# ---------------------------------------------------------------------- files and settings


def test_an_interrupted_report_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    file = tmp_path / "r.html"
    file.write_text("old")

    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        lasso().report(file)
    assert file.read_text() == "old" and list(tmp_path.iterdir()) == [file]


def test_a_report_without_matplotlib_is_refused_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"^figures need matplotlib; pip install matplotlib\.$"):
        lasso().report(tmp_path / "r.html")
    assert list(tmp_path.iterdir()) == []


def test_reports_do_not_depend_on_the_users_settings_and_change_none(tmp_path):
    r = lasso()
    plain = r.report(tmp_path / "a.html").read_text(encoding="utf-8")
    assert r.report(tmp_path / "b.html").read_text(encoding="utf-8") == plain
    with mpl.rc_context({"text.color": "#ffffff", "lines.linewidth": 9.0, "font.size": 30.0}):
        before = dict(mpl.rcParams)
        assert r.report(tmp_path / "b.html").read_text(encoding="utf-8") == plain
        assert dict(mpl.rcParams) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"path": 3}, "path is 3; give the name of a file."),
        ({"model": GreedyRegressor()}, "give a fitted greedy or atomic estimator"),
        ({"names": NAMES[:3]}, "names has 3 entries for 12 columns of X; give one each."),
        ({"X": X[:, :5]}, "X has data of shape (80, 5); give samples of the 12 features of the model."),
        ({"test": X}, "give a pair (X, y)."),
        ({"test": (X[:, :5], SIGNAL)}, "test has data of shape (80, 5)"),
    ],
)
def test_wrong_arguments_are_refused_in_one_sentence(change, message, tmp_path):
    fitted = GreedyRegressor(n_nonzero=2).fit(X, SIGNAL)
    right = {"path": tmp_path / "r.html", "model": fitted, "X": X, "y": SIGNAL, "names": NAMES} | change
    with pytest.raises((TypeError, ValueError)) as caught:
        write_model_report(**right)
    assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_the_report_of_a_data_frame_needs_no_names(tmp_path, rng):
    import pandas as pd

    frame = pd.DataFrame(rng.standard_normal((40, 3)), columns=["age", "height", "mass"])
    model = GreedyRegressor(n_nonzero=1).fit(frame, 2.0 * frame["height"])
    for data, name in ((frame, "height"), (frame.to_numpy(), "height")):
        assert name in write_model_report(tmp_path / "r.html", model, data, 2.0 * frame["height"]).read_text("utf-8")


def test_names_of_another_number_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"^names has 2 entries for 12 coefficients; give one each\.$"):
        result_page("hull")[0].report(tmp_path / "r.html", names=["a", "b"])


def test_a_report_makes_its_folder_and_returns_its_path(tmp_path):
    file = tmp_path / "deep" / "r.html"
    assert lasso().report(str(file)) == file and file.is_file()

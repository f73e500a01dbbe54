"""The executable paper: every statement holds, verdicts are computed, the experiment, the page and the command."""

import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from pages import assert_self_contained
from typer.testing import CliRunner

import pursuit as ps
from pursuit import geometry, paper, rates
from pursuit.cli import app
from pursuit.paper import CLAIMS, Case, Claim, Plan, Row, equivalence, experiment, sublinear
from pursuit.paper.document import document, worst_ratio
from pursuit.paper.experiments import draw
from pursuit.report.html import Cell, Figure, Section, Table, page

PLAN = Plan(problems=12, seed=7)
NUMBERED = (
    [f"Theorem {n}" for n in (1, 2, 7, 8, 10, 11, 12, 13, 14)]
    + [f"Corollary {n}" for n in (4, 9)]
    + [f"Lemma {n}" for n in (15, 16, 17, 18)]
)


def by_number(number):
    return next(claim for claim in CLAIMS if claim.number == number)


# ---------------------------------------------------------------------- the statements


def test_every_theorem_corollary_and_lemma_has_a_row():
    assert len(CLAIMS) == len(paper._FOUND)
    numbers = [claim.number for claim in CLAIMS]
    assert set(NUMBERED) <= set(numbers)
    assert len(set(numbers)) == len(numbers)
    assert all(claim.note.endswith(".") and claim.formula for claim in CLAIMS)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.number)
def test_statement_holds(claim):
    row = claim.row(PLAN)
    assert row.holds, [case for case in row.cases if not case.holds and not case.printed][:1]
    assert row.verdict in {"holds", "corrected"}
    done, tried = row.equalities
    assert done == tried > 0
    if row.sense:
        assert row.worst <= 1 + 1e-9 if row.sense == "<=" else row.worst >= 1 - 1e-9


@pytest.mark.parametrize("number", ["Theorem 1", "Theorem 2", "Corollary 4", "Theorem 7", "Theorem 11", "Theorem 13"])
def test_rates_are_tried_under_exact_and_adversarial_oracles(number):
    row = by_number(number).row(Plan(problems=4))
    assert row.exact > 0
    assert row.adversarial >= row.exact


@pytest.mark.parametrize("number", ["Theorem 1", "Corollary 4", "Theorem 8", "Corollary 9", "Lemma 15", "Lemma 17"])
def test_printed_wording_has_counterexamples(number):
    row = by_number(number).row(Plan(problems=4))
    assert row.printed[0] == row.printed[1] > 0
    assert row.verdict == "corrected"


# ---------------------------------------------------------------------- verdicts are computed


MUTATIONS = [
    ("Theorem 1", "frank_wolfe", lambda bound: lambda t, **k: bound(t, **k) / 2),
    ("Theorem 1", "frank_wolfe", lambda bound: lambda t, **k: bound(t, **{**k, "eps0": k["eps0"] / 2})),
    ("Theorem 2", "matching_pursuit", lambda bound: lambda t, **k: bound(t, **{**k, "rho": 2 * k["rho"]})),
    ("Theorem 2 sharp", "matching_pursuit_sharp", lambda bound: lambda t, **k: bound(t, **{**k, "L": k["L"] / 4})),
    ("Corollary 4", "least_squares", lambda bound: lambda t, **k: bound(t, **{**k, "diameter": 1.9})),
    ("Theorem 7", "linear", lambda bound: lambda t, **k: bound(t, **{**k, "delta": k.get("delta", 1.0) ** 0.5})),
    ("Theorem 8", "lower_bound", lambda bound: lambda e, **k: bound(e, **{**k, "width": k["width"] / 2})),
    ("Corollary 9", "signed_basis", lambda bound: lambda t, **k: 2 * bound(t, **k)),
    ("Theorem 10", "mdw_from_coherence", lambda bound: lambda **k: 1.01 * bound(**k)),
    ("Theorem 11", "frank_wolfe_affine", lambda bound: lambda t, **k: bound(t, **{**k, "delta": 1.0})),
    ("Theorem 12", "matching_pursuit_affine", lambda bound: lambda t, **k: bound(t, **k) / 4),
    ("Theorem 13", "linear_affine", lambda bound: lambda t, **k: bound(t, **{**k, "delta": k["delta"] ** 0.5})),
    ("Theorem 14", "frank_wolfe_limit", lambda bound: lambda **k: bound(**{**k, "L": 2 * k["L"]})),
    ("Section 7", "delta_fw", lambda bound: lambda delta, alpha, rho: delta),
    ("Away steps", "away_steps", lambda bound: lambda t, **k: bound(t, **{**k, "delta": 2 * k["delta"] / 3})),
    ("Away steps", "good_steps", lambda bound: lambda t, **k: t),
    ("Away steps", "good_steps", lambda bound: lambda t, **k: bound(t, spare=1)),
    ("Pairwise steps", "pairwise_steps", lambda bound: lambda t, **k: bound(t, **{**k, "mu": k["mu"] / 2})),
    ("Pairwise steps", "good_pairwise_steps", lambda bound: lambda t, n: bound(t, n=n + 1)),
    ("Cone pursuit", "cone_pursuit", lambda bound: lambda t, **k: bound(t, **{**k, "L": k["L"] / 4})),
    ("Cone pursuit", "signed_basis", lambda bound: lambda t, residual: bound(t, residual=residual[:-1])),
    ("Lazy oracle", "lazy_quality", lambda bound: lambda K: bound(K) ** 0.5),
    ("Backtracking", "backtracking", lambda bound: lambda **k: bound(**k) / 1.2),
    ("p-norms", "linear", lambda bound: lambda t, **k: bound(t, **{**k, "eps0": k["eps0"] * 1.01})),
    ("p-norms", "frank_wolfe", lambda bound: lambda t, **k: bound(t, **{**k, "L": 0.0, "eps0": 0.0})),
    ("Section 5", "incoherent_pursuit", lambda bound: lambda t, **k: bound(t, **{**k, "m": k["m"] + 1})),
    ("Additive errors", "frank_wolfe_affine", lambda bound: lambda t, **k: bound(t, **k) / 2),
    ("Random pursuit", "random_pursuit", lambda bound: lambda t, **k: bound(t, **{**k, "share": k["share"] / 2})),
    ("Atomic norm", "affine_pursuit", lambda bound: lambda t, **k: bound(t, **{**k, "reach": k["reach"] / 2})),
    ("Acceleration", "accelerated_pursuit", lambda bound: lambda t, **k: bound(t, **{**k, "nu": 1.1 * k["nu"]})),
]  # fmt: skip


@pytest.mark.parametrize(("number", "name", "mutate"), MUTATIONS, ids=[f"{m[0]} {i}" for i, m in enumerate(MUTATIONS)])
def test_wrong_promise_is_a_violation(number, name, mutate, monkeypatch):
    monkeypatch.setattr(rates, name, mutate(getattr(rates, name)))
    assert by_number(number).row(Plan(problems=12)).verdict == "VIOLATED"


WRONG_GEOMETRY = [
    ("Theorem 7", "mdw"), ("Theorem 8", "directional_width"), ("Theorem 8 sharp", "directional_width"),
    ("Lemma 15", "curvature"), ("Lemma 16", "strong_convexity"), ("Lemma 17", "coherence"),
    ("Lemma 18", "directional_width"), ("Equation of ρ", "rho"), ("Appendix A", "mdw"),
    ("Away steps", "pyramidal_width"), ("Pairwise steps", "pyramidal_width"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "name"), WRONG_GEOMETRY)
def test_wrong_geometry_is_a_violation(number, name, monkeypatch):
    true = getattr(geometry, name)
    monkeypatch.setattr(geometry, name, lambda *a, **k: true(*a, **k).scaled(0.9))
    assert by_number(number).row(Plan(problems=4)).verdict == "VIOLATED"


def test_steps_that_depend_on_the_coordinates_are_a_violation(monkeypatch):
    monkeypatch.setattr(ps, "CurvatureStep", lambda C: ps.ShortStep())
    assert not all(case.holds for case in equivalence.affine_invariance.check(Plan(), 4))


def test_every_row_of_the_paper_has_a_mutation_that_violates_it():
    mutated = {number for number, *_ in (*MUTATIONS, *WRONG_GEOMETRY)} | {equivalence.affine_invariance.number}
    assert mutated == {claim.number for claim in CLAIMS}


def row_of(*cases):
    return Row(Claim("Theorem 0", "a test", "", lambda plan: iter(())), list(cases), 0.0)


def test_case_is_judged_by_its_relation():
    assert Case("", [1.0, 2.0], [1.0, 3.0]).holds
    assert not Case("", [1.0, 3.1], [1.0, 3.0]).holds
    assert not Case("", [1.0, 2.0], [1.0, 3.0], ">=").holds
    assert Case("", 1.0, 1.0 + 1e-12, "==").holds
    assert not Case("", 1.0, 1.01, "==").holds


def test_rounding_below_the_floor_is_no_violation_but_anything_above_is():
    assert Case("", [1e-20, 0.5], [1e-30, 1.0], floor=1e-15).holds
    assert not Case("", [1e-10, 0.5], [0.0, 1.0], floor=1e-15).holds


def test_nan_is_never_a_success():
    assert not Case("", [np.nan], [1.0], floor=1.0).holds
    assert not Case("", [1.0], [np.nan]).holds
    assert not Case("", [np.nan], [1.0], ">=").holds
    assert not Case("", [np.nan], [1.0], "==").holds


def test_row_without_a_single_comparison_is_no_success():
    assert row_of().verdict == "VIOLATED"
    assert row_of(Case("", 0.0, 1.0, floor=0.0)).verdict == "VIOLATED"
    assert row_of(Case("", 2.0, 1.0, printed=True)).verdict == "VIOLATED"


def test_row_counts_problems_runs_and_equalities():
    row = row_of(
        Case("a", 0.5, 1.0, delta=1.0),
        Case("a", 0.75, 1.0, delta=0.5),
        Case("b", 1.0, 1.0, "=="),
        Case("", 1.0, 2.0, "=="),
        Case("c", 2.0, 1.0, printed=True),
    )
    assert (row.problems, row.exact, row.adversarial, row.worst) == (3, 1, 1, 0.75)
    assert (row.equalities, row.printed, row.error) == ((1, 2), (1, 1), 0.5)
    assert (row.verdict, worst_ratio(row)) == ("VIOLATED", "0.750 ≤ 1")
    assert worst_ratio(row_of(Case("a", 2.0, 1.0))) == "2.000 > 1"
    assert worst_ratio(row_of(Case("a", 0.5, 1.0, ">="))) == "0.500 < 1"


# ---------------------------------------------------------------------- the experiment of the appendix


def test_experiment_widths_steps_and_ratios():
    angles = list(experiment(Plan(seed=3), angles=12, starts=20, steps=6))
    assert len(angles) == 12
    assert angles[-1].theta == pytest.approx(np.pi / 2)
    for a in angles:
        assert a.width == pytest.approx(np.sin(a.theta / 2), rel=1e-12)
        assert a.factor == pytest.approx(np.cos(a.theta / 2) ** 2, rel=1e-12)
        assert a.eps[:, 2:] == pytest.approx(np.cos(a.theta) ** 2 * a.eps[:, 1:-1], abs=1e-12)
        assert a.Q.shape == (20,)
        assert (a.Q >= 1).all()
        promised, kept = np.cos(a.theta / 2) ** 2, a.eps[:, 1] / a.eps[:, 0]
        assert pytest.approx(promised / kept, rel=1e-12) == a.Q


# ---------------------------------------------------------------------- affine invariance, 1/alpha


def test_algorithms_5_and_6_are_the_same_in_50_coordinate_systems():
    cases = list(equivalence.affine_invariance.check(Plan(seed=11)))
    assert len({case.problem for case in cases}) == 50
    assert len(cases) == 150
    assert max(case.tolerance for case in cases) == pytest.approx(1e3 * 1e6 * np.finfo(float).eps)
    assert all(case.holds for case in cases)
    assert all(len(case.measured) > 1 for case in cases)


def test_distance_of_the_two_steps_falls_as_one_over_alpha():
    m = equivalence.StepComparison(Plan(seed=5), 0)
    far, near = m.distance(1e2), m.distance(1e3)
    assert far / near == pytest.approx(10, rel=0.1)
    assert 1e3 * near == pytest.approx(m.limit, rel=0.1)


def test_pursuits_are_run_once_for_all_statements_about_them():
    assert sublinear.pursuits(Plan(2, 5)) is sublinear.pursuits(Plan(2, 5))


# ---------------------------------------------------------------------- the page


def test_page_escapes_embeds_and_labels():
    figure = Figure("caption", '<svg xmlns="http://www.w3.org/2000/svg" aria-label="a"></svg>')
    table = Table(["name", "size"], [[Cell("x"), Cell("1", "number")]])
    text = page("a < b", "lead", [Section("h & h", ["text"], table, [figure])], "end")
    assert "<h1>a &lt; b</h1>" in text
    assert "<h2>h &amp; h</h2>" in text
    assert '<td class="number">1</td>' in text
    assert_self_contained(text)


def test_document_names_what_is_violated():
    rows = [row_of(Case("a", 2.0, 1.0)), row_of(Case("a", 0.5, 1.0))]
    text = document(rows, Section("none"), 1.0)
    assert "Violated: Theorem 0." in text
    assert '<span class="bad">VIOLATED</span>' in text
    assert "Every bound held" in document(rows[1:], Section("none"), 1.0)


# ---------------------------------------------------------------------- the command


def test_command_writes_the_page_and_shows_the_table(tmp_path):
    out = tmp_path / "deep" / "out"
    result = CliRunner().invoke(app, ["paper", "--quick", "--out", str(out)])
    assert result.exit_code == 0, result.output
    text = (out / "index.html").read_text(encoding="utf-8")
    assert_self_contained(text)
    assert text.count("<svg") == 2
    assert all(f"<b>{claim.number}</b>" in text for claim in CLAIMS)
    assert set(re.findall('<span class="[a-z]+">([a-zA-Z]+)</span></td>', text)) == {"holds", "corrected"}
    assert "Dirichlet(1, 1, 1, 1)" in text and "cos²(θ/2) · ε" in text and "2.5” is not claimed" in text
    lines = [line for line in result.output.splitlines() if not line.startswith("wrote ")]
    assert max(map(len, lines)) <= 80
    for claim in CLAIMS:
        line = next(line for line in lines if line.startswith(claim.number + " "))
        assert line.rstrip().endswith(("holds", "corrected")) and "…" not in line


def test_command_fails_when_a_bound_is_violated(tmp_path, monkeypatch):
    broken = Claim("Theorem 0", "a test", "", lambda plan: iter([Case("a", 2.0, 1.0)]))
    monkeypatch.setattr("pursuit.paper.CLAIMS", (broken,))
    monkeypatch.setattr("pursuit.paper.experiments.draw", lambda plan: Section("none"))
    result = CliRunner().invoke(app, ["paper", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert "VIOLATED" in result.output
    assert "Violated: Theorem 0." in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_importing_pursuit_needs_neither_matplotlib_nor_typer_nor_rich():
    code = "import sys, pursuit; print({'matplotlib', 'typer', 'rich', 'pursuit.paper'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_figures_leave_the_global_state_of_matplotlib_alone():
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    before = SimpleNamespace(size=mpl.rcParams["font.size"], figures=plt.get_fignums())
    draw(Plan(problems=3))
    assert mpl.rcParams["font.size"] == before.size
    assert plt.get_fignums() == before.figures


def test_command_line_has_help_and_a_version():
    runner = CliRunner()
    assert runner.invoke(app, ["--version"]).output.strip() == ps.__version__
    shown = runner.invoke(app, ["--help"]).output
    assert "paper" in shown
    assert "Matching pursuit and Frank-Wolfe as one algorithm" in shown

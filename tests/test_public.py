"""The public surface: names, what users subclass, what help shows, what is printed."""

import html
import inspect
import pkgutil
import sys
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import numpy as np
import pytest

import pursuit as ps
from pursuit import atoms, objectives, updates

SCREEN = 80


def test_every_public_name_exists_and_the_list_is_sorted():
    assert [name for name in ps.__all__ if not hasattr(ps, name)] == []
    assert ps.__all__ == sorted(set(ps.__all__))


@pytest.mark.parametrize("room", [atoms, objectives, updates], ids=lambda room: room.__name__)
def test_what_a_room_offers_is_public(room):
    assert set(room.__all__) <= set(ps.__all__)


def modules():
    needs = {"torch": ("gpu.gradients",), "triton": ("gpu.pursuits", "gpu.kernels"), "pysindy": ("estimators.sindy",)}
    missing = [f"pursuit.{m}" for package, names in needs.items() if not find_spec(package) for m in names]
    skipped = ("pursuit.__main__", *missing)
    return [m.name for m in pkgutil.walk_packages(ps.__path__, "pursuit.") if m.name not in skipped]


@pytest.mark.parametrize("name", modules())
def test_no_module_is_hidden_behind_a_function_of_its_name(name):
    module = import_module(name)
    package, _, leaf = name.rpartition(".")
    assert getattr(sys.modules[package], leaf) is module


@pytest.mark.parametrize("name", ["encode", "learn", "path", "citation", "minimize", "iterate", "conv", "cone", "lin"])
def test_functions_are_functions_also_after_all_modules_are_imported(name):
    for module in modules():
        import_module(module)
    assert inspect.isfunction(getattr(ps, name))


def test_public_names_are_no_modules_but_the_theory_refinements_families_and_plots():
    names = {name for name in ps.__all__ if isinstance(getattr(ps, name), ModuleType)}
    assert names == {"families", "geometry", "plots", "rates", "refine"}


def test_users_write_an_oracle_and_an_update_with_public_names_only():
    class First(ps.Oracle):
        """The first atom of the set, whatever the gradient."""

        def begin(self, part, space: ps.Space, update):
            def ask(grad, active: ps.ActiveSet, gx: float) -> ps.Answer:
                atom = part.A.atom(0)
                return ps.Answer([atom], atom.dot(space, grad), 0.0)

            return ask

    class Halfway(ps.Update):
        """Halfway to the atom."""

        descends = False

        def begin(self, f: ps.Objective, domain: ps.Domain, space: ps.Space):
            def advance(now, active: ps.ActiveSet) -> None:
                i, _ = active.enter(now.answers[0].atoms[0])
                active.weights *= 0.5
                active.weights[i] += 0.5
                active.refresh()

            return advance

    start = np.array([0.0, 1.0])
    r = ps.minimize(
        ps.LeastSquares([1.0, 0.0]), ps.conv(ps.Simplex(2)), Halfway(), oracle=First(), start=start,
        stop=ps.Stop(iterations=3),
    )  # fmt: skip
    np.testing.assert_allclose(r.x, [0.875, 0.125])


CLASSES = [cls for cls in (getattr(ps, name) for name in ps.__all__) if inspect.isclass(cls)]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_public_class_and_public_method_is_documented(cls):
    """Methods that carry out a documented contract inherit its text."""
    assert inspect.getdoc(cls)
    own = [name for name in vars(cls) if not name.startswith("_") and callable(getattr(cls, name))]
    assert [name for name in own if not inspect.isclass(getattr(cls, name)) and not _documented(cls, name)] == []


def _documented(cls, name):
    contracts = {"begin"}  # of steps, oracles and updates: `Oracle` and `Update` say what it returns
    return bool(inspect.getdoc(getattr(cls, name))) or name in contracts


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (ps.LeastSquares(np.ones(100)), "LeastSquares(y of 100 entries)"),
        (ps.LeastSquares(np.ones((3, 2)), np.full((3, 2), 2.0)), "LeastSquares(y of 3 x 2 entries, weights)"),
        (ps.LeastSquares([1.0, 2.0], weights=0.5), "LeastSquares(y of 2 entries, weights=0.5)"),
        (ps.Huber(np.ones(7), width=1.5), "Huber(y of 7 entries, width=1.5)"),
        (ps.Logistic([0, 1, 1]), "Logistic(y of 3 entries)"),
        (ps.Poisson([0, 1, 1, 5]), "Poisson(y of 4 entries)"),
        (ps.Multinomial([0, 1, 2]), "Multinomial(y of 3 x 3 entries)"),
        (ps.Quadratic(np.eye(5)), "Quadratic(H of 5 x 5 entries)"),
        (ps.Smooth(lambda x: 0.0, lambda x: x, L=2.0), "Smooth(L=2, mu=0)"),
        (ps.Smooth(lambda x: 0.0, lambda x: x), "Smooth(L=None, mu=0)"),
        (ps.Stochastic(lambda x, rng: 0.0, lambda x, rng: x, seed=3), "Stochastic(seed=3)"),
        (ps.Homotopy(ps.LeastSquares([1.0]), abs, beta=2.0), "Homotopy(LeastSquares(y of 1 entries), beta=2)"),
    ],
)
def test_objectives_print_what_they_hold(f, text):
    assert repr(f) == text


def run(**options):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 100))
    f = ps.LeastSquares(1e-100 * (X[:, :3] @ [3.0, -2.0, 1.0]))
    return ps.path(f, ps.Dictionary(X, signed=True), **options)


@pytest.mark.parametrize("rows", [1, 5, 40])
def test_a_path_prints_as_a_table_that_fits_a_screen(rows):
    path = run(radii=1e-100 * np.linspace(0.1, 7.0, rows), score=lambda r: -r.value * 1e-100)
    lines = repr(path).splitlines()
    assert lines[0].split() == ["radius", "value", "gap", "atoms", "score"]
    assert len(lines) == 1 + (rows if rows <= 20 else 21)
    assert max(map(len, lines)) <= SCREEN
    last = [float(cell) for cell in lines[-1].split()]
    assert last == pytest.approx(
        [rows - 1, path.radius[-1], path.value[-1], path.gap[-1], path.atoms[-1], path.score[-1]], rel=1e-5
    )


def test_traces_states_and_active_sets_print_on_one_line():
    f, domain = ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2))
    r = ps.minimize(f, domain, ps.FullyCorrective())
    assert repr(r.trace) == "Trace(3 iterations, value 5 to 0, gap 5 to 0, 3 oracle calls)"
    state = next(ps.iterate(f, domain, ps.FullyCorrective()))
    assert repr(state) == "State(iteration 0: value 5, gap 5, 0 atoms)"
    assert repr(state.active) == "ActiveSet(0 atoms with weight, 0 in all)"
    assert max(len(line) for line in repr(r).splitlines()) <= SCREEN


class Evil(ps.Plain):
    def __repr__(self):
        return "<script>alert(1)</script>"


def test_results_traces_and_paths_are_tables_without_scripts_in_notebooks():
    r = ps.minimize(ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2)), Evil(ps.LineSearch()))
    text = r._repr_html_()
    rows = [line.split("  ", 1) for line in str(r).splitlines()]
    assert text.count("<tr>") == len(rows)
    assert all(f"<tr><td>{name}</td><td>{html.escape(given.strip())}</td></tr>" in text for name, given in rows)
    assert "<script>" not in text and "&lt;script&gt;" in text
    trace = r.trace._repr_html_()
    assert trace.count("<tr>") == 1 + len(r.trace) and "<th>oracle calls</th>" in trace
    assert ps.Trace([])._repr_html_().count("<tr>") == 1
    path = run(radii=1e-100 * np.linspace(0.1, 7.0, 40))._repr_html_()
    assert path.count("<tr>") == 22 and "<th>radius</th>" in path and "<th>score</th>" not in path


@pytest.mark.parametrize("status", ps.Status)
def test_results_fit_a_screen_whatever_the_status_and_the_update(status):
    r = ps.minimize(ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2)), ps.NormCorrective())
    step = ps.ShortStep(L=ps.Backtracking(grow=1.2345678901234567, shrink=0.12345678901234567))
    text = repr(replace(r, status=status, update=ps.Plain(step)))
    assert max(map(len, text.splitlines())) <= SCREEN
    assert status.value in " ".join(text.split())
    assert repr(step) in " ".join(text.split())

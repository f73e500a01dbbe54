"""A few cases of `make soak`, and the tool itself: it finds defects, reproduces them and makes them smaller."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import pursuit as ps
from pursuit.certificates import Certificate

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
import exact
import soak


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_problems_and_signals_keep_their_laws(first):
    for seed in range(first, first + 20):
        assert soak.broken_law(soak.drawn(seed)) is None, f"python tools/soak.py --seed {seed}"


def test_a_bound_that_is_not_proved_is_found_reproduced_and_made_smaller(monkeypatch, capsys):
    prove = Certificate.proved

    def boast(self, value):
        return prove(self, value) + 1e-3 * (value - prove(self, value))

    monkeypatch.setattr(Certificate, "proved", boast)
    law = "the lower bound is above f somewhere"
    seed = next(seed for seed in range(0, 100, 2) if (soak.broken_law(soak.drawn(seed)) or "").startswith(law))
    assert soak.main(["--seed", str(seed)]) == 1
    first, then = capsys.readouterr().out.split("shrunk: ")
    small = then.splitlines()[0]
    assert law in first and law in then
    assert sum(json.loads(small).values()) < sum(soak.drawn(seed).values())
    assert soak.main(["--case", small]) == 1
    assert law in capsys.readouterr().out
    monkeypatch.undo()
    assert soak.main(["--case", small]) == 0
    assert "all laws hold" in capsys.readouterr().out


def test_exact_minima_are_those_of_all_supports():
    X = np.array([[1.0, 0.25, -0.5], [0.5, 1.0, 0.75]])
    y, atoms = np.array([0.5, 2.0]), ps.Dictionary(X)
    f, ones = ps.LeastSquares(y), ps.Dictionary(np.ones((2, 1)))
    for domain in (ps.conv(atoms), ps.cone(atoms), ps.penalty(0.5 * atoms) + ps.lin(ones)):
        r = ps.minimize(f, domain, stop=ps.Stop(iterations=1))
        value, done = exact.minimum(r.certificate)
        best = ps.minimize(f, domain, stop=ps.Stop(rgap=1e-14))
        assert done
        assert best.lower <= value <= best.value + 1e-14


def test_a_code_that_is_not_the_plain_one_is_found(monkeypatch):
    encode = soak.ps.encode
    monkeypatch.setattr(soak.ps, "encode", lambda D, Y, **options: 1.001 * encode(D, Y, **options))
    assert any((soak.broken_law(soak.drawn(seed)) or "").startswith("a code is not") for seed in range(1, 20, 2))


def test_a_case_depends_on_its_seed_alone():
    assert soak.drawn(12) == soak.drawn(12) != soak.drawn(14) | {"seed": 12}
    assert repr(soak.Problem(soak.drawn(12))) == repr(soak.Problem(soak.drawn(12)))

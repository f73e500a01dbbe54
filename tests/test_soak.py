"""A few cases of `make soak`, and the tool itself: it finds defects, reproduces them and makes them smaller."""

import json
import sys
from pathlib import Path

import pytest

from pursuit.certificates import Certificate

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
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


def test_a_code_that_is_not_the_plain_one_is_found(monkeypatch):
    encode = soak.ps.encode
    monkeypatch.setattr(soak.ps, "encode", lambda D, Y, **options: 1.001 * encode(D, Y, **options))
    assert any((soak.broken_law(soak.drawn(seed)) or "").startswith("a code is not") for seed in range(1, 20, 2))


def test_a_case_depends_on_its_seed_alone():
    assert soak.drawn(12) == soak.drawn(12) != soak.drawn(14) | {"seed": 12}
    assert repr(soak.Problem(soak.drawn(12))) == repr(soak.Problem(soak.drawn(12)))

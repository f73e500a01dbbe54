"""Every example runs and writes its figure."""

import runpy
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_writes_a_figure(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with threadpool_limits(1):  # small products: on a busy machine threads would wait for each other
        runpy.run_path(str(example), run_name="__main__")
    assert list(tmp_path.glob("out/**/*.png"))
    assert all(len(line) <= 80 for line in capsys.readouterr().out.splitlines())

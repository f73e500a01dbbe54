# Every target sets up its own environment in .venv; only Python >= 3.11 and make are needed.
PYTHON ?= python3
PY := .venv/bin/python

.PHONY: demo test lint bench mutants clean

demo: .venv/ready
	$(PY) examples/every_algorithm.py
	$(PY) -m pursuit paper

test: .venv/ready
	$(PY) -m pytest -n auto

lint: .venv/ready
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -c "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"

mutants: .venv/ready
	$(PY) tools/mutants.py

bench: .venv/ready
	$(PY) benchmarks/overhead.py
	$(PY) benchmarks/geometry.py
	$(PY) benchmarks/encode.py
	$(PY) benchmarks/oracles.py
	$(PY) benchmarks/updates.py
	$(PY) benchmarks/tensors.py

.venv/ready: pyproject.toml
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'pursuit needs Python >= 3.11: make PYTHON=python3.x')"
	$(PYTHON) -m venv .venv
	$(PY) -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch .venv/ready

clean:
	rm -rf .venv out

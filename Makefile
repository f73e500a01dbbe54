# Every target sets up its own environment in .venv (bench: .venv-bench); only Python >= 3.11 and make are needed.
PYTHON ?= python3
PY := .venv/bin/python

.PHONY: demo test lint bench mutants clean

demo: .venv/ready
	$(PY) examples/every_algorithm.py
	$(PY) -m pursuit paper

test: .venv/ready
	OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -n auto  # one thread each: the workers share the cores

lint: .venv/ready
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -c "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"

mutants: .venv/ready
	$(PY) tools/mutants.py

bench: .venv-bench/ready
	.venv-bench/bin/python benchmarks/run.py $(CASES)

.venv/ready: pyproject.toml
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'pursuit needs Python >= 3.11: make PYTHON=python3.x')"
	$(PYTHON) -m venv .venv
	$(PY) -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch .venv/ready

.venv-bench/ready: pyproject.toml benchmarks/peers.py
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[plot]"
	.venv-bench/bin/python benchmarks/peers.py
	touch .venv-bench/ready

clean:
	rm -rf .venv .venv-bench out

# Every target sets up its own environment in .venv (bench: .venv-bench, docs: .venv-docs); only Python >= 3.11 and make are needed.
PYTHON ?= python3
PY := .venv/bin/python
KERNELS := $(wildcard src/pursuit/native/*.h src/pursuit/native/*.cpp src/pursuit/native/CMakeLists.txt)
PIP := -m pip install --quiet --disable-pip-version-check

.PHONY: cross oldest demo test lint docs dist bench mutants sanitize soak clean

demo: .venv/ready
	$(PY) examples/every_algorithm.py
	$(PY) -m pursuit paper
	$(PY) -m pursuit fit examples/data/breast_cancer.csv --target diagnosis --atoms 5 --report out/report.html --save out/model.json
	$(PY) -m pursuit predict out/model.json examples/data/breast_cancer.csv --output out/predictions.csv
	@echo
	@echo "Look next at:"
	@echo "  out/report.html        the model of examples/data/breast_cancer.csv, fitted by pursuit fit"
	@echo "  out/paper/index.html   every theorem of the paper, promised and measured"
	@echo "  out/*.png              every algorithm of the paper on one problem"
	@echo "  README.md              what to write for a problem of your own; then examples/"
	@echo "  $(PY) -m pursuit --help    the commands; pursuit doctor says what is installed"

test: .venv/ready
	OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -n auto  # one thread each: the workers share the cores

lint: .venv/ready
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	.venv/bin/clang-format --dry-run --Werror src/pursuit/native/*.h src/pursuit/native/*.cpp
	$(PY) -m mypy
	$(PY) -c "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"

mutants: .venv/ready
	$(PY) tools/mutants.py $(MUTANTS)

sanitize: .venv/ready
	$(PY) tools/rebuilt.py sanitize

cross: .venv/ready
	$(PY) tools/cross.py

oldest:
	$(PYTHON) tools/oldest.py $(TESTS)

soak: .venv/ready
	OPENBLAS_NUM_THREADS=1 $(PY) tools/soak.py --seconds $(or $(SECONDS),600)

docs: .venv-docs/ready
	rm -rf docs/gallery docs/reference out/docs
	OPENBLAS_NUM_THREADS=1 .venv-docs/bin/python -m sphinx -q -n -W --keep-going -j auto -d out/docs/.doctrees docs out/docs
	.venv-docs/bin/python tools/check_site.py out/docs

dist: .venv/ready
	rm -rf dist
	$(PY) -m build --outdir dist
	$(PY) -m twine check --strict dist/*
	$(PY) tools/check_dist.py dist

bench: .venv-bench/ready
	.venv-bench/bin/python benchmarks/run.py $(CASES)

.venv/ready: pyproject.toml tools/build_backend.py $(KERNELS)
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'pursuit needs Python >= 3.11: make PYTHON=python3.x')"
	$(PYTHON) -m venv .venv
	$(PY) $(PIP) "pip>=25.1"
	$(PY) $(PIP) --editable ".[cli,cluster,files,index,lp]" --group dev
	touch .venv/ready

.venv-bench/ready: pyproject.toml benchmarks/peers.py $(KERNELS)
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python $(PIP) --editable ".[plot]"
	.venv-bench/bin/python benchmarks/peers.py
	touch .venv-bench/ready

.venv-docs/ready: pyproject.toml tools/build_backend.py $(KERNELS)
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python $(PIP) "pip>=25.1"
	.venv-docs/bin/python $(PIP) --editable ".[estimators,plot]" --group docs
	touch .venv-docs/ready

clean:
	rm -rf .venv .venv-bench .venv-docs .venv-oldest build out docs/gallery docs/reference

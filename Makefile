# `make demo` and `make test` need Python 3.11 or newer with pip; everything else they install into .venv.
PYTHON ?= python3
BIN := .venv/bin
# A process per core, of 1.2 GB each, up to four: more would wait for the longest of the tests. One that is done takes
# over half of what another has left.
PYTEST := $(BIN)/pytest -n auto --maxprocesses 4 --dist worksteal

.PHONY: demo test test-gpu test-rivals quick lint check-results torture docs notebooks test-lowest clean

demo: .venv/installed
	$(BIN)/alstm demo

test: lint
	$(PYTEST)

# The GPU's kernels in Triton's interpreter, which needs no GPU: Triton is 290 MB, so it is not among what `test` installs.
test-gpu: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[gpu]'
	$(PYTEST) tests/kernels/associative/test_triton.py tests/test_benchmarks.py

# Today's networks of the lab beside the packages of their authors and others, which `test` does not install.
test-rivals: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[rivals]'
	RIVALS=1 $(PYTEST) tests/lab/rivals

# What to run between two edits: a minute on two cores, a minute and a half the first time.
quick: lint
	$(PYTEST) -q -x tests/test_functional.py tests/test_memory.py tests/nn/test_against_twin.py \
		tests/nn/test_associative_lstm.py tests/kernels/associative/test_fused.py tests/lab/run/test_config.py \
		tests/lab/run/test_cost.py tests/lab/tasks/test_tasks.py

# Whether pages, README and recorded verdicts are what the logs say; `make test` has it too.
check-results: .venv/installed
	$(BIN)/pytest -q tests/results

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# An hour or more; Ctrl-C ends it with its summary. Options: make torture TORTURE='--minutes 600 --seed 7'
torture: .venv/installed
	PYTHONPATH=tests $(BIN)/python -m torture $(TORTURE)

# The documentation, in build/site; a broken link fails. What shows equations is downloaded once.
docs: .venv/documenting
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

notebooks: .venv/documenting
	$(BIN)/jupytext --to ipynb examples/*.py

.venv/documenting: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

# The core tests with exactly the lowest versions that pyproject.toml allows, in an environment of its own. What old
# versions warn of themselves is no failure of ours, hence -W default. PyTorch's
# index has builds for CPUs of old versions, PyPI for Linux only those with CUDA. Another PyTorch: TORCH=torch==2.13.0
TORCH ?= $(shell sed -n 's/^dependencies = .*"\(torch\)>=\([0-9.]*\)".*/\1==\2/p' pyproject.toml)
test-lowest:
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/pip install --quiet --extra-index-url https://download.pytorch.org/whl/cpu $(TORCH) \
		$(shell sed -n 's/^dependencies = .*\("numpy.*"\)]/\1/p' pyproject.toml | sed 's/>=/==/g; s/,//g') \
		pytest pytest-xdist hypothesis scipy
	.venv-lowest/bin/pip install --quiet --no-deps -e .
	.venv-lowest/bin/pytest -W default -n auto --maxprocesses 2 tests/test_functional.py tests/test_memory.py \
		tests/test_inside.py tests/nn tests/kernels

# What is imported is compiled by Python when it is: all of it, beforehand, takes as long as the rest of installing.
.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[lab,cluster,test]'
	touch $@

clean:
	rm -rf .venv .venv-lowest

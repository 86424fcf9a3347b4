# `make demo` and `make test` need Python 3.11 or newer with pip; everything else they install into .venv.
PYTHON ?= python3
BIN := .venv/bin
# A process per core, of 1.2 GB each, up to four: more would wait for the longest of the tests. One that is done takes
# over half of what another has left.
PYTEST := $(BIN)/pytest -n auto --maxprocesses 4 --dist worksteal

.PHONY: demo test test-gpu quick lint check-results torture clean

demo: .venv/installed
	$(BIN)/alstm demo

test: lint
	$(PYTEST)

# The GPU's kernels in Triton's interpreter, which needs no GPU: Triton is 290 MB, so it is not among what `test` installs.
test-gpu: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[gpu]'
	$(PYTEST) tests/kernels/associative/test_triton.py tests/test_benchmarks.py

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

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[lab,cluster,test]'
	touch $@

clean:
	rm -rf .venv

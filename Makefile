# `make demo` and `make test` need Python 3.11 or newer with pip; everything else they install into .venv.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test torture clean

demo: .venv/installed
	$(BIN)/alstm demo

test: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest

# An hour or more; Ctrl-C ends it with its summary. Options: make torture TORTURE='--minutes 600 --seed 7'
torture: .venv/installed
	PYTHONPATH=tests $(BIN)/python -m torture $(TORTURE)

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[lab,cluster,test]'
	touch $@

clean:
	rm -rf .venv

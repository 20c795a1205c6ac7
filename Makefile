# The two commands: `make demo` and `make test`. Both install what they need first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: install images demo test check

install: $(VENV)/.installed node_modules/.package-lock.json

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -e '.[inspect,dev]'
	touch $@

node_modules/.package-lock.json: package.json package-lock.json
	npm ci --no-progress

images: install
	$(BIN)/python -m rollout.sandboxes.docker

demo: install
	$(BIN)/python -m suites.claweval --harness codex

test: install
	$(BIN)/python -m pytest -n auto -q

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

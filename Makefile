# The two commands: `make demo` and `make test`. Both install what they need first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

PROGRAMS := $(patsubst %/package.json,%/node_modules/.package-lock.json,$(wildcard programs/*/package.json))

.PHONY: install harnesses images demo test check

install: $(VENV)/.installed node_modules/.package-lock.json

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -e '.[inspect,dev]'
	touch $@

node_modules/.package-lock.json: package.json package-lock.json
	npm ci --no-progress

# Every further harness that npm has: 1.3 GB. The demo needs Codex alone.
harnesses: install $(PROGRAMS)

programs/%/node_modules/.package-lock.json: programs/%/package.json programs/%/package-lock.json
	npm ci --no-progress --prefix programs/$*

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

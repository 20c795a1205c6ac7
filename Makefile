# The two commands: `make demo` and `make test`. Both install what they need first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

PROGRAMS := $(patsubst %/package.json,%/node_modules/.package-lock.json,$(wildcard programs/*/package.json))

.PHONY: install harnesses images demo test test-slow check

install: $(VENV)/.installed node_modules/.package-lock.json

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -e '.[inspect,dev]'
	touch $@

node_modules/.package-lock.json: package.json package-lock.json
	npm ci --no-progress

# Every further harness that npm has: 1.7 GB. The demo needs Codex alone.
harnesses: install $(PROGRAMS)

programs/%/node_modules/.package-lock.json: programs/%/package.json programs/%/package-lock.json
	npm ci --no-progress --prefix programs/$*

images: install
	$(BIN)/python -m rollout.sandboxes.docker

demo: install
	$(BIN)/python -m suites.claweval --harness codex

# What runs in minutes. `test-slow` adds the heavy programs, Docker, and the long fault tests.
test: install
	$(BIN)/python -m pytest -n auto -q -m 'not slow and not docker'

test-slow: install harnesses
	$(BIN)/python -m pytest -n 2 -q -m 'slow or docker'

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

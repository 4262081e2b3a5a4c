# dovetail: everything a developer or a build server runs. Needs Python 3.11 (or newer) and make; the rest
# goes into .venv, at the locked versions. `make PYTHON=/path/to/python` picks another interpreter.

SHELL := /bin/sh
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
LOCKED := $(VENV)/.locked

DEMO   := scenarios/mixed-fleet
PLAN   := build/demo/plan.yaml

.DEFAULT_GOAL := help
.PHONY: help setup demo test campaign limits bench lint format types contracts wheel lock ci clean distclean

help:            ## List the targets.
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY)  ## Create .venv with the locked dependencies and dovetail itself, editable.

$(LOCKED): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dovetail needs Python 3.11 or newer, this is " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

# The build backend comes out of the lock too, hence no isolated build.
$(READY): $(LOCKED) pyproject.toml solver/dovetail/__init__.py
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY)   ## Plan the mixed-fleet scenario, prove it, verify it.
	@mkdir -p $(dir $(PLAN))
	$(BIN)/dovetail validate $(DEMO)
	$(BIN)/dovetail plan $(DEMO) --out $(PLAN)
	$(BIN)/dovetail verify $(PLAN) $(DEMO)

test: $(READY)   ## The tests that run on every change, under 5 minutes.
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not campaign and not limits and not bench" --durations=15 $(ARGS)

# pytest ends with 5 where ARGS leave no test: that is no failure.
campaign: $(READY) ## The large random runs, and the traces at length.
	$(BIN)/python -m pytest -m campaign $(ARGS) || test $$? -eq 5

limits: $(READY) ## Assert time and memory, on a quiet machine.
	$(BIN)/python -m pytest -m limits $(ARGS) || test $$? -eq 5

bench: $(READY)  ## Measure against baselines, on a quiet machine; writes docs/benchmarks*.md. Needs DOVETAIL_DATA.
	$(BIN)/python -m benchmarks.trace $(TRACE)
	$(BIN)/python -m benchmarks.fleets $(FLEETS)
	$(BIN)/python -m benchmarks.fleets --also gangs slices $(FLEETS)
	$(BIN)/python -m benchmarks.by_work $(BY_WORK)
	$(BIN)/python -m benchmarks.by_work --also gangs slices $(BY_WORK)
	$(BIN)/python -m benchmarks.hardness $(HARDNESS)
	$(BIN)/python -m benchmarks.replan $(REPLAN)
	$(BIN)/python -m benchmarks.replan --also gangs slices $(REPLAN)
	$(BIN)/python -m benchmarks.replan --policies $(REPLAN)
	$(BIN)/python -m benchmarks.replan --zones zd $(REPLAN)
	$(BIN)/python -m benchmarks.replan --ended $(REPLAN)
	$(BIN)/python -m benchmarks.replan --shares $(REPLAN)
	$(BIN)/python -m benchmarks.replan --instances $(REPLAN)
	$(BIN)/python -m benchmarks.replan --batch $(REPLAN)
	$(BIN)/python -m benchmarks.serving $(SERVING)
	$(BIN)/python -m benchmarks.serving --changed $(SERVING)
	$(BIN)/python -m benchmarks.fragmentation $(FRAGMENTATION)
	$(BIN)/python -m benchmarks.mig
	$(BIN)/python -m benchmarks.lingjun --busy 0 0.4 --out build/lingjun --page docs
	$(BIN)/python -m benchmarks.gang_cases $(DOVETAIL_DATA)/gang_cases.json --page docs

lint: $(READY)   ## Style and formatting.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(READY) ## Format the code and mend what can be mended.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(READY)  ## Types, strictly.
	$(BIN)/mypy

contracts: $(READY) ## Which module may import which.
	$(BIN)/lint-imports

wheel: $(READY)  ## Build the wheel into dist/ and check its contents.
	rm -rf dist
	$(BIN)/python -m build --no-isolation --wheel --outdir dist .
	$(BIN)/check-wheel-contents dist

lock: $(READY)   ## Write requirements.lock anew from pyproject.toml, for every platform.
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --extra dev \
	  --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	  pyproject.toml -o requirements.lock

ci:              ## What the build server runs.
	.ci/run

clean:           ## Remove what builds and tests leave behind.
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find solver cli tests -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean ## Remove the virtual environment as well.
	rm -rf $(VENV)

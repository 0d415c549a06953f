# `make` alone explains itself.
PYTHON3 ?= python3
VENV := .venv
PYTHON := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready
PIP_INSTALL := $(PYTHON) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# Tests start hundreds of interpreters: without stored bytecode, each of them compiles all modules again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-quick test-all fuzz check audit generate golden docs image release clean

help: ## what can be made
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# What the command itself needs, and no compiler.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON3) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "trimtab needs Python 3.11 or newer, this is " + sys.version)'
	@echo "Installing into $(VENV) …"
	@$(PYTHON3) -m venv $(VENV)
	@$(PIP_INSTALL) --editable .
	@touch $@

# What tests and checks need. The parser in C is built where a compiler is; without it, its tests are skipped.
$(READY): $(INSTALLED)
	@echo "Installing what the tests need …"
	@$(PIP_INSTALL) --editable '.[dev]'
	@if command -v $${CC:-cc} >/dev/null; then $(PIP_INSTALL) --editable '.[fast]'; else echo "No C compiler: left out the HTTP parser in C"; fi
	@touch $@

demo: $(INSTALLED) ## the main job end to end on this machine, without a cluster
	@$(VENV)/bin/trimtab demo --keep $(VENV)/demo

test-quick: $(READY) ## the tests of the decisions, in less than a minute
	@HYPOTHESIS_PROFILE=brief $(PYTHON) -m pytest -n auto tests/cluster tests/policy tests/compaction tests/sizing tests/scheduling tests/autoscaling tests/docs/test_links.py tests/docs/test_commands.py --ignore tests/autoscaling/simulation --ignore tests/compaction/test_openb.py --ignore tests/sizing/test_drift.py --ignore tests/autoscaling/test_real_manifests.py

test: $(READY) ## all tests that need no cluster (PYTEST_ARGS="-x --durations=60": further options of pytest)
	@$(PYTHON) -m pytest -n auto -m "not slow" $(PYTEST_ARGS)

test-slow: $(READY) ## what `make test` leaves out: every output format of every verb on a large cluster, a release twice
	@$(PYTHON) -m pytest -n auto -m slow tests/golden tests/deploy $(PYTEST_ARGS)

fuzz: $(READY) ## 100 000 damaged reviews, as many pods of each kind of owner, certificate rotations (FUZZ_SEED=2: others)
	@FUZZ_LONGER=1 $(PYTHON) -m pytest -n auto tests/webhook/test_fuzz.py tests/webhook/test_cert_manager.py tests/admission/test_warm_equals_cold.py

test-all: $(READY) ## what differs by interpreter, on every Python from 3.11 on that is there
	@tests/on_every_python

check: $(READY) ## style, types, the layers, and the rules of the house
	$(PYTHON) -m ruff check
	$(PYTHON) -m ruff format --check
	$(PYTHON) -m mypy
	$(VENV)/bin/lint-imports --no-cache
	@$(PYTHON) -m pytest -n auto tests/architecture

audit: $(READY) ## is a weakness known of what we depend on? Says so where nobody answers
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt pip-audit || echo "not audited: pip-audit cannot be installed"
	@$(PYTHON) .ci/audit.py

generate: $(READY) ## write again what is generated: CRD, schemas, reference pages
	@$(PYTHON) -m docs.generate

golden: $(READY) ## store again what every verb prints, and show the difference (WORDS="plan cluster=large": only these)
	@$(PYTHON) -m tests.golden $(WORDS)

BUILDER ?= podman
IMAGE ?= trimtab:0.1.0

image: ## the container image (BUILDER=docker, IMAGE=registry.example.com/trimtab:0.1.0)
	$(BUILDER) build --file deploy/image/Containerfile --tag $(IMAGE) .

REPOSITORY ?= https://code.example.com/trimtab

release: $(READY) ## all files of a release, in dist; the same commit gives the same bytes (REPOSITORY=https://… IMAGE=…)
	@$(PYTHON) -m deploy.release build dist --repository $(REPOSITORY) --image $(IMAGE) $(RELEASE_ARGS)

$(VENV)/.docs: $(READY)
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	@touch $@

docs: $(VENV)/.docs ## these docs as pages, in build/docs; a broken link fails
	@$(PYTHON) -m sphinx -W --keep-going -q -b html -d build/doctrees docs build/docs
	@echo "build/docs/index.html"

clean: ## remove what was installed and built here
	rm -rf $(VENV) .venvs dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

e2e e2e-core e2e-build bench-brief bench-steps bench-data plans-against bench-plan bench-sizing bench-recommender bench-watch bench-watchdog bench-webhook bench-admission bench-live bench-peers bench-rest bench-machines bench-lint bench-metrics bench-resize bench-fleet bench-start e2e-fleet: $(READY)
testbed: $(INSTALLED)
include tests/controlplane/Makefile.inc
include tests/bench/Makefile.inc

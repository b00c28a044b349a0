# The lab's commands. `make` alone prints this help.
PYTHON ?= python3
VENV   := .venv
LAB    := $(VENV)/bin/lab
STAMP  := $(VENV)/.installed
# uv with pip's settings
UV     := $(VENV)/bin/python environments/uv.py $(VENV)

# Set on the command line, for example: make bench ROWS=1000000 PASSES=5 ONLY='postgres.*.write_*'
SUITE  ?= matrix
SIZE   ?= default
ROWS   ?=
PASSES ?=
ONLY   ?=
EXPERIMENT ?=
ORIGIN ?=
# make up BASE=debian: without an image registry; S3=1: with an S3 server; CLUSTER=dask: with a scheduler and two workers
export BASE S3 CLUSTER
# Many images set this variable: each process of the lab would then compile the lab again.
unexport PYTHONDONTWRITEBYTECODE

RUN = $(SUITE) --size $(SIZE) $(if $(ROWS),--rows '$(ROWS)') $(if $(PASSES),--passes '$(PASSES)') \
  $(if $(ONLY),--only '$(ONLY)') $(if $(EXPERIMENT),--experiment '$(EXPERIMENT)') \
  $(if $(ORIGIN),--origin '$(ORIGIN)')

.DEFAULT_GOAL := help
.PHONY: help up bench down doctor logs shell psql clickhouse install engine serve docs audit wheel test test-long test-long-together test-long-alone test-all test-pure check check-repository check-workflows format benchmarks lock clean

help:
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {print substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' \
	  $(MAKEFILE_LIST)
	@echo "bench:  SUITE=matrix|crossings|scan|stores|elt|tuning|cluster"
	@echo "        SIZE=smoke|default|laptop|full PASSES=3 ONLY='clickhouse.*'"
	@echo "engine: ENGINE=ray|spark|daft for cluster, or sqlalchemy-2.1"
	@echo "up:     S3=1 CLUSTER=dask|ray|spark; BASE=debian builds every image"

##@ Measure, without Docker
install: $(STAMP) ## Install the lab into .venv, from the locks

# The stamp is newer than the lock files and the sources of arrow-wire/ exactly when the environment is current. Tools that
# only check the lab are in requirements-dev.lock: the images do not install them.
NATIVE = requirements-native.lock $(shell find arrow-wire/zig arrow-wire/src arrow-wire/compile.py arrow-wire/pyproject.toml -name '*.py' -o -name '*.zig' -o -name '*.toml')

$(STAMP): requirements.lock requirements-dev.lock pyproject.toml $(NATIVE)
	@$(if $(filter-out $(NATIVE),$?),environments/install '$(PYTHON)' $(VENV),arrow-wire/install $(VENV)/bin/python requirements-native.lock)
	@touch $@

# Engines of the suite cluster that `make install` does not install. A lock has the packages on top of requirements.lock.
ENGINE ?=

engine: ## Install one more client; ENGINE is below
	@case '$(ENGINE)' in \
	  ray | spark) $(MAKE) --no-print-directory $(VENV)/.engine-$(ENGINE) ;; \
	  daft | sqlalchemy-2.1) $(MAKE) --no-print-directory .venv-$(ENGINE)/.installed ;; \
	  *) echo "ENGINE: expected ray, spark, daft or sqlalchemy-2.1, found '$(ENGINE)'; Dask comes with make install" >&2; exit 2 ;; \
	esac

$(VENV)/.engine-%: requirements-%.lock $(STAMP)
	$(UV) pip install --quiet --python $(VENV)/bin/python --no-deps --require-hashes --requirement $<
	@# Its JDBC transports need jars: where no Maven repository is in reach these are unsupported, and say so.
	@case '$*' in spark) $(VENV)/bin/python -m harness.lab.jars || echo "spark: not installed: its jars, see above" >&2 ;; esac
	@touch $@

# A separate environment, made of a lock alone: of a tool, or of a client whose pins conflict with the lab's. Such a client
# imports the package harness from here (harness/lab/interpreters.py).
.PRECIOUS: .venv-%/.installed
.venv-%/.installed: requirements-%.lock
	$(PYTHON) environments/uv.py create .venv-$*
	.venv-$*/bin/python environments/uv.py .venv-$* pip install --quiet --python .venv-$*/bin/python --require-hashes --requirement $<
	@touch $@

# The Compose lab when it is up, else the embedded one; the first line of a run says which. A recipe that names $(MAKE)
# itself would be run by `make -n` too.
AGAIN := $(MAKE)
bench: ## Run a suite; settings are below
	@if compose/lab is-up; then compose/lab run $(RUN); else \
	  $(AGAIN) --question --no-print-directory install 2>/dev/null || echo "lab: installing the clients and the embedded lab into .venv, some minutes the first time"; \
	  $(AGAIN) --silent --no-print-directory install && $(LAB) run $(RUN); fi

serve: $(STAMP) ## Keep embedded servers up until Ctrl-C
	@$(LAB) serve

##@ Compose lab
up: ## Build it and start it; settings are below
	@compose/lab up

down: ## Stop it; its data stay
doctor: ## Check its services
logs: ## Follow its logs
shell: ## Open a shell in the harness container
psql: ## Open psql in its Postgres
clickhouse: ## Open clickhouse-client in its ClickHouse
down doctor logs shell psql clickhouse:
	@compose/lab $@

# Processes share one lab, and wait for each other if a test must be alone. The tests of a file stay in one process,
# which makes their fixtures once (conftest.py). Some long tests wait for most of their time: they run
# three at a time, after the others.
BY_FILE = --dist loadfile
ALONE = $$(grep --recursive --files-with-matches --include='test_*.py' 'mark\.alone' tests)

# A share of the long tests: SHARE=0/8 to 7/8
SHARE ?=
PART = $(if $(SHARE),--share '$(SHARE)')

##@ Tests
test: $(STAMP) ## Run the daily tests on real databases
	$(VENV)/bin/pytest -n 3 $(BY_FILE) -m 'not long'

test-long: test-long-together test-long-alone ## Run the long tests; SHARE=0/8 runs an eighth

test-long-together: $(STAMP)
	$(VENV)/bin/pytest -n 4 $(BY_FILE) -m 'long and not alone' $(PART)

test-long-alone: $(STAMP)
	$(VENV)/bin/pytest -n 3 $(BY_FILE) -m 'long and alone' $(PART) $(ALONE)

test-all: check-repository test test-long ## Run all tests

test-pure: $(STAMP) ## Run the tests without a database, in a minute
	$(VENV)/bin/pytest -n 2 $(BY_FILE) -m 'not long' --pure

check: $(STAMP) ## Format, lint, types, layers, docs, make test
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(LAB) docs --check
	@$(MAKE) --no-print-directory check-workflows
	@$(MAKE) --no-print-directory check-repository
	@$(MAKE) --no-print-directory test

# Without the linters of shell and Python that only some machines have: the findings must be the same everywhere.
check-workflows: $(STAMP) ## Check the workflows of GitHub with actionlint
	$(VENV)/bin/actionlint -shellcheck= -pyflakes=

check-repository: $(STAMP) ## Run the tests that only read the repository
	$(VENV)/bin/pytest tests/repository

##@ Maintenance
format: $(STAMP) ## Format the code, write the generated pages
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .
	$(LAB) docs

# The site is made of the committed pages, and of the interactive reports, which the lab writes again.
DOCS := .venv-docs
REPORTS := $(patsubst %/runs.csv,%/report.html,$(wildcard results/reference/*/runs.csv))

results/reference/%/report.html: results/reference/%/runs.csv $(wildcard harness/report/*.py harness/report/templates/*) $(STAMP)
	@$(LAB) report results/reference/$* > /dev/null
	@touch $@

docs: $(DOCS)/.installed $(REPORTS) ## Build the site of the docs into site/
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict
	@echo "site/index.html: open it, or serve the folder: $(PYTHON) -m http.server --directory site"

# Nothing is resolved or built: a lock with hashes is complete. Each lock is audited, even after a finding in another.
# --strict: a package that PyPI does not answer for is a failure, not a warning.
AUDIT := .venv-audit

audit: $(AUDIT)/.installed ## Look for known vulnerabilities of all pins
	@status=0; for lock in requirements*.lock; do \
	  echo "$$lock:"; $(AUDIT)/bin/pip-audit --strict --progress-spinner off --disable-pip --require-hashes --requirement "$$lock" || status=1; \
	done; exit $$status

DIST ?= dist

wheel: $(STAMP) ## Build the wheels into dist/
	@$(VENV)/bin/python -m hatchling build --target wheel --directory "$(DIST)"
	@arrow-wire/install --wheel "$(DIST)" $(VENV)/bin/python requirements-native.lock

benchmarks: $(STAMP) ## Measure the lab itself: overhead, start, data
	$(VENV)/bin/python -m benchmarks.harness

COMPILE = $(UV) pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
  --no-annotate --quiet --upgrade --custom-compile-command "make lock"

# An engine's lock has only packages that the other locks do not have.
ENGINE_LOCK = $(COMPILE) --constraint requirements.lock --constraint requirements-dev.lock pyproject.toml \
  $$(sed -nE 's/^([a-z0-9.-]+)==.*/--no-emit-package \1/p' requirements.lock)

lock: $(STAMP) ## Resolve pyproject.toml into the locks again
	$(COMPILE) --extra all --group build --no-emit-package arrow-wire pyproject.toml --output-file requirements.lock
	$(COMPILE) --group dev --constraint requirements.lock --output-file requirements-dev.lock
	$(COMPILE) --group sources --constraint requirements.lock --output-file requirements-sources.lock
	$(COMPILE) --group docs --output-file requirements-docs.lock
	$(COMPILE) --group audit --output-file requirements-audit.lock
	$(COMPILE) --group native --output-file requirements-native.lock
	$(COMPILE) --group daft --output-file requirements-daft.lock
	$(COMPILE) --group sqlalchemy-2.1 --output-file requirements-sqlalchemy-2.1.lock
	$(ENGINE_LOCK) --extra ray --output-file requirements-ray.lock
	$(ENGINE_LOCK) --extra spark --output-file requirements-spark.lock
	$(VENV)/bin/python environments/newest.py $(VENV)

clean: ## Remove containers, .venv, data; results stay
	compose/lab clean
	rm -rf $(VENV) .venv-* site dist .lab .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find datasets -mindepth 1 ! -name README.md -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

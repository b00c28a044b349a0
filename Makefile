# The lab's commands. `make` alone prints this help.
PYTHON ?= python3
VENV   := .venv
LAB    := $(VENV)/bin/lab
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install lock clean

help: ## Print this help
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## Create .venv from the lock file (nothing happens when it is current)

# The stamp is newer than the lock file exactly when the environment is current.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "expected Python >= 3.11, found $$($(PYTHON) --version); run make PYTHON=python3.12" >&2; exit 2; }
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/python -m pip install --quiet --require-hashes --requirement requirements.lock
	$(VENV)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

lock: $(STAMP) ## Resolve pyproject.toml into requirements.lock again
	$(VENV)/bin/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-annotate --all-extras --quiet --upgrade --custom-compile-command "make lock" \
	  pyproject.toml --output-file requirements.lock

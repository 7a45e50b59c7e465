# The two commands: `make demo` and `make test`. Each sets up everything it needs inside this folder.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
OLDEST := .venv-oldest
# Some slow tests compile for longer than the fast suite may hang (pyproject.toml).
PATIENT := -o faulthandler_timeout=2400

# Caches stay inside the repository, so that removing the folder removes everything.
export PIP_CACHE_DIR := $(CURDIR)/.cache/pip
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Pins build backends as well, unlike pip's --constraint option.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PYRIGHT_PYTHON_CACHE_DIR := $(CURDIR)/.cache/pyright
export npm_config_cache := $(CURDIR)/.cache/npm
export MPLCONFIGDIR := $(CURDIR)/.cache/matplotlib
export TORCHINDUCTOR_CACHE_DIR := $(CURDIR)/.cache/inductor
export OVERTONE_CACHE := $(CURDIR)/.cache/overtone

.PHONY: help setup lock demo test test-all test-slow test-oldest release-check lint format types bench pictures reproduce page clean docs notebooks screenshots test-browser

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP) ## create .venv with pinned versions, checked by their hashes

$(STAMP): pyproject.toml constraints.txt requirements.lock
	@command -v $(PYTHON) >/dev/null || { echo "error: '$(PYTHON)' not found; install Python 3.11 or newer, or run make PYTHON=/path/to/python"; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: Python 3.11 or newer is needed, '$(PYTHON)' is $$($(PYTHON) --version)"; exit 2; }
	@$(PYTHON) -c 'import venv, ensurepip' || { echo "error: this Python lacks the venv module; on Debian: apt-get install python3-venv"; exit 2; }
	$(PYTHON) -m venv --clear $(VENV)
	@# In hash-checking mode pip wants hashes of constraints, too; the lock has all of them.
	PIP_CONSTRAINT= $(BIN)/python -m pip install -qq --require-hashes --only-binary :all: -r requirements.lock
	@# Without hashes: torch, whose CPU builds are other files of the same version, and this folder.
	$(BIN)/python -m pip install -qq torch
	$(BIN)/python -m pip install -qq --no-deps --no-build-isolation --editable .
	$(BIN)/python -m pip check
	@touch $@

lock: $(STAMP) ## requirements.lock from constraints.txt, with hashes from the package index
	$(BIN)/python .ci/lock.py

demo: $(STAMP) ## the product's main job on built-in data, in minutes
	$(BIN)/overtone demo --out demo

test: $(STAMP) lint types ## lint, types and the test suite (under 6 minutes)
	$(BIN)/python -m pytest -n 2

test-all: $(STAMP) lint types ## also the comparisons with the_well, timm and neuraloperator, which it installs, and the slow checks
	@# the_well pins an older fsspec than it needs, timm asks for a torch with CUDA; so no dependencies are resolved.
	$(BIN)/python -m pip install -qq --no-deps the_well==1.2.0 einops==0.8.2 timm==1.0.30 torchvision==0.28.0 \
		neuraloperator==2.0.0 tensorly==0.10.0 tensorly-torch==0.5.0 opt_einsum==3.4.0 scipy==1.17.1 \
		zencfg==1.0.0 ruamel.yaml==0.19.1 configmypy==0.2.0 requests==2.34.2 \
		urllib3==2.8.0 charset-normalizer==3.5.2 certifi==2026.10.18
	$(BIN)/python -m pytest -n 2 -m 'not browser' $(PATIENT)

test-slow: $(STAMP) ## the longer checks
	$(BIN)/python -m pytest -m slow $(PATIENT)

test-browser: $(STAMP) ## the viewer in a real browser, which it installs where it may
	@test -n "$$CHROMIUM" || command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
		{ test "$$(id -u)" = 0 && command -v apt-get >/dev/null && echo "installing chromium" && \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y chromium >/dev/null; } || \
		{ echo "error: no chromium here; install it (Debian: apt-get install chromium), or name a browser with CHROMIUM=/path/to/it"; exit 2; }
	$(BIN)/python -m pytest -m browser tests/browser

test-oldest: $(OLDEST)/.installed ## the test suite with the oldest versions that pyproject.toml allows
	$(OLDEST)/bin/python -m pytest -n 2

# The torch of that age comes with CUDA from most package indexes, some gigabytes; it runs without a GPU.
$(OLDEST)/.installed: pyproject.toml constraints-oldest.txt
	$(PYTHON) -m venv $(OLDEST)
	PIP_CONSTRAINT=$(CURDIR)/constraints-oldest.txt $(OLDEST)/bin/python -m pip install -qq --only-binary :all: hatchling editables
	PIP_CONSTRAINT=$(CURDIR)/constraints-oldest.txt $(OLDEST)/bin/python -m pip install -qq --no-build-isolation \
		--editable '.[arrays,xarray,remote,logs,slurm,video,viewer,export,hub,test]'
	$(OLDEST)/bin/python -m pip check
	@touch $@

release-check: $(STAMP) ## build sdist and wheel twice, look into them, install and use the wheel outside of this folder
	$(BIN)/python .ci/release.py $(if $(PUBLISH),--publish)

lint: $(STAMP) ## ruff: lint and format check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP) ## ruff: fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(STAMP) ## pyright: strict for the public modules, basic for the tests
	$(BIN)/pyright
	$(BIN)/pyright -p tests

bench: $(STAMP) ## the benchmarks; JSON goes to results/
	$(BIN)/python -m pip install -qq --no-deps the_well==1.2.0 einops==0.8.2
	for name in step cvit train solvers data evaluation thresholds export export_matrix; do $(BIN)/python benchmarks/$$name.py || exit 1; done

pictures: $(STAMP) ## the pictures of docs/data, from data made on the spot
	$(BIN)/python benchmarks/pictures.py

reproduce: $(STAMP) ## a study: make reproduce STUDY=NAME [QUICK=1]; without a name, their list
	$(BIN)/python -m studies $(if $(STUDY),run $(STUDY) $(if $(QUICK),--quick,--results results),list)

page: $(STAMP) ## the tables, numbers and pictures of the pages of results and the README, from results/
	$(BIN)/python -m studies page docs/results.md docs/results/*.md README.md --figures docs/images

docs: $(STAMP) ## the site, in docs/_build/html; offline, and a warning is an error
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
	@echo "docs/_build/html/index.html"

screenshots: $(STAMP) ## the viewer's pictures in docs/images, by the machine's Chromium
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m docs.builder.screenshots

notebooks: $(STAMP) ## run the notebooks of examples/ and write them down as pages of the site
	$(BIN)/python -m docs.builder.notebooks

clean: ## remove everything that make created
	rm -rf $(VENV) $(OLDEST) .cache demo dist .pytest_cache .hypothesis .ruff_cache docs/_build

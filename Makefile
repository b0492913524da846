# `make demo`, `make example` and `make test` do all set-up themselves, in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What is installed already: enough for the tour, to run and draw all else, or to develop.
TO_TOUR := $(VENV)/ready-to-tour
TO_RUN := $(VENV)/ready-to-run
TO_DEVELOP := $(VENV)/ready-to-develop
# Bytecode is written when a module is first imported: most of what is installed never is. Without
# it, each command of the tests would compile what it imports again, three seconds at a time.
export PYTHONDONTWRITEBYTECODE :=
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e

.PHONY: demo example test browser collected test-slow lint reproduce coverage bench docs docs-serve format clean

demo: $(TO_TOUR)
	$(BIN)/kernelbounds demo

example: $(TO_RUN)
	$(BIN)/python examples/pendulum.py --out build/pendulum

# What keeps one core busy is done side by side: Chromium comes while pip installs, and while mypy
# runs the tests are collected once, as `make` has nothing else for the second core.
test:
	@$(MAKE) --no-print-directory -j 3 browser lint collected
	$(BIN)/python -m pytest -n 2 -m "not slow"

# All that the tests import is compiled here; on a fresh clone both test processes would do it, each
# for itself. What cannot be collected is for the tests themselves to report.
collected: $(TO_DEVELOP)
	@$(BIN)/python -m pytest --collect-only -q -m "not slow" >/dev/null 2>&1 || true

# The report and the tour are tested in Chromium where that can be had; elsewhere these tests are skipped.
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
	  { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	    echo "installing Chromium, for the tests of the report and the tour" && \
	    export DEBIAN_FRONTEND=noninteractive && \
	    { timeout 120 apt-get -qq update; timeout 600 apt-get -qq install --yes \
	      --no-install-recommends chromium chromium-driver; } </dev/null >/dev/null 2>&1; } || true

test-slow: $(TO_DEVELOP)
	$(BIN)/python -m pytest -n 2 -m slow

lint: $(TO_DEVELOP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

reproduce: $(TO_RUN)
	$(BIN)/kernelbounds reproduce all

# All bounds and rivals with the noise that they are made for. It may be interrupted, and goes on.
coverage: $(TO_RUN)
	$(BIN)/kernelbounds coverage --runs 1020 --out build/coverage \
	  --bounds CMM,DMM,AMM,AY,IGP,FixedDesign,FixedDesign-Gaussian,CMM-shrunk,GP-2sd,rivals \
	  --noises Gaussian,Rademacher,uniform,skewed,heteroscedastic

bench: $(TO_DEVELOP)
	$(BIN)/python -m benchmarks

# The site, in build/site; it needs no network, to build or to read.
docs: $(TO_DEVELOP) docs/assets/tour.html
	$(BIN)/typer kernelbounds.cli utils docs --name kernelbounds --output docs/reference/command-line.md
	$(BIN)/zensical build --clean --strict -f mkdocs.yml

docs-serve: $(TO_DEVELOP) docs/assets/tour.html
	$(BIN)/zensical serve -f mkdocs.yml

# The page of `make demo`, for the site. It is not kept in the repository.
docs/assets/tour.html: $(wildcard src/kernelbounds/demo/*) | $(TO_DEVELOP)
	$(BIN)/kernelbounds demo --no-open --out $@

format: $(TO_DEVELOP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(TO_TOUR): pyproject.toml | $(BIN)/python
	$(INSTALL) "."
	touch $@

$(TO_RUN): pyproject.toml | $(BIN)/python
	$(INSTALL) ".[plot]"
	touch $@ $(TO_TOUR)

$(TO_DEVELOP): pyproject.toml | $(BIN)/python
	$(INSTALL) ".[dev]"
	touch $@ $(TO_RUN) $(TO_TOUR)

clean:
	rm -rf $(VENV) docs/assets/tour.html build/site .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

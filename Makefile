# `make demo`, `make example` and `make test` do all set-up themselves, in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.PHONY: demo example test browser test-slow lint reproduce bench format clean

demo: $(READY)
	$(BIN)/kernelbounds demo

example: $(READY)
	$(BIN)/python examples/pendulum.py --out build/pendulum

test: lint browser
	$(BIN)/python -m pytest -n 2 -m "not slow"

# The report is tested in Chromium where that can be had; elsewhere these tests are skipped.
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
	  { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	    echo "installing Chromium, for the tests of the report" && \
	    export DEBIAN_FRONTEND=noninteractive && \
	    { timeout 120 apt-get -qq update; timeout 600 apt-get -qq install --yes \
	      --no-install-recommends chromium chromium-driver; } </dev/null >/dev/null 2>&1; } || true

test-slow: $(READY)
	$(BIN)/python -m pytest -n 2 -m slow

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

reproduce: $(READY)
	$(BIN)/kernelbounds reproduce all

bench: $(READY)
	$(BIN)/python -m benchmarks

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $(READY)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

import os
import pickle
import shutil
import sys
from copy import deepcopy
from functools import cache

import pytest

# Two test processes share the cores; more threads than that only get in each other's way.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
# Pictures are drawn without a screen.
os.environ.setdefault("MPLBACKEND", "Agg")


@pytest.fixture(scope="session", autouse=True)
def commands_built_once():
    """Or else Typer makes all of them anew for each one that is run."""
    from typer import main, testing

    with pytest.MonkeyPatch.context() as patch:
        built = cache(main.get_command)
        patch.setattr(main, "get_command", built)
        patch.setattr(testing, "_get_command", built)
        yield


_DRAWN = {}


@pytest.fixture(scope="module")
def drawn_once():
    """The same random functions for the same problem and seed, drawn once in a run of the tests.

    For commands, most of which begin with what an earlier one began with.
    """
    from kernelbounds.problem import assuming

    def remembered(rng, turns, subsets, shapes, count, step, *more, draw=assuming.random_functions):
        key = pickle.dumps((rng.bit_generator.state, turns, subsets, shapes, count, more))
        if key not in _DRAWN:
            _DRAWN[key] = draw(rng, turns, subsets, shapes, count, step, *more), deepcopy(rng)
            return _DRAWN[key][0]
        functions, after = _DRAWN[key]
        rng.bit_generator.state = after.bit_generator.state
        for _ in functions or ():
            step()
        return functions

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assuming, "random_functions", remembered)
        yield


@pytest.fixture(scope="module")
def short_searches():
    """Searches of boxes with fewer points and ascents, where it does not matter what they find."""
    import kernelbounds as kb

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kb.Ascent.__init__, "__defaults__", (128, 2))
        yield


@pytest.fixture(scope="session")
def browser():
    """Chromium, without a window and without a network of its own."""
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("Chromium and chromedriver are not installed (Debian: chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu",
                 "disable-background-networking", "window-size=1200,900"):  # fmt: skip
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options, webdriver.ChromeService(driver)) as running:
        yield running


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run a command in an empty folder; its exit code and what it says."""
    from kernelbounds import cli

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def command(*words):
        monkeypatch.setattr(sys, "argv", ["kernelbounds", *map(str, words)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
            raise SystemExit(0)
        said = capsys.readouterr()
        return caught.value.code or 0, " ".join(said.out.split()), " ".join(said.err.split())

    return command


@pytest.fixture
def few_functions(monkeypatch):
    """B from 20 random functions in place of 200, where B itself does not matter."""
    from kernelbounds.problem import assuming

    monkeypatch.setattr(assuming.assume, "__defaults__", (20, *assuming.assume.__defaults__[1:]))
    monkeypatch.setattr(assuming.steps, "__defaults__", (20,))


@pytest.fixture
def without_pictures(monkeypatch):
    """Commands that draw nothing, where only their tables and words matter."""
    from kernelbounds.cli.output import Results

    monkeypatch.setattr(Results, "picture", lambda *_: None)

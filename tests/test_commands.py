"""Commands for one's own data: from a table to files that are whole, or to one sentence."""

from __future__ import annotations

import csv
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import kernelbounds as kb
from kernelbounds.cli import app
from kernelbounds.cli.output import Results
from kernelbounds.display import late_progress
from kernelbounds.display.numbers import at_least, at_most
from kernelbounds.io.csv_table import read_csv, write_csv
from kernelbounds.problem import Problem, assuming
from kernelbounds.problem.drawings import draw_functions
from kernelbounds.problem.model import predicted_half_widths
from kernelbounds.problem.plans import needed

pytestmark = pytest.mark.usefixtures("drawn_once")

REACTOR = ["--input", "temperature=180:220", "--input", "pressure=1e5:3e5", "--input",
           "catalyst=0.1:0.9", "--output", "yield=0:100"]  # fmt: skip
KNOWN = ["--noise", "0.5", "--norm-bound", "300", "--kernel", "Matern(1.0, nu=2.5)"]
NAMES = ["temperature", "pressure", "catalyst"]
LETTERS = "abcd"


def _yield(t, p, c):
    t, p, c = (t - 180) / 40, (p - 1e5) / 2e5, (c - 0.1) / 0.8
    return (
        30
        + 25 * np.exp(-((t - 0.6) ** 2) / 0.3)
        + 15 * (1 - np.exp(-2.5 * p))
        - 20 * (c - 0.5) ** 2
    )


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """Tables: of the reactor, and of one, two and four inputs between 0 and 1."""
    shelf = tmp_path_factory.mktemp("shelf")
    rng = np.random.default_rng(3)
    t, p, c = rng.uniform(180, 220, 60), rng.uniform(1e5, 3e5, 60), rng.uniform(0.1, 0.9, 60)
    measured = _yield(t, p, c) + 0.5 * rng.standard_normal(60)
    columns = {"pressure": p.round(-2), "temperature": t.round(1), "catalyst": c.round(3)}
    write_csv(shelf / "runs.csv", {"day": np.arange(60.0), "yield": measured} | columns)
    for dim in (1, 2, 4):
        X = rng.random((30, dim))
        y = 50 + 30 * np.sin(3 * X.mean(1)) + 0.5 * rng.standard_normal(30)
        write_csv(shelf / f"{dim}.csv", dict(zip(LETTERS, X.T)) | {"y": y})
    return shelf


def _inputs(dim, *more):
    words = [f"--input={name}=0:1" for name in LETTERS[:dim]]
    return [*words, "--output", "y=0:100", *(more or KNOWN)]


def _header(path):
    with open(path, newline="") as file:
        return next(csv.reader(file))


def _bounds(path, names, measured=()):
    table = read_csv(path, [*names, "estimate", "lower", "upper"])
    assert _header(path) == [*names, *measured, "estimate", "lower", "upper"]
    points = np.stack([table.columns[name] for name in names], axis=-1)
    lower, upper = table.columns["lower"], table.columns["upper"]
    estimate = table.columns["estimate"]
    assert np.all(lower <= estimate) and np.all(estimate <= upper)
    return points, lower, upper


def _runs(path, problem):
    table = read_csv(path, [*problem.inputs.names, problem.output.name])
    X = np.stack([table.columns[name] for name in problem.inputs.names], axis=-1)
    return X, table.columns[problem.output.name]


def _in_python(problem, path, points, bound=None):
    X, y = _runs(path, problem)
    sequence = problem.sequence(bound)
    sequence.update(problem.scaled(X), y)
    return sequence.bounds(problem.scaled(points))


def _is_picture(path):
    """A PNG in which something is drawn."""
    from matplotlib import image

    pixels = image.imread(path)
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and min(pixels.shape[:2]) > 200
    some = pixels[::3, ::3].reshape(-1, pixels.shape[2])
    assert len(np.unique(some, axis=0)) > 20
    return True


def _refused(run, tmp_path, *words):
    """The one sentence or two with which a command fails; it writes nothing."""
    before = sorted(tmp_path.rglob("*"))
    code, out, err = run(*words)
    assert code == 1 and out == "" and err.startswith("error: ") and err.endswith(".")
    assert err.count("error") == 1 and "Traceback" not in err and len(err) < 700
    assert sorted(tmp_path.rglob("*")) == before
    return err


# --- assume, and what follows from its file


@pytest.fixture(scope="module")
def assumed(tmp_path_factory):
    """As in the how-to."""
    out = tmp_path_factory.mktemp("assume")
    words = ["assume", *REACTOR, "--noise", "0.5", "--turns", "1", "--out", str(out)]
    done = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return out, done.stdout


@pytest.mark.usefixtures("few_functions")
def test_functions_that_are_too_wild_are_drawn_where_they_are_wildest():
    from matplotlib import pyplot

    found = assuming.assume(Problem(["a=0:1:turns=0", "b=0:1:turns=3"], "y=0:100", 0.5))
    panels = draw_functions(found)
    # One of the 20 is above B, the 19th largest norm; it is wild along b, which alone may turn.
    for ax, count in zip(panels, (0, 1), strict=True):
        assert sum(one.is_dashed() and len(one.get_xdata()) > 0 for one in ax.lines) == count
    assert "along one input each" in panels[0].figure.get_supxlabel()
    pyplot.close("all")


def test_assume(assumed):
    out, said = assumed
    assert sorted(os.listdir(out)) == ["functions.png", "norms.csv", "problem.json"]
    assert _is_picture(out / "functions.png")
    problem = Problem.load(out / "problem.json")
    assert problem.inputs.names == tuple(NAMES) and problem.turns == 1 and problem.noise == 0.5
    names = _header(out / "norms.csv")
    norms = read_csv(out / "norms.csv", names).columns
    assert len(names) == 7 and all(len(one) == 200 for one in norms.values())
    assert all(np.all(np.diff(one) >= 0) for one in norms.values())
    assert f"B = {problem.norm_bound:.4g}" in said and "→ Matérn" in said and "RBF" in said
    chosen = re.search(r"→ (Matérn[^│]*?)\s+│", said)[1]
    assert np.isclose(norms[chosen][180], problem.norm_bound)  # the 181st of 200: 0.9 of 201
    # delta, and the share of functions that B does not cover: what the whole route promises.
    assert "the band misses about 11 at some settings, on average: 10 that B does not" in said
    assert "with confidence 0.95 that it misses at most 17." in said


def test_bound_with_the_file_and_with_options_is_the_same(assumed, shelf, run, tmp_path):
    out, _ = assumed
    table = shelf / "runs.csv"
    code, said, err = run("bound", table, "--problem", out / "problem.json", "--grid", 5)
    assert code == 0 and err == ""
    assert sorted(os.listdir("bounds")) == ["bounds.csv", "bounds.png", "problem.json"]
    assert _is_picture(tmp_path / "bounds" / "bounds.png")
    problem = Problem.load("bounds/problem.json")
    assert problem.as_data() == Problem.load(out / "problem.json").as_data()
    points, lower, upper = _bounds("bounds/bounds.csv", NAMES)
    assert len(points) == 125
    expected = _in_python(problem, table, points)
    np.testing.assert_array_equal([lower, upper], expected)
    truth = _yield(*points.T)
    assert np.all((lower <= truth) & (truth <= upper))
    at_rows = _in_python(problem, table, _runs(table, problem)[0])
    lows, highs = (np.concatenate(pair) for pair in zip((lower, upper), at_rows, strict=True))
    best = np.argmax(lows)  # a row of the table here, which the grid misses
    assert lows[best] > lower.max() and f": {at_least(lows[best], 4)}, and none is above" in said
    assert f"none is above {at_most(highs.max(), 4)}" in said
    columns = read_csv("bounds/bounds.csv", ["estimate"]).columns
    assert re.search(
        r"wrote bounds/bounds.csv yield is about [\d.]+ at temperature=\S+ pressure=\S+ "
        r"catalyst=\S+, guaranteed between [\d.]+ and [\d.]+: the largest estimate.",
        said,
    )
    assert f"The smallest is about {columns['estimate'].min():.4g} at" in said
    assert "With probability 0.99" in said and "misses about 11 somewhere, on average: 10" in said
    assert "Sensitivity to the assumptions" in said
    words = [*REACTOR, "--noise", "0.5", "--turns", "1", "--grid", 5, "--out", "again"]
    assert run("bound", table, *words)[0] == 0
    np.testing.assert_array_equal(_bounds("again/bounds.csv", NAMES)[1:], [lower, upper])
    assert (tmp_path / "again/problem.json").read_bytes() == (out / "problem.json").read_bytes()


@pytest.mark.usefixtures("without_pictures")
def test_other_options_take_the_place_of_what_is_in_the_file(assumed, shelf, run):
    out, _ = assumed
    words = ["--at", "rows", "--noise", "1.5", "--delta", "0.1", "--norm-bound", "5000"]
    assert run("bound", shelf / "runs.csv", "--problem", out / "problem.json", *words)[0] == 0
    problem = Problem.load("bounds/problem.json")
    assert (problem.noise, problem.delta, problem.norm_bound) == (1.5, 0.1, 5000)


def test_plan(run, tmp_path):
    code, _, err = run("assume", *_inputs(1, "--turns", "1"), "--experiments", 20)
    assert code == 0 and "the noise is missing. The bands above are for 1, 1 % of the range" in err
    known = Problem.load("assume/problem.json")
    assert known.noise is None and known.norm_bound > 0
    words = ["--noise", 2, "--most", 17, "--experiments", 8, "--within", 30, "--design", 7]
    code, said, err = run("plan", "--problem", "assume/problem.json", *words)
    assert code == 0 and err == ""
    assert sorted(os.listdir("plan")) == [
        "design.csv", "plan.csv", "plan.png", "problem.json", "simulated.csv",
    ]  # fmt: skip
    assert _is_picture(tmp_path / "plan" / "plan.png")
    problem = Problem.load("plan/problem.json")
    # For another number of experiments the kernel is chosen anew.
    assert problem.as_data() == known.replace(noise=2, experiments=8).settled().as_data()
    names = ["experiments", "half_width_at_most", "regret_at_most"]
    table = read_csv("plan/plan.csv", names).columns
    np.testing.assert_array_equal(table["experiments"], [5, 8, 11, 17])
    for row, count in enumerate((5, 8, 11, 17)):
        mean, largest = predicted_half_widths(problem, count)
        assert table["half_width_at_most"][row] == mean
        assert table["regret_at_most"][row] == 2 * largest
    names = ["experiments", "half_width_simulated", "regret_simulated"]
    table = read_csv("plan/simulated.csv", names).columns
    np.testing.assert_array_equal(table["experiments"], [5, 8])
    assert np.all(table["half_width_simulated"] > 0) and np.all(table["regret_simulated"] > 0)
    design = read_csv("plan/design.csv", ["a"]).columns
    assert len(problem.scaled(design)) == 7
    count = needed(problem, 30, 17)
    assert re.search(rf"as stated │ \S+ │ ±\S+ │ {count} │", said) and "0 turns" in said


@pytest.mark.usefixtures("few_functions")
def test_assume_does_not_replace_other_assumptions(run, tmp_path):
    (tmp_path / "assume").mkdir()
    there = tmp_path / "assume" / "problem.json"
    problem = Problem(["a=0:1"], "y=0:100", 1.0, turns=1, kernel="Matern(0.7)", norm_bound=200)
    problem.replace(suggested=["kernel", "norm_bound"]).save(there)
    for content in (there.read_bytes(), b"mine"):
        there.write_bytes(content)
        message = _refused(run, tmp_path, "assume", *_inputs(1, "--turns", "2", "--noise", "1"))
        assert "nothing was changed" in message and "--force" in message and "--out" in message
        assert there.read_bytes() == content
    # The same is stated, and another kernel suggested, as by another version of the library.
    problem.replace(suggested=["kernel", "norm_bound"]).save(there)
    content = there.read_bytes()
    message = _refused(run, tmp_path, "assume", *_inputs(1, "--turns", "1", "--noise", "1"))
    assert "kernel = Matern(length_scale=0.7," in message and "same statements" in message
    assert there.read_bytes() == content


def test_no_command_replaces_the_problem_that_it_was_given(run, shelf, tmp_path):
    there = tmp_path / "mine" / "problem.json"
    there.parent.mkdir()
    Problem(["a=0:1"], "y=0:100", 0.5, kernel=KNOWN[-1], norm_bound=300).save(there)
    content, given = there.read_bytes(), ["--problem", there, "--out", "mine"]
    for words in (
        ["bound", shelf / "1.csv", *given, "--limits", "0:90"],
        ["plan", *given, "--noise", "1"],
        ["calibrate", shelf / "1.csv", *given],
    ):
        message = _refused(run, tmp_path, *words)
        assert "nothing was changed" in message and "--out" in message
        assert there.read_bytes() == content
    assert run("bound", shelf / "1.csv", *given)[0] == 0  # It says the same.
    assert there.read_bytes() == content


@pytest.mark.usefixtures("few_functions")
def test_assume_again_keeps_every_digit_of_the_file(run, monkeypatch):
    """Norms have other last digits with another number of threads; a study rests on the first."""
    words = ["assume", *_inputs(1, "--turns", "1", "--noise", "1")]
    there = Path("assume/problem.json")
    run(*words)
    first = there.read_bytes()
    exact = assuming.norms_of

    def with_rounding(*given):
        norms, settled = exact(*given)
        return norms * (1 + 1e-9), settled

    monkeypatch.setattr(assuming, "norms_of", with_rounding)
    code, said, _ = run(*words)
    assert code == 0 and "kept assume/problem.json, which says the same" in said
    assert there.read_bytes() == first
    assert run(*words, "--force")[0] == 0
    assert there.read_bytes() != first
    # What a file does not say yet is added.
    stated = Problem(["a=0:1"], "y=0:100", 1.0, turns=1)
    stated.save(there)
    assert run(*words)[0] == 0 and Problem.load(there).suggested == ("kernel", "norm_bound")


def test_assume_with_a_norm_bound_that_admits_nothing(run, tmp_path):
    code, said, _ = run(
        "assume", *_inputs(1, "--norm-bound", "1"), "--kernel", "Matern(0.7, nu=2.5)"
    )
    assert code == 0 and "covers 0 % of these functions" in said
    assert _is_picture(tmp_path / "assume" / "functions.png")


# --- bounds


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_bounds_and_pictures(run, shelf, tmp_path, dim):
    where = {1: [], 2: ["--grid", 15], 4: ["--at", "rows"]}[dim]
    for more in ([], ["--gaussian-process"])[dim == 4 :]:
        code, _, err = run("bound", shelf / f"{dim}.csv", *_inputs(dim), *more, *where)
        assert code == 0 and "no picture" not in err
        measured = ["y"] if dim == 4 else []
        points, lower, upper = _bounds("bounds/bounds.csv", LETTERS[:dim], measured)
        assert len(points) == {1: 201, 2: 15**2, 4: 30}[dim]
        assert _is_picture(tmp_path / "bounds" / "bounds.png")
        problem = Problem.load("bounds/problem.json")
        expected = _in_python(problem, shelf / f"{dim}.csv", points)
        np.testing.assert_array_equal([lower, upper], expected)


@pytest.mark.usefixtures("without_pictures")
def test_where_bounds_are_asked_for(run, shelf, tmp_path):
    table = shelf / "2.csv"
    problem = Problem(["a=0:1", "b=0:1"], "y=0:100", 0.5, kernel=KNOWN[-1], norm_bound=300)
    assert run("bound", table, *_inputs(2), "--at", "rows")[0] == 0
    points, *found = _bounds("bounds/bounds.csv", "ab", "y")
    np.testing.assert_array_equal(points, _runs(table, problem)[0])
    measured = read_csv("bounds/bounds.csv", ["y"]).columns["y"]
    np.testing.assert_array_equal(measured, _runs(table, problem)[1])
    write_csv(tmp_path / "asked.csv", {"b": [0.5, 1.0], "other": [7, 7], "a": [0.25, 0.0]})
    assert run("bound", table, *_inputs(2), "--at", "asked.csv")[0] == 0
    points, *found = _bounds("bounds/bounds.csv", "ab")
    np.testing.assert_array_equal(points, [[0.25, 0.5], [0.0, 1.0]])
    np.testing.assert_array_equal(found, _in_python(problem, table, points))
    assert run("bound", table, *_inputs(2), "--grid", 3)[0] == 0
    points, *_ = _bounds("bounds/bounds.csv", "ab")
    np.testing.assert_array_equal(points, [[x, y] for x in (0, 0.5, 1) for y in (0, 0.5, 1)])
    # Whole numbers are asked for once each.
    words = ["--input", "a=0:1", "--input", "n=0:3:integer", "--output", "y=0:100", *KNOWN]
    write_csv(tmp_path / "whole.csv", {"a": [0.1, 0.9], "n": [0, 3], "y": [50.0, 51.0]})
    assert run("bound", "whole.csv", *words, "--grid", 9)[0] == 0
    points, *_ = _bounds("bounds/bounds.csv", "an")
    assert len(points) == 36 and set(points[:, 1]) == {0, 1, 2, 3}


@pytest.mark.usefixtures("without_pictures")
def test_a_fixed_design_has_narrower_bounds(run, shelf):
    table, words = shelf / "1.csv", _inputs(1)
    assert run("bound", table, *words, "--out", "any")[0] == 0
    code, said, err = run("bound", table, *words, "--fixed-design", "--out", "fixed")
    assert code == 0 and "you look once" in said and "Warning" not in err
    points, *any_time = _bounds("any/bounds.csv", "a")
    _, *once = _bounds("fixed/bounds.csv", "a")
    problem = Problem.load("fixed/problem.json")
    np.testing.assert_array_equal(once, _in_python(problem, table, points, kb.FixedDesign()))
    assert np.mean(once[1] - once[0]) < np.mean(any_time[1] - any_time[0])


@pytest.mark.usefixtures("without_pictures")
def test_settings_that_followed_the_outcomes_are_noticed(run, tmp_path):
    x = np.concatenate([np.linspace(0, 1, 6), 0.5 + 0.01 * np.random.default_rng(0).random(25)])
    write_csv(tmp_path / "x.csv", {"a": x, "y": 90 - 100 * (x - 0.5) ** 2})
    words = _inputs(1)
    code, _, err = run("bound", "x.csv", *words, "--fixed-design")
    assert code == 0 and "as if they had been chosen by outcomes" in err
    code, _, err = run("bound", "x.csv", *words)
    assert code == 0 and "chosen" not in err


@pytest.mark.usefixtures("without_pictures")
def test_warnings(run, tmp_path):
    rng = np.random.default_rng(1)
    x = rng.random(12)
    write_csv(tmp_path / "x.csv", {"a": x, "y": np.append(50 + 5 * x[1:], 120)})
    code, _, err = run("bound", "x.csv", *_inputs(1, "--noise", "0.5", "--norm-bound", "300",
                                                  "--kernel", "Matern(0.001, nu=2.5)"))  # fmt: skip
    assert code == 0
    assert "1 of 12 outcomes are outside the range 0:100 stated for y" in err
    assert "(line 13 of the table)" in err
    assert "% of the settings are unrelated to any other" in err


# --- what is refused


def _first_rows(path, count):
    return {name: part[:count] for name, part in read_csv(path, ["a", "y"]).columns.items()}


@pytest.mark.usefixtures("without_pictures")
def test_refuted_assumptions(run, shelf, tmp_path):
    words = ["--noise", "0.5", "--norm-bound", "3", "--kernel", "Matern(1.0, nu=2.5)"]
    for more in ([], ["--fixed-design"], ["--at", "rows"]):
        message = _refused(run, tmp_path, "bound", shelf / "1.csv", *_inputs(1, *words), *more)
        assert "the data refute the assumptions: no function with B = 3 explains" in message
        assert "explains them, with noise of at most 0.5" in message
        assert float(re.search(r"B would have to be at least ([\d.e+]+)", message)[1]) > 3
        line = int(re.search(r"rows before line (\d+) do not refute them", message)[1])
    write_csv(tmp_path / "before.csv", _first_rows(shelf / "1.csv", line - 2))
    assert run("bound", "before.csv", *_inputs(1, *words))[0] == 0
    write_csv(tmp_path / "with.csv", _first_rows(shelf / "1.csv", line - 1))
    assert run("bound", "with.csv", *_inputs(1, *words))[0] == 1
    # A larger B, with room to spare, is compatible with them.
    words[3] = "300"
    assert run("bound", shelf / "1.csv", *_inputs(1, *words))[0] == 0


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("a,y\n0.5,\n0.6,50\n", "line 2, column 'y': the cell is empty; fill in"),
        ("a y\n0.5 50\n", "its columns are 'a y'"),
        ("a|y\n0.5|50\n", r"its columns are 'a\|y'"),
        ("a,y\n0.5,50\n1.5,51\n", r"line 3: a = 1.5 is not in its range 0:1; correct it"),
        ("a,y\n0.5,50\n-3,51\n", "line 3: a = -3 is not in its range 0:1"),
        ("A,y\n0.5,50\n", "has no column 'a'"),
        ("a,y\n", "has a header and no rows"),
        ("", "is empty"),
        ("a,y\n0.5,12 %\n", "line 2, column 'y': .*without units, percent signs"),
        ("a,a,y\n0.5,0.5,12\n", "has 2 columns named 'a'"),
    ],
)
def test_tables_that_are_refused(run, tmp_path, content, match):
    (tmp_path / "x.csv").write_text(content)
    assert re.search(match, _refused(run, tmp_path, "bound", "x.csv", *_inputs(1)))
    calibrate = _inputs(1, "--noise", "0.5")
    assert re.search(match, _refused(run, tmp_path, "calibrate", "x.csv", *calibrate))
    write = {"a": [0.1, 0.2], "y": [50.0, 51.0]}
    write_csv(tmp_path / "good.csv", write)
    if "'y'" not in match:
        message = _refused(run, tmp_path, "bound", "good.csv", *_inputs(1), "--at", "x.csv")
        assert re.search(match, message)


def test_units_in_a_header_are_those_that_were_stated(run, tmp_path):
    words = ["--input", "a[°C]=0:1", "--output", "y[N/cm]=0:100", *KNOWN]
    problem = Problem(["a[°C]=0:1"], "y[N/cm]=0:100")
    write_csv(tmp_path / "asked.csv", {"a [K]": [0.5]})
    for header, unit, stated in [("a [K],y", "K", "°C"), ("a,y (N/mm)", "N/mm", "N/cm")]:
        (tmp_path / "x.csv").write_text(f"{header}\n0.5,50\n0.7,60\n")
        message = _refused(run, tmp_path, "bound", "x.csv", *words)
        assert f" in {unit}, by its column" in message and f"stated in {stated}" in message
        with pytest.raises(kb.InputError, match="convert the column"):
            kb.problem.runs.Runs.read(problem, tmp_path / "x.csv")
    for header in ("a,y", "a [°C],y(N/cm)", "a (° C),y"):
        (tmp_path / "x.csv").write_text(f"{header}\n0.5,50\n0.7,60\n")
        assert len(kb.problem.runs.Runs.read(problem, tmp_path / "x.csv").points) == 2
    assert "asked.csv has a in K" in _refused(
        run, tmp_path, "bound", "x.csv", *words, "--at", "asked.csv"
    )
    no_unit = Problem(["a=0:1"], "y=0:100")  # There is nothing to compare with.
    assert len(kb.problem.runs.Runs.read(no_unit, tmp_path / "x.csv").points) == 2


def test_time_stamps_are_named_with_all_digits(run, tmp_path):
    write_csv(tmp_path / "x.csv", {"t": [1.7e9, 1700003601.0], "y": [1.0, 2.0]})
    words = ["--input", "t=1700000000:1700003600", "--output", "y=0:100", *KNOWN]
    message = _refused(run, tmp_path, "bound", "x.csv", *words)
    assert "1700003601 is not in its range 1700000000:1700003600" in message


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["bound", "{}", "--input=a=0:1", "--output=y=0:100"], "state how noisy the output is"),
        (["plan", "--input=a=0:1", "--output=y=0:100"], "state how noisy the output is"),
        (["bound", "{}", "--output=y=0:100", *KNOWN], "state at least one input"),
        (["bound", "{}", "--input=a=0:1", *KNOWN], "state what is measured"),
        (["bound", "{}", *_inputs(1), "--problem", "x.json"], "pass either --problem, or --input"),
        (["bound", "{}", "--problem", "none.json"], "cannot read the problem in .*No such file"),
        (["bound", "{}", "--problem", "{}"], "is not a JSON file"),
        (["bound", "none.csv", *_inputs(1)], "cannot read 'none.csv': No such file"),
        (["bound", "{}", *_inputs(1), "--at", "none.csv"], "cannot read 'none.csv'"),
        (["bound", "{}", "--input=a=1:0", "--output=y=0:100"], "low < high, got 1:0"),
        (["bound", "{}", "--input=a=x,y", "--output=y=0:100"], r"as in x\|y"),
        (["bound", "{}", "--input=lower=0:1", "--output=y=0:100", *KNOWN], "a column 'lower'"),
        (["bound", "{}", *_inputs(1), "--delta", "2"], "delta must be .*, got 2"),
        (["bound", "{}", *_inputs(1), "--kernel", "os.system('x')"], "kernel .*: "),
        (["bound", "{}", *_inputs(1), "--kernel", "Matern([1, 2])"], "has 2 length scales"),
        (["bound", "{}", *_inputs(1), "--grid", "2000000"], "a million are the most"),
        (["plan", *_inputs(1), "--within", "-1"], "number above 0, got -1"),
        (["plan", *_inputs(1), "--within", "nan"], "--within must be a number, got .nan."),
        (["calibrate", "{}", *_inputs(1, "--noise", "1"), "--split", "1.5"], "between 0 and 1"),
        (["calibrate", "{}", *_inputs(1, "--noise", "1"), "--split", "0.1"], "at least 5"),
        (["assume", "--input=a=0:1", "--output=y=0:1", "--interactions", "x"], "one of all, pairs"),
    ],
)  # fmt: skip
def test_words_that_are_refused(run, shelf, tmp_path, words, match):
    words = [word.format(shelf / "1.csv") if word == "{}" else word for word in words]
    assert re.search(match, _refused(run, tmp_path, *words))


@pytest.mark.parametrize("words", [["--turns", "one"], ["--delta", "half"], ["--grid", "1"]])
def test_a_value_that_an_option_refuses_is_shown(run, shelf, words):
    code, _, err = run("bound", shelf / "1.csv", *_inputs(1), *words)
    assert code == 2 and f"Invalid value for '{words[0]}'" in err and f"'{words[1]}'" in err


def test_folders_that_cannot_be_made(run, shelf, tmp_path):
    (tmp_path / "file").write_text("mine")
    for out in ("file", "file/x"):
        message = _refused(run, tmp_path, "bound", shelf / "1.csv", *_inputs(1), "--out", out)
        assert "cannot make the folder" in message
    assert (tmp_path / "file").read_text() == "mine"


# --- calibrate


def test_calibrate_keeps_rows_apart_and_loses_none(run, shelf):
    table = shelf / "1.csv"
    words = _inputs(1, "--quantile", "0.8")
    code, said, _ = run("calibrate", table, *words, "--split", "0.4")
    assert code == 0 and "What 12 rows suggest" in said
    assert sorted(os.listdir("calibration")) == ["fresh.csv", "pilot.csv", "problem.json"]
    problem = Problem.load("calibration/problem.json")
    pilot, fresh, whole = (
        np.column_stack(_runs(path, problem))
        for path in ("calibration/pilot.csv", "calibration/fresh.csv", table)
    )
    np.testing.assert_array_equal(np.concatenate([pilot, fresh]), whole)
    assert len(pilot) == 12 and problem.quantile == 0.8 and problem.norm_bound > 0
    for kind in ("heuristic:", "stated assumption:", "estimate:"):
        assert kind in said
    command = re.search(r"Now: kernelbounds (.*?problem\.json)", said)[1].split()
    assert "problem.json --noise ..." in said and problem.noise is None  # a fit is no measurement
    assert run(*command, "--at", "rows")[0] == 1
    assert run(*command, "--at", "rows", "--noise", "1")[0] == 0
    np.testing.assert_array_equal(_bounds("bounds/bounds.csv", "a", "y")[0], fresh[:, :1])
    # What only the first rows say is all that it looked at.
    again = kb.problem.calibrate(
        Problem(["a=0:1"], "y=0:100", quantile=0.8), pilot[:, :1], pilot[:, 1]
    )
    assert again.problem.as_data() == problem.as_data()


@pytest.mark.parametrize(
    "words",
    [("--turns", "2"), pytest.param(("--quantile", "0.98"), marks=pytest.mark.slow)],
    ids=str,
)
def test_what_was_suggested_follows_anew_when_words_change(run, shelf, words):
    """And what was given by the user stays."""
    run("assume", *_inputs(1, "--turns", "1", "--noise", "1"), "--experiments", 20)
    old = Problem.load("assume/problem.json")
    assert old.suggested == ("kernel", "norm_bound")
    assert run("bound", shelf / "1.csv", "--problem", "assume/problem.json", *words)[0] == 0
    new = Problem.load("bounds/problem.json")
    assert (new.norm_bound, str(new.kernel)) != (old.norm_bound, str(old.kernel))
    own = [*_inputs(1), "--norm-bound", "500", "--kernel", "Matern(0.7, nu=2.5)"]
    assert run("assume", *own)[0] == 1  # other assumptions are there
    assert run("assume", *own, "--force")[0] == 0
    assert run("assume", "--problem", "assume/problem.json", *words, "--force")[0] == 0
    kept = Problem.load("assume/problem.json")
    assert kept.norm_bound == 500 and kept.suggested == ()


def test_a_picture_with_whole_numbers_and_a_gaussian_process(run, tmp_path):
    rng = np.random.default_rng(0)
    x, n = rng.random(20), rng.integers(1, 4, 20)
    write_csv("whole.csv", {"x": x, "n": n, "y": 50 + 10 * x + n + 0.1 * rng.standard_normal(20)})
    words = ["--input", "x=0:1", "--input", "n=1:3:integer", "--output", "y=0:100", "--noise", "1"]
    known = ["--kernel", "Matern(1.0, nu=2.5)", "--norm-bound", "300"]
    assert run("bound", "whole.csv", *words, *known, "--gaussian-process")[0] == 0
    assert _is_picture(tmp_path / "bounds" / "bounds.png")


def test_calibrate_without_a_split_says_what_that_means(run, shelf):
    code, said, _ = run("calibrate", shelf / "1.csv", *_inputs(1, "--noise", "0.6"))
    assert code == 0 and os.listdir("calibration") == ["problem.json"]
    assert "These assumptions have seen the data" in said and "--split 0.3" in said
    assert Problem.load("calibration/problem.json").noise == 0.6
    assert "You stated 0.6; kept" in said


@pytest.mark.usefixtures("few_functions")
def test_calibrate_says_which_repeats_it_did_not_use(run, tmp_path):
    x = np.append(np.linspace(0, 1, 10), [0.0, 0.0, 0.5])
    write_csv(tmp_path / "x.csv", {"a": x, "y": 50 + 9 * x + np.tile([-1, 1], 7)[:13]})
    words = ["x.csv", *_inputs(1, "--noise", "0.1", "--turns", "1")]
    code, said, _ = run("calibrate", *words, "--split", "0.77")
    assert code == 0 and "not used for the noise: 2 rows" in said
    code, said, _ = run("calibrate", *words)
    assert code == 0 and "not used for the noise" not in said
    assert "You stated 0.1; kept, though that is less" in said


# --- accidents


def test_without_matplotlib_tables_are_written(run, shelf, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = run("bound", shelf / "1.csv", *_inputs(1), "--gaussian-process")
    assert code == 0 and "no picture" in err and "pip install 'kernelbounds[plot]'" in err
    assert sorted(os.listdir("bounds")) == ["bounds.csv", "problem.json"]
    code, _, err = run("assume", *_inputs(1))
    assert code == 0 and "kernelbounds[plot]" in err and "norms.csv" in os.listdir("assume")


@pytest.mark.parametrize("fails", ["table", "picture"])
def test_an_interrupt_between_files_leaves_whole_ones(run, shelf, tmp_path, monkeypatch, fails):
    """What is there is what an earlier run wrote, or whole and new."""
    words = ["bound", shelf / "1.csv", *_inputs(1)]
    assert run(*words)[0] == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "bounds").iterdir()}

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Results, fails, interrupted)
    code, _, err = run(*words, "--delta", "0.05")
    assert code == 130 and err == "interrupted; what had been written by then is kept"
    after = {path.name: path.read_bytes() for path in (tmp_path / "bounds").iterdir()}
    assert set(after) == set(before)
    assert after["bounds.png"] == before["bounds.png"]
    assert (after["bounds.csv"] == before["bounds.csv"]) == (fails == "table")
    assert Problem.load("bounds/problem.json").delta == 0.05
    monkeypatch.setattr(kb.problem.runs.Runs, "read", interrupted)
    assert run(*words) == (130, "", "interrupted; nothing was changed")


def test_an_interrupt_after_a_file_beside_the_study_says_that_it_is_kept(run, monkeypatch):
    """Pictures of a study have a folder by default, which nobody has named."""
    problem = Problem(["a=0:1"], "y=0:100", 0.5, kernel=KNOWN[-1], norm_bound=300)
    kb.Study.create("s.db", problem).close()

    def interrupted(*_):
        write_csv("first.csv", {"a": [1.0]})
        raise KeyboardInterrupt

    monkeypatch.setattr(kb.Study, "plot", interrupted)
    expected = (130, "", "interrupted; what had been written by then is kept")
    assert run("study", "plot", "s.db") == expected


def test_a_refutation_names_columns_that_are_not_inputs_and_no_absurd_numbers(run, tmp_path):
    x, batch = np.tile(np.linspace(0, 1, 6), 2), np.repeat([0.0, 40.0], 6)
    y = 20 + 10 * x + batch
    table, words = tmp_path / "runs.csv", _inputs(1, *KNOWN[2:], "--noise", "0.001")
    write_csv(table, {"a": x, "batch": batch, "y": y, "who": ["Ada"] * 12})
    said = _refused(run, tmp_path, "bound", table, *words)
    assert "Columns 'batch', 'who' of the table are not used: if one of them matters" in said
    write_csv(table, {"a": x, "batch": batch, "y": y})
    assert "Column 'batch' of the table is not used: if it m" in _refused(
        run, tmp_path, "bound", table, *words
    )
    write_csv(table, {"a": x, "y": y})
    assert "not used" not in _refused(run, tmp_path, "bound", table, *words)
    write_csv(table, {"a": x, "y": np.exp(batch)})
    words = ["--input=a=0:1", "--output", "y=1:9:log", "--noise", "1%", *KNOWN[2:]]
    code, _, err = run("bound", table, *words)
    said = " ".join(err.partition("error: ")[2].split())
    assert code == 1 and "noise would have to be larger than the whole range of y" in said
    assert "e+" not in said


@pytest.mark.usefixtures("without_pictures")
def test_outcomes_in_another_unit_are_asked_about(run, shelf):
    for output, asked in (("y=0:100", False), ("y=0:10", True), ("y=0:5000", True)):
        words = ["--input=a=0:1", "--output", output, "--noise", "0.5", "--norm-bound", "3000"]
        code, _, err = run("bound", shelf / "1.csv", *words, "--kernel", "Matern(1.0, nu=2.5)")
        assert code == 0 and ("are both in the same unit?" in " ".join(err.split())) == asked


@pytest.mark.skipif(sys.platform == "win32", reason="pipes end otherwise there")
def test_a_reader_that_goes_away_loses_no_files(tmp_path):
    """As with ``kernelbounds assume ... | head -3``; standard error goes the same way."""
    words = ["assume", "--input", "a=0:1", "--output", "y=0:1", "--turns", "1"]
    child = subprocess.Popen(
        [sys.executable, "-m", "kernelbounds", *words, "--out", str(tmp_path / "out")],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    child.stdout.close()
    assert child.wait(timeout=120) == 0
    assert sorted(os.listdir(tmp_path / "out")) == ["functions.png", "norms.csv", "problem.json"]


def test_completion_is_for_the_command_that_people_type(tmp_path):
    def completed(**env):
        done = subprocess.run(
            [sys.executable, "-m", "kernelbounds", *([] if env else ["--show-completion", "bash"])],
            env={**os.environ, **(env or {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"})},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    script = completed()
    assert script[-1] == "kernelbounds" and "_KERNELBOUNDS_COMPLETE=complete_bash" in script
    words = {"COMP_WORDS": "kernelbounds stu", "COMP_CWORD": "1"}
    assert completed(_KERNELBOUNDS_COMPLETE="complete_bash", **words) == ["studio", "study"]


def test_a_real_interrupt_leaves_nothing(tmp_path):
    """While functions are drawn, which takes seconds."""
    command = [sys.executable, "-m", "kernelbounds", "assume", *REACTOR, "--turns", "4"]
    child = subprocess.Popen(
        [*command, "--noise", "1", "--out", str(tmp_path / "out")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "FORCE_COLOR": "1"},
    )  # fmt: skip
    child.stderr.read(1)  # the progress bar is there
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    # Python ends itself by the signal where the interrupt came inside of exec or eval.
    assert child.returncode in (130, -signal.SIGINT) and "Traceback" not in err
    assert err.rstrip().endswith("interrupted; nothing was changed")
    assert list(tmp_path.iterdir()) == []


def test_bars_are_shown_before_the_first_step(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    with late_progress("predicting", 3, show=True):
        assert "predicting" in capsys.readouterr().err

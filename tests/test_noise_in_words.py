"""Noise that people do not know, in their words: read, used, bounded, planned for, contradicted."""

from __future__ import annotations

import json
import math
import pathlib
import re
import sys

import numpy as np
import pytest

import kernelbounds as kb
from kernelbounds.io.csv_table import read_csv, write_csv
from kernelbounds.noise import Bounded, Gaussian, SubGaussian
from kernelbounds.problem import Problem, assume, calibrate
from kernelbounds.problem.checked import checked_assumptions, noise_so_far
from kernelbounds.problem.model import predicted_half_widths, with_level
from kernelbounds.problem.worth import cost_of_unknown_noise, unknown_steps

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "examples"))
from curing import NOISE, RANGES, strength

pytestmark = pytest.mark.usefixtures("drawn_once")

INPUTS = ["temperature[°C]=140:190", "minutes=10:40"]
SETTLED = {"turns": 1, "kernel": "Matern([1.5, 1.5], nu=2.5)", "norm_bound": 512.0}
WORDS = [
    *(word for one in INPUTS for word in ("--input", one)), "--output", "strength[MPa]=20:60",
    "--turns", "1", "--kernel", "Matern([1.5, 1.5], nu=2.5)", "--norm-bound", "512",
]  # fmt: skip
# What the command says does not depend on how fine its grid is.
BOUND = ["bound", "runs.csv", *WORDS, "--grid", "9"]


def _problem(noise, output="strength[MPa]=20:60", **options):
    return Problem(INPUTS, output, noise, **SETTLED | options)


def _runs(count, seed=1, noise=NOISE):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.uniform(*limits, count) for limits in RANGES.values()], axis=1)
    return X, strength(*X.T) + noise * rng.standard_normal(count)


def _write(path, X, y):
    write_csv(path, dict(zip(RANGES, X.T, strict=True)) | {"strength": y})


@pytest.mark.parametrize(
    ("said", "output", "kept", "law"),
    [
        (" Unknown ", "y=0:1", "unknown", Gaussian()),
        ("unknown at  most 2.0", "y=0:1", "unknown, at most 2", Gaussian(at_most=2.0)),
        ("unknown,at most 2e-3", "y=0:1", "unknown, at most 0.002", Gaussian(at_most=2e-3)),
        ("WITHIN .5", "y=0:1", "within 0.5", Bounded(0.5, pointwise=True)),
        ("unknown", "y=1:9:log", "unknown", Gaussian()),
        (0.25, "y=0:1", 0.25, SubGaussian(0.25)),
    ],
)
def test_what_is_said_is_kept_in_one_form(said, output, kept, law, tmp_path):
    problem = Problem(["x=0:1"], output, said, kernel="RBF(0.5)", norm_bound=3.0)
    assert problem.noise == kept and problem.stated_noise.law == law
    assert problem.sequence().assumptions.noise == law
    problem.save(tmp_path / "problem.json")
    again = Problem.load(tmp_path / "problem.json")
    assert again.noise == kept and repr(again) == repr(problem)
    assert json.loads((tmp_path / "problem.json").read_text())["noise"] == kept


def test_percentages_are_rounded_towards_more_noise():
    most = Problem(["x=0:1"], "y=1:9:log", "unknown, at most 5%").stated_noise.law.at_most
    assert math.log(1.05) <= most < math.log(1.05) * (1 + 1e-12)
    # What is within 5 % of the true value is at least 0.95 times that.
    within = Problem(["x=0:1"], "y=1:9:log", "within 5%").stated_noise.law.limit
    assert -math.log(0.95) <= within < -math.log(0.95) * (1 + 1e-12)
    for said, shown in (
        ("unknown, at most 5%", "unknown, at most 5 %"),
        ("within 5%", "within 5 %"),
    ):
        problem = Problem(["x=0:1"], "y=1:9:log", said)
        assert problem.stated_noise.text() == shown
        stated = problem.stated_noise
        assert stated.in_units(stated.planned) == pytest.approx(0.05, rel=1e-12)


@pytest.mark.parametrize(
    ("said", "output", "match"),
    [
        (
            "unknowns",
            "y=0:1",
            r"noise must be a number, .*got 'unknowns' \(did you mean 'unknown'\?\)",
        ),
        ("about 2", "y=1:9:log", "noise must be a percentage, 'unknown', 'unknown, at most 5%'"),
        ("unknown, at most x", "y=0:1", "noise must be a number, got 'x'"),
        ("unknown, at most 0", "y=0:1", "noise must be a finite number above 0"),
        ("within -1", "y=0:1", "noise must be a finite number above 0"),
        ("within 5%", "y=0:1", "a percentage of the value itself is for a logarithmic output"),
        ("unknown, at most 2", "y=1:9:log", "is logarithmic, so noise is a percentage"),
        ("within 100%", "y=1:9:log", "within 100% of the true value may be 0"),
    ],
)
def test_what_cannot_be_meant_is_refused(said, output, match):
    with pytest.raises(kb.InputError, match=match):
        Problem(["x=0:1"], output, said)


def test_no_chance_is_left_with_noise_within_a_limit_only():
    assert Problem(["x=0:1"], "y=0:1", "within 0.1", delta=0).delta == 0
    for noise in (0.1, "unknown", None):
        with pytest.raises(kb.InputError, match="delta must be a finite number above 0"):
            Problem(["x=0:1"], "y=0:1", noise, delta=0)
    with pytest.raises(kb.InputError, match="noise and tries are both stated"):
        Problem(["x=0:1"], "y=0:1", "unknown", successes="k", tries="n")


def test_plans_are_for_a_noise_that_is_named():
    assert _problem("unknown").stated_noise.planned == 0.05 * 40
    assert _problem("unknown, at most 3").stated_noise.planned == 3
    assert _problem("within 0.5").stated_noise.planned == _problem(0.5).stated_noise.planned == 0.5
    assert _problem(None).stated_noise.planned == 0.01 * 40
    for problem in (_problem("unknown"), _problem("unknown, at most 2")):
        assert predicted_half_widths(problem, 20) == predicted_half_widths(_problem(2.0), 20)


# --- what the data say


@pytest.mark.parametrize("noise", ["unknown", "unknown, at most 5"])
def test_truth_and_noise_are_within_bounds_that_close_in(noise):
    X, y = _runs(120)
    problem, grid = _problem(noise), _runs(50, seed=9)[0]
    most = []
    for count in (5, 30, 60, 120):
        sequence = problem.sequence()
        sequence.update(problem.scaled(X[:count]), y[:count])
        lower, upper = problem.bounds(sequence, grid)
        assert np.all((lower <= strength(*grid.T)) & (strength(*grid.T) <= upper))
        found = checked_assumptions(problem, sequence)[1]
        assert found.at_least < NOISE < found.at_most <= found.assumed
        most.append(found.at_most)
    assert most[0] == (5 if "most" in noise else math.inf)
    assert most == sorted(most, reverse=True) and most[-1] < 1.6 * NOISE


def test_words_for_what_is_known_of_the_noise():
    problem, limited = _problem("unknown"), _problem("unknown, at most 2")
    sequence = problem.sequence()
    found = checked_assumptions(problem, sequence)[1]
    assert noise_so_far(problem, found).endswith("(not known yet: some 20 to 40 runs are needed)")
    assert found.as_data() == {"assumed": None, "at_least": 0.0, "at_most": None}
    assert "at_most" not in checked_assumptions(_problem(0.5), sequence)[1].as_data()
    X, y = _runs(60)
    sequence.update(problem.scaled(X), y)
    said = noise_so_far(problem, checked_assumptions(problem, sequence)[1])
    most, least = map(float, re.findall(r"[\d.]+(?= MPa)", said))
    # Rounded so that both stay true.
    assert sequence.noise_upper_bound <= most < 1.02 * sequence.noise_upper_bound
    assert 0.98 * sequence.noise_lower_bound < least <= sequence.noise_lower_bound
    assert said.startswith("unknown, at most") and "so far (at least" in said
    few = limited.sequence()
    few.update(problem.scaled(X[:5]), y[:5])
    said = noise_so_far(limited, checked_assumptions(limited, few)[1])
    assert said == "unknown, at most 2 MPa as stated"


def test_what_not_knowing_costs():
    """More with few runs than with many, and nothing is simulated beyond the most."""
    problem, steps = Problem(["x=0:1"], "y=0:10", "unknown", turns=1), []
    assumed = assume(problem, functions=10)
    cost = cost_of_unknown_noise(assumed, 100, lambda: steps.append(1))
    assert len(steps) == unknown_steps(100)
    assert cost.counts.tolist() == [30, 50, 100] and cost.noises.tolist() == [0.1, 0.5, 2.0]
    assert np.all(cost.unknown > cost.known) and np.all(np.diff(cost.ratios) < 0)
    assert cost.ratios[-1] < 1.5
    limited = cost_of_unknown_noise(assume(problem.replace(noise="unknown, at most 1"), 10), 30)
    assert limited.noises.tolist() == [0.1, 0.3, 1.0]
    # The nearer the noise is to its limit, the less it costs not to know it.
    assert np.all(np.diff(limited.unknown[:, 0] / limited.known[:, 0]) < 0)


# --- contradictions


@pytest.mark.parametrize(
    ("law", "said", "least"),
    [
        (Gaussian(at_most=0.01), "scale up to at_most = 0.01", "at_most at least"),
        (Bounded(0.01), "noise of at most 0.01 in each outcome", "the limit of the noise at least"),
        (kb.noise.Energy(0.01), "add up to at most 0.01^2", "limit of the noise energy at least"),
        (SubGaussian(0.01), "at noise_scale 0.01", "noise_scale at least"),
    ],
)  # fmt: skip
def test_contradictions_name_the_number_that_was_stated(law, said, least):
    X, y = _runs(40)
    problem = _problem(1.0, norm_bound=60.0)
    kernel, norm = with_level(problem.kernel, problem.norm_bound, problem.output.span)
    sequence = kb.ConfidenceSequence(kernel, norm, law, offset=40.0)
    sequence.update(problem.scaled(X), y)
    with pytest.raises(kb.EmptyConfidenceSetError) as caught:
        sequence.bounds([[0.5, 0.5]])
    message = str(caught.value)
    assert said in message and least in message and message.count(". ") == 0
    # With that number and some room, there are functions.
    enough = 1.1 * caught.value.noise_lower_bound
    more = Gaussian(at_most=enough) if isinstance(law, Gaussian) else law.at_scale(enough)
    other = kb.ConfidenceSequence(kernel, norm, more, offset=40.0)
    other.update(problem.scaled(X), y)
    assert np.all(np.isfinite(other.bounds([[0.5, 0.5]])))


def test_unknown_noise_is_no_remedy_where_the_data_exclude_more():
    X, y = _runs(100, noise=0.01)
    problem = _problem("unknown", norm_bound=5.0)
    sequence = problem.sequence()
    sequence.update(problem.scaled(X), y)
    with pytest.raises(kb.EmptyConfidenceSetError) as caught:
        sequence.bounds([[0.5, 0.5]])
    assert caught.value.noise_lower_bound == sequence.noise_lower_bound == math.inf
    assert "the largest that the outcomes allow; norm_bound must be" in str(caught.value)
    assert "at_most" not in str(caught.value)


# --- calibration


def test_only_what_was_stated_before_the_data_is_guaranteed():
    X, y = _runs(60)
    fitted = calibrate(Problem(INPUTS, "strength[MPa]=20:60", "unknown", turns=1), X, y)
    kinds = {one.what: one.kind for one in fitted.suggestions}
    assert kinds["B at least"] == "estimate" and kinds["noise at most"] == "guarantee"
    assert "B at least, by what was stated" not in kinds  # no kernel was
    assert fitted.problem.noise == "unknown"
    stated = calibrate(_problem(0.5), X, y)
    kinds = {one.what: one.kind for one in stated.suggestions}
    assert kinds["B at least"] == "estimate"
    assert kinds["B at least, by what was stated"] == "guarantee" and "noise at most" not in kinds
    own = _problem(0.5).sequence()
    own.update(_problem(0.5).scaled(X), y)
    least = next(one.value for one in stated.suggestions if one.kind == "guarantee")
    assert least == f"{checked_assumptions(_problem(0.5), own)[0].at_least:.4g} MPa"


def test_guaranteed_noise_does_not_rest_on_what_was_fitted(monkeypatch):
    """Forecasts must not know the outcomes, so the fitted length scales must not matter."""
    X, y = _runs(60)
    found = []
    for scales in ([0.1, 0.1], [3.0, 3.0]):
        fit = np.array(scales), 0.4
        monkeypatch.setattr(kb.problem.calibration, "_fitted", lambda *_, fit=fit: fit)
        said = calibrate(_problem("unknown"), X, y).suggestions
        found.append({one.what: one.value for one in said})
    assert found[0]["length scales"] != found[1]["length scales"]
    assert found[0]["noise at most"] == found[1]["noise at most"]


def test_few_rows_guarantee_nothing_about_the_noise():
    X, y = _runs(10)
    for noise, shown in (("unknown", "not known yet"), ("unknown, at most 3", "3 MPa as stated")):
        found = calibrate(_problem(noise), X, y).suggestions[-1]
        assert (found.what, found.kind) == ("noise at most", "stated assumption")
        assert shown in found.value and "20 to 40 rows" in found.why


# --- commands and studies


@pytest.fixture
def table(tmp_path):
    X, y = _runs(60)
    _write(tmp_path / "runs.csv", X, y)
    return X, y


def test_bound_with_noise_that_is_unknown(run, table, tmp_path):
    code, out, err = run("bound", "runs.csv", *WORDS, "--noise", "unknown", "--out", "b")
    assert code == 0 and not err
    found = read_csv(tmp_path / "b" / "bounds.csv", [*RANGES, "lower", "upper"]).columns
    truth = strength(*(found[name] for name in RANGES))
    assert np.all((found["lower"] <= truth) & (truth <= found["upper"]))
    assert "Gaussian noise of the same standard deviation in all runs, whatever it is" in out
    most = float(re.search(r"The noise is at most ([\d.]+) MPa \(and at least", out)[1])
    assert NOISE < most < 3 * NOISE
    assert "times the noise" not in out and "2 B" in out
    assert json.loads((tmp_path / "b" / "problem.json").read_text())["noise"] == "unknown"


@pytest.mark.usefixtures("without_pictures")
def test_bound_with_too_few_runs(run, tmp_path):
    _write(tmp_path / "runs.csv", *_runs(8))
    code, out, err = run(*BOUND, "--noise", "unknown")
    assert code == 0 and "8 runs are too few to bound an unknown noise" in err
    assert "these runs do not bound it yet" in out
    code, out, err = run(*BOUND, "--noise", "unknown, at most 2")
    assert code == 0 and "at most 2 MPa, as you stated; these runs do not bound it" in out
    code, _, err = run(*BOUND, "--noise", "unknown", "--gaussian-process")
    assert code == 1 and "a Gaussian process needs the noise scale, which is unknown" in err


@pytest.mark.usefixtures("table", "without_pictures")
def test_bound_with_noise_within_a_limit(run, tmp_path):
    for more in ([], ["--delta", "0"]):
        code, out, _ = run(*BOUND, "--noise", "within 2", *more, "--out", "b")
        assert code == 0 and "no measurement farther than 2 MPa from the true value" in out
        assert ("errors that are 0 on average" in out) == (not more)
        assert f"{'For certain,' if more else 'With probability 0.99'} the true" in out
        assert "2 times the noise" in out


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("noise", "more", "match"),
    [
        ("unknown, at most 0.05", [], r"the limit of the noise at least 0\.\d+ MPa"),
        ("within 0.05", [], r"the limit of the noise at least 0\.\d+ MPa"),
        ("within 0.3", ["--delta", "0"], "contradict 'no measurement farther than 0.3 MPa from"),
    ],
)
def test_refusals_are_in_the_users_units(run, noise, more, match):
    code, out, err = run(*BOUND, "--noise", noise, *more)
    assert code == 1 and re.search(match, err) and "wrote" not in out
    assert re.search(r"rows before line \d+ do not", err)


@pytest.mark.usefixtures("without_pictures")
def test_plan_says_what_an_unknown_noise_costs(run):
    words = ["plan", "--input", "x=0:1", "--output", "y[V]=0:10", "--turns", "1", "--experiments",
             "20", "--most", "50", "--no-compare", "--kernel", "Matern(0.75, nu=2.5)",
             "--norm-bound", "60"]  # fmt: skip
    code, out, _ = run(*words, "--noise", "unknown")
    assert code == 0 and "What an unknown noise costs" in out
    assert "these tables are for noise that is known to be 0.5 V, 5 % of the range" in out
    assert re.search(r"makes the band [\d.]+ times as wide after 30 runs, [\d.]+ after 50", out)
    code, out, _ = run(*words, "--noise", "unknown, at most 1", "--out", "other")
    assert code == 0 and "known to be 1 V, the most that you stated" in out
    assert "unknown noise costs" not in run(*words, "--noise", "0.5", "--out", "known")[1]


def test_calibrate_says_what_is_guaranteed(run, table, tmp_path):
    _problem("unknown").save(tmp_path / "problem.json")
    code, out, _ = run("calibrate", "runs.csv", "--problem", "problem.json")
    assert code == 0 and re.search(r"noise at most: [\d.]+ MPa guarantee: with probability", out)
    assert re.search(r"B at least, by what was stated: [\d.]+ MPa guarantee:", out)


@pytest.mark.usefixtures("short_searches")
def test_a_study_whose_noise_closes_in(tmp_path):
    problem, path = _problem("unknown"), tmp_path / "study.db"
    X, y = _runs(45)
    with kb.Study.create(path, problem) as study:
        assert "(not known yet: some 20 to 40 runs" in str(study.status())
        # Settings are told apart while the noise may still be any.
        places = problem.scaled(
            [list(one.values.values()) for one in study.ask(5, purpose="certificate")]
        )
        apart = np.linalg.norm(places[:, None] - places, axis=2)
        assert np.all(apart[~np.eye(5, dtype=bool)] > 0.3)
        for x, value in zip(X, y, strict=True):
            study.tell(dict(zip(RANGES, x, strict=True)), value)
    with kb.Study(path) as study:
        status = study.status(seconds=0.2)
        assert study.problem.noise == "unknown" and not status.refuted
        assert status.noise.at_least < NOISE < status.noise.at_most < math.inf
        assert re.search(r"noise unknown, at most [\d.]+ MPa so far", str(status))
        assert re.search(r"unknown, at most [\d.]+ MPa so far", status._repr_html_())
        data = json.loads(json.dumps(status.as_data()))["noise"]
        assert data["assumed"] is None and data["at_most"] == status.noise.at_most
        names = {one.name for one in study.plot(tmp_path, seconds=0.5)}
        assert "noise.png" in names


@pytest.mark.usefixtures("short_searches")
@pytest.mark.parametrize(
    ("noise", "options", "remedy"),
    [
        ("unknown, at most 0.05", {}, "--noise 'unknown, at most 0."),
        ("within 0.05", {}, "--noise 'within 0."),
        ("within 0.3", {"delta": 0}, "--noise 'within ...'"),
    ],
)
def test_a_study_that_is_refuted(noise, options, remedy):
    study = kb.Study.create(":memory:", _problem(noise, **options))
    for x, value in zip(*_runs(60), strict=True):
        study.tell(dict(zip(RANGES, x, strict=True)), value)
    said = str(study.status(seconds=0.2))
    assert "The data refute the assumptions" in said and remedy in said
    assert ("something of probability" in said) == (not options)


# --- pictures


def test_picture_of_noise_that_closes_in():
    ax = kb.plot.noise([10, 20, 40], [math.inf, 2.0, 0.5], [0.0, 0.1, 0.2], truth=0.3)
    most, least, truth = (line.get_ydata() for line in ax.lines)
    assert np.isnan(most[0]) and list(most[1:]) == [2.0, 0.5]
    assert np.isnan(least[0]) and list(least[1:]) == [0.1, 0.2] and set(truth) == {0.3}
    assert ax.get_yscale() == "log"
    [grey] = ax.patches
    assert grey.get_x() == 10 and grey.get_x() + grey.get_width() == 20
    ax.figure.clear()
    kb.plot.noise([1, 2], [math.inf, math.inf])  # nothing is known, and nothing fails
    with pytest.raises(kb.InputError, match="at_most must be 2 numbers"):
        kb.plot.noise([1, 2], [1.0])
    with pytest.raises(kb.InputError, match="rounds must be an array"):
        kb.plot.noise([2, 1], [1.0, 1.0])

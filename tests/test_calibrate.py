"""What pilot data suggest: each suggestion is as sure as it says."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from problems import too_many
from scipy.stats import binom, qmc

import kernelbounds as kb
from kernelbounds.problem import Problem, calibrate
from kernelbounds.problem.calibration import NOISE_CONFIDENCE, _noise
from kernelbounds.problem.model import norm_at_least
from kernelbounds.problem.norms import squared_norms
from kernelbounds.problem.runs import MIN_POINTS

pytestmark = pytest.mark.usefixtures("drawn_once")

KINDS = ["estimate", "heuristic", "heuristic", "stated assumption", "estimate"]


def _data(rng, n=20, repeats=2, noise=0.05):
    x = np.repeat(rng.random(n), repeats)[:, None]
    return x, np.sin(4 * x[:, 0]) + noise * rng.standard_normal(len(x))


def _problem(**options):
    return Problem(["x=0:1"], "y=-1.5:1.5", **options)


@pytest.mark.parametrize("repeats", [2, 5])
def test_noise_from_repeats_is_not_too_small(repeats):
    """At the stated confidence, in 1000 data sets: exact binomial tests, wrong once in 10^4."""
    rng = np.random.default_rng(repeats)
    problem, too_small, runs = _problem(), 0, 1000
    for _ in range(runs):
        found, _ = _noise(problem, *_data(rng, 6, repeats), residual=9.0)
        assert found.kind == "estimate"
        too_small += float(found.value) < 0.05
    assert not too_many(too_small, runs, 1 - NOISE_CONFIDENCE)
    assert binom.cdf(too_small, runs, 1 - NOISE_CONFIDENCE) > 1e-4  # nor is it larger than need be


def test_noise_is_the_upper_end_of_an_interval():
    """Of the chi-squared distribution, to three digits."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        found, _ = _noise(_problem(), *_data(rng), residual=9.0)
        spread = float(re.search(r"scatter by (\S+)", found.why)[1])
        freedom = int(re.search(r"\((\d+) degrees", found.why)[1])
        assert freedom == 20
        exact = spread * math.sqrt(freedom / 10.850811394182585)  # qchisq(0.05, 20), from R
        assert exact * (1 - 6e-3) < float(found.value) < 1.02 * exact


def test_noise_without_repeats_is_a_heuristic():
    rng = np.random.default_rng(2)
    for n, repeats in ((20, 1),):
        found, _ = _noise(_problem(), *_data(rng, n, repeats), residual=0.07)
        assert found.kind == "heuristic" and found.value == "0.07" and "repeat some" in found.why
    # One repeat has one degree of freedom: its bound would be sixteen times the scatter.
    x, y = _data(rng, 20, 1)
    found, _ = _noise(_problem(), np.append(x, x[:1], axis=0), np.append(y, y[0] + 0.1), 0.07)
    assert found.kind == "heuristic"


def test_suggestions_and_their_kinds():
    rng = np.random.default_rng(3)
    x, y = _data(rng)
    problem = _problem(kernel="RBF(0.1)", norm_bound=7, delta=0.05)
    found = calibrate(problem, x, y)
    assert [one.kind for one in found.suggestions] == KINDS
    what = {one.what: one for one in found.suggestions}
    suggested = found.problem
    assert 0.04 < suggested.noise < 0.1 and float(what["noise"].value) == suggested.noise
    assert suggested.delta == 0.05 and suggested.output == problem.output
    assert suggested.norm_bound != 7 and what["norm bound B"].value == f"{suggested.norm_bound:.4g}"
    assert "guaranteed, with probability 0.95, if neither had been" in what["B at least"].why
    assert 1 <= suggested.inputs[0].turns <= 3
    assert what["turns"].value == f"x {suggested.inputs[0].turns}"
    # Bounds on other data, with what is suggested, hold for the truth here.
    x, y = _data(rng)
    sequence = suggested.sequence()
    sequence.update(x, y)
    grid = np.linspace(0, 1, 101)[:, None]
    lower, upper = sequence.bounds(grid)
    assert np.all((lower <= np.sin(4 * grid[:, 0])) & (np.sin(4 * grid[:, 0]) <= upper))
    # Noise that is known is kept, whatever repeats say.
    assert calibrate(_problem(noise=0.3), x, y).problem.noise == 0.3


def test_length_scales_are_in_the_units_of_the_inputs():
    rng = np.random.default_rng(4)
    problem = Problem(["t[°C]=180:220", "p[Pa]=1e3:1e5:log"], "y[MPa]=-150:150")
    unit = rng.random((40, 2))
    y = 100 * np.sin(5 * unit[:, 0]) + 20 * unit[:, 1] + rng.standard_normal(40)
    found = calibrate(problem, problem.unscaled(unit), y)
    scales = found.suggestions[1].value
    number = r"[0-9.e+]+"
    match = re.fullmatch(rf"t ({number}) °C, p a factor of ({number})", scales)
    assert 5 < float(match[1]) < 60 and float(match[2]) > 10
    assert found.suggestions[3].value.endswith(" MPa")
    # The same in other units of everything.
    other = Problem(["t[K]=453.15:493.15", "p[bar]=0.01:1:log"], "y=-1.5:1.5")
    again = calibrate(other, other.unscaled(unit), y / 100)
    assert [i.turns for i in again.problem.inputs] == [i.turns for i in found.problem.inputs]
    assert again.problem.norm_bound == pytest.approx(found.problem.norm_bound / 100, rel=1e-6)


@pytest.mark.parametrize(
    ("f", "level"),
    [
        (lambda x: np.sin(4 * x), 1.0),
        (lambda x: 0.05 * np.sin(4 * x), 1.4),  # nearly constant, far from the middle
        (lambda x: np.tanh(10 * (x - 0.5)), 0.0),
    ],
)
def test_b_is_at_least_what_is_estimated(f, level):
    """The norm under the suggested kernel is known from many points; noise is Gaussian."""
    rng = np.random.default_rng(5)
    x = rng.random((40, 1))
    y = level + f(x[:, 0]) + 0.02 * rng.standard_normal(40)
    found = calibrate(_problem(noise=0.02), x, y)
    points = qmc.Sobol(1, rng=rng).random(512)
    norm = math.sqrt(squared_norms(found.problem.kernel, points, f(points)).least[0])
    least = float(found.suggestions[-1].value)
    assert found.suggestions[-1].kind == "estimate" and 0 <= least <= norm


def test_data_that_need_a_larger_norm_say_so():
    """With more noise than is stated, B has to be larger than what is suggested."""
    rng = np.random.default_rng(6)
    x = rng.random((30, 1))
    found = calibrate(_problem(noise=1e-3), x, np.sin(4 * x[:, 0]) + 0.3 * rng.standard_normal(30))
    value = found.suggestions[-1].value
    assert value == "no B is large enough" or float(value) > found.problem.norm_bound


@pytest.mark.parametrize("share", [-1.0, 0.0, 0.5, 1.0])
@pytest.mark.parametrize("norm", [0.01, 1.0, 5.0, 9.9, 30.0, 1000.0])
def test_norms_at_least(norm, share):
    """Of g alone, wherever the level is; and above B just where the data refute B."""
    problem = _problem(noise=0.0, kernel="Matern(0.75, nu=2.5)", norm_bound=10.0)
    rng = np.random.default_rng(7)
    for _ in range(5):
        g = kb.RKHSFunction(problem.kernel, rng.random((6, 1)), rng.standard_normal(6))
        g = g.rescaled(norm)
        x = rng.random((15, 1))
        sequence = problem.sequence()
        sequence.update(x, share * problem.output.range + g(x))
        least = norm_at_least(problem, sequence.norm_lower_bound)
        assert 0 <= least <= norm
        if least > problem.norm_bound:
            with pytest.raises(kb.EmptyConfidenceSetError):
                sequence.bounds(x)
        else:
            sequence.bounds(x)


@pytest.mark.parametrize(
    ("x", "y", "match"),
    [
        (
            np.linspace(0, 1, MIN_POINTS - 1),
            np.arange(MIN_POINTS - 1.0),
            "at least 5 different points",
        ),
        (np.repeat(np.linspace(0, 1, 4), 5), np.arange(20.0), "got 4 points"),
        (np.linspace(0, 1, 9), np.ones(9), "outcomes that differ"),
        (
            np.linspace(0, 1, 9),
            np.arange(8.0),
            "y must be a 1-D array with one number for each of 9",
        ),
        (np.linspace(0, 1, 9), np.arange(10.0), "y must be a 1-D array"),
        (np.linspace(0, 1, 9), [math.nan, *range(8)], "y contains NaN"),
        (np.linspace(0, 1, 9), list("abcdefghi"), "y has text"),
        (np.linspace(0, 2, 9), np.arange(9.0), "row 5: x = 1.25 is not in its range 0:1"),
    ],
)
def test_data_that_are_refused(x, y, match):
    with pytest.raises(kb.InputError, match=match) as caught:
        calibrate(_problem(), np.asarray(x)[:, None], y)
    assert len(str(caught.value)) < 400 and "\n" not in str(caught.value)

"""Plans: what is predicted to be at most so wide is, whatever happens."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib import pyplot
from scipy.stats import qmc

import kernelbounds as kb
from kernelbounds.problem import Problem, assume, plan
from kernelbounds.problem.drawings import draw_plan
from kernelbounds.problem.model import WIDTH_POINTS, predicted_half_widths
from kernelbounds.problem.plans import RUNS, alternatives, counts_up_to, needed, steps_of
from kernelbounds.problem.random_functions import with_corners

pytestmark = pytest.mark.usefixtures("drawn_once")

CASES = [
    (1, "Matern(0.75, nu=2.5)", 12.0, 0.05),
    (1, "Matern(0.5, nu=1.5)", 12.0, 0.0),
    (2, "Matern(1.5, nu=2.5)", 25.0, 0.05),
    (3, "Matern(1.5, nu=2.5)", 25.0, 0.2),
]


def _problem(dim=1, **options):
    options = {"noise": 0.05, "turns": 1, "experiments": 20} | options
    return Problem([f"x{i}=0:1" for i in range(dim)], "y=-1:1", **options)


def _real_half_widths(problem, design, outcomes):
    """Mean and largest of those after a design, at the points for which they were predicted."""
    points = qmc.Sobol(len(problem.inputs), rng=np.random.default_rng(1)).random(WIDTH_POINTS)
    sequence = problem.sequence()
    sequence.update(design, outcomes)
    lower, upper = sequence.bounds(with_corners(points))
    return np.mean(upper[:WIDTH_POINTS] - lower[:WIDTH_POINTS]) / 2, np.max(upper - lower) / 2


@pytest.mark.parametrize("count", [3, 10, 40])
@pytest.mark.parametrize(("dim", "kernel", "norm_bound", "noise"), CASES)
def test_bands_are_not_wider_than_predicted(dim, kernel, norm_bound, noise, count):
    """With functions of the population as the truth, with some of norm exactly B, with anything."""
    rng = np.random.default_rng(count)
    problem = _problem(dim, kernel=kernel, noise=noise)
    found = assume(problem, functions=8)
    problem = found.problem.replace(norm_bound=norm_bound)
    mean, largest = predicted_half_widths(problem, count)
    design = problem.inputs.unit_box.filling(count)
    admitted = [f for f, norm in zip(found.functions, found.chosen.norms) if norm <= norm_bound]
    assert len(admitted) >= 4
    truths = [lambda x, f=f: found.values(f, x) for f in admitted]
    for _ in range(4):
        weights = rng.standard_normal(6)
        truths.append(
            kb.RKHSFunction(problem.kernel, rng.random((6, dim)), weights).rescaled(norm_bound)
        )
    outcomes = [f(design) + noise * rng.standard_normal(count) for f in truths]
    outcomes += [np.zeros(count)] + ([0.3 * rng.standard_normal(count)] if noise else [])
    ratios = []
    for y in outcomes:
        try:
            real = _real_half_widths(problem, design, y)
        except kb.EmptyConfidenceSetError:  # no function explains pure noise
            continue
        ratios.append([real[0] / mean, real[1] / largest])
    assert len(ratios) >= 8 and np.max(ratios) <= 1 + 1e-9
    # And not by far: the prediction is for the worst function.
    assert np.max(ratios, axis=0)[0] > 0.5


def test_a_plan():
    calls = []
    problem = _problem()
    expected = plan(problem, 40, lambda: calls.append(1))
    assert len(calls) == steps_of(problem, 40)
    np.testing.assert_array_equal(expected.counts, [5, 8, 11, 17, 25, 38, 40])
    assert expected.problem.norm_bound > 0 and expected.problem is expected.assumed.problem
    # More experiments are better, but that a design of a few more need not have those of before.
    for one in (expected.half_width, expected.simulated_half_width, expected.simulated_regret):
        known = one[np.isfinite(one)]
        assert np.all(known[1:] <= 1.05 * known[:-1]) and known[-1] < 0.5 * known[0]
    assert expected.regret[-1] < 0.5 * expected.regret[0]
    np.testing.assert_array_equal(expected.regret, 2 * expected.largest_half_width)
    assert np.all(expected.half_width <= expected.largest_half_width)
    for count, mean, largest in zip(
        expected.counts, expected.half_width, expected.largest_half_width
    ):
        assert predicted_half_widths(expected.problem, int(count)) == (mean, largest)
    # Simulated up to the planned number; the same points have bands within what is predicted.
    simulated = expected.counts <= 20
    assert np.all(np.isfinite(expected.simulated_half_width) == simulated)
    assert np.all(np.isfinite(expected.simulated_regret) == simulated)
    assert np.all(expected.simulated_half_width[simulated] < expected.half_width[simulated])
    assert np.all(expected.simulated_regret[simulated] < expected.regret[simulated])
    # The estimate is far better than the half of the band, within which it is.
    error = expected.simulated_error[simulated]
    assert np.all(error < expected.simulated_half_width[simulated] / 2)
    legend = draw_plan(expected)[1].figure.legends[0]
    # A regret among few settings must not look like one over all of them.
    assert any("among only 256 settings" in text.get_text() for text in legend.texts)
    pyplot.close("all")


def test_a_plan_is_in_units_of_the_output():
    given = {"kernel": "Matern(0.75, nu=2.5)", "experiments": 8}
    small = plan(_problem(norm_bound=12, **given), 11)
    large = _problem(norm_bound=6000, **given).replace(output="y=100:1100", noise=25)
    large = plan(large, 11)
    simulated = ("simulated_half_width", "simulated_error", "simulated_regret")
    for name in ("half_width", "largest_half_width", *simulated):
        one, other = getattr(small, name), getattr(large, name)
        np.testing.assert_allclose(other, 500 * one, rtol=1e-3)


def test_norm_bounds_that_simulated_functions_refute():
    """Where B is far too small nothing can be simulated, and the rest of the plan stands."""
    found = plan(_problem(kernel="Matern(0.75, nu=2.5)", norm_bound=0.05), 8)
    assert np.all(np.isfinite(found.half_width)) and np.all(np.isnan(found.simulated_regret))


def test_what_is_needed():
    problem = _problem(kernel="Matern(0.75, nu=2.5)", norm_bound=12)

    def mean(count):
        return predicted_half_widths(problem, count)[0]

    for within in (20.0, 1.0, 0.5, 0.3, 0.2):
        count = needed(problem, within, 100)
        assert mean(count) <= within
        # Not one in twenty fewer, or one, is enough.
        assert count == 1 or mean(count - max(1, count // 20)) > within
    assert needed(problem, 0.2, 100) > needed(problem, 0.3, 100)
    most = needed(problem, 0.3, 100)
    assert needed(problem, 0.3, most) is not None
    assert needed(problem, 0.001, 50) is None
    assert needed(problem, 0.3, 2) is None
    assert needed(problem, 0.999 * mean(1), 1) is None and needed(problem, 1.001 * mean(1), 1) == 1
    for within, most in ((0, 10), (-1, 10), (np.nan, 10), (0.3, 0), (0.3, 10**6)):
        with pytest.raises(kb.InputError, match=r"(within|most) must be"):
            needed(problem, within, most)


@pytest.mark.parametrize("most", [1, 2, 4, 5, 6, 7, 8, 100, 999, 1000, 5000])
def test_counts(most):
    counts = counts_up_to(most)
    assert counts[-1] == most and np.all(np.diff(counts) > 0) and counts[0] == min(5, most)
    assert np.all(counts[1:] / counts[:-1] <= 1.7)
    problem = _problem(kernel="RBF(1.0)")
    assert steps_of(problem, most) == 200 + 1 + len(counts) + RUNS


def test_alternatives():
    names = {
        (dim, interactions, turns): [name for name, _ in alternatives(
            _problem(dim, interactions=interactions, turns=turns))]
        for dim in (1, 2, 3) for interactions in ("all", "pairs", "none") for turns in (0, 2)
    }  # fmt: skip
    pairs, none, fewer = "only pairs of inputs interact", "inputs do not interact", "1 turn"
    assert names[1, "none", 0] == [] and names[1, "none", 2] == [fewer]
    assert names[2, "all", 2] == [none, fewer] and names[2, "none", 2] == [fewer]
    assert names[3, "all", 0] == [pairs, none] and names[3, "pairs", 2] == [none, fewer]
    for name, other in alternatives(_problem(3, turns=2)):
        changed = {"only": ("interactions", "pairs"), "inpu": ("interactions", "none"),
                   "1 tu": ("turns", 1)}[name[:4]]  # fmt: skip
        assert getattr(other, changed[0]) == changed[1]
    own = _problem().replace(inputs=["x=0:1:turns=3"])
    assert list(alternatives(own)) == []  # which of the inputs it would be is not said


def test_simulated_choices_do_not_use_each_outcome_by_itself(monkeypatch):
    """Where noise is within a limit, that takes most of the time of a plan, for little."""
    asked, ask = [], kb.KernelUCB.ask

    def recorded(self):
        known = self.sequence.known.assumptions
        asked.append(known.noise.limit_of_each(known.delta))
        return ask(self)

    monkeypatch.setattr(kb.KernelUCB, "ask", recorded)
    stated = _problem(
        noise="within 0.05", experiments=8, kernel="Matern(0.75, nu=2.5)", norm_bound=12.0
    )
    expected = plan(stated, most=8)
    assert np.isfinite(expected.simulated_regret).all()
    assert len(asked) == RUNS * 8 and set(asked) == {None}

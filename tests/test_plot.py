"""Pictures show what they say, on axes that are given or new."""

from __future__ import annotations

import builtins
import subprocess
import sys

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.cbook import is_math_text
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.text import Text
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import kernelbounds as kb

KERNEL = Matern(length_scale=0.4, nu=2.5)
BOX = kb.Box.named(dose=(0.1, 1.0))
THREE = kb.Box.named(temperature=(20.0, 80.0), pressure=(1.0, 5.0), time=(0.01, 100.0))


@pytest.fixture(autouse=True)
def _closed():
    yield
    pyplot.close("all")


def observed(count=12, dim=1, **more):
    rng = np.random.default_rng(0)
    X = 0.1 + 0.9 * rng.random((count, dim))
    seq = kb.ConfidenceSequence(KERNEL, norm_bound=5.0, noise_scale=0.1, **more)
    seq.update(X, np.sin(5 * X[:, 0]) + 0.1 * rng.standard_normal(count))
    return seq


class Counting:
    """Bounds in the user's units, and how they were asked for."""

    def __init__(self):
        self.asked = []

    def __call__(self, points):
        self.asked.append(points.copy())
        middle = points.sum(axis=1)
        points[:] = -1.0  # what a function does to its points is its own affair
        return middle - 1, middle + 1


def given():
    return Figure().subplots()


def lines(ax, label):
    """The pair of lines of which the first has the label."""
    labels = [line.get_label() for line in ax.lines]
    at = labels.index(label)
    return ax.lines[at], ax.lines[at + 1]


def dots(ax):
    """Positions and opacities of the dots."""
    found = ax.collections[-1]
    return np.asarray(found.get_offsets()), found.get_facecolors()[:, 3]


def legend_of(axes):
    """All texts of the legends of a figure."""
    figure = np.ravel(axes)[0].figure
    legends = [*figure.legends, *(ax.get_legend() for ax in figure.axes)]
    return [text.get_text() for one in legends if one is not None for text in one.get_texts()]


class TestBand:
    @pytest.mark.parametrize("own", [True, False])
    def test_lines_are_the_bounds_and_dots_the_data(self, own):
        seq, axes = observed(), None if own else given()
        ax = kb.plot.band(
            seq, BOX, axes, labels=["dose [mg]"], output="response", truth=lambda X: X[:, 0]
        )
        assert own or ax is axes
        upper, lower = lines(ax, "bounds, with probability 0.99")
        [estimate] = [line for line in ax.lines if line.get_label() == "estimate"]
        grid = upper.get_xdata()[:, None]
        assert grid[0] == 0.1 and grid[-1] == 1.0 and len(grid) == 300
        for line, values in zip((lower, upper), seq.bounds(grid)):
            np.testing.assert_array_equal(line.get_ydata(), values)
        np.testing.assert_array_equal(estimate.get_ydata(), seq.estimate(grid))
        assert estimate.get_linestyle() == "-"
        truth = next(line for line in ax.lines if line.get_label() == "truth")
        np.testing.assert_array_equal(truth.get_ydata(), grid[:, 0])
        where, opacity = dots(ax)
        np.testing.assert_array_equal(where, np.column_stack([seq.points, seq.outcomes]))
        assert np.all(opacity == 1)
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("dose [mg]", "response")
        assert legend_of(ax) == ["estimate", "bounds, with probability 0.99", "truth", "data"]

    def test_a_function_takes_the_place_of_a_sequence(self):
        bounds = Counting()
        ax = kb.plot.band(bounds, BOX, resolution=7, data=([0.2, 0.3, 7.0], [1.0, 2.0, 3.0]))
        assert [len(points) for points in bounds.asked] == [7]
        upper, _ = lines(ax, "bounds")
        np.testing.assert_allclose(upper.get_ydata(), np.linspace(0.1, 1, 7) + 1)
        np.testing.assert_array_equal(dots(ax)[0], [[0.2, 1.0], [0.3, 2.0]])  # within the box
        assert ax.get_xlabel() == "dose"

    def test_the_bounds_of_a_sequence_alone_are_drawn_without_data(self):
        assert legend_of(kb.plot.band(observed().bounds, BOX, given())) == ["bounds"]

    def test_before_any_data(self):
        seq = kb.ConfidenceSequence(KERNEL, norm_bound=5.0, noise_scale=0.1)
        assert legend_of(kb.plot.band(seq, BOX))[1:] == ["bounds, with probability 0.99"]

    @pytest.mark.parametrize("log", [[True], {"dose"}, "dose"])
    def test_logarithmic_axes(self, log):
        bounds = Counting()
        ax = kb.plot.band(bounds, BOX, given(), log=log, resolution=3)
        assert ax.get_xscale() == "log"
        np.testing.assert_allclose(bounds.asked[0][:, 0], np.geomspace(0.1, 1.0, 3))
        assert kb.plot.band(bounds, BOX, log=[False]).get_xscale() == "linear"

    def test_more_bounds_and_what_has_no_guarantee(self):
        seq = observed()
        process = kb.plot.gaussian_process(seq)
        ax = kb.plot.band(
            seq, BOX, more={"AMM": lambda X: seq.bounds(X, kb.AMM())}, without_guarantee=process,
            label="CMM",
        )  # fmt: skip
        said = "Gaussian process ±2, no guarantee"
        assert legend_of(ax) == ["estimate", "CMM", "AMM", said, "data"]
        upper, lower = lines(ax, said)
        assert upper.is_dashed() and lower.is_dashed()
        np.testing.assert_array_equal(
            (lower.get_ydata(), upper.get_ydata()), process(upper.get_xdata()[:, None])
        )
        assert to_rgba(upper.get_color()) != to_rgba(lines(ax, "AMM")[0].get_color())
        ax = kb.plot.band(seq, BOX, without_guarantee={"a fit": Counting()})
        assert "a fit (no guarantee)" in legend_of(ax)

    def test_the_only_input_that_is_not_fixed(self):
        bounds = Counting()
        box = THREE.fixed({"temperature": 30, "time": 2})
        X = np.array([[30.0, 3.0, 2.0], [70.0, 3.0, 2.0]])  # the second is far from 30
        ax = kb.plot.band(bounds, box, resolution=2, data=(X, [1.0, 2.0]))
        np.testing.assert_allclose(bounds.asked[0], [[30, 1, 2], [30, 5, 2]])
        assert ax.get_xlabel() == "pressure"
        np.testing.assert_array_equal(dots(ax)[0], [[3.0, 1.0]])

    def test_what_is_infinite_is_left_out(self):
        ax = kb.plot.band(
            lambda X: (np.full(len(X), -np.inf), np.where(X[:, 0] < 0.5, np.inf, 1.0)), BOX
        )
        upper, lower = lines(ax, "bounds")
        assert np.isnan(lower.get_ydata()).all()
        assert np.isnan(upper.get_ydata()).any() and np.nanmax(upper.get_ydata()) == 1.0
        ax.figure.canvas.draw()


@pytest.mark.parametrize("own", [True, False])
def test_bounds_are_compared(own):
    seq, axes = observed(), None if own else given()
    ax = kb.plot.compare(seq, BOX, ax=axes, resolution=20)
    names = legend_of(ax)
    assert [name[:3] for name in names] == ["CMM", "AMM", "dat"]
    for name, bound in zip(names, (kb.CMM(), kb.AMM())):
        upper, lower = lines(ax, name)
        values = seq.bounds(upper.get_xdata()[:, None], bound)
        np.testing.assert_array_equal((lower.get_ydata(), upper.get_ydata()), values)
        assert name.endswith(f"mean width {np.mean(values[1] - values[0]):#.3g}")
    styles = [lines(ax, name)[0].get_linestyle() for name in names[:2]]
    assert styles[0] != styles[1]
    names = legend_of(kb.plot.compare(seq, BOX, [kb.AMM(0.1), kb.AMM(1.0)], resolution=5))
    assert names[0].startswith("AMM(ridge=0.1)")
    names = legend_of(kb.plot.compare(seq, BOX, {"mine": kb.DMM()}, resolution=5))
    assert names[0].startswith("mine, ")


class TestMaps:
    @pytest.mark.parametrize("own", [True, False])
    def test_four_maps(self, own):
        seq = observed(dim=2)
        axes = None if own else Figure().subplots(1, 4)
        box = kb.Box.named(a=(0.1, 1.0), b=(0.1, 1.0))
        found = kb.plot.maps(seq, box, axes, resolution=6, output="yield [%]")
        assert own or list(found) == list(axes)
        titles = ["estimate", "lower bound", "upper bound", "width"]
        assert [ax.get_title() for ax in found] == titles
        assert found[0].get_xlabel() == "a" and found[0].get_ylabel() == "b"
        for ax in found:
            np.testing.assert_array_equal(dots(ax)[0], seq.points)
        bars = [ax.get_ylabel() for ax in found[0].figure.axes if ax not in found]
        assert sorted(bars) == ["width of yield [%]", "yield [%]", "yield [%]"]
        filled = [ax.collections[0] for ax in found]
        assert filled[1].get_clim() == filled[2].get_clim() != filled[3].get_clim()
        assert filled[0].get_clim() != filled[1].get_clim()

    def test_colours_of_their_own(self):
        seq = observed(dim=2)
        found = kb.plot.maps(seq, kb.Box([0, 0], [1, 1]), shared=False, resolution=5)
        assert len(found[0].figure.axes) == 8
        assert found[1].collections[0].get_clim() != found[2].collections[0].get_clim()

    def test_without_an_estimate_there_are_three(self):
        found = kb.plot.maps(Counting(), kb.Box([0, 0], [1, 1]), resolution=3)
        assert [ax.get_title() for ax in found] == ["lower bound", "upper bound", "width"]

    def test_other_inputs_are_held(self):
        bounds = Counting()
        found = kb.plot.maps(
            bounds, THREE, at={"pressure": 2}, inputs=("time", 0), log={"time"}, resolution=3,
            labels=["temperature [°C]", "pressure [bar]", "time [s]"],
        )  # fmt: skip
        (points,) = bounds.asked
        assert points.shape == (9, 3) and np.all(points[:, 1] == 2)
        np.testing.assert_allclose(points[:3], [[20, 2, 0.01], [20, 2, 1], [20, 2, 100]])
        assert found[0].get_xscale() == "log" and found[0].get_yscale() == "linear"
        assert found[0].get_xlabel() == "time [s]"
        assert found[0].figure.get_suptitle() == "at pressure [bar] = 2"
        kb.plot.maps(bounds, THREE.fixed({0: 25}), resolution=2)
        np.testing.assert_allclose(bounds.asked[1][:2], [[25, 1, 0.01], [25, 5, 0.01]])

    def test_flat_and_infinite_bounds(self):
        box = kb.Box([0, 0], [1, 1])
        for bounds in (
            lambda X: (np.zeros(len(X)), np.zeros(len(X))),
            lambda X: (np.where(X[:, 0] < 0.5, -np.inf, X[:, 1]), 2 + X[:, 1]),
        ):
            found = kb.plot.maps(bounds, box, Figure().subplots(1, 3), resolution=6)
            found[0].figure.canvas.draw()
        with pytest.raises(kb.InputError, match="infinite at all points"):
            kb.plot.maps(lambda X: (np.full(len(X), -np.inf), np.full(len(X), np.inf)), box)


class TestSlices:
    @pytest.mark.parametrize("own", [True, False])
    def test_a_panel_for_each_input_and_one_call_for_all(self, own):
        bounds, axes = Counting(), None if own else Figure().subplots(1, 3)
        found = kb.plot.slices(
            bounds, THREE, [30.0, 2.0, 1.0], axes, log=[False, False, True], resolution=5,
            truth=lambda X: X.sum(axis=1), without_guarantee=(process := Counting()),
            labels=["temperature [°C]", "pressure [bar]", "time [s]"], output="yield [%]",
        )  # fmt: skip
        assert own or list(found) == list(axes)
        assert len(bounds.asked) == len(process.asked) == 1
        (points,) = bounds.asked
        assert points.shape == (15, 3)
        for at, ax in enumerate(found):
            upper, lower = lines(ax, "bounds")
            own_points = points[5 * at : 5 * at + 5]
            np.testing.assert_array_equal(upper.get_xdata(), own_points[:, at])
            np.testing.assert_array_equal(upper.get_ydata(), own_points.sum(axis=1) + 1)
            np.testing.assert_array_equal(lower.get_ydata(), own_points.sum(axis=1) - 1)
        assert [ax.get_xscale() for ax in found] == ["linear", "linear", "log"]
        assert [ax.get_xlabel() for ax in found][1:] == ["pressure [bar]", "time [s]"]
        assert [ax.get_ylabel() for ax in found] == ["yield [%]", "", ""]
        assert legend_of(found) == ["bounds", "no guarantee", "truth", "where the slices meet"]

    def test_data_fade_with_their_distance_from_the_slice(self):
        X = np.array([[30.0, 2.0, 1.0], [36.0, 2.0, 1.0], [79.0, 2.0, 1.0]])
        y = np.array([1.0, 2.0, 3.0])
        through = {"temperature": 30, "pressure": 2}  # and the middle of the logarithms of times
        found = kb.plot.slices(Counting(), THREE, through, data=(X, y), log={"time"})
        where, opacity = dots(found[0])
        np.testing.assert_array_equal(where[:, 1], y)  # all are on the slice along temperatures
        np.testing.assert_allclose(opacity, 1)
        for ax in found[1:]:  # the second is a tenth of the box away, the third most of it
            where, opacity = dots(ax)
            np.testing.assert_array_equal(where[:, 1], y[:2])
            np.testing.assert_allclose(opacity, [1, 1 - 0.1 / 0.3])
        found = kb.plot.slices(Counting(), THREE, through, data=(X, y), log={"time"}, reach=1.0)
        np.testing.assert_allclose(dots(found[1])[1], [1, 0.9, 1 - 49 / 60])
        assert "data, fainter away from the slice" in legend_of(found)

    def test_ten_inputs(self):
        found = kb.plot.slices(Counting(), kb.Box([0] * 10, [1] * 10), np.full(10, 0.5))
        assert len(found) == 10 == len(found[0].figure.axes)
        assert [ax.get_xlabel() for ax in found] == [f"x{at}" for at in range(10)]
        assert len({ax.get_position().y0 for ax in found}) == 2
        found = kb.plot.slices(Counting(), kb.Box([0] * 7, [1] * 7), np.full(7, 0.5))
        assert len(found) == 7 == len(found[0].figure.axes)  # and the eighth panel is gone

    def test_fixed_inputs_have_no_panel_and_suggestions_are_points(self):
        seq = kb.ConfidenceSequence(RBF(20.0), norm_bound=2.0, noise_scale=0.1)
        ucb = kb.KernelUCB(seq, THREE)
        ucb.tell([30.0, 2.0, 5.0], 1.0)
        found = kb.plot.slices(seq, THREE.fixed({"time": 5}), ucb.ask(fixed={"time": 5}))
        assert [ax.get_xlabel() for ax in found] == ["temperature", "pressure"]

    def test_a_place_that_a_logarithmic_axis_does_not_have(self):
        X = np.array([[30.0, 2.0, 0.0], [30.0, 2.0, 1.0]])
        axes = Figure().subplots(1, 3)
        kb.plot.slices(
            Counting(), THREE, [30.0, 2.0, 0.0], axes, data=(X, [1.0, 2.0]), log={"time"}
        )
        axes[0].figure.canvas.draw()


class TestGaussianProcess:
    def test_it_is_that_of_scikit_learn(self):
        seq, grid = observed(20), np.linspace(0, 1, 9)[:, None]
        fixed = Matern(length_scale=0.4, nu=2.5, length_scale_bounds="fixed")
        theirs = GaussianProcessRegressor(ConstantKernel(1.0, (1e-5, 1e5)) * fixed, alpha=0.01)
        mean, sd = theirs.fit(seq.points, seq.outcomes).predict(grid, return_std=True)
        low, high = kb.plot.gaussian_process(seq, deviations=3.0)(grid)
        np.testing.assert_allclose((low + high) / 2, mean, atol=1e-4)
        np.testing.assert_allclose((high - low) / 6, sd, rtol=1e-3)

    def test_without_noise_with_a_level_and_with_noise_scales(self):
        X, y = np.array([[0.1], [0.5], [0.9]]), np.array([50.3, 50.8, 50.2])
        seq = kb.ConfidenceSequence(KERNEL, 5.0, 0.0, offset=50.0)
        seq.update(X, y)
        low, high = kb.plot.gaussian_process(seq)(X)
        np.testing.assert_allclose(low, y, atol=1e-3)
        np.testing.assert_allclose(high, y, atol=1e-3)
        process = kb.plot.gaussian_process(seq)
        gram = KERNEL(X)
        exact = (y - 50) @ np.linalg.solve(gram, y - 50) / 3
        assert process.variance == pytest.approx(exact, rel=1e-5)
        assert process([[30.0]])[1] == pytest.approx(50 + 2 * np.sqrt(process.variance))
        seq = kb.ConfidenceSequence(KERNEL, 5.0, 0.1, offset=50.0)
        seq.update(X, y, noise_scale=[0.1, 0.001, 0.1])
        low, high = kb.plot.gaussian_process(seq)(X)
        assert np.argmin(high - low) == 1 and high[1] - low[1] < 0.005

    def test_it_stays_as_it_was(self):
        seq = observed()
        process = kb.plot.gaussian_process(seq)
        before = process([[0.5]])
        seq.update([[0.5]], [9.0])
        np.testing.assert_array_equal(process([[0.5]]), before)

    def test_it_needs_observations(self):
        seq = kb.ConfidenceSequence(KERNEL, norm_bound=5.0, noise_scale=0.1)
        with pytest.raises(kb.InputError, match="needs observations"):
            kb.plot.gaussian_process(seq)
        with pytest.raises(kb.InputError, match="must be a ConfidenceSequence"):
            kb.plot.gaussian_process(KERNEL)


class TestRegret:
    @pytest.mark.parametrize("own", [True, False])
    def test_regrets_are_added_up(self, own):
        axes = None if own else given()
        runs = {"A": [[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]], "B": np.ones(3)}
        ax = kb.plot.regret(runs, axes)
        assert own or ax is axes
        assert legend_of(ax) == ["A", "B"]
        np.testing.assert_array_equal(ax.lines[0].get_ydata(), [2, 4, 6])
        np.testing.assert_array_equal(ax.lines[1].get_ydata(), [1, 2, 3])
        np.testing.assert_array_equal(ax.lines[0].get_xdata(), [1, 2, 3])
        (shade,) = ax.collections
        assert shade.get_paths()[0].get_extents().ymax == 6
        assert shade.get_paths()[0].get_extents().ymin == 1
        ax = kb.plot.regret(runs, given(), spread="error")
        assert ax.collections[0].get_paths()[0].get_extents().ymin == 1  # 2 less 1.41 / 1.41

    def test_simulations(self):
        problem = kb.SyntheticProblem.draw(RBF(0.5), dim=1, rng=np.random.default_rng(0), norm=5.0)
        policy = kb.RandomPolicy(problem.sequence(rounds=4), rng=1)
        trace = kb.simulate(policy, problem, 4, np.random.default_rng(7))
        for runs in (trace, [trace, trace]):
            ax = kb.plot.regret({"random": runs})
            np.testing.assert_allclose(ax.lines[0].get_ydata(), np.cumsum(trace.regret))

    @pytest.mark.parametrize(
        ("runs", "match"),
        [
            ({}, "must be a dict"),
            ([1.0], "must be a dict"),
            ({"A": []}, "must have regrets"),
            ({"A": [[1.0], [1.0, 2.0]]}, "runs\\['A'\\]"),
        ],
    )
    def test_refusals(self, runs, match):
        with pytest.raises(kb.InputError, match=match):
            kb.plot.regret(runs)
        with pytest.raises(kb.InputError, match="range, error"):
            kb.plot.regret({"A": [1.0]}, spread="std")


class TestCertificate:
    @pytest.mark.parametrize("own", [True, False])
    def test_regrets_close_in(self, own):
        axes = None if own else given()
        ax = kb.plot.certificate([1, 3, 9], [np.inf, 5.0, 0.1], axes, enough=0.2)
        assert own or ax is axes
        assert ax.get_yscale() == "log" and ax.get_ylabel() == "certified regret"
        np.testing.assert_array_equal(ax.lines[0].get_ydata(), [np.nan, 5.0, 0.1])
        assert ax.lines[0].get_drawstyle() == "steps-post"
        assert ax.get_xlabel() == "observations" and legend_of(ax) == ["good enough"]

    @pytest.mark.parametrize("regrets", [[2.0, 1.0], [20.0, 0.0], [np.inf, np.inf]])
    def test_linear_axes(self, regrets):
        ax = kb.plot.certificate([1, 2], regrets)
        assert ax.get_yscale() == "linear"
        ax.figure.canvas.draw()

    def test_one_certificate_is_a_dot(self):
        line = kb.plot.certificate([5], [0.3], given()).lines[0]
        assert line.get_marker() == "o" and line.get_markevery() == [0]

    def test_an_interval(self):
        ax = kb.plot.certificate([1, 2], limits=[np.inf, 3.0], best=[1.0, 2.0], output="yield [%]")
        assert ax.get_ylabel() == "yield [%]" and len(ax.lines) == 2
        np.testing.assert_array_equal(ax.lines[0].get_ydata(), [np.nan, 3.0])
        np.testing.assert_array_equal(ax.lines[1].get_ydata(), [1.0, 2.0])
        ax.figure.canvas.draw()

    @pytest.mark.parametrize(
        ("rounds", "more", "match"),
        [
            ([1, 2], {}, "needs regrets"),
            ([1, 2], {"regrets": [1.0]}, "regrets must be 2 numbers"),
            ([1, 2], {"regrets": ["a", "b"]}, "regrets must be numbers"),
            ([2, 1], {"regrets": [1.0, 2.0]}, "increases"),
            ([], {"regrets": []}, "increases"),
            ([1], {"limits": [1.0]}, "together"),
            ([1], {"limits": [1.0], "best": [0.0], "enough": 1.0}, "leave it out"),
        ],
    )
    def test_refusals(self, rounds, more, match):
        with pytest.raises(kb.InputError, match=match):
            kb.plot.certificate(rounds, **more)


def test_colours_of_maps_end_where_the_values_do():
    """A class from -20 to 0 makes bounds that are 0 look negative."""
    box = kb.Box.named(a=(0, 1), b=(0, 1))
    for log, bounds in [
        (False, lambda X: (np.zeros(len(X)), 57.9 * X[:, 0] + 2.1)),
        (True, lambda X: (1 + X[:, 0], 3 + X[:, 0])),
        (False, lambda X: (np.zeros(len(X)), np.full(len(X), 3.0))),
    ]:
        axes = kb.plot.maps(bounds, box, log_output=log)
        lower, upper = bounds(np.array([[0.0, 0.0], [1.0, 1.0]]))
        bar = next(one for one in axes[0].figure.axes if one.get_ylabel() == "f(x)")
        ends = [lower.min(), upper.max()]
        np.testing.assert_allclose(bar.get_ylim(), ends, rtol=1e-6, atol=1e-6)
        assert all(ends[0] <= tick <= ends[1] for tick in bar.get_yticks())
        pyplot.close("all")


@pytest.mark.parametrize("own", [True, False])
def test_functions_are_lines(own):
    x, axes = np.array([0.5, 0.1, 1.0]), None if own else given()
    values = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    ax = kb.plot.functions(x, values, BOX, axes, log={"dose"}, data=([0.3], [2.0]))
    assert own or ax is axes
    assert ax.get_xscale() == "log" and ax.get_xlabel() == "dose"
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [0.1, 0.5, 1.0])
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), [5.0, 4.0, 6.0])
    np.testing.assert_array_equal(dots(ax)[0], [[0.3, 2.0]])
    assert kb.plot.functions(x, values[0]).get_xlabel() == "x"
    with pytest.raises(kb.InputError, match=r"shapes \(3,\) and \(3, 2\)"):
        kb.plot.functions(x, values.T)
    with pytest.raises(kb.InputError, match="the box has 3"):
        kb.plot.functions(x, values, THREE)


@pytest.mark.parametrize(
    ("draw", "match"),
    [
        (lambda: kb.plot.band(Counting(), THREE), "needs one input, the box has 3; use slices"),
        (lambda: kb.plot.compare(observed(), THREE), "compare needs one input, the box has 3"),
        (lambda: kb.plot.compare(Counting(), BOX), "must be a ConfidenceSequence"),
        (lambda: kb.plot.maps(Counting(), BOX), "needs two inputs, the box has 1; use band"),
        (lambda: kb.plot.maps(Counting(), THREE, inputs=(0, 0)), "two different inputs"),
        (lambda: kb.plot.maps(Counting(), THREE, inputs=(0, "speed")), "no input 'speed'"),
        (lambda: kb.plot.maps(Counting(), THREE, axes=given()), "maps needs 3 axes"),
        (lambda: kb.plot.slices(Counting(), THREE, [1.0]), "through must be"),
        (lambda: kb.plot.slices(Counting(), THREE, {"speed": 1}), "through has 'speed'"),
        (lambda: kb.plot.slices(Counting(), THREE, None, [given()]), "slices needs 3 axes"),
        (lambda: kb.plot.slices(Counting(), kb.Box([1], [1]), [1.0]), "all inputs"),
        (lambda: kb.plot.band(Counting(), kb.Finite([[1.0]])), "must be a kernelbounds.Box"),
        (lambda: kb.plot.band(Counting(), BOX, ax=3), "ax must be matplotlib axes"),
        (lambda: kb.plot.band(3, BOX), "bounds must be a ConfidenceSequence or a function"),
        (lambda: kb.plot.band(lambda X: X, BOX), "must give a pair"),
        (
            lambda: kb.plot.band(lambda X: (X, X), BOX),
            r"give 300 numbers, got an array of shape \(300, 1\)",
        ),
        (lambda: kb.plot.band(lambda X: ("a", "b"), BOX), "bounds must give numbers"),
        (lambda: kb.plot.band(Counting(), BOX, truth=3), "truth must be a function"),
        (lambda: kb.plot.band(Counting(), BOX, data=3), r"data must be \(X, y\)"),
        (lambda: kb.plot.band(Counting(), BOX, data=([[1, 2]], [1])), "data has 2 inputs"),
        (lambda: kb.plot.band(Counting(), BOX, labels=["a", "b"]), "labels must be 1 strings"),
        (lambda: kb.plot.band(Counting(), BOX, log={"speed"}), "log has 'speed'"),
        (lambda: kb.plot.band(Counting(), BOX, log=[1]), "log must be names"),
        (lambda: kb.plot.band(Counting(), kb.Box([0], [1]), log=[True]), "starts at 0"),
        (lambda: kb.plot.band(Counting(), BOX, resolution=1), "resolution must be"),
    ],
)
def test_refusals(draw, match):
    with pytest.raises(kb.InputError, match=match) as caught:
        draw()
    assert str(caught.value).count(". ") == 0 and str(caught.value).endswith(".")
    assert not pyplot.get_fignums() or "ax" in match  # no empty figure is left behind


def test_without_matplotlib(monkeypatch):
    real, bounds = builtins.__import__, Counting()

    def without(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    for draw in (
        lambda: kb.plot.band(bounds, BOX),
        lambda: kb.plot.maps(bounds, THREE),
        lambda: kb.plot.slices(bounds, THREE, None),
        lambda: kb.plot.certificate([1], [1.0]),
        lambda: kb.plot.regret({"A": [1.0]}),
        lambda: kb.plot.functions([0, 1], [0, 1]),
    ):
        with pytest.raises(kb.MissingExtraError, match=r"kernelbounds\[plot\]"):
            draw()
    assert not bounds.asked  # it is said before anything is computed


def test_importing_the_library_does_not_import_matplotlib():
    code = "import sys, kernelbounds as kb; kb.plot.band; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# --- text


# The first cannot be read as a formula at all, and the second can, but means dollars.
DOLLARS = ["cost$^$", "price [$] less [$]"]


def _in_one_input(name):
    box, seq = kb.Box.named(**{name: (0.1, 1.0)}), observed()
    shared = {"output": name, "resolution": 9}
    yield kb.plot.band(seq, box, label=name, more={name * 2: seq}, **shared)
    yield kb.plot.band(seq, BOX, labels=[name], without_guarantee={name: Counting()}, **shared)
    yield kb.plot.compare(seq, box, {name: kb.CMM()}, **shared)
    yield kb.plot.functions([0.0, 1.0], [[0.0, 1.0]], box, output=name)


def _in_more(name):
    shared = {"labels": [name, f"b {name}", f"c {name}"], "output": name}
    yield kb.plot.maps(Counting(), THREE, resolution=3, **shared)[0]
    yield kb.plot.slices(Counting(), THREE, None, resolution=3, label=name, **shared)[0]


def _in_rounds(name):
    yield kb.plot.regret({name: [[1.0, 0.5], [0.8, 0.6]]}, output=name)
    yield kb.plot.certificate([5, 10], [3.0, 1.2], output=name)
    yield kb.plot.certificate([5, 10], limits=[3.0, 1.2], best=[0.0, 1.0], output=name)


@pytest.mark.parametrize("name", DOLLARS)
@pytest.mark.parametrize("pictures", [_in_one_input, _in_more, _in_rounds])
def test_dollar_signs_are_no_formulas(pictures, name):
    for ax in pictures(name):
        ax.figure.canvas.draw()
        texts = [one.get_text() for one in ax.figure.findobj(Text)]
        with_dollars = [one for one in texts if name in one.replace(r"\$", "$")]
        assert len(with_dollars) >= 1 and not any(map(is_math_text, with_dollars))

"""The laboratory flags what is wrong, passes what is right, and loses nothing when interrupted."""

from __future__ import annotations

import csv
import shlex
from dataclasses import dataclass, replace

import numpy as np
import pytest
from problems import refused
from sklearn.gaussian_process.kernels import RBF
from typer.testing import CliRunner

import kernelbounds as kb
from kernelbounds.cli import app
from kernelbounds.kernels import cross
from kernelbounds.laboratory import (
    BOUNDS,
    BREAKING,
    CONTROLS,
    DESIGNS,
    NOISES,
    NORM,
    TRUTHS,
    Case,
    Coverage,
    Programme,
    Run,
    coverage,
    promises_design,
    promises_noise,
    trials,
)
from kernelbounds.laboratory.controls import Shrunk
from kernelbounds.laboratory.measuring import described
from kernelbounds.paper import designs
from kernelbounds.paper.designs import looks
from kernelbounds.paper.results import ErrorRate

PROMISED = [noise for noise in NOISES if noise not in BREAKING]


class Trivial(kb.Bound):
    """What is always right."""

    def extremes(self, known, points, signs):
        return np.tile(known.trivial(points), (len(signs), 1))


@dataclass(frozen=True)
class WrongAt(Trivial):
    """Right, but from some time on at one of the points."""

    time: int = 7
    place: int = 20

    def extremes(self, known, points, signs):
        found = super().extremes(known, points, signs)
        if known.count >= self.time:
            found[signs.index(1), self.place] *= -0.99  # f* is as low as it can be, it says
        return found


class Stopping(Trivial):
    """Stop the program, as Ctrl-C does, at the nth call of all."""

    calls, stop_at = 0, 0  # of the class, so that a bound is the same before and after

    def extremes(self, known, points, signs):
        Stopping.calls += 1
        if Stopping.calls == Stopping.stop_at:
            raise KeyboardInterrupt
        return super().extremes(known, points, signs)


@pytest.mark.parametrize("rounds", [2, 15, 20, 21, 200, 5000])
def test_all_early_times_are_seen_and_later_ones_every_few_percent(rounds):
    found = np.array(looks(rounds, trials.FIRST_LOOKS, trials.LOOK_FACTOR))
    assert found[0] == 1 and found[-1] == rounds
    assert set(range(1, min(rounds, 20) + 1)) <= set(found)
    steps = np.diff(found)
    assert np.all(steps >= 1) and np.all(steps <= np.maximum(1, 0.1 * found[:-1]))


@pytest.mark.parametrize("law", NOISES)
def test_laws_of_noise_are_what_they_say(law):
    """E exp(s e) <= exp(s^2/2), up to the error of the mean; the skewed law attains it."""
    noise = designs.unit_noise(law, np.random.default_rng(1), 200_000)
    assert abs(noise.mean()) < 5 * noise.std() / np.sqrt(len(noise))
    if law == "skewed":
        low, high = np.unique(noise)
        s = np.linspace(-4, 4, 801)
        s = s[s != 0]
        p = designs.SKEW
        rate = np.log(p * np.exp(s * high) + (1 - p) * np.exp(s * low)) / (s**2 / 2)
        assert rate.max() == pytest.approx(1.0, abs=1e-4) and rate.max() <= 1 + 1e-12
    elif law in PROMISED:
        for s in (-1.5, -0.5, 0.5, 1.5):
            values = np.exp(s * noise - s**2 / 2)
            assert values.mean() <= 1 + 5 * values.std() / np.sqrt(len(noise))
    elif law == "loud":
        assert noise.std() == pytest.approx(1.5, rel=0.01)
    else:
        assert noise.std() == pytest.approx(1.0, rel=0.1) and np.abs(noise).max() > 8


@pytest.mark.parametrize("name", TRUTHS)
def test_truths_have_norm_b(name):
    rng = np.random.default_rng(3)
    points, kernel = rng.random((65, 2)), RBF(0.3)
    found = trials.truth_of(name, kernel, points, rng)
    assert found.norm == pytest.approx(NORM, rel=1e-12)
    values = np.abs(found(points))
    if name == "peak":
        assert values.max() == pytest.approx(NORM, rel=1e-12)
    if name == "hidden":
        # No function of this norm is larger at the first point and as small, by ridge, at sites.
        assert values[0] > 2 * values[1 : 1 + trials.SITES].max()
        gram = cross(kernel, found.centres, found.centres)
        assert found.weights @ gram @ found.weights == pytest.approx(NORM**2)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("truth", TRUTHS)
def test_a_bound_that_is_right_is_never_wrong(design, truth):
    case = Case(2, "matern-3/2", truth, "Gaussian")
    for seed in range(3):
        assert trials.first_violation(Trivial(), design, case, seed, 30, 0.1) is None


@pytest.mark.parametrize("design", [design for design in DESIGNS if design != "once"])
def test_the_first_violation_is_found_where_it_is(design):
    case = Case(1, "rbf", "spread", "Gaussian")
    found = trials.first_violation(WrongAt(), design, case, 5, 30, 0.1)
    points = np.random.default_rng([5, 1]).spawn(4)[1].random((65, 1))
    assert found.time == 7 and found.x == points[20] and found.truth > found.upper


def test_an_empty_set_is_a_violation():
    case = Case(1, "rbf", "spread", "loud")
    shrunk = Shrunk(0.3)
    found = trials.first_violation(shrunk, "fixed", case, 0, 100, 0.1)
    assert found is not None and found.x is None


def test_all_bounds_meet_the_same_data():
    """With points that no bound chooses; and a run depends on its seed and case alone."""
    seen = []

    class Spy(Trivial):
        def extremes(self, known, points, signs):
            seen.append(known.outcomes.copy())
            return super().extremes(known, points, signs)

    case = Case(1, "rbf", "peak", "uniform")
    for _ in range(2):
        trials.first_violation(Spy(), "fixed", case, 9, 12, 0.1)
    assert np.array_equal(seen[11], seen[23]) and len(seen) == 24


def test_what_is_wrong_is_flagged():
    controls = Programme(CONTROLS, ["ucb"], ["Gaussian"], runs=12)
    assert set(coverage(controls).refuted) == set(CONTROLS)


def test_a_fixed_design_is_flagged_where_one_looks_again_and_again():
    """It is not promised there, so it is no refutation; where it is promised it holds."""
    wanted = ["FixedDesign-Gaussian"]
    found = coverage(
        Programme(
            wanted,
            ["once", "stubborn"],
            ["Gaussian"],
            kernels=["rbf"],
            dims=[1],
            runs=15,
            rounds=100,
        )
    )
    assert found.is_too_often(found.rate(*wanted, ["stubborn"])) and not found.refuted
    assert found.rate(*wanted, ["once"]).wrong <= 5 and found.rate(*wanted).runs == 15


def test_a_fixed_design_is_flagged_under_an_adversary():
    """The sub-Gaussian one, for all x; where points were fixed beforehand it holds."""
    found = coverage(
        Programme(
            ["FixedDesign"],
            ["once", "selective"],
            ["Gaussian"],
            ["spread"],
            ["matern-3/2"],
            dims=[3],
            runs=8,
        )
    )
    assert found.is_too_often(found.rate("FixedDesign", ["selective"])) and not found.refuted
    first = found.first_violations()[-1]
    assert first.design == "selective" and np.isnan(first.x).all() and not np.isnan(first.truth)
    assert described(first).startswith("a contrast is")


def test_the_adversary_makes_the_noise_that_is_seen_large():
    """Q = eps' K (K + a I)^-1 eps is larger than with random sites, and g is its ridge fit."""
    rng = np.random.default_rng(2)
    sites = rng.random((trials.SITES, 3))
    gram, ridge = cross(RBF(0.3), sites, sites), trials.HIDDEN_RIDGE
    noise = trials.NOISE_SCALE * rng.standard_normal((5, 150))

    def seen(order, errors):
        large = gram[np.ix_(order, order)]
        fit = gram[:, order] @ np.linalg.solve(large + ridge * np.eye(len(order)), errors)
        return fit, errors @ fit[order]

    for errors in noise:
        order, fits = trials.selective(gram, errors, np.ones(len(gram)))
        fit, chosen = seen(order, errors)
        assert np.allclose(fit, fits[-1], atol=1e-8)
        assert chosen > 1.3 * seen(rng.integers(trials.SITES, size=150), errors)[1]


def test_runs_that_share_their_noise_are_not_counted_as_independent():
    """A bound that is wrong in 8 of 40 seeds, under all designs alike, is no rarity at delta 0.1.

    A binomial variable reaches 8 of 40 with probability 0.04, and 48 of 240 with 4e-6.
    """
    programme = Programme(["CMM"], noises=["Gaussian"], truths=["spread"], dims=[1], runs=40)
    seeds = np.random.default_rng(0).permutation(40)
    runs = [
        Run(
            "CMM", design, seed, programme.cases[seed % 2], 5 * (number < 8), np.zeros(1), 0.0, 1.0,
            2.0,
        )
        for design in DESIGNS
        for number, seed in enumerate(seeds)
    ]  # fmt: skip
    found = Coverage(programme, runs, 0)
    assert found.rate("CMM") == ErrorRate(48, 240) and not found.refuted
    assert not found.is_flagged("CMM") and not found.is_flagged("CMM", noise="Gaussian")
    always = [replace(run, time=1) for run in runs]
    assert (
        found.is_too_often(ErrorRate(40, 40))
        and "ucb, d = 1" in (Coverage(programme, always, 0).refuted["CMM"])
    )


def test_what_is_right_passes():
    found = coverage(Programme(BOUNDS, noises=PROMISED, runs=2, rounds=12))
    assert not found.refuted and set(found.bounds) == set(BOUNDS)


def test_noise_that_breaks_the_assumption_is_counted_apart():
    found = coverage(Programme(["CMM"], ["once"], ["Gaussian", "loud"], runs=12))
    assert found.rate("CMM").runs == 6 and found.rate("CMM", noise="loud").wrong >= 4
    assert not found.refuted
    assert promises_noise(kb.bounds.Srinivas(), "Rademacher")
    assert not promises_noise(kb.bounds.Srinivas(), "Gaussian")
    bound = kb.FixedDesign(noise="Gaussian")
    assert promises_noise(bound, "heteroscedastic") and not promises_noise(bound, "Rademacher")
    assert promises_design(bound, "once") and not promises_design(bound, "fixed")


def test_an_interrupted_measurement_goes_on(tmp_path, monkeypatch):
    """Of 60 runs in jobs of 24, the first job is kept, and 36 runs are made when it goes on."""
    programme = Programme({"mine": Stopping()}, ["fixed"], runs=60, rounds=5)
    monkeypatch.setattr(Stopping, "stop_at", 24 * 5 + 3)
    monkeypatch.setattr(Stopping, "calls", 0)
    with pytest.raises(KeyboardInterrupt):
        coverage(programme, tmp_path)
    assert len(list((tmp_path / "cells").iterdir())) == 1
    monkeypatch.setattr(Stopping, "calls", 1000)
    found = coverage(programme, tmp_path)
    assert found.computed == 2 and Stopping.calls == 1000 + 36 * 5
    assert [one.seed for one in found.runs] == list(range(60))


def test_killed_for_good_and_run_again(tmp_path):
    """A file that is missing or damaged is computed again, and equals what was there."""
    programme = Programme(["AMM", "GP-2sd"], ["ucb"], runs=30, rounds=8)
    before = coverage(programme, tmp_path)
    assert before.computed == 4
    jobs = sorted((tmp_path / "cells").glob("*.npz"))
    jobs[0].unlink()
    jobs[1].write_bytes(jobs[1].read_bytes()[:100])
    after = coverage(programme, tmp_path, say=lambda _: None)
    assert after.computed == 2
    assert [one.time for one in after.runs] == [one.time for one in before.runs]
    more = coverage(replace(programme, runs=48), tmp_path)
    assert more.computed == 2  # the two that had but 6 runs


def test_the_command_and_a_violation_run_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "import numpy as np, kernelbounds as kb\n"
        "class Zero(kb.Bound):\n"
        "    def extremes(self, known, points, signs):\n"
        "        return np.zeros((len(signs), len(points)))\n"
    )
    words = ["coverage", "--bounds", "AMM,mine:Zero", "--runs", "14", "--rounds", "6"]
    done = CliRunner().invoke(app, [*words, "--workers", "2", "--out", "first"])
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("mine:Zero")]
    assert rows[0][:2] == ["mine:Zero", "refuted"] and len(rows) == 3 + len(DESIGNS)
    for name in ("coverage.txt", "coverage.csv", "coverage.png", "coverage.svg"):
        assert (tmp_path / "first" / name).stat().st_size > 500
    wrong = list(csv.DictReader((tmp_path / "first" / "violations.csv").open()))
    assert len(wrong) == 14 * len(DESIGNS) and {one["bound"] for one in wrong} == {"mine:Zero"}
    one = wrong[20]
    again = CliRunner().invoke(app, [*shlex.split(one["command"])[1:], "--out", "again"])
    assert again.exit_code == 0, again.output
    (found,) = csv.DictReader((tmp_path / "again" / "violations.csv").open())
    assert found == one


def test_rivals_are_there_by_name():
    designs = ["once", "selective"]
    programme = Programme(["rivals", "CMM"], designs, ["Rademacher"], runs=12, rounds=10)
    found = coverage(programme)
    assert [*found.bounds] == [*kb.bounds.RIVALS, "CMM"] and not found.refuted


def test_a_programme_that_is_changed_still_makes_bounds_for_each_problem():
    """The ridge of this rival depends on the kernel, the dimension and the rounds."""
    programme = replace(Programme(["Whitehouse 2023"], ["once"], runs=1), rounds=50)
    assert programme.bounds == ["Whitehouse 2023"]
    assert [job.given for job in programme.jobs()] == [None]


def test_refusals():
    assert "no design is called 'nowhere'" in refused(lambda: Programme(["CMM"], ["nowhere"]))
    assert "no method is called 'CNN'" in refused(lambda: Programme(["CNN"]))
    refused(lambda: Programme({"mine": 3}), "mine must be a kernelbounds.Bound, got 3")
    refused(lambda: Programme(["CMM"], runs=0), "runs must be")
    refused(lambda: Programme(["CMM"], dims=[]), "no number of inputs")
    refused(lambda: Programme(["CMM"], delta=0.0), "delta must be")
    done = CliRunner().invoke(app, ["coverage", "--dims", "1,two"])
    assert done.exit_code == 2 and "must be whole numbers" in done.output


@pytest.mark.slow
@pytest.mark.parametrize("name", BOUNDS)
def test_what_is_right_passes_in_a_thousand_runs(name):
    """At least 1000 runs in which the bound promises to hold, under each design that it names."""
    found = coverage(Programme([name], noises=PROMISED, runs=1000, rounds=60), workers=2)
    assert not found.refuted


@pytest.mark.slow
def test_a_radius_shrunk_by_a_fifth_is_flagged_everywhere():
    found = coverage(Programme(["CMM-shrunk"], noises=PROMISED, runs=100), workers=2)
    assert set(DESIGNS) - {"stubborn"} <= set(found.refuted["CMM-shrunk"])

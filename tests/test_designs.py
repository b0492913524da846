"""Bounds on data with fixed points and without: the rules, the claims, and what is said of them."""

from __future__ import annotations

import csv
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern
from typer.testing import CliRunner

import kernelbounds as kb
from kernelbounds.cli import app
from kernelbounds.paper import design_rates, designs, specs
from kernelbounds.paper.cells import Cell
from kernelbounds.paper.design_rates import DesignGroup
from kernelbounds.paper.designs import CLAIMS, DesignRuns
from kernelbounds.paper.reproduce import EXPERIMENTS
from kernelbounds.paper.results import ErrorRate
from kernelbounds.paper.specs import Choices


def _wrong(design, law="Gaussian", kernel="matern-5/2", rounds=100):
    found = DesignRuns(kernel, design, law, 0, rounds=rounds).run()
    return {name: dict(zip(CLAIMS, found[name].T, strict=True)) for name in ("wrong", "again")}


class TestStudies:
    def test_how_many(self):
        found = designs.jobs(Choices())
        # All laws with fixed points; else those of the first kernel, and Gaussian noise.
        assert len(found) == 10 * (9 + 3 + 3 * 5) == len({study.name for study in found})
        assert found == EXPERIMENTS["designs"].jobs(Choices())
        assert not any(isinstance(study, Cell) for study in found)
        runs = {study.design: study.runs for study in found}
        assert runs == specs.DESIGNS
        quick = designs.jobs(Choices(rounds=150, repetitions=3))
        assert sum(study.runs for study in quick) < sum(study.runs for study in found) / 10

    def test_when_bounds_are_computed(self):
        study = DesignRuns("rbf", "fixed", "Gaussian", 0)
        assert study.times == [30, 100, 300]
        assert replace(study, design="policy").times == [30, 100]
        assert replace(study, rounds=150).times == [30, 100]
        assert replace(study, rounds=12).times == [12]

    @pytest.mark.parametrize("law", designs.NOISE_LAWS)
    def test_noise_has_the_scale_that_is_believed(self, law):
        drawn = designs.draw_noise(law, np.random.default_rng(0), 40_000) / specs.NOISE
        # Standard errors of the mean and the mean square are at most 0.005 and 0.0071.
        assert abs(drawn.mean()) < 0.025 and abs((drawn**2).mean() - 1) < 0.035
        assert {"Rademacher": 1.0, "uniform": math.sqrt(3), "Gaussian": math.inf}[law] >= max(
            abs(drawn)
        )
        for s in (0.5, 1.0):  # standard errors are below 0.7 %
            assert np.exp(s * drawn).mean() < 1.05 * math.exp(s**2 / 2)


class TestClaims:
    def test_the_process_is_that_of_scikit_learn(self):
        rng = np.random.default_rng(1)
        kernel, points, grid = Matern(0.5, nu=2.5), rng.random((40, 2)), rng.random((9, 2))
        f = kb.SyntheticProblem.draw(kernel, 2, rng).function
        outcomes = f(points) + 0.1 * rng.standard_normal(40)
        sequence = kb.ConfidenceSequence(kernel, 10.0, 0.1)
        sequence.update(points, outcomes)
        mean, deviation = designs.process(sequence.known, grid)
        fixed = Matern(0.5, "fixed", nu=2.5)
        prior = ConstantKernel(4.0, (1e-2, 1e4)) * fixed
        rival = GaussianProcessRegressor(prior, alpha=0.01).fit(points, outcomes)
        theirs, spread = rival.predict(grid, return_std=True)
        assert mean == pytest.approx(theirs, abs=2e-3)
        assert deviation == pytest.approx(spread, rel=1e-2)
        # Of a functional as of the point that it is.
        one = designs.process(sequence.known, kb.functionals.Sum(grid[:1], [1.0]))
        assert one[0] == pytest.approx(mean[:1]) and one[1] == pytest.approx(deviation[:1])

    def test_they_are_those_of_the_sequence(self):
        rng = np.random.default_rng(0)
        sequence = kb.ConfidenceSequence(Matern(0.5, nu=1.5), 10.0, 0.1, 0.1)
        points, grid = rng.random((20, 1)), rng.random((5, 1))
        sequence.update(points, np.sin(points[:, 0]))
        lower, upper = designs.claims(sequence, grid)
        assert lower.shape == upper.shape == (len(CLAIMS), 5) and np.all(lower < upper)
        for i, bound in enumerate((kb.CMM(), kb.FixedDesign())):
            assert np.array_equal([lower[i], upper[i]], sequence.bounds(grid, bound))
        mean, deviation = designs.process(sequence.known, grid)
        assert upper[4] == pytest.approx(mean + 1.6448536 * deviation)
        assert upper[5] == pytest.approx(mean + 2 * deviation)

    def test_what_excludes_every_function_is_wrong(self):
        sequence = kb.ConfidenceSequence(Matern(0.5, nu=1.5), 1.0, 0.1, 0.1)
        sequence.update([[0.5]] * 5, [9.0] * 5)
        lower, upper = designs.claims(sequence, np.array([[0.5], [0.6]]))
        assert np.all(lower[0] > upper[0]) and np.all(lower[4] < upper[4])


class TestRules:
    def test_when_a_site_was_measured_enough(self):
        for run in range(50):
            for design, most in designs.PATIENCE.items():
                enough = designs.ENOUGH[design]
                rng = np.random.default_rng(run)
                found = designs.measured_until(enough, most, "Gaussian", rng)
                sums = np.cumsum(found)
                done = [enough(float(s), n) for n, s in enumerate(sums, 1)]
                assert not any(done[:-1]) and (done[-1] or len(found) == most)
        assert designs.ENOUGH["striking"](-0.151, 1) and designs.ENOUGH["hoped"](0.0, 3)
        assert not designs.ENOUGH["striking"](0.21, 2) and not designs.ENOUGH["hoped"](-1, 3)

    def test_measuring_until_it_is_as_hoped_breaks_bounds_for_one_x(self):
        """10 sites cannot show it, 80 do; each of several runs is wrong, and no fresh one is."""
        found = _wrong("hoped")
        assert found["wrong"]["one x"].all() and found["wrong"]["one x, Gaussian"].all()
        assert not found["again"]["one x"].any()
        assert not found["wrong"]["CMM"].any()
        assert not _wrong("hoped", rounds=10)["wrong"]["one x"].any()

    def test_measuring_until_it_is_striking_breaks_bounds_for_all_x(self, monkeypatch):
        monkeypatch.setitem(specs.DESIGNS, "striking", 40)  # four runs of 100 rounds
        found = _wrong("striking")
        assert found["wrong"]["all x"].sum() >= 2
        assert not found["again"]["all x"].any() and not found["wrong"]["CMM"].any()

    def test_a_policy_and_looks(self):
        found = DesignRuns("matern-3/2", "policy", "uniform", 0, rounds=12).run()
        assert found["half_width"].shape == (2, 1, len(CLAIMS)) == found["missed"].shape
        assert not found["missed"][..., 0].any(), "CMM"
        looks = DesignRuns("rbf", "looks", "Gaussian", 0, rounds=12).run()
        assert looks["wrong"].shape == (2, len(CLAIMS)) and not looks["wrong"][:, 0].any()

    def test_looking_more_often_finds_more(self, monkeypatch):
        """With factors of 100 there are two looks, at the first and the last outcome."""
        monkeypatch.setitem(specs.DESIGNS, "looks", 400)  # ten runs of 25 rounds
        often = _wrong("looks", rounds=25)["wrong"]["GP"]
        monkeypatch.setattr(designs, "LOOK_FACTOR", 100)
        seldom = _wrong("looks", rounds=25)["wrong"]["GP"]
        assert np.all(often >= seldom) and often.sum() > seldom.sum()

    def test_functions_are_those_of_all_laws_and_noise_is_its_own(self):
        one, two = (DesignRuns("rbf", "fixed", law, 0, rounds=12) for law in designs.NOISE_LAWS[:2])
        data = [designs.fixed_data(s, np.random.default_rng(5), 12) for s in (one, two)]
        assert data[0][0].function(data[0][3]) == pytest.approx(data[1][0].function(data[1][3]))
        assert np.array_equal(data[0][1], data[1][1]) and not np.allclose(data[0][2], data[1][2])


class TestSummary:
    def test_a_rate_has_an_exact_interval(self):
        low, high = ErrorRate(3, 40).interval
        assert low == pytest.approx(beta.ppf(0.025, 3, 38))
        assert high == pytest.approx(beta.ppf(0.975, 4, 37))
        assert str(ErrorRate(0, 200)) == "0.0 % [0.0, 1.8]" and str(ErrorRate(1, 4)).startswith(
            "25.0 % ["
        )

    def test_a_group(self):
        missed = np.zeros((4, 1, len(CLAIMS)))
        missed[:3, 0, 0], missed[:1, 0, 2] = 0.005, 0.5
        wrong = missed > 0.1
        arrays = {"missed": missed, "wrong": wrong, "half_width": missed + 1}
        one = DesignGroup(DesignRuns("rbf", "fixed", "Gaussian", 0, rounds=12), arrays)
        (_, t, fresh, anywhere), (_, _, _, at_one) = one.rates()
        assert (t, fresh) == (12, False)
        assert anywhere["CMM"] == ErrorRate(3, 4) and at_one["CMM"] == ErrorRate(0, 4)
        assert at_one["one x"] == ErrorRate(1, 4) and "one x" not in anywhere
        assert "one x, Gaussian" in at_one
        other = replace(one, job=replace(one.job, law="uniform"))
        assert all("one x, Gaussian" not in rates for *_, rates in other.rates())
        assert one.widths()[12][0] == pytest.approx(1 + 0.75 * 0.005)
        text = design_rates.as_text([one])
        assert "75.0 % [19.4, 99.4]" in text and "12.50 %" in text and "RBF, d = 3" in text


@pytest.mark.slow
def test_reproduces_and_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(designs, "DIMS", {"matern-3/2": 1})
    monkeypatch.setattr(designs, "NOISE_LAWS", designs.NOISE_LAWS[:2])
    command = ["reproduce", "designs", "--rounds", "9", "--reps", "2", "--workers", "1"]
    command += ["--out", str(tmp_path)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    names = {"designs.txt", "designs.csv", "designs.png", "designs.svg"}
    assert names <= {file.name for file in tmp_path.iterdir()}
    text = (tmp_path / "designs.txt").read_text()
    assert text in result.output and "once more, fresh noise" in text
    rows = list(csv.DictReader((tmp_path / "designs.csv").open()))
    assert {row["design"] for row in rows} == set(specs.DESIGNS)
    assert all(int(row["runs"]) == 4 for row in rows)
    assert all(float(row["low"]) <= float(row["share"]) <= float(row["high"]) for row in rows)
    assert 'id="designs"' in (tmp_path / "report.html").read_text()
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "cells").iterdir()}
    assert len(before) == 5 * 2 * 2
    victim = next(iter(before))
    victim.write_bytes(b"")
    assert CliRunner().invoke(app, command).exit_code == 0
    after = {file: file.stat().st_mtime_ns for file in (tmp_path / "cells").iterdir()}
    assert {file for file in before if before[file] != after[file]} == {victim}
    assert (tmp_path / "designs.txt").read_text() == text


def test_widths_of_a_thousand_are_of_single_runs(monkeypatch):
    monkeypatch.setattr(designs, "LATE_TIME", 40)
    monkeypatch.setattr(designs, "TIMES", (10,))
    study = DesignRuns("matern-3/2", "fixed", "Gaussian", 0, rounds=40)
    found = study.run()
    assert found["late_half_width"].shape == (1, len(CLAIMS))
    assert np.all(found["late_half_width"][0] < found["half_width"][0, 0])
    assert list(DesignGroup(study, found).widths()) == [10, 40]
    assert "late_half_width" not in replace(study, law="uniform").run()

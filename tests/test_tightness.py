"""Regret with several radii: the radii, what is run, and what is said of it."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest
from problems import KERNEL, POINTS
from scipy.optimize import brentq
from typer.testing import CliRunner

import kernelbounds as kb
from kernelbounds.cli import app
from kernelbounds.paper import cells, regret_by_radius, table1
from kernelbounds.paper.cells import Cell, Limit, MethodRuns, Scales
from kernelbounds.paper.regret_by_radius import Radii
from kernelbounds.paper.reproduce import EXPERIMENTS
from kernelbounds.paper.specs import Choices, Setting

SIGMA, DELTA, B = 0.1, 0.05, 5.0


def _sequence(mixture, count=12):
    seq = kb.ConfidenceSequence(KERNEL, B, SIGMA, DELTA, mixture=mixture)
    rng = np.random.default_rng(0)
    if count:
        y = np.sin(5 * POINTS[:count, 0]) + SIGMA * rng.standard_normal(count)
        seq.update(POINTS[:count], y)
    return seq


class TestRadii:
    @pytest.mark.parametrize("factor", [1e-3, 1.0])
    @pytest.mark.parametrize("count", [0, 12])
    def test_one_scale_is_the_papers_radius(self, factor, count):
        papers = _sequence(kb.mixtures.Single(factor * B**2), count).radius
        assert _sequence(Scales((factor,)), count).radius == pytest.approx(papers, rel=1e-9)

    def test_several_scales_solve_the_equation(self):
        factors = Scales().factors
        assert factors == (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
        # R^2 = Q + 2 sigma^2 ln(1/delta) for each scale alone.
        alone = [_sequence(kb.mixtures.Single(f * B**2)).radius ** 2 for f in factors]
        losses = np.array(alone) + 2 * SIGMA**2 * math.log(DELTA)

        def excess(squared):
            return np.logaddexp.reduce((squared - losses) / (2 * SIGMA**2)) - math.log(5 / DELTA)

        found = _sequence(Scales()).radius ** 2
        assert found == pytest.approx(brentq(excess, 0.0, 2 * max(alone)), rel=1e-9)
        assert found <= min(alone) + 2 * SIGMA**2 * math.log(5) * (1 + 1e-9)

    def test_the_limit_is_the_noise_energy_and_the_truth_is_inside(self):
        cell = Cell(Setting("matern-5/2", 0.5, rounds=40), "CMM limit", 1)
        found, problem = cell.run(), cells.problem_of(cell)
        points = cells.played(cell, found["regret"])
        noise = found["outcome"] - problem.values(points)
        assert noise == pytest.approx(cells.noise_of(cell))
        assert regret_by_radius.radius_ratios(cell, found, [7, 40]) == pytest.approx([1.0, 1.0])
        assert Limit.of(noise).energies[40] >= noise @ noise
        values = problem.values(points)
        assert np.all((found["lower"] <= values) & (values <= found["upper"]))

    def test_radii_of_finished_cells(self):
        cell = Cell(Setting("rbf", 0.2, rounds=30), "CMM default", 0)
        found = cell.run()
        points = cells.played(cell, found["regret"])
        seq = kb.ConfidenceSequence(cell.setting.make_kernel(), 10.0, 0.1, 0.01)
        seq.update(points, found["outcome"])
        noise = found["outcome"] - cells.problem_of(cell).values(points)
        [ratio] = regret_by_radius.radius_ratios(cell, found, [30])
        assert ratio == pytest.approx(seq.radius**2 / (noise @ noise))


class TestSpecs:
    def test_the_cells_are_those_of_table_1_and_more(self):
        found = regret_by_radius.jobs(Choices())
        assert len(found) == 6 * 5 * 10 + 6 * 3 * 10 == len({cell.name for cell in found})
        assert len(set(found) & set(table1.jobs(Choices()))) == 6 * 2 * 10
        loose = EXPERIMENTS["figure-loose"].jobs(Choices())
        assert len(set(found) & set(loose)) == 4 * 2 * 10
        methods = {cell.method for cell in found if cell.setting.is_loose}
        assert methods == {"DMM", "CMM", "CMM default"}

    def test_all_radii_meet_the_same_problems(self):
        setting = Setting("matern-3/2", 0.2, rounds=3)
        first = [Cell(setting, m, 1).run()["outcome"][0] for m in regret_by_radius.METHODS]
        assert len(set(first)) == 1


def _runs(regret, setting=None, rounds=1000):
    """Runs that end with this regret, by method; (repetitions,)."""
    setting = setting or Setting("matern-5/2", 0.5, rounds=rounds)
    return [
        MethodRuns(setting, m, np.array(r, float)[:, None], np.zeros(1)) for m, r in regret.items()
    ]


def test_ratios_are_paired():
    rng = np.random.default_rng(0)
    other = rng.uniform(50, 150, 10)
    one, same = _runs({"CMM": 0.8 * other, "DMM": other})
    found = regret_by_radius.ratio(one, same)
    assert (found.value, found.low, found.high) == pytest.approx((0.8, 0.8, 0.8))
    noisy, same = _runs({"CMM": 0.8 * other + rng.normal(0, 5, 10), "DMM": other})
    found = regret_by_radius.ratio(noisy, same)
    assert found.low < 0.8 < found.high < found.low + 0.15
    alone = regret_by_radius.ratio(*_runs({"CMM": [8.0], "DMM": [10.0]}))
    assert alone.value == 0.8 and math.isinf(alone.high)


@pytest.mark.parametrize(("default", "said"), [([62, 64], "met"), ([90, 90], "not met")])
def test_aims(default, said):
    regret = {"DMM": [100, 100], "CMM": [98, 99], "CMM scales": [90, 92]}
    runs = _runs(regret | {"CMM default": default, "CMM limit": [60, 60]})
    radii = {(runs[0].setting, m): np.array([[9.0, 2.0]]) for m in ("CMM", "CMM default")}
    aims = [
        line for line in regret_by_radius.as_text(Radii(runs, radii)).splitlines() if "aim" in line
    ]
    assert len(aims) == 2 and all(line.endswith("  " + said) for line in aims)
    few = _runs(regret | {"CMM default": default, "CMM limit": [60, 60]}, rounds=100)
    radii = {(few[0].setting, m): np.array([[9.0, 2.0]]) for m in ("CMM", "CMM default")}
    assert "aim" not in regret_by_radius.as_text(Radii(few, radii)), "they are for 1000 rounds"


def test_reproduces(tmp_path):
    options = ["--rounds", "10", "--kernels", "matern-5/2", "--workers", "1"]
    for reps in (2, 1):
        folder = tmp_path / str(reps)
        command = ["reproduce", "tightness", *options, "--reps", str(reps), "--out", str(folder)]
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
        names = {"tightness.txt", "tightness.csv", "tightness.png", "tightness.svg"}
        assert names <= {file.name for file in folder.iterdir()}
        text = (folder / "tightness.txt").read_text()
        assert text in result.output and "0.2, 20" in text and "t = 10" in text
        assert not {"nan", "inf", "None"} & set(text.split())
        rows = list(csv.DictReader((folder / "tightness.csv").open()))
        assert len(rows) == 2 * 5 + 6 * 3
        for row in rows:
            if row["method"] == "CMM limit":
                assert float(row["over_limit"]) == 1.0
            assert bool(row["standard_error"]) == (reps == 2)
        assert 'id="tightness"' in (folder / "report.html").read_text()

"""Rounds until a regret is certified: the functions, the trials, and what is said of them."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern
from typer.testing import CliRunner

import kernelbounds as kb
from kernelbounds.cli import app
from kernelbounds.paper import certified_rounds
from kernelbounds.paper.cells import Cell
from kernelbounds.paper.certified_rounds import (
    BOUNDS,
    KERNELS,
    MIXTURE_TITLES,
    CertificateRun,
    KnownFunction,
    first_certified,
    known_function,
    norm_of,
    wrong_runs,
)
from kernelbounds.paper.reproduce import EXPERIMENTS
from kernelbounds.paper.results import Repetitions
from kernelbounds.paper.specs import Choices


class TestFunctions:
    @pytest.mark.parametrize("name", KERNELS)
    def test_they_have_mean_0_and_range_1_on_their_points(self, name):
        target = known_function(name)
        values = target.values(target.points)
        assert values.mean() == pytest.approx(0, abs=1e-12)
        assert np.ptp(values) == pytest.approx(1)
        assert 200 <= len(target.points) <= 1100
        assert set(map(bytes, target.points)) <= set(map(bytes, target.finer))
        assert target.points.min() >= 0 and target.points.max() <= 1

    def test_known_maxima(self):
        branin, hartmann = (known_function(name).formula for name in ("branin", "hartmann"))
        best = np.array([[np.pi + 5, 2.275]]) / 15
        assert branin(best)[0] == pytest.approx(-0.397887, abs=1e-6)
        best = np.array([[0.114614, 0.555649, 0.852547]])
        assert hartmann(best)[0] == pytest.approx(3.86278, abs=1e-5)

    def test_the_norm_of_a_function_in_the_space(self):
        """As by solving with the kernel matrix, and close to that of the function."""
        finer = np.linspace(0, 1, 41)[:, None]
        kernel = Matern(length_scale=0.3, nu=2.5)
        f = kb.RKHSFunction(kernel, finer[[4, 20, 30]], [1.0, -2.0, 0.5])
        # The values are shifted to mean 0: the norm changes by that of a constant at most.
        shifted = KnownFunction("", lambda x: f(x) - f(finer).mean(), finer, finer)
        scale = np.ptp(f(finer))
        gram = kernel(finer)
        exact = math.sqrt(shifted.values(finer) @ np.linalg.solve(gram, shifted.values(finer)))
        assert shifted.norm(kernel) == pytest.approx(exact, rel=1e-4)
        constant = math.sqrt(np.ones(41) @ np.linalg.solve(gram, np.ones(41)))
        mean = abs(f(finer).mean())
        assert abs(shifted.norm(kernel) * scale - f.norm) <= mean * constant * (1 + 1e-3)

    @pytest.mark.parametrize("kernel", KERNELS["wiggly"])
    def test_a_finer_set_has_nearly_the_same_norm(self, kernel):
        target, (nu, length_scale) = known_function("wiggly"), kernel
        norm = norm_of("wiggly", nu, length_scale)
        coarse = KnownFunction("", target.formula, target.points, target.points)
        assert coarse.norm(Matern(length_scale, nu=nu)) == pytest.approx(norm, rel=0.01)


class TestTrials:
    def test_how_many(self):
        found = certified_rounds.jobs(Choices())
        assert len(found) == 4 * 2 * 4 * 3 == len({trial.name for trial in found})
        assert {trial.rounds for trial in found} == {400}
        few = certified_rounds.jobs(Choices(rounds=50, repetitions=2))
        assert len(few) == 64 and {trial.rounds for trial in few} == {50}
        assert found == EXPERIMENTS["certificates"].jobs(Choices())
        assert not any(isinstance(trial, Cell) for trial in found)

    @pytest.mark.parametrize("mixture", MIXTURE_TITLES)
    @pytest.mark.parametrize("bound", BOUNDS)
    def test_certificates_are_true(self, bound, mixture):
        found = CertificateRun("wiggly", 2.5, 0.25, bound, mixture, 0, rounds=70).run()
        rounds = found["rounds"].astype(int).tolist()
        assert rounds[:30] == list(range(1, 31)) and rounds[-1] == 70
        assert 40 < len(rounds) < 70 and max(np.diff(rounds)) == 2
        assert np.all(found["true_regret"] <= found["regret"])
        assert np.all(found["regret"] <= found["by_bounds"] + 1e-9)
        assert found["regret"][-1] < 0.1 < found["regret"][0]
        assert found["norm"] == pytest.approx(1.41, abs=0.01)

    def test_repetitions_differ(self):
        one, two = (CertificateRun("wiggly", 3.5, 0.5, "CMM", "default", r, 5) for r in (0, 1))
        regrets = [job.run()["regret"] for job in (one, two)]
        assert not np.array_equal(*regrets)


def test_the_first_round_that_is_good_enough():
    curves = np.array([[0.5, 0.2, 0.1, 0.2], [0.5, 0.4, 0.3, 0.2], [0.5, 0.4, 0.15, 0.04]])
    rounds, zero = np.tile([1.0, 2, 3, 5], (3, 1)), np.zeros((3, 4))
    trial = CertificateRun("wiggly", 2.5, 0.25, "CMM", "default", 0, rounds=5)
    arrays = {"norm": np.full((3, 1), 1.4), "rounds": rounds, "true_regret": zero}
    one = Repetitions(trial, arrays | {"by_bounds": curves, "regret": curves / 2})
    assert first_certified(one, "by_bounds", 0.2).tolist() == [2, 5, 3]
    assert first_certified(one, "by_bounds", 0.1).tolist() == [3, math.inf, 5]
    text = certified_rounds.as_text([one])
    assert "max upper − lower  3 (2 to 5)" in text and "5 (3 to over 5)" in text
    assert "over 5 (5 to over 5)" in text and "wrong at some time in 0 of 3 runs" in text
    assert wrong_runs(Repetitions(trial, one.arrays | {"true_regret": zero + 0.15})) == 3


def test_reproduces_and_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(certified_rounds, "KERNELS", {"wiggly": KERNELS["wiggly"]})
    command = ["reproduce", "certificates", "--rounds", "9", "--reps", "2", "--workers", "1"]
    command += ["--out", str(tmp_path)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    names = {"certificates.txt", "certificates.csv", "certificates.png", "certificates.svg"}
    assert names <= {file.name for file in tmp_path.iterdir()}
    text = (tmp_path / "certificates.txt").read_text()
    assert text in result.output and "over 9" in text and "B = 2.12" in text
    rows = list(csv.DictReader((tmp_path / "certificates.csv").open()))
    assert len(rows) == 2 * 4 * 2 * 3
    assert float(rows[0]["norm_bound"]) == pytest.approx(1.5 * float(rows[0]["norm"]), rel=1e-5)
    assert 'id="certificates"' in (tmp_path / "report.html").read_text()
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "cells").iterdir()}
    assert len(before) == 2 * 4 * 2
    victim = next(iter(before))
    victim.write_bytes(b"")
    assert CliRunner().invoke(app, command).exit_code == 0
    after = {file: file.stat().st_mtime_ns for file in (tmp_path / "cells").iterdir()}
    assert {file for file in before if before[file] != after[file]} == {victim}

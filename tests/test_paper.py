"""The paper's experiments: what is run, that nothing is lost, and that all ways agree."""

from __future__ import annotations

import csv
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import kernelbounds as kb
from kernelbounds import theory
from kernelbounds.cli import app
from kernelbounds.paper import cells, proved_regret, specs, table1
from kernelbounds.paper.cells import Cell, MethodRuns, Recursion
from kernelbounds.paper.reproduce import EXPERIMENTS
from kernelbounds.paper.results import ResultStore
from kernelbounds.paper.specs import Choices, Setting

SMALL = Choices(rounds=12, repetitions=2, methods=("CMM", "AMM", "Random"), kernels=("rbf",))
OPTIONS = ["--rounds", "12", "--reps", "2", "--methods", "CMM,AMM,Random", "--kernels", "rbf"]


def _invoke(*arguments):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)], catch_exceptions=True)


def _results(folder, choices=SMALL, name="table1"):
    place = ResultStore(Path(folder))
    return {cell: place.read(cell) for cell in EXPERIMENTS[name].jobs(choices)}


def _equal(one, two):
    """Equal numbers, but for the times."""
    return one.keys() == two.keys() and all(
        np.array_equal(one[cell][name], two[cell][name])
        for cell in one
        for name in one[cell]
        if name != "seconds"
    )


class TestSpecs:
    def test_the_help_names_all_experiments(self):
        assert set(EXPERIMENTS) == set(specs.TITLES)

    def test_table_1_is_the_papers(self):
        found = table1.jobs(Choices())
        assert len(found) == 6 * 6 * 10 == len(set(found)) == len({cell.name for cell in found})
        assert {cell.setting.rounds for cell in found} == {1000}
        assert {(c.setting.norm_bound, c.setting.noise_scale) for c in found} == {(10.0, 0.1)}
        assert {cell.setting.dim for cell in found} == {3}

    def test_experiments_share_cells(self):
        both = EXPERIMENTS["figure2"].jobs(Choices())
        assert both == table1.jobs(Choices())
        loose = EXPERIMENTS["figure-loose"].jobs(Choices())
        assert len(loose) == 4 * 60 and len(set(loose) & set(both)) == 60

    def test_every_published_cell_has_a_place(self):
        settings = Choices().settings()
        known = [table1.published(s, m) for s in settings for m in specs.METHODS if m != "CMM"]
        assert len(known) == 30 and None not in known
        assert table1.published(settings[0], "DMM").mean == 32.2
        assert table1.published(Setting("rbf", 0.5, dim=2), "DMM") is None
        assert table1.published(Setting("rbf", 0.5, rounds=100), "DMM") is None

    def test_all_methods_play_the_same_problems(self):
        setting = Setting("matern-5/2", 0.5, rounds=4)
        noise = []
        for method in ("CMM", "IGP", "AMM recursion"):
            found = Cell(setting, method, 1).run()
            noise.append(found["regret"][0])  # the first action is the first of the set for all
        assert noise[0] == noise[1] == noise[2]

    def test_unknown_names(self):
        for arguments in (
            ["table2"],
            ["table1", "--methods", "CMM,XYZ"],
            ["table1", "--kernels", "cubic"],
            ["table1", "--methods", ""],
            ["table1", "--rounds", "0"],
            ["table1", "--reps", "-1"],
            ["table1", "--seed", "-1"],
            ["table1", "--dask", ""],
        ):
            result = _invoke(*arguments, "--out", "/nonexistent")
            assert isinstance(result.exception, kb.InputError), arguments
            assert "\n" not in str(result.exception)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    result = _invoke("table1", "figure2", *OPTIONS, "--out", folder, "--workers", 1)
    assert result.exit_code == 0, result.output
    return folder


class TestRuns:
    def test_everything_is_written(self, done):
        names = {"table1.txt", "table1.tex", "table1.csv", "figure2.png", "figure2.svg"}
        assert names | {"report.html"} <= {file.name for file in done.iterdir()}
        rows = list(csv.DictReader((done / "table1.csv").open()))
        assert list(rows[0]) == [
            "kernel", "nu", "length_scale", "method", "mean", "std",
            "published_mean", "published_std", "z",
        ]  # fmt: skip
        assert len(rows) == 2 * 3
        assert {row["published_mean"] for row in rows} == {""}  # 12 rounds are not the paper's
        results = _results(done)
        final = [v["regret"].sum() for c, v in results.items() if c.method == "CMM"][:2]
        assert float(rows[0]["mean"]) == pytest.approx(np.mean(final), rel=1e-5)
        assert not list(done.glob(".*"))

    def test_numbers_do_not_depend_on_the_number_of_workers(self, done, tmp_path):
        result = _invoke("table1", *OPTIONS, "--out", tmp_path, "--workers", 2)
        assert result.exit_code == 0
        assert _equal(_results(done), _results(tmp_path))

    def test_finished_cells_are_not_computed_again(self, done):
        before = {file: file.stat().st_mtime_ns for file in (done / "cells").iterdir()}
        assert _invoke("table1", *OPTIONS, "--out", done).exit_code == 0
        assert before == {file: file.stat().st_mtime_ns for file in (done / "cells").iterdir()}

    @pytest.mark.parametrize("how", ["half", "empty", "edited", "foreign"])
    def test_damage_is_noticed_and_mended(self, done, tmp_path, how):
        folder = tmp_path / "copy"
        shutil.copytree(done, folder)
        place = ResultStore(folder)
        victim, other = table1.jobs(SMALL)[:2]
        path = place.path(victim)
        if how == "half":
            path.write_bytes(path.read_bytes()[:1000])
        elif how == "empty":
            path.write_bytes(b"")
        elif how == "foreign":
            shutil.copy(place.path(other), path)
        else:
            with np.load(path) as file:
                arrays = dict(file)
            arrays["regret"][0] += 0.125
            with path.open("wb") as file:
                np.savez(file, **arrays)
        assert place.state(victim) == "damaged"
        with pytest.raises(kb.StoredFileError):
            place.read(victim)
        result = _invoke("table1", *OPTIONS, "--out", folder)
        assert "computed again" in result.output
        assert _equal(_results(done), _results(folder))

    def test_a_folder_of_other_settings_is_left_alone(self, done):
        before = sorted(file.name for file in done.rglob("*"))
        for change in (["--seed", "1"], ["--rounds", "13"]):
            result = _invoke("table1", *OPTIONS, *change, "--out", done)
            assert isinstance(result.exception, kb.InputError)
            assert "rounds = 12" in str(result.exception)
        assert before == sorted(file.name for file in done.rglob("*"))

    def test_an_impossible_folder(self, tmp_path):
        (tmp_path / "file").write_text("")
        result = _invoke("table1", *OPTIONS, "--out", tmp_path / "file")
        assert isinstance(result.exception, kb.InputError)
        assert "cannot write results" in str(result.exception)

    @pytest.mark.slow
    def test_killed_and_resumed(self, done, tmp_path):
        command = [sys.executable, "-m", "kernelbounds", "reproduce", "table1", *OPTIONS]
        command += ["--out", str(tmp_path), "--workers", "2"]
        child = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
        place = tmp_path / "cells"
        while not (place.exists() and list(place.glob("*.npz"))):
            assert child.poll() is None
            time.sleep(0.01)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        finished = {file: file.stat().st_mtime_ns for file in place.glob("*.npz")}
        assert len(finished) >= 1
        assert subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0
        assert all(file.stat().st_mtime_ns == when for file, when in finished.items())
        assert _equal(_results(done), _results(tmp_path))

    def test_interrupted(self, tmp_path):
        command = [sys.executable, "-m", "kernelbounds", "reproduce", "table1", *OPTIONS]
        command += ["--rounds", "500", "--out", str(tmp_path), "--workers", "1"]
        child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        while not list(tmp_path.glob("cells/*.npz")):
            assert child.poll() is None
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        assert "the same command goes on" in child.communicate(timeout=30)[1]
        assert child.returncode == 130
        for file in tmp_path.glob("cells/*"):
            with np.load(file) as found:
                assert len(found["regret"]) == 500


@pytest.mark.slow  # that of update_from, in test_cluster.py, is not
class TestCluster:
    def test_on_dask_with_a_worker_killed(self, tmp_path):
        distributed = pytest.importorskip("distributed")
        choices = Choices(60, 2, methods=("CMM", "DMM", "AMM"), kernels=("rbf",))
        options = ["--rounds", "60", "--reps", "2", "--methods", "CMM,DMM,AMM", "--kernels", "rbf"]
        address_file = tmp_path / "scheduler.json"
        dask, quiet = [sys.executable, "-m", "dask"], {"stderr": subprocess.DEVNULL}
        place = ["--scheduler-file", str(address_file)]
        started = [
            subprocess.Popen(
                [
                    *dask,
                    "scheduler",
                    *place,
                    "--host",
                    "127.0.0.1",
                    "--port",
                    "0",
                    "--no-dashboard",
                ],
                **quiet,
            )
        ]
        try:
            worker = [*dask, "worker", *place, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
            started += [subprocess.Popen(worker, cwd=tmp_path, **quiet) for _ in range(2)]
            while not address_file.exists():
                time.sleep(0.05)
            with distributed.Client(scheduler_file=str(address_file)) as client:
                client.wait_for_workers(2, timeout=60)
                address = client.scheduler.address
            command = [sys.executable, "-m", "kernelbounds", "reproduce", "table1", *options]
            command += ["--out", str(tmp_path / "far"), "--dask", address]
            run = subprocess.Popen(command, **quiet)
            while not list((tmp_path / "far").glob("cells/*.npz")):
                assert run.poll() is None
                time.sleep(0.01)
            started[-1].kill()
            assert run.wait(timeout=120) == 0
        finally:
            for process in reversed(started):
                process.kill()
                process.wait()
        assert _invoke("table1", *options, "--out", tmp_path / "near").exit_code == 0
        assert _equal(_results(tmp_path / "near", choices), _results(tmp_path / "far", choices))

    def test_an_unreachable_cluster(self, tmp_path):
        pytest.importorskip("distributed")
        result = _invoke("table1", *OPTIONS, "--out", tmp_path, "--dask", "tcp://127.0.0.1:1")
        assert isinstance(result.exception, kb.KernelBoundsError)
        assert "127.0.0.1:1" in str(result.exception)


def test_what_has_nothing_to_run_is_left_out_and_what_is_there_is_shown(tmp_path):
    """``scale`` has no loads with this kernel, and Figure 1 depends on no choice."""
    options = ["--rounds", "4", "--reps", "1", "--kernels", "matern-3/2", "--workers", "1"]
    result = _invoke("figure1", "scale", *options, "--out", tmp_path)
    assert result.exit_code == 0 and "scale has nothing to run" in result.output
    [stored] = (tmp_path / "cells").iterdir()
    written = stored.stat().st_mtime_ns
    assert _invoke("table1", *options, "--out", tmp_path).exit_code == 0
    page = (tmp_path / "report.html").read_text()
    assert 'id="figure1"' in page and 'id="table1"' in page and 'id="scale"' not in page
    assert stored.stat().st_mtime_ns == written


def test_the_recursion_is_amm_and_dmm():
    rng = np.random.default_rng(0)
    problem = kb.SyntheticProblem.draw(Setting("matern-5/2", 0.5).make_kernel(), 3, rng)
    sequence = problem.sequence(rounds=50)
    a = sequence.assumptions
    ridge = a.noise_scale**2 / a.mixture_scale
    factors = (1.0, 0.1, 0.3, 3.0, 10.0)
    one = Recursion(sequence.kernel, a, [ridge], (50, 3))
    five = Recursion(sequence.kernel, a, [f * ridge for f in factors], (50, 3))
    for _ in range(50):
        X = problem.actions(rng)
        if len(sequence):
            assert one.upper(X) == pytest.approx(sequence.upper(X, kb.AMM()), abs=1e-6)
            assert five.upper(X) == pytest.approx(sequence.upper(X, kb.DMM()), abs=1e-6)
        outcome = float(problem.values(X[:1])[0]) + problem.noise(rng)
        for recursion in (one, five):
            recursion.update(X[:1], outcome)
        sequence.update(X[0], outcome)


def test_z_and_paired_differences():
    setting = Setting("rbf", 0.5)
    regret = np.cumsum(np.full((10, 1000), 0.0322), axis=1) * np.linspace(0.9, 1.1, 10)[:, None]
    one = MethodRuns(setting, "DMM", regret, regret)
    assert one.mean == pytest.approx(32.2) and table1.z_score(one) == pytest.approx(0, abs=1e-9)
    other = MethodRuns(setting, "CMM", regret - 0.001, regret)
    found = table1.paired_difference([one, other], setting)
    assert found.value == pytest.approx(-0.001)
    assert found.low <= found.value <= found.high
    amm = MethodRuns(setting, "AMM", regret + 50, regret)
    assert table1.published_order([one, amm]) == (1, 0)
    assert table1.published_order([one, MethodRuns(setting, "AMM", regret - 9, regret)])[1]
    text = table1.as_text([other, one])
    assert "32.2 ± 20.9" in text and "paired" in text
    assert r"\textbf{32.2}" in table1.as_latex([one])
    assert Cell(setting, "CMM", 0).cost > 1


class TestTheory:
    def test_cells_of_before_keep_their_names_and_data(self):
        cell = Cell(Setting("rbf", 0.5), "AMM", 3)
        assert cell.name == "rbf-l0.5-d3-B10-s0.1-T1000-seed0-AMM-3"
        assert cell.as_data()["setting"] == {
            "kernel": "rbf", "length_scale": 0.5, "dim": 3, "rounds": 1000, "norm_bound": 10.0,
            "noise_scale": 0.1,
        }  # fmt: skip
        quiet = Cell(Setting("rbf", 0.5, noise_scale=0.0, noiseless=True), "AMM", 3)
        assert quiet.name == "rbf-l0.5-d3-B10-s0-T1000-noiseless-seed0-AMM-3"
        assert quiet.as_data()["setting"]["noiseless"] is True

    def test_shares_the_cells_of_table_1(self):
        table, found = (set(EXPERIMENTS[name].jobs(Choices())) for name in ("table1", "theory"))
        assert len(found & table) == 3 * 10 and len(found - table) == 3 * 4 * 10
        assert all(cell.setting.noiseless for cell in found - table)
        assert proved_regret.horizons(1000) == [125, 250, 500, 1000]
        assert proved_regret.horizons(3) == [2, 3]

    @pytest.mark.parametrize("noiseless", [False, True])
    def test_a_finished_cell_is_played_again_from_its_regret(self, noiseless):
        noise = {"noise_scale": 0.0, "noiseless": True} if noiseless else {}
        cell = Cell(Setting("matern-5/2", 0.2, 2, 15, **noise), "AMM", 1)
        found = cell.run()
        sequence = cells.finished_sequence(cell, found)
        a = sequence.assumptions
        then = kb.ConfidenceSequence(
            sequence.kernel, a.norm_bound, a.noise, a.delta, mixture=a.mixture
        )
        for t, x in enumerate(sequence.points):
            lower, upper = then.bounds(x[None], sequence.bound)
            assert lower[0] == pytest.approx(found["lower"][t], abs=1e-6)
            assert upper[0] == pytest.approx(found["upper"][t], abs=1e-6)
            then.update(x, sequence.outcomes[t])
        if noiseless:
            values = cells.problem_of(cell).values(sequence.points)
            assert found["outcome"] == pytest.approx(values)
            assert sequence.bound.ridge == pytest.approx(15 ** (-22.5 / 26.5))

    def test_reproduces(self, tmp_path):
        options = ["--rounds", "24", "--reps", "2", "--kernels", "rbf,matern-5/2", "--workers", "1"]
        result = _invoke("theory", *options, "--out", tmp_path)
        assert result.exit_code == 0, result.output
        names = {"theory-regret.png", "theory-regret.svg", "theory-growth.png", "theory-growth.svg"}
        names |= {"theory.txt", "theory.csv", "report.html"}
        assert names <= {file.name for file in tmp_path.iterdir()}
        rows = list(csv.DictReader((tmp_path / "theory.csv").open()))
        assert len(rows) == 2 * 24 + 2 * 4
        for row in rows:
            regret, *bounds = (float(row[name]) for name in list(row)[2:])
            assert regret <= bounds[0] <= bounds[1] * (1 + 1e-9)
        text = (tmp_path / "theory.txt").read_text()
        assert text in result.output and "ln(T)^3" in text and "no noise" in text
        assert "theory" in (tmp_path / "report.html").read_text()


def test_growth_is_fitted():
    t = np.arange(1.0, 1001)
    regret = np.array([3 * t**0.4, 5 * t**0.5])
    assert proved_regret.running_slopes(regret) == pytest.approx([0.4, 0.5])
    assert proved_regret.slopes(t[99::100], regret[:, 99::100]) == pytest.approx([0.4, 0.5])
    found = proved_regret.FittedGrowth("", theory.polynomial_rate(3.0), 1000, np.array([0.4, 0.5]))
    mean = found.mean
    assert mean.value == pytest.approx(0.45) and mean.low < 0.45 < mean.high
    assert found.proved > 0.75

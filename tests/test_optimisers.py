"""``kernelbounds reproduce optimisers``: ours beside others', with stand-ins for some of them."""

import csv
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import kernelbounds as kb
from kernelbounds.cli import app
from kernelbounds.paper import contenders, optimisers, specs
from kernelbounds.paper.contenders import CONTENDERS, OBSERVED, Contender, Optimiser
from kernelbounds.paper.optimisers import OptimiserRun

QUICK = ("KernelUCB", "Study, best", "Study, best, in Optuna", "Optuna TPE", "random")


def problem(dim=1):
    return kb.Problem(
        [f"x{i}=0:1" for i in range(dim)], "y=-3:3", 0.1, kernel="Matern(0.4, nu=2.5)",
        norm_bound=3.0,
    ).settled()  # fmt: skip


def played(name, trials, seed=0, dim=1):
    """Play sin(5 x_0) with noise, and return the optimiser."""
    made = CONTENDERS[name].make(problem(dim), seed)
    noise = 0.1 * np.random.default_rng(1).standard_normal(trials)
    for error in noise:
        x = made.ask()
        assert x.shape == (dim,) and np.all((x >= 0) & (x <= 1))
        made.tell(x, float(np.sin(5 * x[0]) + error))
    return made


class Middle(Optimiser):
    """Asks for the middle, and for an error in the third trial if it is to fail."""

    def __init__(self, task, seed, fails):
        super().__init__()
        self.dim, self.fails = len(task.inputs), fails

    def ask(self):
        if self.fails and len(self.points) == 2:
            raise RuntimeError("no convergence")
        return np.full(self.dim, 0.5)


def stand_in(fails=False, **more):
    return Contender(lambda task, seed: Middle(task, seed, fails), OBSERVED, **more)


@pytest.fixture(autouse=True)
def _coarse(monkeypatch):
    """Certificates that are quick to find."""
    monkeypatch.setattr(optimisers, "CERTIFICATE_SLACK", 0.2)


@pytest.fixture
def few(monkeypatch):
    """Quick methods, stand-ins and one function alone."""
    for name in set(CONTENDERS) - set(QUICK):
        monkeypatch.delitem(CONTENDERS, name)
    monkeypatch.setitem(CONTENDERS, "failing", stand_in(fails=True))
    monkeypatch.setitem(CONTENDERS, "absent", stand_in(packages=("no-such-package",)))
    monkeypatch.setattr(optimisers, "SETTINGS", {})
    monkeypatch.setattr(optimisers, "TITLES", {"branin": "Branin"})


class TestReproduce:
    def test_the_command(self, few, tmp_path):
        options = ["--rounds", "6", "--reps", "1", "--out", str(tmp_path), "--workers", "1"]
        with pytest.warns(UserWarning, match="failing failed on branin: no convergence"):
            found = CliRunner().invoke(app, ["reproduce", "optimisers", *options])
        assert found.exit_code == 0, found.output
        assert "absent left out" in found.output and "kernelbounds[compare]" in found.output
        table = list(csv.DictReader((tmp_path / "optimisers.csv").open()))
        names = [*QUICK, "failing"]
        assert [row["method"] for row in table] == names
        for row in table:
            failed = row["method"] == "failing"
            assert (row["failed"], row["repetitions"]) == (("1", "0") if failed else ("0", "1"))
            assert (row["simple_regret"] == "") == failed == (row["certified_regret"] == "")
        by_name = {row["method"]: row for row in table}
        study, door = by_name["Study, best"], by_name["Study, best, in Optuna"]
        for column in ("cumulative_regret", "certified_regret"):
            assert study[column] == door[column]
        text = (tmp_path / "optimisers.txt").read_text()
        assert "Certificates that were wrong: 0 of 5" in text and "Failures" in text
        for file in ("optimisers.png", "optimisers-cumulative.png", "report.html"):
            assert (tmp_path / file).stat().st_size > 10_000

    def test_all_runs(self):
        jobs = optimisers.jobs(specs.Choices())
        methods = [name for name, one in CONTENDERS.items() if one.installed]
        assert len(jobs) == 5 * 6 * len(methods) == len({job.name for job in jobs})
        assert {job.trials for job in jobs} == {30}
        first = jobs[: 6 * len(methods)]  # A run that is interrupted has whole repetitions.
        assert {job.repetition for job in first} == {0}

    def test_ours_may_not_fail(self, monkeypatch):
        monkeypatch.setitem(CONTENDERS, "failing", stand_in(fails=True, ours=True))
        with pytest.raises(RuntimeError, match="no convergence"):
            OptimiserRun("branin", "failing", 30, 0).run()

    def test_all_meet_the_same_function_and_the_same_noise(self, monkeypatch):
        made = []

        def keep(task, seed):
            made.append(Middle(task, seed, False))
            return made[-1]

        for name in ("one", "other"):
            monkeypatch.setitem(CONTENDERS, name, Contender(keep, OBSERVED))
        for repetition, name in ((0, "one"), (0, "other"), (1, "one")):
            OptimiserRun("rbf", name, 3, repetition).run()
        assert made[0].outcomes == made[1].outcomes
        assert not set(made[0].outcomes) & set(made[2].outcomes)


class TestTasks:
    @pytest.mark.parametrize("name", optimisers.TITLES)
    def test_known_functions_have_the_range_and_the_turns_that_ours_are_told(self, name):
        task, turns = optimisers.task(name, 30, 0, 0), optimisers.TURNS[name]
        rng, line = np.random.default_rng(0), np.linspace(0, 1, 401)
        others, counts = rng.random((300, len(turns))), []
        values = task.values(others)
        assert values.min() > 0 and values.max() < task.best == 100
        for axis in range(len(turns)):
            points = np.repeat(others[:, None], len(line), axis=1)
            points[:, :, axis] = line
            values = task.values(points.reshape(-1, len(turns))).reshape(points.shape[:2])
            signs = np.sign(np.diff(values, axis=1))
            counts.append(int((signs[:, 1:] != signs[:, :-1]).sum(axis=1).max()))
        assert tuple(counts) == turns

    def test_largest(self):
        raw = optimisers.known_function("branin").formula
        assert optimisers.largest(raw, 2) == pytest.approx(-0.39788736, abs=1e-7)
        task = optimisers.task("matern-3_2", 30, 0, 0)
        assert task.values(np.random.default_rng(0).random((2000, 3))).max() < task.best < 10
        assert task.problem.norm_bound == pytest.approx(specs.NORM)


class TestContenders:
    @pytest.mark.parametrize("name", QUICK)
    def test_they_find_the_maximum_or_come_near(self, name):
        x = played(name, 15).recommended()
        assert np.sin(5 * x[0]) > 0.9

    def test_through_optuna_the_points_are_those_of_a_study(self):
        ours, door = (played(f"Study, best{more}", 9, dim=2).points for more in ("", ", in Optuna"))
        np.testing.assert_array_equal(ours, door)

    def test_botorch(self):
        found = played("BoTorch UCB", 6)  # three points that fill the range, and three more
        assert len(found.points) == 6 and np.sin(5 * found.recommended()[0]) > 0.9
        door = played("KernelUCB in BoTorch", 5)
        sequence = problem().sequence()
        for x, y in zip(door.points, door.outcomes):
            highest = sequence.upper(np.linspace(0, 1, 2001)[:, None]).max()
            assert sequence.upper(x[None])[0] > highest - 1e-6
            sequence.update(x[None], [y])

    def test_bayes_opt(self, monkeypatch):
        told = {}

        class Stand:
            def __init__(self, f, pbounds, **more):
                told.update(pbounds=pbounds, data=[], **more)

            def set_gp_params(self, **more):
                told.update(more)

            def register(self, params, target):
                told["data"].append((params, target))

            def suggest(self):
                return {"x1": 0.75, "x0": 0.25}

        monkeypatch.setitem(sys.modules, "bayes_opt", SimpleNamespace(BayesianOptimization=Stand))
        found = played("bayes_opt", 7, dim=2)
        assert told["pbounds"] == {"x0": (0, 1), "x1": (0, 1)} and told["alpha"] == 1e-3
        assert len(told["data"]) == 7 and told["random_state"] == 0
        np.testing.assert_array_equal(found.points[-1], [0.25, 0.75])
        best = int(np.argmax([y for _, y in told["data"]]))
        np.testing.assert_array_equal(found.recommended(), found.points[best])

    def test_seeds_matter(self):
        one, same, other = (played("Optuna TPE", 4, seed).points for seed in (0, 0, 1))
        np.testing.assert_array_equal(one, same)
        assert np.all(np.array(one) != np.array(other))

    def test_nothing_is_said_where_all_is_installed(self, monkeypatch):
        for name in CONTENDERS:
            monkeypatch.setitem(CONTENDERS, name, stand_in())
        assert contenders.missing() == ""

"""Rates of successes in tries: what is read and refused, noise scales, studies, and coverage."""

from __future__ import annotations

import json
import math

import mpmath
import numpy as np
import pytest
from problems import refused
from scipy.stats import binom

import kernelbounds as kb
from kernelbounds.arrays import EPS
from kernelbounds.facts import Between
from kernelbounds.io.csv_table import read_csv, write_csv
from kernelbounds.problem import Problem, assume, calibrate
from kernelbounds.problem.runs import Runs
from kernelbounds.problem.worth import has_worth

pytestmark = pytest.mark.usefixtures("drawn_once")

INPUT, OUTPUT = "force[N]=4:24", "rate=0:1"
KIND = {"kernel": "Matern(0.75, nu=2.5)", "norm_bound": 6.0}
RATE = {"successes": "grasped", "tries": "attempts=20"}
WORDS = ["--input", INPUT, "--output", OUTPUT, "--successes", "grasped", "--tries", "attempts=20"]
KNOWN = ["--kernel", KIND["kernel"], "--norm-bound", "6"]


def problem(output=OUTPUT, **more):
    return Problem([INPUT], output, turns=1, **(KIND | RATE | more))


def truth(force):
    return 0.25 + 0.7 * np.exp(-(((force - 14) / 6) ** 2))


def table(count=30, seed=0):
    rng = np.random.default_rng(seed)
    force = rng.uniform(4, 24, count)
    tries = rng.integers(5, 60, count)
    return force, np.stack([rng.binomial(tries, truth(force)), tries], axis=1)


def columns(force, told):
    return {"force": force, "grasped": told[:, 0], "attempts": told[:, 1]}


class TestWords:
    def test_noise_and_limits_follow(self):
        stated = problem()
        assert stated.outcomes.names == ("grasped", "attempts")
        assert stated.noise is None
        assert stated.stated_noise.scale == pytest.approx(1 / (2 * math.sqrt(20)), rel=1e-14)
        assert problem(tries="attempts").stated_noise.scale == pytest.approx(0.5, rel=1e-14)
        assert stated.limits == (0, 1)
        assert stated.facts == (Between(0, 1, region=stated.facts[0].region),)
        assert problem(limits="0.2:").limits == (0.2, 1)
        assert problem(limits=(0.1, 0.9)).limits == (0.1, 0.9)

    def test_a_problem_is_saved_and_read(self, tmp_path):
        problem().save(tmp_path / "problem.json")
        again = Problem.load(tmp_path / "problem.json")
        assert again.as_data() == problem().as_data()
        assert repr(again) == repr(problem())
        assert again.counts.planned == 20
        plain = Problem([INPUT], OUTPUT, 0.1).as_data()
        assert not {"successes", "tries"} & set(plain)
        plain_again = Problem.from_data(plain)
        assert plain_again.counts is None

    @pytest.mark.parametrize(
        ("more", "match"),
        [
            ({"tries": None}, "successes is stated without tries"),
            ({"successes": None}, "tries is stated without successes"),
            (
                {"noise": 0.1},
                "noise and tries are both stated, but the noise follows from the tries",
            ),
            (
                {"tries": "attempts=0"},
                "how many are planned for each run, such as attempts=20, got",
            ),
            ({"tries": "attempts=2.5"}, "how many are planned for each run"),
            ({"tries": 20}, "a name must be a line of text"),
            ({"tries": "grasped"}, "the name 'grasped' is given 2 times"),
            ({"successes": "rate"}, "the name 'rate' is given 2 times"),
            ({"output": "rate=0:100"}, "so its range must be within 0:1, got 0:100"),
            ({"output": "rate=0.1:1:log"}, "noise is added and does not multiply: leave out log"),
            ({"limits": "0:2"}, "rate is a rate of successes, so its limits are within 0:1"),
        ],
    )
    def test_what_is_refused(self, more, match):
        refused(lambda: problem(**more), match)

    @pytest.mark.parametrize(
        ("k", "n", "match"),
        [
            (0, 0, "attempts = 0 is not a whole number .* a run without tries has no outcome"),
            (3, 2.5, "attempts = 2.5 is not a whole number from 1"),
            (-1, -1, "attempts = -1 is not a whole number"),
            (11, 10, "grasped = 11 is more than attempts = 10; correct it"),
            (2.5, 10, "grasped = 2.5 is not a whole number of at least 0"),
            (-1, 10, "grasped = -1 is not a whole number of at least 0"),
        ],
    )
    def test_counts_are_refused_with_their_line(self, tmp_path, k, n, match):
        path = tmp_path / "runs.csv"
        write_csv(path, {"force": [5, 6], "grasped": [1, k], "attempts": [2, n]})
        refused(lambda: Runs.read(problem(), path), f"line 3: {match}")
        study = kb.Study.create(":memory:", problem())
        refused(lambda: study.tell([5.0], (k, n)), match)
        refused(lambda: study.import_runs(path), f"line 3: {match}")
        assert not len(study)

    def test_columns_are_missing(self):
        read = Runs.read
        refused(lambda: read(problem(), {"force": [5.0], "grasped": [1]}), "attempts is missing")
        refused(lambda: problem().scaled_outcomes([0.5]), "an outcome is a pair of grasped and")

    def test_a_single_outcome_has_no_row_number(self):
        wrong, right = (60, 50), (40, 50)
        refused(lambda: problem().scaled_outcomes([wrong]), "^grasped = 60 is more than")
        refused(lambda: problem().scaled_outcomes([right, wrong]), "^row 1: grasped = 60 is more")


class TestBounds:
    def test_every_run_has_its_own_noise(self):
        force, told = table()
        runs = Runs.read(problem(), columns(force, told))
        np.testing.assert_array_equal(runs.outcomes, told[:, 0] / told[:, 1])
        sequence = problem().sequence()
        sequence.update(problem().scaled(runs.points), *problem().scaled_outcomes(runs.measured))
        np.testing.assert_allclose(sequence.noise_scales, 0.5 / np.sqrt(told[:, 1]), rtol=1e-12)
        lower, upper = problem().bounds(sequence, np.linspace(4, 24, 50)[:, None])
        inside = truth(np.linspace(4, 24, 50))
        assert np.all((lower <= inside) & (inside <= upper))
        assert np.all((lower >= 0) & (upper <= 1))

    def test_noise_scales_are_rounded_up(self):
        tries = [1, 2, 3, 7, 10, 99, 12345, 10**9]
        _, scales = problem().scaled_outcomes([[0, n] for n in tries])
        with mpmath.workdps(50):
            for n, scale in zip(tries, scales, strict=True):
                exact = 1 / (2 * mpmath.sqrt(n))
                assert exact <= mpmath.mpf(float(scale)) <= exact * (1 + 16 * EPS)

    def test_more_tries_make_the_band_narrower(self):
        force, widths = table()[0], []
        for tries in (20, 200):
            told = [[round(tries * rate), tries] for rate in truth(force).tolist()]
            sequence = problem().sequence()
            sequence.update(problem().scaled(force[:, None]), *problem().scaled_outcomes(told))
            lower, upper = problem().bounds(sequence, force[:, None])
            widths.append(np.mean(upper - lower))
        assert widths[1] < 0.6 * widths[0]

    def test_assumptions_are_for_rates_and_planned_tries(self):
        stated = problem(kernel=None, norm_bound=None, experiments=20)
        few = assume(stated.replace(tries="attempts=2"), functions=20)
        many = assume(stated.replace(tries="attempts=200"), functions=20)
        assert many.chosen.width < few.chosen.width / 2
        assert many.noise == pytest.approx(0.5 / math.sqrt(200), rel=1e-12)
        values = many.values(many.functions[0], np.linspace(0, 1, 30)[:, None])
        assert np.all((values > -0.05) & (values < 1.05))
        assert not has_worth(stated)  # that a rate is between 0 and 1 is nothing special
        assert has_worth(stated.replace(limits=":0.9"))

    def test_calibration_keeps_the_noise_of_tries(self):
        force, told = table()
        found = calibrate(problem(kernel=None, norm_bound=None), force[:, None], told)
        assert found.suggestions[0].value == "follows from attempts"
        assert found.problem.noise is None
        assert found.problem.counts == problem().counts


def missed(runs, rounds, scale_of_truth, rng):
    """In how many runs the true rate is outside of its bounds at any time, at any of the forces."""
    grid, wrong = np.linspace(4, 24, 15), 0
    for _ in range(runs):
        stated = problem(delta=0.1)
        sequence = stated.sequence()
        for _ in range(rounds):
            force = rng.uniform(4, 24, 4)
            tries = rng.integers(1, 30, 4)
            grasped = rng.binomial(tries, truth(force))
            told = np.stack([grasped, tries], axis=1)
            outcomes, scales = stated.scaled_outcomes(told)
            sequence.update(stated.scaled(force[:, None]), outcomes, scales * scale_of_truth)
            try:
                lower, upper = stated.bounds(sequence, grid[:, None])
            except kb.EmptyConfidenceSetError:
                wrong += 1
                break
            if np.any((truth(grid) < lower) | (truth(grid) > upper)):
                wrong += 1
                break
    return wrong


@pytest.mark.slow
def test_coverage_of_rates():
    """Misses are no more than delta = 0.1 allows: an exact binomial test, wrong once in 10^4."""
    runs = 60
    wrong = missed(runs, 5, 1.0, np.random.default_rng(7))
    assert binom.sf(wrong - 1, runs, 0.1) > 1e-4


def test_too_little_noise_is_noticed():
    """The same test, with noise scales a fifth of what tries have, must fail."""
    runs = 60
    wrong = missed(runs, 5, 0.2, np.random.default_rng(7))
    assert binom.sf(wrong - 1, runs, 0.1) < 1e-4


class TestStudies:
    def test_counts_are_kept(self, tmp_path):
        """In the file, in exports, through undo, and for the noise scale of each trial."""
        path = tmp_path / "grasp.db"
        with kb.Study.create(path, problem()) as study:
            trial = study.ask()
            study.tell(trial, (14, 20))
            assert study.tell({"force": 9.0}, (0, 3), key="a") == (2, False)
            assert study.tell({"force": 9.0}, (0, 3), key="a").again
            refused(lambda: study.tell({"force": 9.0}, (0, 6), key="a"), "outcome .0, 3.; use")
            refused(
                lambda: study.tell(trial, (1, 2)), "already has its outcome, .14, 20.; tell a rep"
            )
            study.tell_many([[5.0], [6.0]], [[1, 4], [1, 5]])
            refused(lambda: study.tell_many([[5.0]], [[1, 4], [1, 5]]), "2 outcomes .* 1 points")
            refused(lambda: study.tell([5.0], 0.5), "an outcome is a pair")
        with kb.Study(path) as study:
            found = study.observations
            assert list(found) == ["trial", "force", "grasped", "attempts", "rate"]
            assert found["grasped"].tolist() == [14, 0, 1, 1]
            assert found["attempts"].tolist() == [20, 3, 4, 5]
            assert found["rate"].tolist() == [0.7, 0.0, 0.25, 0.2]
            np.testing.assert_allclose(
                study.sequence.noise_scales, 0.5 / np.sqrt([20, 3, 4, 5]), rtol=1e-12
            )
            assert study.undo() == [(3, {"force": 5.0}, (1, 4)), (4, {"force": 6.0}, (1, 5))]
            assert len(study.sequence) == 2
            study.export(tmp_path / "e.csv")
        assert (tmp_path / "e.csv").read_text().splitlines()[2] == "2,9.0,0,3,0.0"
        with kb.Study.create(tmp_path / "new.db", problem()) as new:
            assert len(new.import_runs(tmp_path / "e.csv")) == 2
            assert new.observations["attempts"].tolist() == [20, 3]

    def test_equal_rates_of_different_tries_are_different_runs(self, tmp_path):
        study = kb.Study.create(":memory:", problem())
        study.tell([5.0], (1, 2))
        study.import_runs({"force": [5.0], "grasped": [2], "attempts": [4]})
        again = {"force": [5.0], "grasped": [2], "attempts": [4]}
        refused(lambda: study.import_runs(again), "grasped=2 attempts=4, is equal to trial 2")

    def test_certificates_are_of_the_rate(self):
        study = kb.Study.create(":memory:", problem(), stop_within=0.9)
        force, told = table(60)
        study.tell_many(force[:, None], told)
        best = study.certificate(1.0)
        top, there = truth(np.linspace(4, 24, 400)).max(), truth(best.x[0])
        assert top - there <= best.regret <= 1
        assert best.lower <= there <= best.upper <= 1
        text = str(study.status(0.5))
        assert "noise that of independent tries" in text
        assert "known: rate between 0 and 1" in text

    def test_a_file_of_before_is_read(self, tmp_path):
        """Numbers are in the file as they were before there were rates."""
        import sqlite3

        plain = Problem([INPUT], OUTPUT, 0.1, 1, **KIND)
        with kb.Study.create(tmp_path / "s.db", plain) as study:
            study.tell([5.0], 0.5)
        with sqlite3.connect(tmp_path / "s.db") as db:
            assert db.execute("SELECT value, typeof(value) FROM outcomes").fetchall() == [
                (0.5, "real")
            ]


@pytest.mark.usefixtures("short_searches")
class TestCommands:
    @pytest.fixture
    def runs(self, tmp_path):
        write_csv(tmp_path / "runs.csv", columns(*table()))
        return tmp_path / "runs.csv"

    def test_bounds_of_a_table(self, run, runs, tmp_path):
        code, out, _ = run("bound", runs, *WORDS, *KNOWN, "--out", tmp_path / "b")
        assert code == 0
        assert "noise of at most that of independent tries" in out
        found = read_csv(tmp_path / "b" / "bounds.csv", ["force", "lower", "upper"]).columns
        assert np.all(found["lower"] <= truth(found["force"]))
        assert np.all(truth(found["force"]) <= found["upper"])
        assert "5 times the noise" in out
        stated = json.loads((tmp_path / "b" / "problem.json").read_text())
        assert (stated["successes"], stated["tries"]) == ("grasped", "attempts=20")

    def test_refusals(self, run, runs):
        code, _, said = run("bound", runs, *WORDS, *KNOWN, "--noise", "0.1")
        assert code
        assert "noise and tries are both stated, but the noise follows from the tries" in said
        code, _, said = run("bound", runs, *WORDS[:4], *KNOWN)
        assert code
        assert "state how noisy the output is" in said
        code, _, said = run("bound", runs, *WORDS[:4], *KNOWN, "--successes", "grapsed",
                            "--tries", "attempts")  # fmt: skip
        assert code
        assert "has no column 'grapsed' (did you mean 'grasped'?)" in said

    def test_data_that_refute(self, run, tmp_path):
        """Tries of a run that all succeed or all fail, at the same force, are not independent."""
        told = np.array([[0, 500], [500, 500]] * 10)
        write_csv(tmp_path / "r.csv", columns(np.full(20, 9.0), told))
        code, _, said = run("bound", tmp_path / "r.csv", *WORDS, *KNOWN)
        assert code
        assert "times that of independent tries" in said
        assert "Are the tries of a run not independent" in said

    def test_a_study(self, run, runs, tmp_path):
        file = tmp_path / "g.db"
        assert run("study", "create", file, *WORDS, *KNOWN)[0] == 0
        _, out, _ = run("study", "ask", file)
        assert "--trial 1 grasped=... attempts=..." in out
        code, out, _ = run("study", "tell", file, "--trial", "1", "grasped=14", "attempts=20")
        assert code == 0
        assert "grasped=14 attempts=20; 1 observation" in out
        for words, match in (
            (["grasped=14"], "a value of attempts is missing"),
            (["grasped=1", "attempts=0"], "a run without tries has no outcome"),
            (["grasped=3", "attempts=2"], "grasped = 3 is more than attempts = 2"),
            (["rate=0.5"], "there is no 'rate' in this study"),
        ):
            code, _, said = run("study", "tell", file, "force=9", *words)
            assert code
            assert match in said
        assert run("study", "import", file, runs)[0] == 0
        _, out, _ = run("study", "status", file, "--seconds", "0.5")
        assert "best known: force=" in out
        code, _, _ = run("study", "export", file, tmp_path / "e.csv")
        assert (tmp_path / "e.csv").read_text().startswith("trial,force,grasped,attempts,rate\n")
        _, out, _ = run("study", "tell", file, "force=9", "grasped=1", "attempts=2")
        _, out, _ = run("study", "undo", file)
        assert "force=9 N grasped=1 attempts=2" in out

    def test_a_plan(self, run, tmp_path):
        code, out, _ = run("plan", *WORDS, *KNOWN, "--most", "8", "--experiments", "5",
                           "--no-compare", "--out", tmp_path / "p")  # fmt: skip
        assert code == 0
        assert "An experiment is a run of 20 tries" in out
        assert "What you know buys" not in out

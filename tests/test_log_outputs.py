"""Logarithmic outputs: what is read and refused, what comes back, rounding, and what is said."""

from __future__ import annotations

import json
import math
import re

import mpmath
import numpy as np
import pytest
from problems import refused

import kernelbounds as kb
from kernelbounds.arrays import EPS
from kernelbounds.facts import Between, Increasing, Value
from kernelbounds.io.csv_table import read_csv, write_csv
from kernelbounds.problem import Output, Problem, assume, calibrate, plan
from kernelbounds.problem.facts_in_words import unit_region

pytestmark = pytest.mark.usefixtures("drawn_once")

INPUT, OUTPUT = "dose=0:2", "gain[V]=0.5:8:log"
KIND = {"kernel": "Matern(0.75, nu=2.5)", "norm_bound": 4.0}
WORDS = ["--input", INPUT, "--output", OUTPUT]
KNOWN = ["--kernel", KIND["kernel"], "--norm-bound", "4"]


def problem(output=OUTPUT, noise="5%", **more):
    return Problem([INPUT], output, noise, 1, **(KIND | more))


def truth(x):
    return 2 * np.exp(0.8 * np.sin(2 * x))


def data(count=25, noise=0.04, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 2, count)
    return x, truth(x) * np.exp(noise * rng.uniform(-1, 1, count))


def observed(stated, x, y):
    sequence = stated.sequence()
    sequence.update(stated.scaled(x[:, None]), *stated.scaled_outcomes(y))
    return sequence


class TestWords:
    def test_an_output_is_read_and_written(self):
        out = Output.parse("productivity[kg/h]=1.5:5:log")
        assert out == Output("productivity", 1.5, 5.0, "kg/h", log=True)
        assert Output.parse(out.text) == out
        assert out.description == "1.5 to 5 kg/h, logarithmic"
        assert out.span == math.log(5 / 1.5)

    def test_a_problem_is_saved_and_read(self, tmp_path):
        stated = problem(limits="0.1:20", increasing=["dose"])
        stated.save(tmp_path / "problem.json")
        again = Problem.load(tmp_path / "problem.json")
        assert again.as_data() == stated.as_data()
        assert repr(again) == repr(stated)
        assert again.output.log
        assert again.noise == "5%"
        assert "log" not in problem("gain=0.5:8", 0.1).as_data()["output"]

    def test_percentages_are_factors(self):
        assert math.log(1.05) <= problem().stated_noise.scale <= math.log(1.05) * (1 + 8 * EPS)
        assert problem(noise=" 12.5 % ").noise == "12.5%"
        assert problem(noise="0%").stated_noise.scale == 0
        assert problem().stated_noise.text() == "5 %"
        assert problem("gain=0.5:8", "0.25").noise == 0.25  # as the command line says it

    @pytest.mark.parametrize(
        ("output", "more", "match"),
        [
            (OUTPUT, {"noise": 0.05}, "gain is logarithmic, so noise is a percentage such as 5%"),
            (OUTPUT, {"noise": "0.05"}, "is a percentage such as 5%, got '0.05'"),
            (OUTPUT, {"noise": "lots%"}, "noise must be a percentage, .*got 'lots%'"),
            (OUTPUT, {"noise": "-5%"}, "noise must be a finite number at least 0 .*, got -5"),
            ("gain=0.5:8", {"noise": "5%"}, "noise is a number in units of gain, got '5%'"),
            ("gain=0:8:log", {}, "gain is logarithmic, so its range must be above 0, got 0:8"),
            (OUTPUT, {"limits": "0:9"}, "is logarithmic, and so above 0 already: leave out the"),
            (OUTPUT, {"concave": ["dose"]}, "concave says something about equal steps of gain"),
            (OUTPUT, {"convex": ["dose"]}, "convex says something about equal steps of gain"),
            (OUTPUT, {"known": ["dose=0 -> gain=1 +- 1"]}, "what is known of it must be above 0"),
        ],
    )
    def test_what_is_refused(self, output, more, match):
        refused(lambda: problem(output, **more), match)

    def test_outcomes_without_a_logarithm_are_refused_with_their_line(self, tmp_path):
        write_csv(tmp_path / "runs.csv", {"dose": [1, 2], "gain": [2.0, 0.0]})
        read = kb.problem.runs.Runs.read
        refused(lambda: read(problem(), tmp_path / "runs.csv"), "line 3: gain = 0 has no logarithm")
        columns = {"dose": [1.0], "gain": [-1.0]}
        refused(lambda: read(problem(), columns), "row 1: gain = -1 has no logarithm")
        study = kb.Study.create(":memory:", problem())
        refused(lambda: study.tell([1.0], -2.0), "gain = -2 has no logarithm")
        assert not len(study)

    def test_facts_are_stated_in_the_users_units(self):
        stated = problem(
            limits="0.25:16",
            increasing=["dose"],
            known=["dose=0 -> gain=2", "dose=1 -> gain=4 +- 2"],
        )
        assert stated.facts_in_words == (
            "gain between 0.25 and 16 V",
            "gain rises with dose",
            "gain = 2 V where dose=0",
            "gain = 4 ± 2 V where dose=1",
        )
        limits, rising, exact, rough = stated.facts
        region = unit_region(stated.inputs)
        assert isinstance(limits, Between)
        assert math.log(0.25) - 1e-13 < limits.low < math.log(0.25)
        assert math.log(16) < limits.high < math.log(16) + 1e-13
        assert rising == Increasing(0, region)
        assert exact == Value([0.0], math.log(2))
        assert rough.y - rough.within <= math.log(2)
        assert rough.y + rough.within >= math.log(6)
        assert rough.within < math.log(3) / 2 + 1e-13


class TestBack:
    def test_bounds_are_those_of_the_logarithm(self):
        """The same numbers as with the table edited by hand, but for rounding."""
        x, y = data()
        stated, by_hand = problem(), problem(f"ln={math.log(0.5)}:{math.log(8)}", math.log(1.05))
        new = np.linspace(0, 2, 9)[:, None]
        lower, upper = stated.bounds(observed(stated, x, y), new)
        low, high = by_hand.bounds(observed(by_hand, x, np.log(y)), new)
        np.testing.assert_allclose(np.log([lower, upper]), [low, high], rtol=1e-7, atol=1e-9)
        assert np.all(lower < truth(new[:, 0]))
        assert np.all(truth(new[:, 0]) < upper)

    def test_units_of_the_output_do_not_matter(self):
        x, y = data()
        volts, millivolts = problem(), problem("gain[mV]=500:8000:log")
        new = np.linspace(0, 2, 9)[:, None]
        bounds = np.array(volts.bounds(observed(volts, x, y), new))
        others = np.array(millivolts.bounds(observed(millivolts, x, 1000 * y), new))
        np.testing.assert_allclose(others, 1000 * bounds, rtol=1e-7)

    @pytest.mark.parametrize("ends", ["1e-90:1e90", "0.999:1.001", "1e-9:1", "1:1e40"])
    def test_rounded_outwards(self, ends):
        """Against 50 digits: there and back again, bounds never move inwards."""
        out, rng = Output.parse(f"y={ends}:log"), np.random.default_rng(1)
        values = np.exp(rng.uniform(math.log(out.low), math.log(out.high), 2000))
        scaled = out.scaled(values)
        assert np.all(out.least(scaled) < values)
        assert np.all(values < out.most(scaled))
        assert np.all(out.most(scaled) < values * (1 + 1e-12))
        least, most = out.least(scaled), out.most(scaled)
        apart = out.difference(np.abs(scaled) / 100)
        with mpmath.workdps(50):
            for at in range(200):
                exact = mpmath.exp(mpmath.mpf(float(scaled[at])))
                assert mpmath.mpf(float(least[at])) < exact < mpmath.mpf(float(most[at]))
                step = mpmath.expm1(mpmath.mpf(abs(float(scaled[at]))) / 100)
                assert mpmath.mpf(float(apart[at])) > step
                low, high = sorted(values[at : at + 2].tolist())
                ratio = mpmath.mpf(high) / mpmath.mpf(low) - 1
                assert mpmath.mpf(out.between_values(low, high)) >= ratio

    def test_logarithms_of_outcomes_are_within_what_is_allowed_for(self):
        """To 50 digits: the error of a logarithm is below what its bounds are widened by."""
        out, rng = Output.parse("y=1e-90:1e90:log"), np.random.default_rng(2)
        values = np.exp(rng.uniform(-200, 200, 300))
        allowed = out._rounding(out.scaled(values))
        with mpmath.workdps(50):
            for value, found, most in zip(values, out.scaled(values), allowed, strict=True):
                error = abs(mpmath.log(mpmath.mpf(float(value))) - mpmath.mpf(float(found)))
                assert error < mpmath.mpf(float(most)) / 4

    @pytest.mark.parametrize("text", ["5%", "0.001%", "33.3%", "250%"])
    def test_noise_is_rounded_up(self, text):
        with mpmath.workdps(50):
            exact = mpmath.log1p(mpmath.mpf(text[:-1]) / 100)
            assert exact <= problem(noise=text).stated_noise.scale <= exact * (1 + 8 * EPS)

    def test_a_limit_comes_back_as_it_was_stated(self):
        stated = problem(limits="0.7:4.4")
        lower, upper = stated.bounds(stated.sequence(), [[0.0], [1.0], [2.0]])
        assert set(lower) == {0.7}
        assert set(upper) == {4.4}

    def test_without_noise_outcomes_are_met(self):
        x = np.linspace(0, 2, 6)
        stated = problem(noise="0%", norm_bound=40.0)
        lower, upper = stated.bounds(observed(stated, x, truth(x)), x[:, None])
        assert np.all(lower <= truth(x))
        assert np.all(truth(x) <= upper)
        by_hand = problem(f"ln={math.log(0.5)}:{math.log(8)}", 0.0, norm_bound=40.0)
        low, high = by_hand.bounds(observed(by_hand, x, np.log(truth(x))), x[:, None])
        np.testing.assert_allclose(np.log(upper / lower), high - low, rtol=1e-6)


def test_assumptions_and_plans_are_of_the_logarithm():
    """Those of an output from -span / 2 to span / 2, whose functions are the same."""
    span = math.log(16)
    given = {"inputs": [INPUT], "turns": 1, "experiments": 10}
    found = assume(Problem(output=OUTPUT, noise="5%", **given), functions=20)
    plain = assume(
        Problem(output=f"y={-span / 2}:{span / 2}", noise=math.log(1.05), **given), functions=20
    )
    assert found.chosen.name == plain.chosen.name
    assert found.chosen.norm_bound == pytest.approx(plain.chosen.norm_bound)
    assert found.chosen.width == pytest.approx(plain.chosen.width)
    values = found.values(found.functions[0], np.linspace(0, 1, 50)[:, None])
    assert np.all((values > 0.49) & (values < 8.2))
    expected = plan(problem(experiments=8), most=8)
    assert repr(expected).startswith("Plan(gain [V] at most a factor of ")
    assert np.all(np.diff(expected.half_width) < 0)


def test_noise_is_suggested_in_percent():
    rng = np.random.default_rng(4)
    x = np.repeat(np.linspace(0, 2, 8), 3)
    y = truth(x) * np.exp(0.05 * rng.standard_normal(24))
    found = calibrate(Problem([INPUT], OUTPUT), x[:, None], y)
    noise = found.suggestions[0]
    assert noise.kind == "estimate"
    assert noise.value.endswith(" %")
    assert found.problem.noise == noise.value.replace(" ", "")
    assert 4 < float(noise.value[:-2]) < 10


class TestStudies:
    @pytest.mark.parametrize("minimise", [False, True])
    def test_certificates_are_ratios(self, minimise):
        """True of the function that was measured, and the same as from the bounds themselves."""
        study = kb.Study.create(":memory:", problem(), minimise=minimise, stop_within="60%")
        x, y = data()
        study.tell_many(x[:, None], y)
        best = study.certificate(1.0)
        grid = np.linspace(0, 2, 400)
        values = truth(grid)
        there = truth(best.x[0])
        regret = there / values.min() - 1 if minimise else values.max() / there - 1
        assert -1e-9 < regret < best.regret < 1.5
        assert best.lower < there < best.upper
        limit = best.min_lower if minimise else best.max_upper
        assert limit < values.min() if minimise else limit > values.max()
        ratio = best.upper / limit if minimise else limit / best.lower
        assert best.regret <= ratio - 1 + 1e-12
        status = study.status(1.0)
        assert status.stop == (best.regret <= 0.6)
        text = str(status)
        factor = re.search(r"within a factor of ([0-9.]+) of the best possible gain", text)[1]
        assert best.regret <= float(factor) - 1 < best.regret * 1.01
        assert "noise 5 %" in text
        lower, upper = study.bounds([[1.0]])
        assert lower[0] < truth(1.0) < upper[0]
        promising = status.most_promising
        assert promising.lower < promising.estimate < promising.upper
        at = list(promising.values.values())
        assert promising.estimate == pytest.approx(study.estimate_with_bounds([at])[0][0])
        assert promising.estimate == pytest.approx(truth(at[0]), rel=0.1)
        trial = study.ask()
        assert 0 < trial.lower < trial.upper
        assert trial.gain >= 0

    def test_an_earlier_certificate_stays_true(self):
        study = kb.Study.create(":memory:", problem())
        x, y = data()
        study.tell_many(x[:10, None], y[:10])
        first = study.certificate(0.5)
        study.tell_many(x[10:, None], y[10:])
        later = study.certificate(0.5)
        assert later.regret <= first.regret
        assert later.max_upper <= first.max_upper

    def test_an_aim_is_a_percentage(self):
        match = "gain is logarithmic, so stop_within is a percentage such as 5%, got 0.1"
        refused(lambda: kb.Study.create(":memory:", problem(), stop_within=0.1), match)
        study = kb.Study.create(":memory:", problem(), stop_within="10%")
        assert study.stop_within == 0.1
        refused(lambda: study.status(stop_within=0.1), match)

    def test_a_contradiction_is_a_factor(self):
        study = kb.Study.create(":memory:", problem(decreasing=["dose"], noise="1%"))
        x = np.linspace(0, 0.8, 30)
        study.tell_many(x[:, None], truth(x))
        status = study.status(0.5)
        assert status.refuted
        assert "gain rises by at least a factor of" in status.contradicted or (
            "the true gain is elsewhere" in status.contradicted
        )


@pytest.mark.usefixtures("short_searches")
class TestCommands:
    @pytest.fixture
    def table(self, tmp_path):
        x, y = data()
        write_csv(tmp_path / "runs.csv", {"dose": x, "gain": y})
        return tmp_path / "runs.csv"

    def test_bounds_of_a_table(self, run, table, tmp_path):
        code, out, _ = run("bound", table, *WORDS, "--noise", "5%", *KNOWN, "--limits", ":12",
                           "--gaussian-process", "--out", tmp_path / "b")  # fmt: skip
        assert code == 0
        assert "noise of at most 5 %" in out
        assert "The band is a factor of 1." in out
        assert "either way on average; gain was stated to move by a factor of 16" in out
        assert "factor 1." in out  # in the table of sensitivity
        found = read_csv(tmp_path / "b" / "bounds.csv", ["dose", "lower", "upper"]).columns
        assert np.all(found["lower"] < truth(found["dose"]))
        assert np.all(truth(found["dose"]) < found["upper"])
        assert (tmp_path / "b" / "bounds.png").exists()
        stated = json.loads((tmp_path / "b" / "problem.json").read_text())
        assert stated["output"]["log"] is True
        assert stated["noise"] == "5%"

    def test_refusals(self, run, table):
        code, _, said = run("bound", table, *WORDS, *KNOWN, "--noise", "0.05")
        assert code
        assert "gain is logarithmic, so noise is a percentage such as 5%, got '0.05'." in said
        code, _, said = run("bound", table, *WORDS, *KNOWN)
        assert code
        assert "such as --noise 5%; 0 means none" in said
        code, _, said = run("plan", *WORDS, *KNOWN, "--noise", "5%", "--within", "0.1")
        assert code
        assert "gain is logarithmic, so --within is a percentage" in said

    def test_data_that_refute(self, run, table):
        code, _, said = run("bound", table, *WORDS, *KNOWN, "--noise", "0.5%")
        assert code
        assert "B = 4 explains them, with noise of at most 0.5 %" in said
        assert "the noise at least" in said

    def test_plans_and_pictures(self, run, tmp_path):
        code, out, _ = run("plan", *WORDS, *KNOWN, "--noise", "5%", "--within", "20%", "--most",
                           "11", "--experiments", "8", "--no-compare", "--out",
                           tmp_path / "p")  # fmt: skip
        assert code == 0
        assert "experiments for a factor of 1.2" in out
        assert "known up to this factor" in out
        columns = read_csv(tmp_path / "p" / "plan.csv", ["experiments", "band_factor_at_most"])
        assert np.all(columns.columns["band_factor_at_most"] > 1)
        assert (tmp_path / "p" / "plan.png").exists()

    def test_a_study(self, run, table, tmp_path):
        file = tmp_path / "s.db"
        code, out, _ = run("study", "create", file, *WORDS, *KNOWN, "--noise", "5%",
                           "--stop-within", "3%")  # fmt: skip
        assert code == 0
        assert run("study", "import", file, table)[0] == 0
        code, out, _ = run("study", "status", file, "--seconds", "0.5")
        assert "the aim is to be certified within a factor of 1.03." in out
        code, out, _ = run("study", "ask", file, "--for", "certificate")
        assert "better than what is sure" in out
        code, out, _ = run("study", "tell", file, "dose=1", "gain=4")
        assert code == 0
        code, _, said = run("study", "tell", file, "dose=1", "gain=0")
        assert code
        assert "gain = 0 has no logarithm" in said
        code, out, _ = run("study", "plot", file, "--out", tmp_path, "--seconds", "0.5")
        assert code == 0
        assert run("study", "export", file, tmp_path / "e.csv")[0] == 0
        exported = read_csv(tmp_path / "e.csv", ["gain"]).columns["gain"]
        np.testing.assert_array_equal(exported, [*read_csv(table, ["gain"]).columns["gain"], 4.0])

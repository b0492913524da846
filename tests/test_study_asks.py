"""What a study asks for, for each purpose; and its history and certificates for every trial."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import norm
from typer.testing import CliRunner

import kernelbounds as kb
from kernelbounds.cli import app, study_report
from kernelbounds.study.asking import DISTINCT, PURPOSES, _Knowledge, first_runs
from kernelbounds.study.pictures import best_known
from kernelbounds.study.search import Search
from kernelbounds.surface.estimate import likeliest, unlimited_estimate

pytestmark = pytest.mark.usefixtures("short_searches")


def problem(**changes):
    known = {"noise": 0.5, "kernel": "Matern(1.0, nu=2.5)", "norm_bound": 200.0}
    return kb.Problem(
        ["temperature[°C]=180:220", "catalyst=0.1:0.9"], "yield[%]=0:100", **(known | changes)
    )


def bench(temperature, catalyst):
    return 70 - 0.05 * (temperature - 208) ** 2 - 80 * (catalyst - 0.4) ** 2


def studied(count, purpose="best", sign=1, **changes):
    study = kb.Study.create(":memory:", problem(**changes), minimise=sign < 0)
    rng, trials = np.random.default_rng(0), []
    for _ in range(count):
        trials.append(study.ask(purpose=purpose))
        value = sign * bench(**trials[-1].values) + 0.5 * rng.standard_normal()
        study.tell(trials[-1], value + (sign < 0) * 70)
    return study, trials


@pytest.mark.parametrize("purpose", PURPOSES)
def test_each_purpose_is_kept_with_its_reason(purpose):
    study, trials = studied(7, purpose)
    for one in trials:
        kept = study.trial(one.number)
        assert (kept.purpose, kept.why) == (purpose, one.why)
        assert kept.why.endswith(".") and kept.as_data()["why"] == kept.why
    batch = study.ask(3, purpose=purpose)
    assert len({tuple(one.values.values()) for one in batch}) == 3
    assert study.ask(3) == batch  # which are pending, whatever they are for


def test_a_trial_has_the_estimate_of_the_time_when_it_was_asked_for():
    study, trials = studied(8)
    assert all(one.lower <= one.estimate <= one.upper for one in trials)
    trial = study.ask()
    assert (trial.estimate,) == tuple(study.estimate_with_bounds(trial.values)[0])
    study.tell(trial, 12.0)
    assert study.trial(trial.number).estimate == trial.estimate == trial.as_data()["estimate"]
    told = study.tell({"temperature": 200, "catalyst": 0.5}, 60.0)
    assert np.isnan(study.trial(told.trial).estimate)


def test_an_unknown_purpose_is_refused():
    with pytest.raises(kb.InputError, match="one of best, certificate, learning, got 'fun'"):
        kb.Study.create(":memory:", problem()).ask(purpose="fun")


@pytest.mark.parametrize("sign", [1, -1])
def test_best_fills_the_ranges_first_and_then_goes_where_it_is_good(sign):
    study, trials = studied(15, sign=sign)
    first = first_runs(2)
    assert trials[0].values == {"temperature": 200.0, "catalyst": 0.5}
    assert all("fill the ranges" in one.why for one in trials[:first])
    assert not any("fill the ranges" in one.why for one in trials[first:])
    unit = study.problem.scaled([list(one.values.values()) for one in trials])
    corners = ((unit < 0.02) | (unit > 0.98)).all(axis=1)
    assert corners.sum() <= 1
    true = np.array([bench(**one.values) for one in trials])
    assert np.median(true[first:]) > true[:first].max() - 5
    assert bench(**study.status(seconds=0.1).most_promising.values) > 69


def test_runs_of_ones_own_count_among_the_first():
    study = kb.Study.create(":memory:", problem())
    for x in np.linspace(0.1, 0.9, 5):
        study.tell([200.0, x], bench(200.0, x))
    assert "fill" not in study.ask().why


def test_learning_goes_where_the_band_is_widest():
    study, _ = studied(6)
    trial = study.ask(purpose="learning")
    grid = study.problem.inputs.settable(study.problem.inputs.unit_box.filling(256))
    lower, upper = study.bounds(grid)
    assert trial.upper - trial.lower >= (upper - lower).max() * (1 - 1e-9)


@cache
def settled(inputs):
    return kb.Problem(inputs, "yield=0:100", noise="unknown", turns=1).settled()


@pytest.mark.parametrize(
    "inputs",
    [
        ("stages=1:5:integer", "speed=1:9:integer"),
        ("stages=1:5:integer", "speed=1:9"),
        ("quench=oil|water|air", "speed=1:9"),
    ],
)
@pytest.mark.parametrize("purpose", PURPOSES)
def test_every_kind_of_input_is_asked_for(inputs, purpose):
    study = kb.Study.create(":memory:", settled(inputs))
    for at in range(7):
        trial = study.ask(purpose=purpose)
        stages = trial.values.get("stages", 1.0)
        assert stages == round(stages)
        study.tell(trial, 50.0 + at)
    assert len(study.ask(2, purpose=purpose)) == 2


def test_the_knowledge_gradient_is_the_expected_rise_of_the_best_mean():
    study, _ = studied(12)
    known, sequence = study.sequence.known, study.sequence
    search = Search(study.problem, minimise=False)
    score = _Knowledge(search, sequence, np.empty((0, 2)))
    model = likeliest(known)
    # The process from scratch, and what 4000 outcomes of a run at each x would do to its mean.
    X, Z, some = sequence.points, score.rivals, study.problem.inputs.unit_box.filling(16)
    inverse = np.linalg.inv(known.kernel(X) + model.ridge * np.eye(len(X)))
    both = np.concatenate([Z, some])
    cross = known.kernel(both, X)
    covariance = model.noise / model.ridge * (known.kernel(both) - cross @ inverse @ cross.T)
    mean = unlimited_estimate(known, Z)
    normal = norm.ppf((np.arange(4000) + 0.5) / 4000)
    moves = covariance[: len(Z), len(Z) :] / np.sqrt(np.diag(covariance)[len(Z) :] + model.noise)
    gains = [(mean[:, None] + one[:, None] * normal).max(axis=0).mean() for one in moves.T]
    gains = np.array(gains) - mean.max()
    np.testing.assert_allclose(score.values(some), gains, atol=0.05 * gains.max())
    # No settings that were left out look better than those that may be the best.
    grid = search.feasible(study.problem.inputs.unit_box.filling(2048))
    assert unlimited_estimate(known, grid).max() <= mean.max() + 0.01


@pytest.mark.parametrize("told", [0, 3, 12])
def test_the_settings_of_a_batch_are_distinct(told):
    study, _ = studied(told)
    batch = [*study.ask(4), *study.ask(2, more=True)]
    unit = study.problem.scaled([list(one.values.values()) for one in batch])
    apart = np.abs(unit[:, None] - unit).max(axis=2) + np.eye(6)
    assert apart.min() >= DISTINCT * (1 - 1e-3)
    assert len({one.why for one in batch}) > 1 or not told


def test_a_batch_repeats_settings_only_where_there_are_no_others():
    found = kb.Problem(
        ["stages=1:3:integer"], "yield=0:100", 1.0, kernel="Matern(1.0)", norm_bound=200.0
    )
    study = kb.Study.create(":memory:", found)
    for stages in (1, 2, 3):
        study.tell({"stages": stages}, 50.0 + stages)
    stages = [one.values["stages"] for one in study.ask(4)]
    assert sorted(stages[:3]) == [1, 2, 3] and stages[3] in (1, 2, 3)


def test_the_history_widens_only_where_other_settings_are_best():
    study, _ = studied(20)
    outcomes = study._store.outcomes
    counts = list(range(1, len(outcomes) + 1))
    for minimise in (False, True):
        (lower, upper), estimates, wider = best_known(study.problem, outcomes, counts, minimise)
        better, other = (-upper, -lower) if minimise else (lower, upper)
        assert (np.diff(better) >= 0).all()
        assert np.array(counts[1:])[np.diff(other) > 0].tolist() == wider
        now = study.estimate_with_bounds([one.point for one in outcomes])[0]
        assert estimates[-1] == (now.min() if minimise else now.max())
        # The bounds without an intersection are no narrower.
        now = np.array(study.bounds([one.point for one in outcomes]))
        assert better[-1] >= (-now[1] if minimise else now[0]).max()


def test_certificates_are_filled_for_every_trial():
    study, _ = studied(12)
    found = study.certificates(seconds=30.0)
    assert [count for count, _ in found] == list(range(1, 13))
    regrets = [one.regret for _, one in found]
    assert all(b <= a for a, b in pairwise(regrets))


def test_certificates_are_spread_evenly_when_time_is_short(monkeypatch):
    study, _ = studied(16)
    made = []
    monkeypatch.setattr(
        type(study._findings),
        "_made",
        lambda self, sequence, outcomes, seconds: made.append(len(outcomes)),
    )
    study._findings.fill(60, 30.0)
    assert sorted(made) == list(range(1, 16))
    assert made[0] == 1 and made[:7] == sorted(made[:7]) and max(np.diff(made[:7])) <= 3


# --- commands


def invoked(*words):
    return CliRunner().invoke(app, ["study", *map(str, words)])


@pytest.fixture
def oven(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(study_report, "TELL_SECONDS", 0.1)
    with kb.Study.create("my oven.db", problem().replace(output="the yield[%]=0:100")):
        pass
    return "my oven.db"


def test_a_batch_is_a_table_and_one_line_to_paste(oven):
    found = invoked("ask", oven, "-n", 4)
    assert found.exit_code == 0 and len(found.stdout.splitlines()) <= 12
    assert "trials 1, 2, 3, 4: One of the first 5 runs" in found.stdout
    assert found.stdout.endswith(
        'then: kernelbounds study tell "my oven.db" --trial 1 "the yield=..."\n'
    )
    other = invoked("ask", oven, "--for", "learning")
    assert "trial 1 was asked for before, for best" in other.stderr
    assert invoked("ask", oven, "--for", "fun").exit_code == 1


def test_telling_says_what_is_certified_and_ctrl_c_is_harmless(oven, monkeypatch):
    invoked("ask", oven)
    told = invoked("tell", oven, "--trial", 1, "the yield=50")
    assert told.exit_code == 0 and "certified: the best settings known are within" in told.stdout

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(kb.Study, "certificate", interrupted)
    told = invoked("tell", oven, "temperature=190", "catalyst=0.3", "the yield=51")
    assert told.exit_code == 0 and "the outcome is safe" in told.stderr
    with kb.Study(oven) as study:
        assert len(study) == 2 and [count for count, _ in study._findings.kept()] == [1]

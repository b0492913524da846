"""Studies on disk: asking, telling, taking back, what is known, files and their faults."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from typer.testing import CliRunner

import kernelbounds as kb
from kernelbounds.cli import app
from kernelbounds.display.numbers import at_most
from kernelbounds.study import database, study_file
from kernelbounds.study.findings import more_needed
from kernelbounds.study.search import Search, _Score
from kernelbounds.study.status import Checked
from kernelbounds.study.trial import StoredTrial

pytestmark = pytest.mark.usefixtures("short_searches")

KERNEL = "Matern(0.8, nu=2.5)"


def problem(**changes):
    known = {"noise": 0.5, "kernel": KERNEL, "norm_bound": 80.0}
    inputs = changes.pop("inputs", ["temperature[°C]=180:220", "catalyst=0.1:0.9"])
    return kb.Problem(inputs, "yield[%]=0:100", **(known | changes))


def truth(values):
    x = (values["temperature"] - 180) / 40
    return 70 - 60 * (x - 0.7) ** 2 - 40 * (values["catalyst"] - 0.4) ** 2


@pytest.fixture
def path(tmp_path):
    where = tmp_path / "reactor.db"
    kb.Study.create(where, problem(), stop_within=5.0).close()
    return where


@pytest.fixture
def study(path):
    with kb.Study(path) as opened:
        yield opened


def settings_of(temperature=200.0, catalyst=0.4):
    return {"temperature": temperature, "catalyst": catalyst}


def run(study, rounds, noise=0.3):
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        trial = study.ask()
        sign = -1 if study.minimise else 1
        study.tell(trial, sign * truth(trial.values) + noise * rng.standard_normal())


# --- asking


def test_asking_again_gives_the_same_trial_in_any_process(study, path):
    first = study.ask()
    assert study.ask() == first
    with kb.Study(path) as other:
        assert other.ask() == first
        other.tell(first, 50.0)
    assert study.ask().number == first.number + 1
    assert study.trial(1) == first


def test_a_batch_is_filled_up_and_spread(study):
    first = study.ask()
    batch = study.ask(3)
    assert batch[0] == first and [one.number for one in batch] == [1, 2, 3]
    assert len({tuple(one.values.values()) for one in batch}) == 3
    assert study.ask(2) == batch[:2]
    assert study.pending == batch
    further = study.ask(2, more=True)
    assert [one.number for one in further] == [4, 5]
    assert study.ask(more=True).number == 6


def test_dropped_trials_are_not_pending(study):
    batch = study.ask(2)
    gone = study.drop(batch[0])
    assert gone == batch[0] and gone.state == "dropped"
    assert study.pending == batch[1:]
    with pytest.raises(kb.InputError, match="not pending: it was already dropped"):
        study.drop(1)
    study.tell(batch[0], 40.0)  # its outcome came after all
    with pytest.raises(kb.InputError, match="not pending: it was already told"):
        study.drop(1)
    with pytest.raises(kb.InputError, match="no trial 9"):
        study.drop(9)


def test_trials_and_their_outcomes_are_of_one_moment(study, path, monkeypatch):
    """Another process cannot tell a trial after its state was read and before its outcome is."""
    monkeypatch.setattr(database, "PATIENCE", 0.1)
    batch = study.ask(2)
    study.tell(batch[0], 40.0)
    outcomes = study_file.StudyFile.outcomes.fget

    def told_meanwhile(store):
        if store is study._store:
            with kb.Study(path) as other, suppress(kb.InputError):
                other.tell(batch[1], 41.0)
        return outcomes(store)

    monkeypatch.setattr(study_file.StudyFile, "outcomes", property(told_meanwhile))
    assert [(one.state, one.outcome) for one in study.trials] in (
        [("told", 40.0), ("pending", None)],
        [("told", 40.0), ("told", 41.0)],
    )


def test_suggestions_can_be_set_at_a_bench():
    inputs = ["temperature=180:220", "time=1:1000:log", "stages=1:5:integer", "flow=0:2e-6"]
    study = kb.Study.create(":memory:", problem(inputs=inputs))
    for _ in range(4):
        trial = study.ask()
        for name, value in trial.values.items():
            digits = f"{value:.10g}".split("e")[0].replace(".", "").strip("0")
            assert len(digits) <= 5, (name, value)
        assert trial.values["stages"] == int(trial.values["stages"])
        study.tell(trial, 50.0)
    lower, upper = study.bounds({name: [value] for name, value in trial.values.items()})
    assert lower[0] < 50 < upper[0]


def test_what_a_trial_may_gain(study):
    run(study, 6)
    trial = study.ask()
    points = {name: study.observations[name] for name in study.problem.inputs.names}
    assert trial.gain == pytest.approx(trial.upper - study.bounds(points)[0].max())
    lower, upper = study.bounds({name: [value] for name, value in trial.values.items()})
    assert (trial.lower, trial.upper) == pytest.approx((lower[0], upper[0]))


# --- telling


def test_settings_of_a_pending_trial_settle_it(study):
    trial = study.ask()
    told = study.tell(trial.values, 61.0)
    assert told.trial == trial.number and not told.again
    assert study.pending == []
    # A repetition is a trial of its own.
    assert study.tell(trial.values, 62.0).trial == 2
    assert list(study.observations["yield"]) == [61.0, 62.0]


def test_a_trial_may_have_been_run_with_other_settings(study):
    trial = study.ask()
    study.tell(settings_of(201.0, 0.3), 61.0, trial=trial)
    assert study.pending == []
    assert study.observations["temperature"] == 201.0
    assert study.observations["trial"] == 1


def test_a_trial_has_one_outcome(study):
    trial = study.ask()
    study.tell(trial, 61.0)
    with pytest.raises(kb.InputError, match=r"already has its outcome, 61\.0"):
        study.tell(trial, 61.0)
    with pytest.raises(kb.InputError, match="not that of 2"):
        study.tell(trial, 61.0, trial=2)
    assert len(study) == 1


def test_a_key_makes_telling_again_harmless(study, path):
    first = study.tell(settings_of(), 61.0, key="monday")
    with kb.Study(path) as other:
        assert other.tell(settings_of(), 61.0, key="monday") == (first.trial, True)
    for point, value in ((settings_of(), 61.5), (settings_of(201.0), 61.0)):
        with pytest.raises(kb.InputError, match="'monday' was told before, with other content"):
            study.tell(point, value, key="monday")
    trial = study.ask()
    with pytest.raises(kb.InputError, match="other content"):
        study.tell(settings_of(), 61.0, trial=trial, key="monday")
    assert len(study) == 1
    study.undo()
    study.tell(settings_of(), 61.5, key="monday")
    assert len(study) == 1


@pytest.mark.parametrize(
    ("point", "value", "message"),
    [
        (settings_of(300.0), 1.0, "temperature = 300 is not in its range 180:220"),
        ({"temprature": 200, "catalyst": 0.4}, 1.0, "did you mean 'temperature'"),
        ({"temperature": 200}, 1.0, "value of catalyst is missing"),
        (settings_of("hot"), 1.0, "temperature must be a number, got 'hot'"),
        (settings_of(), "high", "yield must be a number, got 'high'"),
        (settings_of(), np.nan, "yield must be a finite number"),
        ([200.0], 1.0, "one value for each of temperature, catalyst"),
        (settings_of(np.inf), 1.0, "temperature must be a finite number"),
    ],
)
def test_what_cannot_be_told_changes_nothing(study, point, value, message):
    with pytest.raises(kb.InputError, match=message):
        study.tell(point, value)
    assert len(study) == 0 and study.pending == []


def test_many_at_once_all_or_none(study):
    batch = study.ask(3)
    assert [one.trial for one in study.tell_many(batch[:2], [50.0, 51.0])] == [1, 2]
    study.tell_many([[190.0, 0.2], [191.0, 0.3]], [40.0, 41.0], keys=["a", "b"])
    study.tell_many([settings_of(), settings_of(210.0)], [1.0, 2.0])
    for points, values, keys in (
        ([[190.0, 0.2], [300.0, 0.3]], [1.0, 2.0], None),
        ([[190.0, 0.2], [191.0, 0.3]], [1.0, 2.0], ["c", "a"]),
        ([[190.0, 0.2]], [1.0, 2.0], None),
        ([[190.0, 0.2]], [1.0], ["c", "d"]),
        ([batch[2], batch[2]], [1.0, 2.0], None),
    ):
        with pytest.raises(kb.InputError):
            study.tell_many(points, values, keys=keys)
    assert len(study) == 6
    assert study.pending == batch[2:]


def test_undo_takes_back_what_was_told_last(study, path):
    batch = study.ask(2)
    study.tell(batch[1], 50.0)
    study.tell_many([[190.0, 0.2], [191.0, 0.3]], [40.0, 41.0])
    assert [(number, value) for number, _, value in study.undo()] == [(3, 40.0), (4, 41.0)]
    assert study.pending == batch[:1]  # what nobody had asked for is not pending now
    assert study.undo() == [(2, batch[1].values, 50.0)]
    assert study.pending == batch
    with pytest.raises(kb.InputError, match="nothing to take back"):
        study.undo()
    assert study.status().withdrawn == 3
    rows = sqlite3.connect(path).execute("SELECT value FROM outcomes WHERE withdrawn IS NOT NULL")
    assert sorted(rows.fetchall()) == [(40.0,), (41.0,), (50.0,)]


def written_table(path, *rows):
    """A CSV file of temperatures and yields, all with the same catalyst."""
    lines = [f"{temperature},0.4,{value}" for temperature, value in rows]
    path.write_text("\n".join(["temperature,catalyst,yield", *lines, ""]))
    return path


def test_old_runs_come_from_a_table_that_may_grow(study, tmp_path):
    table = tmp_path / "old.csv"
    table.write_text(
        "who;catalyst;temperature;yield\nAda;0,2;190;40\nBob;0,2;190;40\nBob;0,3;195;42,5\n"
    )
    assert [one.again for one in study.import_runs(table)] == [False] * 3
    assert study.import_runs(table) == [(1, True), (2, True), (3, True)]
    with open(table, "a") as file:
        file.write("Ada;0,5;200;60\nAda;0,3;195;42,5\n")
    assert study.import_runs(table) == [(1, True), (2, True), (3, True), (4, False), (5, False)]
    assert list(study.observations["yield"]) == [40.0, 40.0, 42.5, 60.0, 42.5]
    copy = tmp_path / "copy.csv"
    study.export(copy)
    again = kb.Study.create(":memory:", problem())
    again.import_runs(copy)
    for name, column in study.observations.items():
        assert np.array_equal(column, again.observations[name])
    assert [value for _, _, value in study.undo()] == [60.0, 42.5]
    assert [one.again for one in study.import_runs(table)] == [True] * 3 + [False] * 2


def test_repeats_with_equal_outcomes_are_data(study, tmp_path):
    """Single rows, one by one, with outcomes that are rounded: each of them counts."""
    values = [round(60 + noise) for noise in np.random.default_rng(0).standard_normal(30)]
    table = written_table(tmp_path / "runs.csv")
    rows = []
    for value in values:
        rows.append((200, value))
        written_table(table, *rows)
        study.import_runs(table)
    assert list(study.observations["yield"]) == values
    for number, value in enumerate(values):
        one = written_table(tmp_path / f"run-{number}.csv", (200, value))
        with pytest.raises(kb.InputError, match="or 0 if all of them are new runs"):
            study.import_runs(one)
        study.import_runs(one, skip=0)
    assert list(study.observations["yield"]) == values * 2
    for value in values:
        study.import_runs(settings_of([200.0], [0.4]) | {"yield": [value]}, skip=0)
    assert list(study.observations["yield"]) == values * 3


def test_a_row_that_may_be_there_already_is_asked_about(study, tmp_path):
    """Never left out, never doubled in silence."""
    monday = written_table(tmp_path / "monday.csv", (190, 40), (190, 40), (200, 60))
    study.import_runs(monday)
    tuesday = written_table(tmp_path / "tuesday.csv", (190, 40), (190, 40), (200, 60), (205, 61))
    message = (
        r"^line 2 of the table, temperature=190 °C catalyst=0.4 yield=40, is equal to trial 1; "
        r"nothing was changed\..* already: 3, as it seems, or 0 if all of them are new runs\.$"
    )
    with pytest.raises(kb.InputError, match=message):
        study.import_runs(tuesday)
    assert study.import_runs(tuesday, skip=3) == [(4, False)]
    written_table(tuesday, (190, 40), (190, 40), (200, 60), (205, 61), (206, 62))
    assert study.import_runs(tuesday) == [(4, True), (5, False)]  # now it is known
    # A run that was told, and that stands in the table as well.
    study.tell(settings_of(195.0), 50.0)
    rows = [(190, 40), (190, 40), (200, 60), (195, 50), (210, 66)]
    written_table(monday, *rows)
    with pytest.raises(kb.InputError, match=r"line 5 .* trial 6.* 4, as it seems, or 3 if all oth"):
        study.import_runs(monday)
    assert study.import_runs(monday, skip=4) == [(7, False)]
    assert [one.again for one in study.import_runs(monday)] == [True] * 4
    with pytest.raises(kb.InputError, match="skip is 6, but the table has 5 rows"):
        study.import_runs(monday, skip=6)
    with pytest.raises(kb.InputError, match="skip"):
        study.import_runs(monday, skip=-1)
    assert list(study.observations["yield"]) == [40.0, 40.0, 60.0, 61.0, 62.0, 50.0, 66.0]


def test_a_table_that_was_edited_is_refused(study, tmp_path):
    rows = [(190, 40), (195, 42.5), (200, 60)]
    table = written_table(tmp_path / "old.csv", *rows)
    study.import_runs(table)
    message = (
        r"^line 3 of 'old.csv' is in the study as trial 2, temperature=195 °C catalyst=0.4 "
        r"yield=42.5, and is now temperature=195 °C catalyst=0.4 yield=42; nothing was changed\."
    )
    with pytest.raises(kb.InputError, match=message):
        study.import_runs(written_table(table, (190, 40), (195, 42), (200, 60), (205, 61)))
    with pytest.raises(kb.InputError, match=r"row 3 of 'old.csv' .* is not there any more"):
        study.import_runs(written_table(table, *rows[:2]))
    assert len(study) == 3
    study.undo()  # a slip, corrected
    study.import_runs(written_table(table, (190, 40), (195, 42), (200, 60)))
    assert list(study.observations["yield"]) == [40.0, 42.0, 60.0]
    # Another table under the same name, which may then grow in its turn.
    study.import_runs(written_table(table, (181, 10)), skip=0)
    written_table(table, (181, 10), (182, 11))
    assert [one.again for one in study.import_runs(table)] == [True, False]
    assert list(study.observations["yield"]) == [40.0, 42.0, 60.0, 10.0, 11.0]


def test_a_table_is_known_by_its_path_from_the_study(study, path, tmp_path):
    for day in ("monday", "tuesday"):
        (tmp_path / day).mkdir()
        written_table(tmp_path / day / "runs.csv", (200, 60 if day == "monday" else 61))
        assert [one.again for one in study.import_runs(tmp_path / day / "runs.csv")] == [False]
    study.close()
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for name in ("reactor.db", "monday", "tuesday"):
        (tmp_path / name).rename(moved / name)
    with kb.Study(moved / "reactor.db") as again:
        assert [one.again for one in again.import_runs(moved / "tuesday" / "runs.csv")] == [True]


def test_old_runs_all_or_none(study, tmp_path):
    table = tmp_path / "old.csv"
    table.write_text("catalyst,temperature,yield\n0.2,190,40\n0.2,290,40\n")
    with pytest.raises(kb.InputError, match="line 3: temperature = 290 is not in its range"):
        study.import_runs(table)
    with pytest.raises(kb.InputError, match="value of yield is missing"):
        study.import_runs({"temperature": [190.0], "catalyst": [0.2]})
    with pytest.raises(kb.InputError, match="columns by name"):
        study.import_runs([[1, 2, 3]])
    assert len(study) == 0


# --- what is known


def test_bounds_are_those_of_the_sequence_in_order(study):
    run(study, 5)
    study.undo()
    columns = study.observations
    points = np.column_stack([columns["temperature"], columns["catalyst"]])
    sequence = problem().sequence()
    sequence.update(problem().scaled(points), columns["yield"])
    where = [[199.0, 0.3], [215.0, 0.8]]
    for ours, direct in zip(study.bounds(where), sequence.bounds(problem().scaled(where))):
        assert ours == pytest.approx(direct, rel=1e-9)


@pytest.mark.parametrize("minimise", [False, True])
def test_certificates_are_those_of_the_policy(minimise):
    study = kb.Study.create(":memory:", problem(delta=0.05), minimise=minimise)
    run(study, 12)
    ours = study.certificate()
    policy = kb.KernelUCB(study.sequence, problem().inputs.unit_box, minimise=minimise)
    direct = policy.certificate()
    # The best settings of few digits are nearly as good.
    assert ours.regret == pytest.approx(direct.regret, rel=0.02)
    assert ours.named == pytest.approx(dict(zip(ours.named, ours.x)))
    lower, upper = study.bounds([ours.x])
    assert (ours.lower, ours.upper) == pytest.approx((lower[0], upper[0]), rel=1e-6)
    best = -70.0 if minimise else 70.0
    limit = ours.min_lower if minimise else ours.max_upper
    assert limit <= best if minimise else best <= limit
    value = truth(ours.named)
    assert 70.0 - value <= ours.regret


@pytest.mark.parametrize("minimise", [False, True])
def test_what_a_certificate_has_excluded_stays_excluded(minimise):
    """One that had little time takes over the limit of an earlier one, or all of it."""

    def certificate(lower, upper, limit, regret):
        limits = (None, -limit) if minimise else (limit, None)
        ends = (-upper, -lower) if minimise else (lower, upper)
        return kb.Certificate(np.zeros(2), *ends, *limits, regret)

    search = Search(problem(), minimise)
    early = certificate(60.0, 70.0, 75.0, 12.0)
    rough = certificate(66.0, 69.0, 90.0, 24.0)
    both = search.with_the_past(rough, [early])
    assert both.regret == 9.0 and (both.lower, both.upper) == (rough.lower, rough.upper)
    assert (both.min_lower if minimise else both.max_upper) == (-75.0 if minimise else 75.0)
    # The earlier settings, with what the later certificate has excluded.
    last = search.with_the_past(certificate(50.0, 90.0, 71.0, 40.0), [early])
    assert last.regret == 11.0 and (last.lower, last.upper) == (early.lower, early.upper)
    assert search.with_the_past(rough, []).regret == 24.0


def test_certificates_never_get_worse(study):
    run(study, 12)
    regrets = [one.regret for _, one in study.certificates(most=6, seconds=30)]
    assert len(regrets) > 3 and np.all(np.diff(regrets) <= 0)
    assert study.certificate(1e-6).regret <= regrets[-1]


def test_certificates_are_kept_until_something_is_told(study, path, monkeypatch):
    run(study, 4)
    first = study.certificate()
    monkeypatch.setattr(Search, "certified", None)  # must not be called
    with kb.Study(path) as other:
        kept = other.certificate()
    assert np.array_equal(first.x, kept.x) and kept.regret == first.regret
    monkeypatch.undo()
    study.tell(settings_of(), 60.0)
    assert study.certificate().regret != first.regret
    assert [count for count, _ in study.certificates(most=3)] == [1, 3, 4, 5]
    study.undo()
    assert [count for count, _ in study.certificates(most=2)] == [1, 3, 4]


def test_whole_numbers_all(tmp_path):
    inputs = ["stages=1:5:integer", "plates=2:11:integer"]
    study = kb.Study.create(":memory:", problem(inputs=inputs))
    tried = []
    for _ in range(12):
        trial = study.ask()
        tried.append(tuple(trial.values.values()))
        study.tell(trial, 60 - 3 * (trial.values["stages"] - 4) ** 2 - trial.values["plates"])
    assert len(set(tried)) > 6
    best = study.certificate()
    assert all(value.is_integer() for value in best.x)
    assert best.max_upper >= 58
    promising = study.status().most_promising
    assert promising.values["stages"] == 4 and promising.values["plates"] == 2


def test_whole_numbers_among_others_do_not_stall():
    """Between whole numbers the bound stays high; suggestions must not try the same for ever."""
    inputs = ["temperature=180:220", "stages=1:3:integer"]
    study = kb.Study.create(
        ":memory:", problem(inputs=inputs, kernel="Matern([0.8, 0.15], nu=1.5)")
    )
    for _ in range(12):
        trial = study.ask()
        study.tell(
            trial, 50.0 + 10 * trial.values["stages"] - abs(trial.values["temperature"] - 200)
        )
    stages = study.observations["stages"]
    assert set(stages) == {1.0, 2.0, 3.0}
    best = study.certificate(seconds=0.5)
    assert best.named["stages"].is_integer()
    assert (
        80 - (50 + 10 * best.named["stages"] - abs(best.named["temperature"] - 200)) <= best.regret
    )
    assert study.status(seconds=0.2).most_promising.values["stages"] == 3


def test_status_tells_how_things_are(study):
    early = study.status()
    assert early.certificate is None and early.stop is None and not early.refuted
    assert "Nothing is observed yet" in str(early)
    run(study, 6)
    study.ask(2)
    study.status()
    run(study, 2)
    status = study.status()
    data = json.loads(json.dumps(status.as_data(), allow_nan=False))
    assert data["observations"] == 8 and len(data["pending"]) == len(study.pending)
    assert data["best"]["regret"] == status.certificate.regret
    assert kb.Problem.from_data(data["problem"]).inputs.names == study.problem.inputs.names
    assert status.stop is (status.certificate.regret <= 5)
    text = str(status)
    assert "maximise yield over temperature, catalyst" in text
    assert f"within {at_most(status.certificate.regret)} % of the best possible yield, with" in text
    assert study.status(stop_within=1e3).stop
    assert "Stop: certified within 1000" in str(study.status(stop_within=1e3))
    assert "Go on" in str(study.status(stop_within=1e-3))
    with pytest.raises(kb.InputError, match="stop_within"):
        study.status(stop_within=0)


def grid_scores(sequence, output_range, points, sign=1):
    """The score of the most promising settings, from its definition."""
    estimate, lower, upper = sequence.estimate_with_bounds(points)
    estimate, sure = (estimate, lower) if sign == 1 else (-estimate, -upper)
    beyond = np.maximum(estimate - (sure + output_range / 2), 0.0)
    return estimate - 0.9 * beyond


@pytest.mark.parametrize("minimise", [False, True])
def test_the_most_promising_settings_have_the_best_estimate(minimise):
    study = kb.Study.create(":memory:", problem(norm_bound=300.0), minimise=minimise)
    assert study.status().most_promising is None
    rng = np.random.default_rng(1)
    for unit in rng.random((15, 2)):
        values = dict(zip(study.problem.inputs.names, study.problem.unscaled(unit)[0], strict=True))
        study.tell(values, (-1 if minimise else 1) * truth(values) + 0.3 * rng.standard_normal())
    status = study.status(seconds=0.2)
    found = status.most_promising
    three = study.estimate_with_bounds(found.values)
    assert [found.estimate, found.lower, found.upper] == [one[0] for one in three]
    assert abs(found.estimate - (-1 if minimise else 1) * truth(found.values)) < 2
    sign, filling = -1 if minimise else 1, study.problem.inputs.unit_box.filling(512)
    best = grid_scores(study.sequence, 100.0, study.problem.scaled(found.values), sign)
    assert best[0] >= grid_scores(study.sequence, 100.0, filling, sign).max() - 1e-2
    text, data = str(status), json.loads(json.dumps(status.as_data(), allow_nan=False))
    said = f"yield is about {found.estimate:.4g} % at temperature={found.values['temperature']:g} "
    assert text.startswith(said)
    between = study.problem.output.between(found.lower, found.upper)
    assert text.splitlines()[0].endswith(f", guaranteed {between}.")
    assert data["most_promising"]["named"] == found.values
    assert "most promising" in status._repr_html_()


def test_the_most_promising_settings_are_not_where_nothing_is_known():
    """One outcome above the middle of the range: extrapolation would point far away from it."""
    known = problem(inputs=["temperature=180:220"], norm_bound=2000.0)
    sequence = known.sequence()
    sequence.update(known.scaled([[190.0], [191.0]]), [60.0, 64.0])
    found = Search(known, minimise=False).most_promising(sequence)
    assert found.upper - found.lower < 110 and 190 < found.values["temperature"] < 200
    far = sequence.bounds(known.scaled([[215.0]]))
    assert np.mean(far) > found.estimate  # which the middle alone would have chosen


def test_the_most_promising_settings_are_found_in_time(monkeypatch):
    known, looked = problem(norm_bound=300.0), []
    sequence = known.sequence()
    X = np.random.default_rng(0).random((30, 2))
    sequence.update(X, 50.0 + 10.0 * X[:, 0])
    values = _Score.values
    monkeypatch.setattr(
        _Score, "values", lambda self, points: looked.append(len(points)) or values(self, points)
    )
    found = Search(known, minimise=False).most_promising(sequence, seconds=1e-9)
    assert found.lower <= found.estimate <= found.upper and sum(looked) < 30


def test_the_score_has_the_right_gradient():
    known = problem(norm_bound=300.0)
    sequence = known.sequence()
    rng = np.random.default_rng(2)
    sequence.update(rng.random((6, 2)), 50 + 10 * rng.standard_normal(6))
    score, points, step = _Score(sequence, 1, 40.0), rng.random((12, 2)), 1e-5
    estimate, lower, _ = sequence.estimate_with_bounds(points)
    assert 0 < np.count_nonzero(estimate > lower + 20) < 12  # both sides of the cap
    values, gradients = score.values_and_gradients(points)
    assert values == pytest.approx(grid_scores(sequence, 40.0, points))
    for axis in range(2):
        move = step * np.eye(2)[axis]
        slope = (score.values(points + move) - score.values(points - move)) / (2 * step)
        assert gradients[:, axis] == pytest.approx(slope, rel=1e-3, abs=0.05)


def test_a_regret_below_the_difference_of_the_two_numbers_is_explained(study):
    study.tell(settings_of(), 60.0)
    status = study.status(seconds=0.2)
    best, why = status.certificate, "no function is worst at both places"
    gap = status.limit - best.lower
    assert why in str(replace(status, certificate=replace(best, regret=gap / 2)))
    assert why not in str(replace(status, certificate=replace(best, regret=gap)))


def test_refuted_assumptions_are_explained(study):
    study.tell_many([[200.0, 0.4]] * 4, [10.0, 90.0, 20.0, 80.0])
    status = study.status()
    assert status.refuted and status.certificate is None
    text = str(status)
    for part in ("refute the assumptions", "--noise", "--turns 3", "study correct", "study revise",
                 "would have been made without these data", "safe in the file"):  # fmt: skip
        assert part in text, part
    json.dumps(status.as_data(), allow_nan=False)
    with pytest.raises(kb.EmptyConfidenceSetError):
        study.ask()
    study.tell(settings_of(), 50.0)  # taken all the same
    # What is advised helps.
    noise = float(text.split("--noise ")[1].split()[0])
    wider = kb.Study.create(":memory:", problem(noise=noise))
    wider.import_runs(study.observations)
    assert not wider.status().refuted


def test_strained_assumptions_are_mentioned(study):
    run(study, 4)
    strained = replace(study.status(), norm_bound=Checked(80.0, 75.0))
    assert "The norm bound is nearly refuted: 80 is assumed, and the data need 75.00" in str(
        strained
    )
    assert "nearly" not in str(study.status())


def test_a_guess_is_written_as_one(study):
    run(study, 2)
    guessed = replace(study.status(seconds=0.2), more_observations=5963)
    assert "It may take some 6,000 more observations" in str(guessed)


def test_how_many_more_is_guessed_from_the_trend():
    assert more_needed([(10, 8.0)], 40, 4.0, 2.0) is None  # too long ago
    assert more_needed([(20, 8.0)], 40, 4.0, 2.0) == 40
    assert more_needed([(20, 4.0 * 2**0.5)], 40, 4.0, 2.0) == 120
    assert more_needed([], 40, 4.0, 2.0) is None


def test_pictures(study, tmp_path):
    with pytest.raises(kb.InputError, match="nothing to draw"):
        study.plot(tmp_path)
    run(study, 5)
    out = tmp_path / "deep" / "folder"
    names = [file.name for file in study.plot(out, seconds=0.3)]
    assert names == ["history.png", "certificate.png", "slices.png"]
    assert all((out / name).stat().st_size > 5000 for name in names)
    study.tell_many([[200.0, 0.4]] * 4, [10.0, 90.0, 20.0, 80.0])
    assert [file.name for file in study.plot(out, seconds=0.3)] == names[:2]


def test_pictures_of_names_and_units_with_dollar_signs(tmp_path):
    """matplotlib reads what is between two of them as a formula, and these are none."""
    described = kb.Problem(
        ["cost$^$=1:9", "b[$/$]=0:1"], "gain$[k$^]=0:100", noise=0.5, kernel=KERNEL,
        norm_bound=80.0,
    )  # fmt: skip
    with kb.Study.create(tmp_path / "dollars.db", described) as study:
        study.tell_many([[2.0, 0.1], [5.0, 0.5], [8.0, 0.9]], [10.0, 30.0, 20.0])
        assert len(study.plot(tmp_path, seconds=0.3)) == 3


# --- files


def test_a_new_study_does_not_replace_anything(path, tmp_path):
    before = path.read_bytes()
    with pytest.raises(kb.InputError, match=r"reactor.db' already exists"):
        kb.Study.create(path, problem())
    assert path.read_bytes() == before
    with pytest.raises(kb.InputError, match="already exists"):
        kb.Study.create(tmp_path, problem())
    with pytest.raises(kb.InputError, match="its folder does not exist"):
        kb.Study.create(tmp_path / "no" / "reactor.db", problem())
    empty = tmp_path / "empty.db"
    empty.touch()  # as a process leaves it that is killed at the very beginning
    kb.Study.create(empty, problem()).close()
    assert len(kb.Study(empty)) == 0


def test_a_study_that_cannot_be_made_leaves_no_file(tmp_path, monkeypatch):
    path = tmp_path / "reactor.db"
    with pytest.raises(kb.InputError, match="noise of the output is missing"):
        kb.Study.create(path, problem(noise=None))
    with pytest.raises(kb.InputError, match=r"must be a kernelbounds\.Problem"):
        kb.Study.create(path, "yield")
    broken = study_file.STUDY._replace(schema=("CREATE TABLE broken",))
    monkeypatch.setattr(study_file, "STUDY", broken)
    with pytest.raises(kb.KernelBoundsError):
        kb.Study.create(path, problem())
    assert not list(tmp_path.iterdir())


def test_at_rest_a_study_is_one_file(study, path):
    run(study, 2)
    assert [file.name for file in path.parent.iterdir()] == ["reactor.db"]
    assert study._store._file.rows("PRAGMA journal_mode") == [("delete",)]
    assert study._store._file.number("PRAGMA synchronous") == 3


def write(path, content):
    path.write_bytes(content)
    return path


def other_database(path):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE recipes (name TEXT)")
    db.close()
    return path


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path, "there is no study .*kernelbounds study create"),
        (lambda path: write(path, b"temperature,yield\n200,63\n" * 100), "is not a study"),
        (lambda path: write(path, b""), "is not a study"),
        (other_database, "is not a study"),
        (lambda path: path.mkdir() or path, "it is a folder"),
        (lambda path: os.mkfifo(path) or path, "it is a FIFO"),
    ],
    ids=["missing", "csv", "empty", "other", "folder", "fifo"],
)
def test_what_is_not_a_study_is_refused(tmp_path, make, message):
    path = make(tmp_path / "thing.db")
    with pytest.raises(kb.KernelBoundsError, match=message):
        kb.Study(path)


def test_a_damaged_file_is_refused(study, path):
    run(study, 2)
    study.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(kb.StoredFileError, match=r"damaged|cannot be used"):
        kb.Study(path)


def pending(*point):
    """A trial that was asked for, without the search for the best settings."""
    return StoredTrial(point, 0.5, 0.0, 1.0, 1.0, "best", "to see")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The bytes of a file with a row of every kind."""
    path = tmp_path_factory.mktemp("small") / "reactor.db"
    with kb.Study.create(path, problem()) as study:
        study.tell_many([[190.0, 0.25], [191.5, 0.5]], [40.0, 41.5], keys=["a", "b"])
        study.undo()
        study.import_runs({"temperature": [190.0, 212.0], "catalyst": [0.25] * 2, "yield": [4, 5]})
        study._store.add_pending([pending(200.0, 0.5)], [])
        study.note(3, "new batch of resin")
        rows = study._store.outcomes[:1]
        study._store.add_certificate(rows, 1.0, {"x": [200.0, 0.4], "regret": 3.0})
    return path.read_bytes()


def all_of(path):
    with kb.Study(path) as study:
        kept = study._store
        return (
            repr(study.problem), kept.meta, kept.outcomes, kept.withdrawn, kept.certificates,
            kept.trials, kept.notes,
        )  # fmt: skip


def test_a_byte_that_is_wrong_is_noticed_or_means_nothing(small, tmp_path):
    path = write(tmp_path / "reactor.db", small)
    right, rng, refused = all_of(path), np.random.default_rng(0), []
    used = np.flatnonzero(np.frombuffer(small, dtype=np.uint8))
    for at in rng.choice(used, 200, replace=False):
        damaged = bytearray(small)
        damaged[at] ^= int(rng.integers(1, 256))
        write(path, damaged)
        try:
            assert all_of(path) == right
        except (kb.StoredFileError, kb.InputError) as error:
            refused.append(str(error))
    assert len(refused) > 150 and not any("\n" in one for one in refused)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"[190.0, 0.25]", b"[190.0, 0.35]", r"row \d of its (trials|outcomes) is not as it was"),
        (b'"norm_bound": 80.0', b'"norm_bound": 20.0', "row 1 of its meta is not as it was"),
        (b'"regret": 3.0', b'"regret": 1.0', "row 1 of its certificates is not as it was"),
        (
            b"REFERENCES trials (number)",
            b"REFERENCES trials (numbed)",
            "its tables are not those of a study",
        ),
        (b"[212.0, 0.25]", b"[212.0, \xff.25]", "there is text in it that cannot be read"),
    ],
)
def test_a_digit_that_is_wrong_is_one_sentence(small, tmp_path, old, new, message):
    """In Python and at the command line."""
    assert old in small
    path = write(tmp_path / "reactor.db", small.replace(old, new, 1))
    with pytest.raises(kb.StoredFileError, match=f"is damaged .{message}.*use an earlier copy"):
        kb.Study(path)
    found = CliRunner().invoke(app, ["study", "export", str(path), str(tmp_path / "runs.csv")])
    assert isinstance(found.exception, kb.StoredFileError) and not found.output


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (2, "in format 2, .* format 4 only.*study export"),
        (5, "in format 5, .* only: pip install"),
    ],
)
def test_other_formats_are_refused(path, version, message):
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {version}")
    db.close()
    with pytest.raises(kb.StoredFileError, match=message):
        kb.Study(path)


def test_a_file_that_cannot_be_written_to_may_be_read(study):
    run(study, 2)
    study._store._file.rows("PRAGMA query_only = ON")
    assert study.status(seconds=0.3).observations == 2
    for writing in (lambda: study.tell(settings_of(), 1.0), study.ask, study.undo):
        with pytest.raises(kb.InputError, match="the file or its folder is read-only"):
            writing()


@pytest.mark.skipif(os.name == "nt" or not hasattr(os, "geteuid"), reason="POSIX permissions")
def test_read_only_files_and_folders(study, path):
    run(study, 2)
    study.close()
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    path.chmod(0o444)
    with kb.Study(path) as reading, pytest.raises(kb.InputError, match="read-only"):
        reading.tell(settings_of(), 1.0)
    path.chmod(0o644)
    path.parent.chmod(0o555)
    try:
        with kb.Study(path) as reading, pytest.raises(kb.InputError, match="folder"):
            reading.tell(settings_of(), 1.0)
    finally:
        path.parent.chmod(0o755)


def test_a_full_disk_is_said_and_changes_nothing(study):
    pages = study._store._file.number("PRAGMA page_count")
    study._store._file.rows(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(kb.InputError, match="the disk is full; nothing was changed"):
        study.tell_many([[200.0, 0.4]] * 2000, [50.0] * 2000)
    assert len(study) == 0
    study._store._file.rows("PRAGMA max_page_count = 100000")
    study.tell(settings_of(), 50.0)


def test_a_lock_is_waited_for_and_then_reported(study, path, monkeypatch):
    monkeypatch.setattr(database, "PATIENCE", 0.3)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert len(study) == 0  # one may read
    with pytest.raises(kb.InputError, match=r"locked by another process for more than 0.3 seconds"):
        study.tell(settings_of(), 50.0)
    other.execute("ROLLBACK")
    other.close()
    study.tell(settings_of(), 50.0)
    assert len(study) == 1


def test_a_file_that_is_gone_takes_nothing(study, path):
    """Otherwise an outcome would be acknowledged that is lost when the program ends."""
    study.tell(settings_of(), 50.0)
    path.unlink()
    with pytest.raises(kb.InputError, match="moved or deleted"):
        study.tell(settings_of(), 51.0)
    study.close()
    with pytest.raises(kb.InputError, match="was closed; open it again"):
        study.tell(settings_of(), 51.0)


def test_an_interrupt_leaves_no_trace(study, path):
    with pytest.raises(KeyboardInterrupt), study._store._file.writing() as db:
        db.execute("INSERT INTO trials (point, state) VALUES ('[200, 0.4]', 'told')")
        raise KeyboardInterrupt
    assert study.tell(settings_of(), 50.0).trial == 1
    assert [file.name for file in path.parent.iterdir()] == ["reactor.db"]


def test_a_study_in_memory_is_whole():
    with kb.Study.create(":memory:", problem(), minimise=True) as study:
        run(study, 3)
        assert len(study.certificates(most=2, seconds=1)) == 2
        assert "minimise=True" in repr(study)
    with pytest.raises(kb.StoredFileError, match="not a study"):
        kb.Study(":memory:")


def test_python_and_commands_share_the_file(path):
    asked = CliRunner().invoke(app, ["study", "ask", str(path), "--json"])
    (trial,) = json.loads(asked.stdout)["trials"]
    with kb.Study(path) as study:
        assert study.ask().as_data() == trial
        telling = ["study", "tell", str(path), "--trial", "1", "yield=61"]  # by another process
        command = [sys.executable, "-m", "kernelbounds", *telling]
        subprocess.run(command, check=True, capture_output=True)
        assert study.pending == [] and list(study.observations["yield"]) == [61.0]


# --- any order of things


class StudyMachine(RuleBasedStateMachine):
    """A study and a list: whatever is done in whatever order, the two agree."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "study.db")
        self.study = kb.Study.create(self.path, problem())
        self.rows = []  # of what was told: place, batch, temperature, number
        self.pending = {}  # number: temperature
        self.places = {}  # number: place, of outcomes that were taken back
        self.asked = {}  # number: temperature
        self.trials = self.batch = self.place = 0

    def teardown(self):
        self.study.close()
        self.folder.cleanup()

    def add(self, temperature, number=None):
        """A trial that nobody had asked for, unless its settings are pending."""
        if number is None:
            same = [one for one, asked in self.pending.items() if asked == temperature]
            self.trials += not same
            number = same[0] if same else self.trials
        self.pending.pop(number, None)
        place = self.places.pop(number, None)
        if place is None:
            self.place += 1
            place = self.place
        self.rows = sorted([*self.rows, (place, self.batch, temperature, number)])
        return number

    def take_back(self, gone, asked_only):
        for place, _, temperature, number in gone:
            self.places[number] = place
            if number in self.asked:
                self.pending[number] = self.asked[number]
            elif not asked_only:
                self.pending[number] = temperature
        self.pending = dict(sorted(self.pending.items()))
        self.rows = [one for one in self.rows if one not in gone]

    @rule(temperature=st.integers(180, 183))
    def ask(self, temperature):
        added = self.study._store.add_pending(
            [pending(float(temperature), 0.4)], list(self.pending)
        )
        self.trials += 1
        assert [one.number for one in added] == [self.trials]
        self.pending[self.trials] = float(temperature)
        self.asked[self.trials] = float(temperature)

    @rule(temperature=st.integers(180, 183))
    def tell(self, temperature):
        self.batch += 1
        number = self.add(float(temperature))
        assert self.study.tell([temperature, 0.4], 1.0) == (number, False)

    @rule()
    def tell_first_pending(self):
        if self.pending:
            self.batch += 1
            number, temperature = next(iter(self.pending.items()))
            self.study.tell([temperature, 0.4], 1.0, trial=number)
            self.add(temperature, number)

    @rule()
    def drop_last_pending(self):
        if self.pending:
            number, _ = self.pending.popitem()
            self.study.drop(number)
            self.places.pop(number, None)

    @rule(temperatures=st.lists(st.integers(180, 183), min_size=1, max_size=4))
    def tell_many(self, temperatures):
        self.batch += 1
        for one in temperatures:
            self.add(float(one))
        self.study.tell_many([[one, 0.4] for one in temperatures], [1.0] * len(temperatures))

    @rule(temperatures=st.lists(st.integers(180, 183), min_size=1, max_size=4))
    def import_runs(self, temperatures):
        """All rows are added, but where one is equal to an outcome that is a question first."""
        there = {temperature for _, _, temperature, _ in self.rows}
        columns = {
            "temperature": temperatures,
            "catalyst": [0.4] * len(temperatures),
            "yield": [1.0] * len(temperatures),
        }
        skip = None
        if there & set(map(float, temperatures)):
            with pytest.raises(kb.InputError, match="is equal to trial"):
                self.study.import_runs(columns)
            skip = 0
        self.batch += 1
        numbers = [self.add(one) for one in map(float, temperatures)]
        told = self.study.import_runs(columns, skip=skip)
        assert told == [(number, False) for number in numbers]

    @rule()
    def refuse(self):
        with pytest.raises(kb.InputError):
            self.study.tell_many([[180.0, 0.4], [500.0, 0.4]], [1.0, 1.0])

    @rule()
    def undo(self):
        if self.rows:
            last = max(batch for _, batch, _, _ in self.rows)
            gone = [one for one in self.rows if one[1] == last]
            assert [one[0] for one in self.study.undo()] == [one[3] for one in gone]
            self.take_back(gone, asked_only=True)

    @rule(at=st.integers(0, 5))
    def undo_one(self, at):
        if at < len(self.rows):
            self.study.undo(self.rows[at][3])
            self.take_back([self.rows[at]], asked_only=False)

    @rule(at=st.integers(0, 5), temperature=st.integers(184, 186))
    def correct(self, at, temperature):
        if at < len(self.rows):
            place, _, before, number = self.rows[at]
            same = before == temperature
            told = self.study.correct(number, point=[temperature, 0.4])
            assert told == (number, same)
            if not same:
                self.batch += 1
                self.rows[at] = (place, self.batch, float(temperature), number)

    @rule()
    def open_again(self):
        self.study.close()
        self.study = kb.Study(self.path)

    @invariant()
    def the_two_agree(self):
        expected = self.rows
        columns = self.study.observations
        assert columns["temperature"].tolist() == [one[2] for one in expected]
        assert columns["trial"].tolist() == [one[3] for one in expected]
        assert [one.number for one in self.study.pending] == list(self.pending)
        assert len(self.study.sequence) == len(expected)


StudyMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
TestStudyMachine = StudyMachine.TestCase

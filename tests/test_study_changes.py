"""Changing one's mind in a study: corrections, notes, and other assumptions for the same trials."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest
from typer.testing import CliRunner

import kernelbounds as kb
from kernelbounds.cli import app
from kernelbounds.study.revision import level_of
from kernelbounds.study.study_file import StudyFile
from kernelbounds.study.trial import StoredTrial

pytestmark = pytest.mark.usefixtures("short_searches")

WHERE = [[199.0, 0.3], [215.0, 0.8]]
WIDE = [(185.0, 0.3), (199.0, 0.3)]


def problem(**changes):
    known = {"noise": 0.5, "kernel": "Matern(0.8, nu=2.5)", "norm_bound": 80.0}
    return kb.Problem(
        ["temperature[°C]=180:220", "catalyst=0.1:0.9"], "yield[%]=0:100", **(known | changes)
    )


def runs(count=6):
    rng = np.random.default_rng(1)
    points = np.column_stack([rng.uniform(180, 220, count), rng.uniform(0.1, 0.9, count)]).round(2)
    return points, (60 + 10 * rng.standard_normal(count)).round(1)


def study_of(values, points):
    study = kb.Study.create(":memory:", problem())
    for point, value in zip(points, values):
        study.tell(point, value)
    return study


@pytest.fixture
def told():
    """A study with six outcomes, of which the third is a slip of the pen."""
    points, values = runs()
    wrong = values.copy()
    wrong[2] = 10 * values[2] % 97
    return study_of(wrong, points), study_of(values, points), values


def same_bounds(one, other):
    return all(
        a == pytest.approx(b, rel=1e-12)
        for a, b in zip(one.bounds(WHERE), other.bounds(WHERE), strict=True)
    )


# --- corrections


def test_a_corrected_outcome_keeps_its_place(told):
    study, right, values = told
    assert not same_bounds(study, right)
    assert study.correct(3, values[2]) == (3, False)
    assert study.observations["yield"].tolist() == values.tolist()
    assert study.observations["trial"].tolist() == [1, 2, 3, 4, 5, 6]
    assert same_bounds(study, right)
    assert study.correct(3, values[2]) == (3, True)  # already
    assert study.status(seconds=0.1).withdrawn == 1


def test_an_outcome_told_again_by_its_trial_is_a_correction(told):
    study, right, values = told
    ((number, settings, wrong),) = study.undo(3)
    assert (number, wrong) == (3, 10 * values[2] % 97)
    assert study.observations["trial"].tolist() == [1, 2, 4, 5, 6]
    assert [one.number for one in study.pending] == [3]
    study.tell({"temperature": 190.0, "catalyst": 0.4}, 50.0)  # before it, and after it in order
    right.tell({"temperature": 190.0, "catalyst": 0.4}, 50.0)
    study.tell(settings, values[2], trial=3)
    assert study.observations["trial"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert same_bounds(study, right)
    study.undo()  # what was told last is the correction
    assert study.observations["trial"].tolist() == [1, 2, 4, 5, 6, 7]
    study.correct(2, 55.0)
    with pytest.raises(kb.InputError, match="trial 3 has no outcome; it is dropped"):
        study.correct(3, 55.0)
    with pytest.raises(kb.InputError, match="trial 3 has no outcome"):
        study.undo(3)
    with pytest.raises(kb.InputError, match="no trial 99"):
        study.undo(99)


def test_a_trial_that_was_never_run_is_dropped_and_told_last(told):
    study, _, values = told
    study.undo(3)
    study.drop(3)
    study.tell([190.0, 0.4], values[2], trial=3)
    assert study.observations["trial"].tolist() == [1, 2, 4, 5, 6, 3]


def test_settings_are_corrected_too_with_key_and_row(tmp_path):
    path, table = tmp_path / "reactor.db", tmp_path / "old.csv"
    table.write_text("temperature,catalyst,yield\n190,0.2,40\n195,0.2,41\n")
    with kb.Study.create(path, problem()) as study:
        study.import_runs(table)
        study.tell([200.0, 0.4], 61.0, key="monday")
        study.correct(3, point={"temperature": 210.0, "catalyst": 0.4})
        assert study.observations["temperature"].tolist() == [190.0, 195.0, 210.0]
        assert study.trial(3).ran["temperature"] == 210.0 and study.trial(3).outcome == 61.0
        with pytest.raises(kb.InputError, match="'monday' was told before, with other content"):
            study.tell([200.0, 0.4], 61.0, key="monday")
        study.correct(1, 44.0)
        with pytest.raises(kb.InputError, match=r"is in the study as trial 1, .*yield=44, and is"):
            study.import_runs(table)
        table.write_text("temperature,catalyst,yield\n190,0.2,44\n195,0.2,41\n199,0.3,50\n")
        assert [one.again for one in study.import_runs(table)] == [True, True, False]
        for bad, point in ((np.nan, None), (None, [500.0, 0.4])):
            with pytest.raises(kb.InputError):
                study.correct(2, bad, point=point)
        assert study.observations["yield"].tolist() == [44.0, 41.0, 61.0, 50.0]


@pytest.mark.parametrize("change", ["correct", "undo", "undo and tell"])
def test_certificates_of_an_outcome_that_was_wrong_do_not_count(told, change):
    """Those of fewer outcomes, before it, still do."""
    study, _, values = told
    study.certificates(most=6, seconds=30)
    assert [count for count, _ in study._findings.kept()] == [1, 2, 3, 4, 5, 6]
    if change == "correct":
        study.correct(3, values[2])
    else:
        ((_, settings, _),) = study.undo(3)
        assert [count for count, _ in study._findings.kept()] == [1, 2]
        if change == "undo":
            study.certificate(0.1)
            assert [count for count, _ in study._findings.kept()] == [1, 2, 5]
        study.tell(settings, values[2], trial=3)
    assert [count for count, _ in study._findings.kept()] == [1, 2]


# --- notes


def test_notes_are_kept_shown_and_exported(tmp_path):
    path = tmp_path / "reactor.db"
    (tmp_path / "photos").mkdir()
    photo = tmp_path / "photos" / "12.jpg"
    photo.write_bytes(b"x")
    with kb.Study.create(path, problem()) as study:
        study.tell([190.0, 0.2], 40.0)
        study.tell([195.0, 0.2], 41.0)
        assert "note" not in study.observations
        assert study.note(2, " new batch\nof resin ").text == "new batch of resin"
        assert study.note(2, attach=photo).path == "photos/12.jpg"
        study.note(study.trial(2), "again")
        assert study.observations["note"] == ["", "new batch of resin; [photos/12.jpg]; again"]
        study.export(tmp_path / "runs.csv")
        assert "photos/12.jpg" in (tmp_path / "runs.csv").read_text()
        assert [one.text for one in study.trial(2).notes] == ["new batch of resin", "", "again"]
        for given, message in (
            ({"trial": 9, "text": "x"}, "no trial 9"),
            ({"trial": 1}, "needs some text"),
            ({"trial": 1, "text": 3}, "text must be text"),
            ({"trial": 1, "attach": tmp_path / "gone.jpg"}, "there is no file"),
        ):
            with pytest.raises(kb.InputError, match=message):
                study.note(**given)
    with kb.Study(path) as again:
        assert len(again.trial(2).notes) == 3 and again.trial(1).notes == ()
        assert [one.state for one in again.trials] == ["told", "told"]


# --- other assumptions


@pytest.mark.parametrize(
    ("old", "new", "level"),
    [
        ({"limits": "0:100"}, {}, "kept"),
        ({"limits": "0:100"}, {"limits": "-5:"}, "kept"),
        ({"increasing": ["catalyst"]}, {}, "kept"),
        ({"known": ["catalyst=0.1 -> yield=0"]}, {"delta": 0.001}, "kept"),
        ({}, {"delta": 0.001}, "kept"),
        ({}, {"limits": "0:100"}, "if true"),
        ({"limits": "0:100"}, {"limits": "10:100"}, "if true"),
        ({"limits": "0:100"}, {"increasing": ["catalyst"]}, "if true"),
        ({}, {"noise": 1.0}, "weaker"),
        ({}, {"norm_bound": 90.0}, "weaker"),
        ({"noise": "unknown, at most 2"}, {"noise": "unknown, at most 3"}, "weaker"),
        ({"noise": "unknown, at most 2"}, {"noise": "unknown"}, "weaker"),
        ({"noise": "unknown"}, {"noise": "unknown", "delta": 0.001}, "weaker"),
        ({"noise": "within 1"}, {"noise": "within 2", "delta": 0.001}, "weaker"),
        ({"limits": "0:100"}, {"noise": 1.0, "norm_bound": 90.0}, "weaker"),
        ({}, {"noise": 0.4}, "none"),
        ({}, {"noise": "unknown"}, "none"),
        ({}, {"noise": "within 0.5"}, "none"),
        ({}, {"norm_bound": 70.0}, "none"),
        ({}, {"noise": 1.0, "limits": "0:100"}, "none"),
        ({}, {"delta": 0.02}, "none"),
        ({}, {"kernel": "Matern(0.9, nu=2.5)"}, "none"),
        ({}, {"noise": 1.0, "norm_bound": 70.0}, "none"),
    ],
)
def test_what_a_change_leaves_of_the_guarantee(old, new, level):
    assert level_of(problem(**old), problem(**new)) == level


def test_ranges_and_scales_are_assumptions_too():
    other = problem().replace(output="yield[%]=0:120")
    assert level_of(problem(), other.replace(kernel="Matern(0.8, nu=2.5)")) == "none"
    wider = problem().replace(inputs=["temperature[°C]=170:220", "catalyst=0.1:0.9"])
    assert level_of(problem(), wider) == "none"


@pytest.mark.parametrize("delta", [0.01, 0.001])
def test_the_guarantee_is_kept_because_the_radius_is(delta):
    """Facts do not enter R_t, and a smaller delta makes it larger, with any outcomes."""
    points, values = runs(30)
    radii = []
    for one in (problem(limits="-50:150", increasing=["catalyst"]), problem(delta=delta)):
        sequence = one.sequence()
        sequence.update(one.scaled(points), values)
        radii.append(sequence.radius)
    assert radii[1] == radii[0] if delta == 0.01 else radii[1] > radii[0]


def test_a_revised_study_has_everything_and_says_what_is_guaranteed(tmp_path):
    path, other = tmp_path / "reactor.db", tmp_path / "sub" / "reactor-2.db"
    other.parent.mkdir()
    with kb.Study.create(path, problem(limits="0:100"), stop_within=5.0) as study:
        first = study.ask()
        study.tell(first, 50.0)
        study.tell_many([[190.0, 0.2], [195.0, 0.3]], [40.0, 41.0])
        study.correct(2, 42.0)
        study.note(2, "new batch")
        waiting = study.ask()
        with study.revise(other, problem(noise=1.0, limits="0:100")) as new:
            assert new.observations["yield"].tolist() == [50.0, 42.0, 41.0]
            assert new.observations["note"] == ["", "new batch", ""]
            assert new.trial(1).told == study.trial(1).told
            assert new.pending == [waiting] and new.stop_within == 5.0
            assert new.status(seconds=0.1).withdrawn == 1
            (made,) = new.revisions
            assert (made.file, made.level) == ("../reactor.db", "weaker")
            assert made.changes == ("noise 0.5 % -> 1 %",)
            assert "together with 0.98" in made.guarantee
            assert str(made) in str(new.status(seconds=0.1))
            assert new.status(seconds=0.1).as_data()["revisions"][0]["level"] == "weaker"
            # Of a study that was revised, nothing more can be promised than of itself.
            last = new.revise(":memory:", new.problem.replace(limits=None))
            assert [one.level for one in last.revisions] == ["weaker", "weaker"]
            assert "which had been revised itself" in last.revisions[1].guarantee
            assert len(new.revise(":memory:", minimise=True).revisions) == 2
        with pytest.raises(kb.InputError, match="nothing is changed"):
            study.revise(":memory:")
        with pytest.raises(kb.InputError, match="already exists"):
            study.revise(other, problem(noise=1.0))
        with pytest.raises(kb.InputError, match="same inputs, levels and columns"):
            study.revise(":memory:", kb.Problem(["x=0:1"], "yield=0:1", noise=0.5))
        with pytest.raises(kb.InputError, match="trial 2: temperature = 190 is not in its range"):
            narrow = ["temperature[°C]=192:220", "catalyst=0.1:0.9"]
            study.revise(tmp_path / "no.db", problem().replace(inputs=narrow))
        assert not (tmp_path / "no.db").exists()
    with kb.Study(other) as again:
        assert again.revisions == (made,)


NARROW = ["temperature[°C]=192:220", "catalyst=0.1:0.9"]


def test_a_revised_study_is_complete_as_soon_as_its_file_is_there(tmp_path, monkeypatch):
    """Whatever is killed after that leaves no trial that the new study refuses."""
    with kb.Study.create(tmp_path / "a.db", problem()) as study:
        study._store.add_pending([StoredTrial(point, *[None] * 6) for point in WIDE], [])
        monkeypatch.setattr(StudyFile, "drop", lambda *_: pytest.fail("a second transaction"))
        study.revise(tmp_path / "b.db", problem().replace(inputs=NARROW)).close()
    with kb.Study(tmp_path / "b.db") as new:
        assert [one.values["temperature"] for one in new.pending] == [199.0]
        assert [one.state for one in new.trials] == ["dropped", "pending"]


def test_a_revised_study_has_no_outcome_that_was_not_checked(tmp_path, monkeypatch):
    """What another process tells in the meantime is refused as well."""
    with kb.Study.create(tmp_path / "a.db", problem()) as study:
        study.tell([200.0, 0.5], 43.0)
        read = study._store.one_moment

        def read_a_little_later():
            with kb.Study(tmp_path / "a.db") as other:
                other.tell([181.0, 0.5], 44.0)
            return read()

        monkeypatch.setattr(study._store, "one_moment", read_a_little_later)
        with pytest.raises(kb.InputError, match="trial 2: temperature = 181 is not in its range"):
            study.revise(":memory:", problem().replace(inputs=NARROW))


@pytest.mark.parametrize(
    ("changes", "sure", "condition"),
    [
        ({"noise": 0.3}, 0.99, "only if the revised assumptions would have been made without"),
        ({"noise": 1.0, "delta": 0.001}, 0.999, "only if the numbers that were revised are not"),
        ({"delta": 0.001}, 0.99, ""),
        ({"limits": "0:100", "delta": 0.001}, 0.99, ""),
    ],
)
def test_what_is_said_to_be_guaranteed_depends_on_the_revision(
    told, tmp_path, changes, sure, condition
):
    new = told[1].revise(tmp_path / "new.db", problem(**changes))
    status = new.status(seconds=0.1)
    assert status.as_data()["confidence"] == pytest.approx(sure)
    assert f"with probability {sure:g}, if the assumptions hold" in str(status)
    for text in (
        status.headline,
        status.certainty,
        study("tell", tmp_path / "new.db", "temperature=200", "catalyst=0.5", "yield=60"),
        study("ask", new.path),
    ):
        assert ("only if" in text) == bool(condition) and condition in text, text


def test_the_oldest_delta_counts():
    first = kb.Study.create(":memory:", problem(delta=0.05, limits="0:100"))
    second = first.revise(":memory:", problem(delta=0.01, limits="0:100"))
    third = second.revise(":memory:", problem(delta=0.01))
    assert [one.delta for one in third.revisions] == [0.05, 0.05]
    assert "with probability 0.95" in third.revisions[1].guarantee


# --- commands


def study(*words):
    found = CliRunner().invoke(app, ["study", *map(str, words)])
    assert found.exit_code == 0, (words, found.output, found.exception)
    return found.stdout


def test_commands_that_change_ones_mind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "a study.db"
    given = ["--input", "pH value=1:9", "--output", "the yield=0:100", "--noise", "0.5"]
    study("create", name, *given, "--kernel", "Matern(0.8, nu=2.5)", "--norm-bound", "80")
    for value in (50, 60, 70):
        study("tell", name, f"pH value={value / 10}", f"the yield={value}")
    was, now, certified = study("correct", name, "--trial", 2, "the yield=61").splitlines()
    assert was == 'trial 2 was: "pH value"=6 "the yield"=60'
    assert now == 'trial 2 is:  "pH value"=6 "the yield"=61'
    assert certified.startswith("certified: the best settings known are within ")
    assert "nothing changed" in study("correct", name, "--trial", 2, "the yield=61")
    line = 'kernelbounds study tell "a study.db" --trial 2 "the yield=..."'
    assert line in study("undo", name, "--trial", 2)
    study("tell", name, "--trial", 2, "the yield=62")
    assert "noted on trial 2: new batch" in study("note", name, 2, "new batch")
    listed = study("trials", name)
    assert "new batch" in listed and "62" in listed and "3 trials" in listed
    made = study("revise", name, "b.db", "--noise", "1", "--limits", "none")
    assert "noise 0.5 -> 1" in made and "weaker" in made
    with kb.Study("b.db") as other:
        assert other.observations["the yield"].tolist() == [50.0, 62.0, 70.0]
    rows = sqlite3.connect(name).execute("SELECT value FROM outcomes WHERE withdrawn IS NOT NULL")
    assert sorted(rows.fetchall()) == [(60.0,), (61.0,)]


def test_statements_are_taken_back_by_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = ["--input", "x=1:9", "--output", "y=0:100", "--noise", "0.5"]
    facts = ["--limits", "0:100", "--increasing", "x"]
    kernel = ["--kernel", "Matern(0.8, nu=2.5)", "--norm-bound", "80"]
    study("create", "a.db", *given, *facts, *kernel)
    made = study("revise", "a.db", "b.db", "--limits", "none", "--increasing", "none")
    assert "The guarantee remains" in made and "no longer stated: y rises with x" in made


# --- for programs around a study


def test_the_stamp_changes_with_every_change_and_with_nothing_else(tmp_path):
    study = kb.Study.create(tmp_path / "reactor.db", problem())
    seen = [study.stamp]

    def changed(what):
        seen.append(study.stamp)
        assert seen.count(seen[-1]) == 1, what

    for what, do in (
        ("ask", lambda: study.ask(2)),
        ("tell", lambda: study.tell(study.pending[0], 50.0)),
        ("tell", lambda: study.tell([190.0, 0.3], 50.0)),
        ("correct", lambda: study.correct(1, 51.0)),
        ("note", lambda: study.note(1, "new batch")),
        ("undo", study.undo),
        ("drop", lambda: study.drop(2)),
        ("tell what was dropped", lambda: study.tell([190.0, 0.3], 50.0, trial=2)),
    ):
        do()
        changed(what)
    study.ask(more=True)
    changed("ask")
    study.certificate(0.1)
    study.ask()
    study.status(0.1)
    with kb.Study(tmp_path / "reactor.db") as other:
        assert other.stamp == seen[-1]


def test_a_table_may_have_a_name_of_its_own(tmp_path):
    study = kb.Study.create(":memory:", problem())
    for count, upload in ((1, "a.csv"), (3, "b.csv")):
        rows = "190,0.2,40\n195,0.2,41\n196,0.2,42\n".splitlines()[:count]
        (tmp_path / upload).write_text("\n".join(["temperature,catalyst,yield", *rows]))
        told = study.import_runs(tmp_path / upload, name="runs.csv")
    assert [one.again for one in told] == [True, False, False]
    for row, message in (
        ("999,0.2,40", "runs.csv: line 2: temperature = 999 is not in its range"),
        ("x,0.2,40", "'runs.csv', line 2, column 'temperature'"),
        ("190,0.2,44", "line 2 of 'runs.csv' is in the study as trial 1"),
    ):
        (tmp_path / "tmp0.csv").write_text(f"temperature,catalyst,yield\n{row}\n")
        with pytest.raises(kb.InputError, match=message) as refused:
            study.import_runs(tmp_path / "tmp0.csv", name="runs.csv")
        assert "tmp0" not in str(refused.value)
    with pytest.raises(kb.InputError, match="name must be text, got ''"):
        study.import_runs(tmp_path / "b.csv", name="")


def test_drawings_are_drawn_when_they_are_called(told):
    pytest.importorskip("matplotlib")
    study, _, _ = told
    drawn = study.drawings(seconds=1.0)
    assert list(drawn) == ["history", "certificate"]
    for draw in drawn.values():
        assert draw().get_xlabel() == "observations"
    assert kb.Study.create(":memory:", problem()).drawings() == {}
    unknown = kb.Study.create(":memory:", problem(noise="unknown, at most 5"))
    unknown.tell([190.0, 0.2], 40.0)
    assert "noise" in unknown.drawings(seconds=0.5)


# --- what stays in a revision, and what is suggested anew


@pytest.fixture(scope="module")
def suggested():
    """A study whose kernel and norm bound were suggested, with two outcomes."""
    stated = kb.Problem(
        ["temperature[°C]=180:220", "catalyst=0.1:0.9"], "yield[%]=0:100", 0.5, 1,
        interactions="none",
    )  # fmt: skip
    study = kb.Study.create(":memory:", stated)
    study.tell_many([[190.0, 0.2], [200.0, 0.5]], [40.0, 50.0])
    return study


def revised(study, **changes):
    new = study.revise(":memory:", study.problem.replace(**changes))
    return new.problem, new.revisions[-1]


def test_a_fact_alone_leaves_kernel_and_norm_bound(suggested):
    old, printed = suggested.problem, float(suggested.problem.norm_text)
    assert printed != old.norm_bound
    for changes in (
        {"increasing": ["catalyst"]},
        {"limits": "0:100", "norm_bound": printed},
        {"limits": "0:100", "norm_bound": printed, "kernel": old.kernel},
        {"limits": "0:100", "noise": 0.5 + 1e-9, "delta": 0.01 + 1e-12},
    ):
        new, made = revised(suggested, **changes)
        assert made.level == "if true" and len(made.changes) == 1
        assert (new.norm_bound, str(new.kernel)) == (old.norm_bound, str(old.kernel))
        assert (new.noise, new.delta) == (old.noise, old.delta)
        assert set(new.suggested) == {"kernel", "norm_bound"}
        assert revised(suggested.revise(":memory:", new), limits=None, increasing=())[1].changes
    with pytest.raises(kb.InputError, match="nothing is changed"):
        revised(suggested, norm_bound=printed)


def test_other_statements_are_what_a_norm_bound_is_suggested_for(suggested):
    new, made = revised(suggested, turns=2)
    assert made.level == "none" and new.norm_bound != suggested.problem.norm_bound
    assert [one.split()[0] for one in made.changes] == ["norm", "turns", "another"]
    printed = float(suggested.problem.norm_text)
    with pytest.raises(kb.InputError, match="is for one kernel, and the kernel would be chosen"):
        revised(suggested, turns=2, norm_bound=printed)
    new, made = revised(suggested, turns=2, norm_bound=printed, kernel=suggested.problem.kernel)
    assert (made.level, made.changes) == ("kept", ("turns 1 -> 2",))


def test_facts_that_contradict_the_norm_bound_make_no_study(suggested, tmp_path):
    known = ["catalyst=0.5 -> yield=0", "catalyst=0.5 & temperature=200 -> yield=90"]
    with pytest.raises(kb.InputError, match="no function satisfies 'yield = 0 %"):
        suggested.revise(tmp_path / "new.db", suggested.problem.replace(known=known))
    assert not (tmp_path / "new.db").exists()


def test_several_kernels_stay_together(suggested):
    many = kb.Study.create(":memory:", suggested.problem.replace(kernels="any"))
    new, made = revised(many, limits="0:100")
    assert made.level == "if true" and made.changes == ("now stated: yield between 0 and 100 %",)
    assert len(new.candidates) > 1 and new.candidates == many.problem.candidates


def test_the_command_keeps_what_is_not_said(suggested, tmp_path):
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    kb.Study.create(old, suggested.problem).close()
    printed = suggested.problem.norm_text
    said = study("revise", old, new, "--increasing", "catalyst", "--norm-bound", printed)
    assert "if what you state now is true" in said and "kernel" not in said

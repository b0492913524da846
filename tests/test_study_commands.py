"""``kernelbounds study``: what the commands print, and what they refuse."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import kernelbounds as kb
from kernelbounds.cli import app

# Here it matters what is said, and not how well a box is searched.
pytestmark = pytest.mark.usefixtures("drawn_once", "short_searches")

CREATE = [
    "--input", "temperature=180:220", "--input", "pressure=1e5:3e5", "--input",
    "catalyst=0.1:0.9", "--output", "yield=0:100", "--noise", "0.5", "--turns", "2",
]  # fmt: skip
KNOWN = ["--kernel", "Matern(0.8, nu=2.5)", "--norm-bound", "80"]
SETTINGS = ["temperature=200", "pressure=2e5", "catalyst=0.4"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def study(*words):
    return CliRunner().invoke(app, ["study", *words])


def done(*words):
    found = study(*words)
    assert found.exit_code == 0, (words, found.output, found.exception)
    return found.stdout


def refused(*words):
    found = study(*words)
    assert found.exit_code != 0
    assert found.exception is not None
    text = str(found.exception)
    assert isinstance(found.exception, kb.KernelBoundsError) and "\n" not in text
    return text


@pytest.fixture
def reactor():
    done("create", "reactor.db", *CREATE, *KNOWN, "--maximise", "--stop-within", "5")
    return "reactor.db"


def test_a_day_at_the_bench(reactor):
    asked = done("ask", reactor)
    assert asked.startswith("trial 1: temperature=")
    assert "then: kernelbounds study tell reactor.db --trial 1 yield=..." in asked
    assert done("ask", reactor) == asked
    assert "; 1 observation\n" in done("tell", reactor, "--trial", "1", "yield=63.1")
    assert "trial 2: temperature=200" in done("tell", reactor, *SETTINGS, "yield=61")
    (one, two, three) = json.loads(done("ask", reactor, "--count", "3", "--json"))["trials"]
    assert [one["number"], two["number"], three["number"]] == [3, 4, 5]
    assert set(one["values"]) == {"temperature", "pressure", "catalyst"}
    assert "trials 3, 4, 5: One of the first 7 runs" in done("ask", reactor)  # all pending
    assert json.loads(done("ask", reactor, "--more", "--json"))["trials"][0]["number"] == 6
    assert done("drop", reactor, "--trial", "6").startswith("dropped trial 6: temperature=")
    # Run with another temperature than asked for.
    told = done("tell", reactor, "--trial", "4", "temperature=199", "yield=60")
    assert told.startswith("trial 4: temperature=199 pressure=")
    status = json.loads(done("status", reactor, "--json", "--seconds", "0.3"))
    assert status["observations"] == 3
    assert [one["number"] for one in status["pending"]] == [3, 5]
    assert status["best"]["regret"] > 5 and status["stop"] is False
    text = done("status", reactor, "--seconds", "0.3", "--stop-within", "1000")
    assert status["most_promising"]["lower"] < status["most_promising"]["estimate"]
    assert text.startswith("reactor.db: yield is about ")
    assert ", guaranteed between " in text.splitlines()[0]
    assert "Stop: certified within 1000" in text and "with probability 0.99" in text
    assert done("undo", reactor).startswith("taken back: trial 4: temperature=199")
    assert "wrote 2 observations to runs.csv" in done("export", reactor, "runs.csv")
    assert "already: 2, as it seems, or 0 if all" in refused("import", reactor, "runs.csv")
    assert "imported 0 runs; 2 obs" in done("import", reactor, "runs.csv", "--skip", "2")
    rows = Path("runs.csv").read_text().splitlines()
    assert rows[0].startswith("trial,temperature") and rows[1].startswith("1,")
    Path("one.csv").write_text("temperature,pressure,catalyst,yield\n200,2e5,0.5,61\n")
    assert "imported 1 run; 3 obs" in done("import", reactor, "one.csv")
    found = study("import", reactor, "one.csv")
    assert "imported 0 runs, after 1 that was imported before; 3 obs" in found.stdout
    assert "note: the table has no new rows" in found.stderr and "--skip 0" in found.stderr
    with open("one.csv", "a") as file:
        file.write("200,2e5,0.5,61\n")
    assert "1 run, after 1 that was imported before; 4" in done("import", reactor, "one.csv")
    assert "imported 2 runs; 6 obs" in done("import", reactor, "one.csv", "--skip", "0")
    for _ in range(3):
        done("undo", reactor)
    assert done("plot", reactor, "--out", "pictures", "--seconds", "0.3").count("wrote ") == 3


def test_assumptions_are_settled_at_creation():
    text = done("create", "small.db", "--input", "x=0:1", "--output", "y=0:1", "--noise", "0.1")
    assert "norm bound" in text and "Matern" in text and "note" not in text
    aim = ["--stop-within", "0.001", "--kernel", "Matern(0.5)", "--norm-bound", "5"]
    found = study(
        "create", "far.db", "--input", "x=0:1", "--output", "y=0:1", "--noise", "0.1", *aim
    )
    assert "note: an aim of 0.001 is far" in found.stderr and "kernelbounds plan" in found.stderr
    with kb.Study("small.db") as made:
        assert made.problem.kernel is not None and made.problem.norm_bound > 0
        assert not made.minimise
        made.problem.save("problem.json")
    done("create", "cost.db", "--problem", "problem.json", "--minimise", "--noise", "0.2")
    with kb.Study("cost.db") as made:
        assert made.minimise and made.problem.noise == 0.2


def test_a_key_is_counted_once(reactor):
    telling = ["tell", reactor, *SETTINGS, "yield=63.1", "--key", "monday"]
    assert json.loads(done(*telling, "--json")) == {"trial": 1, "again": False, "observations": 1}
    assert "told before: nothing changed; 1 observation\n" in done(*telling)
    other = ["tell", reactor, *SETTINGS, "yield=64", "--key", "monday"]
    assert "other content" in refused(*other)


def test_notes_go_to_standard_error(reactor):
    done("ask", reactor)
    found = study("tell", reactor, *SETTINGS, "yield=631")
    assert "note: yield=631 is far from the range 0:100" in found.stderr
    assert "still pending: trial 1" in found.stderr
    assert "note" not in found.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tell", "reactor.db", *SETTINGS, "yeild=63"], "did you mean 'yield'"),
        (["tell", "reactor.db", *SETTINGS], "a value of yield is missing"),
        (["tell", "reactor.db", "yield=63"], "value of temperature and of pressure and of"),
        (["tell", "reactor.db", *SETTINGS, "yield=high"], "yield must be a number, got 'high'"),
        (["tell", "reactor.db", *SETTINGS, "yield=63,1"], "a point for the decimal comma"),
        (["tell", "reactor.db", *SETTINGS, "yield=nan"], "yield must be a number"),
        (["tell", "reactor.db", *SETTINGS, "yield"], "write name=value"),
        (["tell", "reactor.db", *SETTINGS, "yield=1", "yield=2"], "yield is given twice"),
        (["tell", "reactor.db", *SETTINGS[1:], "temperature=300", "yield=1"], "its range 180:220"),
        (["tell", "reactor.db", "--trial", "7", "yield=1"], "there is no trial 7"),
        (["drop", "reactor.db", "--trial", "7"], "there is no trial 7"),
        (["undo", "reactor.db"], "nothing to take back"),
        (["plot", "reactor.db"], "nothing to draw"),
        (["status", "nowhere.db"], "there is no study 'nowhere.db'"),
        (["import", "reactor.db", "nowhere.csv"], "cannot read 'nowhere.csv'"),
        (["create", "reactor.db", *CREATE, *KNOWN], "'reactor.db' already exists"),
        (["create", "new.db", *CREATE[:8]], "state how noisy the output is"),
        (["create", "new.db", "--input", "x=0:1", "--noise", "1"], "state what is measured"),
    ],
)
def test_what_is_refused_is_one_sentence_and_changes_nothing(reactor, folder, words, message):
    assert message in refused(*words)
    assert sorted(os.listdir(folder)) == ["reactor.db"]
    with kb.Study(reactor) as opened:
        assert len(opened) == 0 and opened.pending == []


def test_refuted_assumptions_lead_to_a_new_study(reactor):
    for value in (10, 90, 20, 80):
        done("tell", reactor, *SETTINGS, f"yield={value}")
    assert "kernelbounds study status reactor.db" in refused("ask", reactor)
    text = done("status", reactor)
    assert "refute the assumptions" in text and "The outcomes before that of trial 2 do not" in text
    noise = text.split("--noise ")[1].split()[0]
    done("export", reactor, "runs.csv")
    done("create", "new.db", "--noise", noise, *CREATE[:8], *KNOWN)
    assert "imported 4 runs" in done("import", "new.db", "runs.csv")
    assert "refute the assumptions" not in done("status", "new.db", "--seconds", "1")


def test_outcomes_in_another_unit_are_asked_about_once(reactor, folder):
    question = "note: the outcomes of yield span 0.4, but its range was stated as 100"
    for at, value in enumerate((0.2, 0.3, 0.5, 0.6, 0.55, 0.45)):
        told = study("tell", reactor, f"temperature={200 + at}", *SETTINGS[1:], f"yield={value}")
        assert told.exit_code == 0 and (question in told.stderr) == (at == 4)
    (folder / "more.csv").write_text(
        "temperature,pressure,catalyst,yield\n" + "210,2e5,0.4,300\n211,2e5,0.4,640\n"
    )
    done("create", "other.db", *CREATE, *KNOWN, "--maximise")
    told = study("import", "other.db", "more.csv")
    assert told.exit_code == 0 and "span 340, but its range was stated as 100" in told.stderr
    assert "same unit" not in study("import", "other.db", "more.csv").stderr


def test_errors_are_one_line_for_people_and_an_exit_code_for_scripts(reactor):
    command = [sys.executable, "-m", "kernelbounds", "study", "status", "nowhere.db"]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 1 and found.stdout == ""
    assert found.stderr.startswith("error: there is no study 'nowhere.db'")
    assert found.stderr.count("\n") == 1


# --- what is written never replaces what was told


@pytest.fixture
def names_of_a_study(reactor, folder):
    """One study by its name, a relative path, a symbolic link, and beside it under a hard link."""
    done("tell", reactor, *SETTINGS, "yield=63")
    (folder / "sub").mkdir()
    (folder / "link.csv").symlink_to(reactor)
    os.link(reactor, "hard.csv")
    return [reactor, f"sub/../{reactor}", "link.csv", "hard.csv", str(folder / reactor)]


def test_no_command_writes_over_a_study(names_of_a_study, folder):
    done("create", "other.db", *CREATE, *KNOWN)
    with kb.Study("reactor.db") as opened:
        for name in [*names_of_a_study, "other.db"]:
            before = Path(name).read_bytes()
            for words in (["export", "reactor.db", name], ["report", "reactor.db", "--out", name]):
                assert "it is a study, or another SQLite database, which is never" in refused(
                    *words
                )
            for write in (opened.export, opened.problem.save, opened.sequence.save):
                with pytest.raises(kb.InputError, match="which is never replaced; name another"):
                    write(name)
            assert Path(name).read_bytes() == before
    pytest.importorskip("matplotlib")
    os.link("reactor.db", "history.png")
    assert "which is never replaced" in refused("plot", "reactor.db", "--seconds", "0.1")
    assert "observations: 1" in done("status", "reactor.db", "--seconds", "0.1")


def test_a_study_that_is_made_while_a_file_is_written_stays(reactor, folder):
    from kernelbounds.io import files

    study_itself = Path(reactor).read_bytes()
    with pytest.raises(OSError, match="which is never replaced"), files.replacing(Path("a")) as out:
        out.write(b"later")
        Path("a").write_bytes(study_itself)
    assert Path("a").read_bytes() == study_itself


def test_an_export_replaces_only_exports(reactor):
    raw = "trial,temperature,pressure,catalyst,yield\n1,200,2e5,0.4,63\n"
    done("export", reactor, "runs.csv")
    done("tell", reactor, *SETTINGS, "yield=63")
    assert "wrote 1 observation to runs.csv" in done("export", reactor, "runs.csv")
    done("note", reactor, "1", "new batch")
    done("export", reactor, "runs.csv")
    done("export", reactor, "runs.csv")
    assert "new batch" in Path("runs.csv").read_text()
    for text in (raw.replace("trial", "operator"), "some notes\n", raw.replace(",", ";"), "\0"):
        Path("other.csv").write_text(text)
        assert "is not an export of this study; name another" in refused(
            "export", reactor, "other.csv"
        )
        assert Path("other.csv").read_text() == text
    Path("old.csv").write_text(raw)
    done("import", reactor, "old.csv", "--skip", "0")
    assert "runs of this study were imported from it" in refused("export", reactor, "old.csv")


def test_a_report_replaces_only_reports(reactor, monkeypatch):
    pytest.importorskip("jinja2")
    Path("reactor.html").write_text("<html>my notes</html>")
    assert "is not the page of a study" in refused("report", reactor)
    for _ in range(2):
        done("report", reactor, "--out", "new.html")


# --- what is said, in numbers and words that agree


def test_what_is_said_of_pending_trials_is_what_is_known_now(reactor):
    for value in (60, 61, 62, 63, 64, 65, 66, 67):
        trial = json.loads(done("ask", reactor, "--json"))["trials"][0]["number"]
        done("tell", reactor, "--trial", str(trial), f"yield={value}")
    done("ask", reactor, "-n", "2")
    with kb.Study(reactor) as opened:
        first, second = (one.why for one in opened.pending)
        assert not re.search(r"\d", first) and second.startswith("Chosen beside a pending trial: ")
    assert "chosen before" not in done("ask", reactor)
    done("tell", reactor, *SETTINGS, "yield=64.5")
    assert "chosen before the latest outcomes: trial 9, 10; for a new" in done("ask", reactor)


def test_the_plausible_range_is_not_said_to_be_a_limit(reactor):
    said = done("ask", reactor)
    assert "yield there may be anywhere in its plausible range 0:100, or beyond" in said
    done("create", "cut.db", *CREATE, *KNOWN, "--limits", "0:100")
    said = done("ask", "cut.db")
    assert "plausible range 0:100\n" in said and "beyond" not in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tell", "reactor.db", "temperature=300", *SETTINGS[1:], "yield=1"], "study revise"),
        (["tell", "reactor.db", "--trial", "99", "yield=1"], "pending: 1. A run of your own is"),
        (["tell", "reactor.db", *SETTINGS, "yield=25.3 %"], "leave out the unit"),
        (["tell", "reactor.db", *SETTINGS, "yield=nan"], "to leave it out would void the guar"),
        (["ask", "runs.csv"], "make one with kernelbounds study create, .* study import"),
    ],
)
def test_messages_say_what_to_do(reactor, words, message):
    done("ask", reactor)
    Path("runs.csv").write_text("temperature,pressure,catalyst,yield\n200,2e5,0.4,63\n" * 20)
    assert re.search(message, refused(*words))


def test_ranges_are_named_with_their_unit(folder):
    done("create", "oven.db", "--input", "T[°C]=1:9", *CREATE[6:], *KNOWN)
    assert "T = 10 is not in its range 1:9 °C; correct it" in refused(
        "tell", "oven.db", "T=10", "yield=1"
    )


def test_the_same_outcome_told_twice_is_asked_about(reactor):
    told = ["tell", reactor, *SETTINGS, "yield=63"]
    assert "told twice" not in study(*told).stderr
    assert "told twice" not in study(*told[:-1], "yield=63.1").stderr
    found = study(*told)
    assert "this is equal to trial 1" in found.stderr and "study undo reactor.db" in found.stderr
    assert "told twice" not in study("tell", reactor, *SETTINGS, "yield=8", "--key", "a").stderr
    assert "told twice" not in study("tell", reactor, *SETTINGS, "yield=8", "--key", "a").stderr


def test_a_certificate_wider_than_the_range_says_nothing(reactor):
    done("tell", reactor, *SETTINGS, "yield=63")
    with kb.Study(reactor) as opened:
        found = opened.status(0.2)
    for regret, nothing in ((100.0, True), (99.9, False)):
        said = str(replace(found, certificate=replace(found.certificate, regret=regret)))
        words = "says nothing: it is not narrower than the whole range that was stated, 100."
        assert (words in said) == nothing


def test_long_kernels_are_written_in_words(folder):
    done("create", "sum.db", *CREATE, "--interactions", "none")
    assert "kernel as suggested for this problem" in done("status", "sum.db")
    made = done("revise", "sum.db", "new.db", "--turns", "1")
    assert "another kernel, suggested anew" in made and "OnInputs" not in made
    assert "OnInputs" in json.loads(done("status", "sum.db", "--json"))["problem"]["kernel"]


def test_trials_are_listed_with_a_column_for_each_input(reactor):
    done("tell", reactor, *SETTINGS, "yield=63")
    done("ask", reactor)
    head, first, second = (
        re.split(r"\s*[│┃]\s*", line)[1:-1]
        for line in done("trials", reactor).splitlines()
        if re.match("[│┃]", line)
    )
    assert head == ["trial", "temperature", "pressure", "catalyst", "yield", "notes"]
    assert first == ["1", "200", "200000", "0.4", "63", ""]
    assert second[0] == "2" and second[4] == "(pending)"

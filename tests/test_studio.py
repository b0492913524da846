"""The studio: its page, what its forms do, who may use it, and the same page as one file."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from html import unescape

import numpy as np
import pytest

import kernelbounds as kb
from kernelbounds.studio import desk as desks, sections

pytest.importorskip("starlette")
from starlette.testclient import TestClient

from kernelbounds.studio import server

pytestmark = pytest.mark.usefixtures("drawn_once")

TOKEN, PORT = "a-secret", 8000
PARTS = ("summary", "next", "look", "progress", "assumptions", "trials")


def problem(name="strength", **more):
    stated = {"kernel": "Matern(0.8, nu=2.5)", "norm_bound": 60.0, "limits": "0:60"} | more
    inputs = ["temperature[°C]=140:190", "minutes=10:40"]
    return kb.Problem(inputs, f"{name}[MPa]=0:60", 0.5, 1, **stated)


def strength(temperature, minutes):
    u, v = (temperature - 170) / 50, (minutes - 25) / 30
    return 20 + 30 * np.exp(-1.5 * (u + 0.5 * v) ** 2 - 0.8 * (v - 0.3 * u) ** 2)


def fill(study, count=8, seed=0):
    rng = np.random.default_rng(seed)
    points = np.stack([rng.uniform(140, 190, count), rng.uniform(10, 40, count)], axis=1).round(1)
    study.tell_many(points, (strength(*points.T) + 0.5 * rng.standard_normal(count)).round(2))


@pytest.fixture
def oven(tmp_path):
    with kb.Study.create(tmp_path / "oven.db", problem(), stop_within=20.0) as study:
        fill(study)
    return tmp_path / "oven.db"


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(sections, "CERTIFICATE_SECONDS", 0.3)
    monkeypatch.setattr(sections, "HISTORY_SECONDS", 0.5)


def page_of(desk, **options):
    app = server.application(desk, TOKEN, PORT)
    return TestClient(app, f"http://{server.HOST}:{PORT}", **options)


@pytest.fixture
def client(oven, quick):
    desk = desks.Desk([oven])
    with page_of(desk, follow_redirects=False) as made:
        assert made.get(f"/?token={TOKEN}").status_code == 303
        made.headers["X-Studio"] = TOKEN[::-1]
        yield made
    desk.close()


def text(response):
    """What a reader sees of a fragment, with single spaces."""
    return " ".join(unescape(re.sub("<[^>]*>", " ", response.text)).split())


# ---- what it shows


def test_every_section_answers(client):
    assert "oven maximise strength over temperature, minutes" in text(client.get("/"))
    page = client.get("/study/oven")
    assert page.status_code == 200 and "maximise strength [MPa]" in text(page)
    for part in PARTS:
        assert f"/study/oven/{part}" in page.text
        answer = client.get(f"/study/oven/{part}")
        assert answer.status_code == 200, answer.text
        assert not re.search("nan|None|undefined", text(answer)), text(answer)


def test_the_estimate_comes_first_and_is_that_of_the_status(client, oven):
    said = text(client.get("/study/oven/summary"))
    with kb.Study(oven) as study:
        best = study.status(seconds=0.3).most_promising
    number, low, high = re.match(
        r"About ([\d.]+) MPa guaranteed between ([\d.]+) and ([\d.]+)", said
    ).groups()
    # A search within a time finds a setting that is about as good.
    assert float(number) == pytest.approx(best.estimate, rel=0.02)
    assert float(low) < float(number) < float(high)
    assert "Proved within" in said and "with probability 99 %" in said


def test_pictures_follow_the_page(client):
    answer = client.get("/study/oven/look").text
    assert answer.count("<svg") == 2, "one band for each input"
    assert "var(--one)" in answer and "currentColor" in answer and "#0014a8" not in answer
    moved = {"part": "pictures", "at-temperature": "150", "at-minutes": "12"}
    other = client.get("/study/oven/look", params=moved).text
    assert other.count("<svg") == 2 and "<form" not in other and other != answer
    for what in sections.QUANTITIES:
        drawn = client.get("/study/oven/look", params=moved | {"what": what})
        assert drawn.text.count("<svg") == 1, what
    same = moved | {"what": "estimate", "across": "minutes", "up": "minutes"}
    assert "two different inputs" in text(client.get("/study/oven/look", params=same))


def test_what_is_cheap_is_shown_while_the_rest_is_computed(client):
    client.post("/study/oven/tell", data={"temperature": "165", "minutes": "20", "strength": "48"})
    assert "/study/oven/soon" in client.get("/study/oven").text
    said = text(client.get("/study/oven/soon"))
    assert re.match(r"About [\d.]+ MPa guaranteed between [\d.]+ and [\d.]+ MPa", said), said
    client.get("/study/oven/summary")
    assert "/study/oven/soon" not in client.get("/study/oven").text


def test_how_wrong_the_assumptions_may_be(client):
    assert "norm bounds up to" in text(client.get("/study/oven/holds?value=1"))
    assert "does not hold" in text(client.get("/study/oven/holds?value=59"))
    # When the study has changed, the section comes again, with the question that was asked.
    assert "holds?value" not in client.get("/study/oven/assumptions?value=1").text
    again = client.get("/study/oven/assumptions?value=1&asked=yes").text
    assert 'hx-get="/study/oven/holds?value=1"' in again and 'value="1"' in again
    assert client.get("/study/oven/holds?value=much").status_code == 422


def test_trials_are_found_by_any_word(client, oven):
    with kb.Study(oven) as study:
        study.note(3, "new batch of resin")
    assert text(client.get("/study/oven/trials?part=table&filter=RESIN")).count("resin") == 1
    assert "Nothing is like that" in text(client.get("/study/oven/trials?part=table&filter=zzz"))


def test_very_many_outcomes_are_not_computed_unasked(client, monkeypatch):
    monkeypatch.setattr(desks, "MANY_OUTCOMES", 5)
    asked = []
    monkeypatch.setattr(kb.Study, "status", lambda *_: asked.append(1))
    for part in ("summary", "look", "progress"):
        assert "not computed unasked" in text(client.get(f"/study/oven/{part}"))
    for part in ("next", "assumptions", "trials"):
        assert client.get(f"/study/oven/{part}").status_code == 200
    assert not asked
    monkeypatch.undo()
    client.post("/study/oven/compute")
    assert "About" in text(client.get("/study/oven/summary"))


# ---- what its forms do


def test_ask_tell_correct_take_back_and_note(client, oven):
    said = client.post("/study/oven/ask", data={"count": "2", "aim": "learning"})
    assert "to be run" in text(said) and said.headers["HX-Trigger-After-Settle"] == "changed"
    with kb.Study(oven) as study:
        first, second = study.pending
        assert first.purpose == "learning" and first.why in text(client.get("/study/oven/next"))
    shown = text(client.get("/study/oven/next"))
    assert f"Trial {first.number}" in shown and f"Trial {second.number}" in shown
    told = {"trial": str(first.number), "strength": "31,5", "note": "by hand"}
    assert "strength=31.5 is safe" in text(client.post("/study/oven/tell", data=told))
    assert "already has its outcome" in text(client.post("/study/oven/tell", data=told))
    client.post("/study/oven/drop", data={"trial": str(second.number)})
    own = {"temperature": "150", "minutes": "20", "strength": "33"}
    client.post("/study/oven/tell", data=own)
    client.post("/study/oven/correct", data={"trial": str(first.number), "strength": "32"})
    client.post("/study/oven/note", data={"trial": "1", "text": "first of all"})
    client.post("/study/oven/undo", data={"trial": "2"})
    with kb.Study(oven) as study:
        trials = {one.number: one for one in study.trials}
        assert trials[first.number].outcome == 32.0
        assert str(trials[first.number].notes[0]) == "by hand"
        assert trials[second.number].state == "dropped"
        assert trials[1].notes and trials[2].state == "pending"
        assert len(study) == 9
        assert study.observations["strength"][-1] == 33.0


@pytest.mark.parametrize(
    ("action", "data", "said"),
    [
        ("tell", {"trial": "99", "strength": "3"}, "there is no trial 99"),
        ("tell", {"temperature": "150", "minutes": "20", "strength": "hot"}, "must be a number"),
        ("tell", {"temperature": "900", "minutes": "20", "strength": "3"}, "temperature = 900"),
        ("ask", {"count": "many"}, "whole number"),
        ("ask", {"aim": "glory"}, "best, certificate, learning"),
        ("drop", {}, "whole number"),
        ("correct", {"trial": "1", "strength": ""}, "must be a number"),
        ("note", {"trial": "1", "text": " "}, "needs some text"),
    ],
)
def test_slips_are_one_sentence_and_change_nothing(client, oven, action, data, said):
    before = oven.read_bytes()
    answer = client.post(f"/study/oven/{action}", data=data)
    assert answer.status_code == 422 and said in text(answer)
    assert oven.read_bytes() == before


def test_tables_are_imported_or_refused_with_the_line(client, oven):
    good = "temperature,minutes,strength\n150,20,30.5\n160,22,40.1\n"
    address = "/study/oven/import?file=runs.csv"
    assert "Imported 2 runs; the study has 10" in text(client.post(address, content=good))
    answer = client.post(address, content="temperature,minutes,strength\n150,abc,3\n")
    assert answer.status_code == 422 and "line 2" in text(answer) and "/tmp" not in text(answer)
    grown = good + "170,24,45.0\n"
    assert "Imported 1 run;" in text(client.post(address, content=grown)), "it knows the others"
    for name in ("", "..", "a/.."):  # The name of a folder is none of a table.
        other = client.post(f"/study/oven/import?file={name}&skip=3", content=grown)
        assert "Imported 0 runs" in text(other)


def test_the_page_learns_of_changes_by_others(client, oven):
    page = client.get("/study/oven").text
    address = unescape(re.search(r'hx-get="(/study/oven/revision[^"]*)"', page)[1])
    assert client.get(address).status_code == 204
    with kb.Study(oven) as study:
        study.certificate(0.1)
        assert client.get(address).status_code == 204, "a certificate is no news"
        study.tell({"temperature": 150, "minutes": 20}, 30.0)
    changed = client.get(address)
    assert changed.status_code == 200 and changed.headers["HX-Trigger"] == "changed"


# ---- a new study

QUESTIONS = {
    "output-name": "hardness", "output-unit": "HRC", "output-low": "20", "output-high": "60",
    "limit-low": "0", "limit-high": "", "goal": "minimise", "stop-within": "5",
    "input-name": ["speed", "quench"], "input-unit": ["rpm", ""],
    "input-kind": ["number", "category"], "input-low": ["100", ""], "input-high": ["500", ""],
    "input-levels": ["", "oil, water"], "input-shape": ["increasing", ""],
    "turns": "1", "interactions": "none", "noise-kind": "about", "noise": "0,5", "file": "steel",
}  # fmt: skip


def test_a_study_from_questions(client, oven):
    assert client.get("/new").status_code == 200 and "input-name" in client.get("/new/input").text
    drawn = client.post("/new/preview", data=QUESTIONS)
    assert "<svg" in drawn.text and "the band will be about" in text(drawn)
    answer = client.post("/new", data=QUESTIONS)
    assert answer.headers["HX-Redirect"] == "/study/steel", answer.text
    with kb.Study(oven.with_name("steel.db")) as study:
        assert study.minimise and study.stop_within == 5.0
        made = study.problem
    assert made.inputs.names == ("speed", "quench") and made.noise == 0.5
    assert made.increasing == ("speed",) and made.limits == (0.0, None)
    assert "quench" in text(client.get("/study/steel"))
    for part in PARTS:  # before the first observation
        assert client.get(f"/study/steel/{part}").status_code == 200, part


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"output-name": ""}, "say what you measure"),
        ({"input-low": ["fast", ""]}, "lowest setting of speed must be a number"),
        ({"input-levels": ["", "oil"]}, "two names or more"),
        ({"noise": ""}, "run again"),
        ({"file": "../steel"}, "plain file name"),
        ({"file": "oven"}, "already exists"),
    ],
)
def test_what_is_missing_is_asked_for(client, changed, said):
    answer = client.post("/new", data=QUESTIONS | changed)
    assert answer.status_code == 422 and said in text(answer)
    if "file" not in changed:
        assert said in text(client.post("/new/preview", data=QUESTIONS | changed))


# ---- who may use it


def test_only_with_the_token_from_this_host_and_page(client, oven):
    stranger = TestClient(client.app, client.base_url, follow_redirects=False)
    assert stranger.get("/study/oven").status_code == 403
    for guess in ("guess", "é"):
        assert stranger.get(f"/?token={guess}").status_code == 403
        assert client.post("/new", headers={"X-Studio": guess.encode()}).status_code == 403
    for host in ("evil.example", "testserver", f"evil.example:{PORT}"):
        assert client.get("/", headers={"host": host}).status_code == 421
    before = oven.read_bytes()
    for header in ({"X-Studio": ""}, {"X-Studio": TOKEN}):
        told = client.post("/study/oven/undo", data={"trial": "1"}, headers=header)
        assert told.status_code == 403
    assert oven.read_bytes() == before
    page = client.get("/study/oven")
    assert "script-src 'self';" in page.headers["Content-Security-Policy"]
    assert TOKEN not in page.text.replace(TOKEN[::-1], "")


def test_names_are_text(tmp_path, quick):
    wild = "<script>alert(1)</script>"
    odd = kb.Problem([f"{wild}=0:1"], "y & <b>=0:1", 0.1, kernel="RBF(0.5)", norm_bound=3.0)
    with kb.Study.create(tmp_path / "odd.db", odd) as study:
        study.tell([0.5], 0.4)
        study.note(1, wild)
    desk = desks.Desk([tmp_path / "odd.db"])
    with page_of(desk) as made:
        pages = [made.get(f"/study/odd?token={TOKEN}").text]
        pages += [made.get(f"/study/odd/{part}").text for part in PARTS]
    one = desks.OpenStudy("odd", tmp_path / "odd.db")
    pages.append(sections.report(one))
    one.study.close()
    for page in pages:
        assert wild not in page and "y & <b>" not in page
    desk.close()


def test_a_damaged_file_is_listed_with_the_reason(oven, tmp_path):
    (tmp_path / "notes.db").write_text("not a study")
    desk = desks.Desk([tmp_path])
    lines = {line["name"]: line for line in desk.listed()}
    assert lines["oven"]["count"] == 8 and "problem" in lines["notes"]
    with page_of(desk) as made:
        assert lines["notes"]["problem"] in text(made.get(f"/?token={TOKEN}"))
    desk.close()


# ---- one file


def test_the_report_is_one_file_without_a_network(oven, quick, run):
    with kb.Study(oven) as study:
        right = study.trial(3).outcome
        study.correct(3, 7.0)
        study.correct(3, right)
        assert [(number, told) for number, _, told in study.taken_back] == [(3, right), (3, 7.0)]
    code, out, _ = run("study", "report", oven)
    page = oven.with_suffix(".html").read_text(encoding="utf-8")
    assert code == 0 and "oven.html" in out
    addresses = set(re.findall(r"https?://[^\s\"'<>)]*", page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}, addresses
    assert "<script" not in page and "<form" not in page and "<button" not in page
    assert page.count("<svg") >= 2 + 4 + 2, "bands, maps, progress"
    assert "Taken back or corrected: trial 3: " in page and "strength=7" in page
    assert page.count('<th scope="row">') >= 8 and "Proved within" in page
    for row in ("strength", "turns", "interactions", "noise", "norm bound", "kernel"):
        assert f'<th scope="row">{row}</th>' in page, row


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"noise": 0.3}, "only if the revised assumptions would have been made without these data"),
        ({"noise": 0.9}, "only if the numbers that were revised are not tuned to these data"),
        ({"limits": None, "delta": 0.001}, "with probability 99 %, if the assumptions hold."),
    ],
)
def test_pages_say_what_a_revision_leaves_of_the_guarantee(oven, quick, run, changes, said):
    new = oven.with_name("new.db")
    with kb.Study(oven) as study, study.revise(new, study.problem.replace(**changes)) as made:
        last = made.revisions[-1]
    run("study", "report", new)
    report = new.with_suffix(".html").read_text(encoding="utf-8")
    desk = desks.Desk([new])
    with page_of(desk) as client:
        client.get(f"/?token={TOKEN}")
        parts = {name: text(client.get(f"/study/new/{name}")) for name in PARTS}
    desk.close()
    page = " ".join(unescape(re.sub("<[^>]*>", " ", report)).split())
    for shown in (page, parts["assumptions"]):
        assert last.changes[0] in shown and last.guarantee in shown
        assert "before the data, and every" not in shown and "when the study was made" not in shown
    for shown in (page, parts["summary"], page[page.index("Made by kernelbounds") :]):
        assert said in shown
    assert "0.999" not in page and "99.9 %" not in page and " fine " not in page
    warned = "The assumptions were revised after the data."
    assert (warned in page) == (warned in parts["summary"]) == (last.level in ("weaker", "none"))


def test_a_refuted_report_has_one_number_for_one_thing_and_no_options(oven, quick, run):
    with kb.Study(oven) as study:
        study.tell_many([[160.0, 20.0], [160.0, 20.1]], [2.0, 55.0])
        needed = study.status(seconds=0.1).norm_bound.at_least
    run("study", "report", oven)
    report = oven.with_suffix(".html").read_text(encoding="utf-8")
    body = re.sub("<[^>]*>", " ", report[report.index("<body") :])
    page = " ".join(unescape(re.sub("<svg.*?</svg>", " ", body)).split())
    assert re.search("before that of trial (9|10) do not refute them, but with it they do", page)
    assert (
        "a new study with a larger noise;" in page and "a larger norm bound or more turns" in page
    )
    assert "--" not in page and "norm_bound" not in page and " inf " not in page
    assert page.count("There are no bounds, because the data refute the assumptions.") == 2
    more = "the data need at least" if np.isfinite(needed) else "no value is enough for the data"
    assert f"norm bound 60 MPa refuted {more}" in page


# ---- the command, in a browser


# The command itself, whose searches end early: pages are the same, with looser certificates.
STUDIO_IN_A_HURRY = """
from kernelbounds import cli
from kernelbounds.studio import sections
sections.CERTIFICATE_SECONDS, sections.HISTORY_SECONDS = 0.3, 0.5
cli.main()
"""


@pytest.fixture
def running(oven):
    words = ["studio", str(oven), "--no-open"]
    process = subprocess.Popen(
        [sys.executable, "-c", STUDIO_IN_A_HURRY, *words], stdout=subprocess.PIPE, text=True
    )
    address = process.stdout.readline().split()[-1]
    yield address, process
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        assert process.wait(20) in (0, 130)


@pytest.fixture
def page(running, browser):
    """What a person does on the page: find, use, and wait for what it says."""
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.support.ui import WebDriverWait

    class Page:
        # A section may be replaced between the moment it is found and the moment it is used.
        wait = WebDriverWait(browser, 60, 0.1, ignored_exceptions=[WebDriverException])

        def one(self, selector):
            return self.wait.until(lambda _: browser.find_element("css selector", selector))

        def do(self, selector, *keys):
            def done(_):
                found = browser.find_element("css selector", selector)
                # Away from the top of the window, where a message covers what is below it.
                browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", found)
                found.send_keys(*keys) if keys else found.click()
                return True

            self.wait.until(done)

        def shows(self, selector, words):
            self.wait.until(lambda _: words in browser.find_element("css selector", selector).text)

        def said(self, words):
            self.shows("#message", words)

        def choose(self, selector, value):
            script = (
                "const one = document.querySelector(arguments[0]); one.value = arguments[1];"
                "one.dispatchEvent(new Event('change', {bubbles: true}))"
            )
            browser.execute_script(script, selector, value)

        def errors(self):
            return [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]

    yield Page()
    browser.set_window_size(1200, 900)
    browser.get("about:blank")
    browser.get_log("browser")


def test_what_a_person_does_in_a_browser(running, browser, page, oven):
    address, process = running
    browser.get(address)
    assert TOKEN not in browser.current_url and "token" not in browser.current_url
    page.wait.until(lambda _: not browser.find_elements("css selector", ".wait"))
    assert page.one("#summary .hero").text.startswith("About")
    # Ask, and tell the outcome.
    page.do("#next form.row button")
    page.said("to be run")
    page.do("#next .trial input[name=strength]", "41.5")
    # A second person, and the command line, at the same time.
    with kb.Study(oven) as study:
        study.tell({"temperature": 150, "minutes": 20}, 30.0)
    page.shows("#summary", "9 observations")
    assert page.one("#next .trial input[name=strength]").get_attribute("value") == "41.5", "kept"
    page.do("#next .trial button.strong")
    page.said("is safe in the file")
    page.shows("#summary", "10 observations")
    # Sliders and maps.
    here = page.one(".here").text
    page.do("input[name=at-temperature]", "\ue010")  # End
    page.wait.until(lambda _: browser.find_element("css selector", ".here").text != here)
    page.choose("[name=what]", "width")
    page.wait.until(lambda _: len(browser.find_elements("css selector", "#pictures svg")) == 1)
    # A note on a trial, and a table that is dropped.
    page.do("#trials .menu summary")
    page.do("#trials .menu[open] input[name=text]", "new resin")
    page.do("#trials .menu[open] form button")
    page.said("Noted")
    page.shows("#trials", "new resin")
    table = oven.with_name("more.csv")
    table.write_text("temperature,minutes,strength\n160,22,40.1\n")
    page.do("#table", str(table))
    page.said("Imported 1 run")
    # No sideways scrolling, on a phone either.
    browser.set_window_size(390, 844)
    wide = browser.execute_script("return document.documentElement.scrollWidth > innerWidth")
    assert not wide
    assert page.errors() == []
    # Killed in the middle, nothing is lost and the page says so.
    process.kill()
    process.wait()
    page.said("is it still running?")
    with kb.Study(oven) as study:
        assert len(study) == 11


def test_a_second_browser_changes_what_the_first_shows(running, browser, page, oven):
    address, _ = running
    browser.get(address)
    first = browser.current_window_handle
    page.shows("#trials", "change")
    browser.switch_to.new_window("tab")
    browser.get(address)
    # Correct a slip, take an outcome back, give its trial up, all in the second one.
    page.do("#trials tbody tr:nth-child(1) .menu summary")
    page.do("#trials .menu[open] form:nth-of-type(2) input[name=strength]", "47.25")
    page.do("#trials .menu[open] form:nth-of-type(2) button")
    page.said("is corrected")
    page.shows("#trials tbody tr:nth-child(1)", "47.25")
    page.do("#trials tbody tr:nth-child(2) .menu summary")
    page.do("#trials .menu[open] form:nth-of-type(3) button")
    browser.switch_to.alert.accept()
    page.said("was taken back")
    page.do("#next .trial button[type=button]")
    browser.switch_to.alert.accept()
    page.said("given up")
    # How wrong may the assumptions be, and which trials are like this?
    page.do("#assumptions form button")
    page.shows("#holds", "norm bounds up to")
    page.do("#trials input[type=search]", "47.25")
    page.wait.until(lambda _: len(browser.find_elements("css selector", "#trials tbody tr")) == 1)
    browser.close()
    browser.switch_to.window(first)
    page.shows("#trials", "47.25")
    page.shows("#summary", "7 observations, 2 taken back")
    # A new study, from questions.
    page.do(".crumbs a")
    page.do("a[href='/new']")
    typed = {
        "output-name": "hardness", "output-low": "20", "output-high": "60", "noise": "1",
        "input-name": "speed", "input-low": "1", "input-high": "9", "file": "steel",
    }  # fmt: skip
    for name, text in typed.items():
        page.do(f"[name={name}]", text)
    page.wait.until(lambda _: browser.find_element("css selector", "#preview svg"))
    page.do("#inputs + button")
    page.wait.until(lambda _: len(browser.find_elements("css selector", ".one-input")) == 2)
    page.do(".one-input:nth-child(2) .remove")
    page.do("#create")
    page.wait.until(lambda _: browser.current_url.endswith("/study/steel"))
    page.shows("#summary", "Nothing is observed yet")
    assert page.errors() == []
    with kb.Study(oven) as study:
        assert len(study) == 7 and study.trial(8).outcome == 47.25
        assert study.trial(7).state == "dropped"


def test_missing_files_and_extras_are_named(run, monkeypatch):
    code, _, err = run("studio", "absent.db")
    assert code == 1 and "there is no 'absent.db'" in err
    monkeypatch.setitem(sys.modules, "kernelbounds.studio.server", None)
    for name in [one for one in sys.modules if one.startswith("jinja2")]:
        monkeypatch.setitem(sys.modules, name, None)
    sections._templates.cache_clear()
    with pytest.raises(kb.MissingExtraError, match=r"kernelbounds\[studio\]"):
        sections.render("error.html", said="")
    sections._templates.cache_clear()

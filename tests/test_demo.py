"""The tour: its numbers, the command, and what the page does in a browser."""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import sys
import webbrowser
from html import unescape
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from kernelbounds import cli, demo
from kernelbounds.io import files

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def tour():
    taken = []
    found = demo.take(demo.QUICK, seed=1, step=lambda: taken.append(1))
    assert len(taken) == demo.steps(demo.QUICK)
    return found


@pytest.fixture(scope="module")
def html(tour):
    return demo.as_html(tour, seed=1)


# ---- numbers


def test_bands_contain_the_truth_and_cmm_is_the_tightest(tour):
    data = tour.bands
    truth = np.array(data["truth"])
    for frames in zip(*(one["frames"] for one in data["bounds"])):
        for frame in frames:
            lower, upper = np.array(frame["lower"]), np.array(frame["upper"])
            assert np.all(lower <= truth) and np.all(truth <= upper) and frame["inside"] == 1.0
        cmm, dmm, amm, ay, igp, _ = (frame["width"] for frame in frames)
        assert cmm <= dmm <= amm <= min(ay, igp)
    assert data["bounds"][0]["frames"][0]["width"] == 2 * data["norm_bound"], "without data"


def test_curves_have_the_norm_one(tour):
    for family in tour.norms["families"]:
        assert np.abs(family["functions"]).max() <= 1.0, "|f(x)| <= B with B = 1"


def test_the_race_is_scored_by_what_was_played(tour):
    data = tour.race
    values, games = np.array(data["values"]), data["games"]
    for one in data["methods"]:
        own = np.cumsum(values.max() - values[one["played"]])
        assert len(own) == data["rounds"]
        if games == 1:  # then the mean is that of the game shown
            assert one["regret"] == pytest.approx(own, rel=1e-3, abs=1e-3)


def test_certificates_are_true(tour):
    first, *frames = tour.closing["frames"]
    assert "regret" not in first and len(frames) == len(tour.closing["points"])
    for frame in frames:
        assert 0 <= frame["true_regret"] <= frame["regret"] <= frame["limit"] - frame["sure"] + 1e-3


def test_more_experiments_narrow_the_band(tour):
    for curve in tour.plan["curves"]:
        assert np.all(np.diff(curve["half_width"]) < 0)


# ---- the page


def test_the_page_is_whole(html):
    assert set(re.findall(r"https?://[^\"'\s<>]*", html)) <= {"http://www.w3.org/2000/svg"}
    assert "{{" not in html and "default-src 'none'" in html
    data = json.loads(re.search(r'id="data">(.*?)</script>', html)[1])
    assert list(data) == ["norms", "bands", "race", "closing", "plan"]
    assert len(html.encode()) < 1_000_000


def test_what_it_says_to_try_works(html):
    """Python runs, commands are understood, and pages of the documentation are there."""
    blocks = [unescape(code) for code in re.findall(r"<pre[^>]*><code>(.*?)</code>", html, re.S)]
    names: dict[str, object] = {}
    for block in blocks:
        if block.startswith("kernelbounds "):
            understood(block)
        else:
            exec(compile(block, "tour.html", "exec"), names)
    for command in re.findall(r"<code>(kernelbounds [^<]*)</code>", html):
        understood(command)
    pages = re.findall(r"<cite>(docs/[^<]*)</cite>", html)
    assert len(pages) >= 4 and all((ROOT / page).exists() for page in pages), pages


def understood(command):
    """Whether the command line takes it: its name and options are known."""
    group, words = typer.main.get_command(cli.app), shlex.split(command)[1:]
    chosen = group.commands[words[0]]
    if len(words) > 1:
        chosen.make_context(words[0], words[1:])


# ---- the command


@pytest.fixture
def taken(monkeypatch, tour):
    """The command without the wait."""
    monkeypatch.setattr(demo, "take", lambda *_: tour)


@pytest.mark.usefixtures("taken")
def test_the_command_writes_one_page_and_a_table(tmp_path):
    out = tmp_path / "tour.html"
    result = CliRunner().invoke(cli.app, ["demo", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert out.read_text("utf-8").startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == [out]
    for word in ("CMM", "FixedDesign", "100%", "certificate:", "plan:", "page:"):
        assert word in result.output


@pytest.mark.usefixtures("taken")
def test_a_browser_is_opened_when_wanted(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    command = ["demo", "--out", str(tmp_path / "tour.html")]
    for more in ([], ["--no-open"]):  # the output of a test is not a terminal
        assert CliRunner().invoke(cli.app, [*command, *more]).exit_code == 0
    assert opened == []
    assert CliRunner().invoke(cli.app, [*command, "--open"]).exit_code == 0
    assert opened == [(tmp_path / "tour.html").as_uri()]


def test_an_interrupt_leaves_the_old_page(tmp_path, monkeypatch):
    out = tmp_path / "tour.html"
    out.write_text("old")

    def interrupted(size, seed, step):
        step()
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "take", interrupted)
    result = CliRunner().invoke(cli.app, ["demo", "--out", str(out)])
    assert result.exit_code != 0
    assert out.read_text() == "old" and list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize(
    "options",
    [
        ["--out", "no/such/folder/x.html"],
        ["--out", "x.png"],
        ["--out", "."],
        ["--seed", "-1"],
        ["--seed", "one"],
    ],
)
def test_the_command_refuses(options):
    result = CliRunner().invoke(cli.app, ["demo", *options])
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_a_fifo_is_not_replaced(tmp_path):
    out = tmp_path / "tour.html"
    os.mkfifo(out)
    result = CliRunner().invoke(cli.app, ["demo", "--quick", "--out", str(out)])
    assert result.exit_code == 2 and "FIFO" in result.output
    assert stat.S_ISFIFO(out.stat().st_mode)


@pytest.mark.usefixtures("taken")
def test_a_page_that_cannot_be_written_is_an_error_of_one_line(tmp_path, capsys, monkeypatch):
    out = str(tmp_path / "[bold]" / "x.html")
    (tmp_path / "[bold]").mkdir()
    monkeypatch.setattr(sys, "argv", ["kernelbounds", "demo", "--out", out])

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write_text", full)
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 1
    said = capsys.readouterr().err.lstrip()
    assert said == f"error: cannot write the page to {out!r}: No space left on device.\n"
    assert not list((tmp_path / "[bold]").iterdir())


# ---- in a browser


@pytest.fixture(scope="module")
def file(html, tmp_path_factory):
    path = tmp_path_factory.mktemp("tour") / "tour.html"
    path.write_text(html, "utf-8")
    return path


@pytest.fixture
def page(browser, file):
    """The page, fresh; it must not complain in what a test does with it."""
    browser.get_log("browser")
    opened(browser, file)
    yield browser
    assert browser.get_log("browser") == []
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def opened(browser, file):
    browser.get(file.as_uri())
    # Plots are drawn again when their size is known, two frames later at most.
    browser.execute_async_script(
        "const done = arguments[0];"
        "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));"
    )


def media(browser, **features):
    listed = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": listed})


CHAPTERS = ("norms", "bands", "race", "closing", "plan")


def of(page, chapter, css):
    return page.find_elements("css selector", f"#{chapter} {css}")


def seen(page, chapter):
    """All that a chapter shows now: pictures, sentence and table."""
    return page.execute_script(
        "const chapter = document.querySelector(`#${arguments[0]} .chapter`);"
        "return [...chapter.querySelectorAll('svg.plot, .says, tbody')].map((e) => e.outerHTML)",
        chapter,
    )


def test_every_chapter_is_drawn_and_told(page):
    for chapter in CHAPTERS:
        pictures = of(page, chapter, "svg.plot")
        assert len(pictures) == (2 if chapter in ("race", "closing") else 1)
        for picture in pictures:
            assert len(picture.get_attribute("aria-label")) > 40
            assert picture.get_attribute("role") == "img"
        paths = [one.get_attribute("d") for one in of(page, chapter, "svg.plot path")]
        assert paths and all(path.startswith("M") and "NaN" not in path for path in paths)
        [says] = of(page, chapter, ".says")
        assert len(says.text) > 40 and not re.search("undefined|NaN|null", says.text)
        of(page, chapter, "summary")[0].click()
        [table] = of(page, chapter, "table")
        assert table.is_displayed() and not re.search("undefined|NaN|null", table.text)
        assert len(of(page, chapter, "tbody tr")) >= 3


def test_every_control_changes_what_is_seen_by_keyboard(page):
    from selenium.webdriver import Keys

    used = 0
    for chapter in CHAPTERS:
        for slider in of(page, chapter, "input[type=range]"):
            for key in (Keys.HOME, Keys.END, Keys.ARROW_LEFT):
                before = seen(page, chapter)
                slider.send_keys(key)
                assert seen(page, chapter) != before, (chapter, key)
            label = page.find_element("css selector", f"label[for={slider.get_attribute('id')}]")
            assert slider.get_attribute("aria-valuetext") in label.text
            used += 1
        for box in of(page, chapter, "input[type=checkbox]"):
            before, was = seen(page, chapter), box.is_selected()
            box.send_keys(Keys.SPACE)
            assert box.is_selected() != was and seen(page, chapter) != before
            used += 1
        for option in of(page, chapter, "input[type=radio]:not(:checked)"):
            before = seen(page, chapter)
            option.send_keys(Keys.SPACE)
            assert option.is_selected() and seen(page, chapter) != before
            used += 1
    assert used == 5 + 6 + 2 * 2
    assert used == len(page.find_elements("css selector", "input")) - 2, "all but those chosen"


def test_the_numbers_are_those_of_the_library(page, tour):
    from selenium.webdriver import Keys

    [slider] = of(page, "bands", "input[type=range]")
    slider.send_keys(Keys.END)
    of(page, "bands", "summary")[0].click()
    first = of(page, "bands", "tbody tr")[0].text
    width = tour.bands["bounds"][0]["frames"][-1]["width"]
    assert first.startswith(f"CMM {width:.2f} 1.00 ") and "100 %" in first
    [slider] = of(page, "closing", "input[type=range]")
    slider.send_keys(Keys.END)
    said = of(page, "closing", ".says")[0].text
    claimed = float(re.search(r"at most ([\d.]+) below", said)[1])
    regret = tour.closing["frames"][-1]["regret"]
    assert regret <= claimed <= regret * 1.01, "rounded up"


def test_it_plays_and_pauses(page):
    from selenium.webdriver.support.ui import WebDriverWait

    [button] = of(page, "closing", "button")
    [slider] = of(page, "closing", "input[type=range]")
    button.click()
    assert button.text == "Pause"
    start = slider.get_attribute("value")
    WebDriverWait(page, 5, 0.05).until(lambda _: slider.get_attribute("value") != start)
    button.click()
    assert button.text == "Play"


def test_motion_is_reduced_where_that_is_wanted(page, file):
    media(page, prefers_reduced_motion="reduce")
    opened(page, file)
    for chapter in ("bands", "race", "closing"):
        [button] = of(page, chapter, "button")
        [slider] = of(page, chapter, "input[type=range]")
        assert button.text == "Next step"
        page.execute_script("arguments[0].value = 0", slider)
        button.click()
        assert slider.get_attribute("value") == "1"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone(page, file, scheme):
    media(page, prefers_color_scheme=scheme)
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    opened(page, file)
    page.execute_script("document.querySelectorAll('details').forEach((one) => one.open = true)")
    wide, ink, paper = page.execute_script(
        "const style = getComputedStyle(document.documentElement);"
        "return [document.documentElement.scrollWidth, style.color, style.backgroundColor]"
    )
    assert wide == 390, "nothing to scroll sideways"
    bright = [sum(map(int, re.findall(r"\d+", one)[:3])) for one in (ink, paper)]
    assert (bright[0] > bright[1]) == (scheme == "dark")


def test_focus_is_visible_from_the_keyboard_and_ids_are_unique(page):
    from selenium.webdriver import ActionChains, Keys

    visited = set()
    for _ in range(12):
        ActionChains(page).send_keys(Keys.TAB).perform()
        tag, style, outline = page.execute_script(
            "const one = document.activeElement;"
            "const ring = one.closest('.options label') ?? one;"
            "const style = getComputedStyle(ring);"
            "return [one.tagName, style.outlineStyle, parseFloat(style.outlineWidth)]"
        )
        assert style == "solid" and outline >= 2, tag
        visited.add(tag)
    assert {"A", "INPUT"} <= visited
    ids = [one.get_attribute("id") for one in page.find_elements("css selector", "[id]")]
    assert len(ids) == len(set(ids))

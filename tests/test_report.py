"""The report: what is in the page, and what the page does in a browser."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from kernelbounds.paper import reproduce, specs
from kernelbounds.paper.cells import RECURSIONS, Cell, MethodRuns
from kernelbounds.paper.regret_by_radius import METHODS as RADII

FACTS = {"seed": "0", "a <b> & c": "</script><script>alert(1)</script>"}


def _runs(experiment, **choices):
    """Made-up curves: the regret of method i grows like (i + 1) sqrt(t), of Random like 100 t."""
    rng = np.random.default_rng(0)
    chosen = specs.Choices(**choices)
    result = []
    jobs = reproduce.EXPERIMENTS[experiment].jobs(chosen)
    for setting, method in dict.fromkeys(
        (cell.setting, cell.method) for cell in jobs if isinstance(cell, Cell)
    ):
        t = np.arange(1, setting.rounds + 1)
        rank = (*specs.METHODS, *RECURSIONS, *RADII).index(method)
        mean = 100.0 * t if method == "Random" else (rank + 1) * np.sqrt(t)
        factor = rng.uniform(0.8, 1.2, (chosen.repetitions, 1))
        result.append(
            MethodRuns(setting, method, factor * mean, 1e-3 * 4.0**rank * factor * (1 + t / 9))
        )
    return result


def _all(**choices):
    return {name: _runs(name, **choices) for name in specs.TITLES}


def _data(page):
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1]
    )


def test_the_page_is_whole_and_small(tmp_path):
    (tmp_path / "figure1.svg").write_text("<svg>the bands</svg>" * 10_000)
    page = reproduce.as_html(_all(), FACTS, tmp_path)
    assert len(page.encode()) < 1_500_000
    assert set(re.findall(r"https?://[^\"'\s<>]*", page)) <= {"http://www.w3.org/2000/svg"}
    assert "{{" not in page and "the bands" not in page and "data:image/svg+xml;base64," in page
    sections = _data(page)["sections"]
    assert {name: len(section["panels"]) for name, section in sections.items()} == {
        "figure2": 6, "figure-time": 1, "figure-2d": 6, "figure-4d": 6, "figure-loose": 4,
    }  # fmt: skip
    for section in sections.values():
        for panel in section["panels"]:
            assert panel["rounds"][0] == 1 and panel["rounds"][-1] == 1000
            for curve in panel["curves"].values():
                assert len(curve["mean"]) == len(curve["std"]) == len(panel["rounds"]) <= 250


def test_the_curves_are_the_runs(tmp_path):
    runs = _all(rounds=40, repetitions=3)
    sections = _data(reproduce.as_html(runs, {}, tmp_path))["sections"]
    first = runs["figure2"][0]
    panel = sections["figure2"]["panels"][0]
    assert panel["title"] == "RBF, ℓ = 0.5" and panel["rounds"] == list(range(1, 41))
    assert panel["curves"][first.method]["mean"] == pytest.approx(first.regret.mean(0), rel=1e-4)
    assert panel["curves"][first.method]["std"][-1] == pytest.approx(first.std, rel=1e-4)
    titles = [panel["title"] for panel in sections["figure2"]["panels"]]
    assert titles[:3] == ["RBF, ℓ = 0.5", "Matérn-5/2, ℓ = 0.5", "Matérn-3/2, ℓ = 0.5"]
    titles = [panel["title"] for panel in sections["figure-loose"]["panels"]]
    assert titles[1:3] == ["believed σ = 0.1, B = 20", "believed σ = 0.2, B = 10"]
    assert "Random" not in sections["figure-time"]["panels"][0]["curves"]


def test_the_table(tmp_path):
    page = reproduce.as_html({"table1": _runs("table1")}, {}, tmp_path)
    text = re.sub(r"<[^>]+>", " ", page[page.index("<table>") : page.index("</table>")])
    text = re.sub(r"\s+", " ", text)
    assert "published 32.2 ± 20.9 491.4 ± 117.1" in text and " z −" in text
    assert "CMM − DMM, paired" in text and "95 % interval [" in text
    assert page.count("<b>") == 6
    assert "figure2" in _data(page)["sections"], "the curves of the same runs"
    assert "JavaScript" in re.search(r"<noscript><p>(.*?)</p>", page, re.DOTALL)[1]


def test_text_is_escaped(tmp_path):
    page = reproduce.as_html(_all(rounds=5, repetitions=2), FACTS, tmp_path)
    assert "alert(1)</script>" not in page and "a &lt;b&gt; &amp; c" in page
    assert "<" not in reproduce.as_json({"figure2": _runs("figure2", rounds=5)})


@pytest.mark.parametrize(
    "choices",
    [
        {"repetitions": 1},
        {"rounds": 2, "repetitions": 1},
        {"rounds": 300, "repetitions": 2, "methods": ["AMM"], "kernels": ["matern-3/2"]},
    ],
    ids=str,
)
def test_what_is_missing_is_left_out(tmp_path, choices):
    page = reproduce.as_html(_all(**choices), FACTS, tmp_path)
    visible = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    assert not re.search(r"\b(nan|inf|None)\b", visible) and 'id="figure1"' not in page
    stds = [
        curve["std"]
        for panel in _data(page)["sections"]["figure2"]["panels"]
        for curve in panel["curves"].values()
    ]
    assert all((std[-1] is None) == (choices["repetitions"] == 1) for std in stds)
    assert ("published" in visible) == (choices.get("rounds", 1000) == 1000)
    assert ("CMM − DMM" in visible) == ("methods" not in choices)


def test_nan_becomes_null(tmp_path):
    runs = _runs("figure-2d", rounds=5, repetitions=2)
    runs[0] = replace(runs[0], regret=np.full_like(runs[0].regret, np.nan))
    curves = _data(reproduce.as_html({"figure-2d": runs}, {}, tmp_path))["sections"]["figure-2d"]
    assert curves["panels"][0]["curves"][runs[0].method]["mean"] == [None] * 5


@pytest.mark.parametrize("runs", [{}, {"figure1": []}], ids=["nothing", "figure 1"])
def test_without_runs(tmp_path, runs):
    page = reproduce.as_html(runs, FACTS, tmp_path)
    assert "<table>" not in page and _data(page) == {"methods": [], "sections": {}}


# ---- in a browser


@pytest.fixture
def page(browser, tmp_path):
    """The page of all experiments, fresh; it must not complain in what a test does with it."""
    file = tmp_path / "report.html"
    file.write_text(reproduce.as_html(_all(rounds=60, repetitions=2), FACTS, tmp_path), "utf-8")
    browser.get_log("browser")
    browser.get(file.as_uri())
    # Panels are drawn again when their size is known, two frames later at most.
    browser.execute_async_script(
        "const done = arguments[0];"
        "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));"
    )
    yield browser
    assert browser.get_log("browser") == []


def _all_of(page, css):
    return page.find_elements("css selector", css)


def _button(page, text):
    [button] = [one for one in _all_of(page, "button") if one.text == text]
    return button


def _top_tick(page):
    """The highest label of each panel's y axis."""
    labels = [one.find_elements("css selector", ".y-tick") for one in _all_of(page, "svg.plot")]
    return [float(of_panel[-1].text) for of_panel in labels]


def test_all_panels_are_drawn(page):
    assert len(_all_of(page, "svg.plot")) == 6 + 1 + 6 + 6 + 4
    assert len(_all_of(page, "path.curve")) == 22 * 5 + 7, "all but Random"
    paths = [one.get_attribute("d") for one in _all_of(page, "path.curve, path.band")]
    assert all(path.startswith("M") and "NaN" not in path for path in paths)


def test_hovering_shows_numbers(page):
    from selenium.webdriver import ActionChains, Keys

    [tip] = _all_of(page, "#tip")
    assert not tip.is_displayed()
    panel = _all_of(page, "#figure2 svg.plot")[1]
    ActionChains(page).move_to_element(panel).perform()
    assert tip.is_displayed() and re.search(r"round (2[5-9]|3[0-5])\n", tip.text)
    assert re.search(r"Kernel CMM-UCB \d+\.\d+ ± \d+\.\d+", tip.text) and "Random" not in tip.text
    assert len(_all_of(page, "#figure2 .cross")) == 6 and not _all_of(page, "#figure-2d .cross")
    ActionChains(page).move_to_element(_all_of(page, "h2")[0]).perform()
    assert not tip.is_displayed() and not _all_of(page, ".cross")

    panel.send_keys(Keys.HOME)
    assert "round 1\n" in tip.text
    panel.send_keys(Keys.ARROW_RIGHT)
    assert "round 2\n" in tip.text
    panel.send_keys(Keys.ESCAPE)
    assert not tip.is_displayed()


def test_a_method_is_switched_in_all_panels(page):
    from selenium.webdriver import Keys

    before, random = _top_tick(page), _button(page, "Random")
    assert random.get_attribute("aria-pressed") == "false"
    random.send_keys(Keys.SPACE)
    assert random.get_attribute("aria-pressed") == "true"
    assert len(_all_of(page, "path.curve[data-method=Random]")) == 22
    grown = [after > 10 * old for after, old in zip(_top_tick(page), before)]
    assert grown.count(True) == 22, "all but the panel of times"
    random.click()
    assert _top_tick(page) == before

    _button(page, "IGP-UCB").click()
    assert not _all_of(page, "path.curve[data-method=IGP]")
    assert all(after <= old for after, old in zip(_top_tick(page), before))
    for name in ("CMM", "DMM", "AMM"):
        _button(page, f"Kernel {name}-UCB").click()
    for name in ("AY-GP-UCB", "AMM recursion", "DMM recursion"):
        _button(page, name).click()
    assert not _all_of(page, "path.curve")


def test_the_scale_of_times_is_switched(page):
    panel = _all_of(page, "#figure-time path.curve")[0].get_attribute("d")
    linear = _button(page, "linear")
    linear.click()
    assert linear.get_attribute("aria-pressed") == "true"
    assert _button(page, "log").get_attribute("aria-pressed") == "false"
    assert _all_of(page, "#figure-time path.curve")[0].get_attribute("d") != panel


@pytest.mark.parametrize("choices", [{"repetitions": 1}, {"methods": ["Random"]}], ids=str)
def test_what_is_missing_does_not_trouble_the_page(page, tmp_path, choices):
    file = tmp_path / "narrow.html"
    file.write_text(reproduce.as_html(_all(rounds=2, **choices), {}, tmp_path), "utf-8")
    page.get(file.as_uri())
    assert len(_all_of(page, "svg.plot")) == 23

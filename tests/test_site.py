"""The site: it builds without a warning, is complete, and loads nothing from elsewhere."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
import yaml
from PIL import Image
from typer.testing import CliRunner

import kernelbounds as kb
from kernelbounds import (
    bandits,
    bounds,
    checking,
    facts,
    functionals,
    mixtures,
    plot,
    study,
    theory,
)
from kernelbounds.bandits import saving
from kernelbounds.cli import app
from kernelbounds.paper import results
from kernelbounds.problem import problem_file
from kernelbounds.sequence import sensitivity, storage

ROOT = Path(__file__).parent.parent
DOCS, REFERENCE = ROOT / "docs", ROOT / "docs" / "reference"


class Loader(yaml.SafeLoader):
    """The configuration names a Python function, which matters to the generator alone."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: suffix)


def pages_of(navigation):
    for entry in navigation:
        target = next(iter(entry.values())) if isinstance(entry, dict) else entry
        yield from [target] if isinstance(target, str) else pages_of(target)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built from a copy so that two workers cannot meet in one folder."""
    pytest.importorskip("zensical", reason="the extra docs is not installed")
    place = tmp_path_factory.mktemp("site")
    for name in ("docs", "examples"):
        shutil.copytree(ROOT / name, place / name)
    for name in ("src", "website"):
        (place / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "mkdocs.yml", place)
    tour = place / "docs" / "assets" / "tour.html"  # as `make docs` does, but a small one
    assert (
        CliRunner().invoke(app, ["demo", "--quick", "--no-open", "--out", str(tour)]).exit_code == 0
    )
    return place, build(place)


def build(place):
    command = [sys.executable, "-m", "zensical", "build", "--strict", "-f", "mkdocs.yml"]
    environment = os.environ | {"NO_COLOR": "1"}
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)


def test_the_strict_build_finds_nothing(site):
    _, built = site
    said = built.stdout + built.stderr
    assert built.returncode == 0, said
    assert "griffe" not in said, said  # what is wrong with a docstring is said, and not an error


def test_the_strict_build_can_fail(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Home\n\n[nowhere](nowhere.md)\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: broken\n")
    assert build(tmp_path).returncode != 0


def test_pages_load_nothing_from_elsewhere(site):
    place, _ = site
    built = list((place / "build" / "site").rglob("*.html"))
    assert len(built) > 40
    for page in built:
        loaded = re.findall(r"<(?:script|img|link|iframe)[^>]*(?:src|href)=\"?(https?:[^\s\">]+)",
                            page.read_text())  # fmt: skip
        assert not [url for url in loaded if "canonical" not in url], f"{page.name} loads {loaded}"


def test_formulas_are_set_and_names_are_left_alone(browser, tmp_path):
    """Indices and powers in plain text become subscripts and superscripts, outside of code."""
    text = "R_t² λ_max μ_λ,t−1 Σ_(j ≤ m_c) D^(−1/2) E_{σ²/c} T^0.5 R_xR_x noise_scale test_cone"
    text += " rho^2_alpha,t-1 f*_t C_e1 i^beta_e T^log_power LEVEL_SHARE"
    script = (DOCS / "assets" / "formulas.js").read_text()
    page = tmp_path / "page.html"
    page.write_text(
        f"<meta charset=utf-8><article><p>{text}</p><code>R_t</code></article>"
        f"<script>{script}</script>"
    )
    browser.get(page.as_uri())
    found = browser.execute_script("return document.querySelector('article').innerHTML")
    assert found == (
        "<p>R<sub>t</sub>² λ<sub>max</sub> μ<sub>λ,t−1</sub> Σ<sub>j ≤ m<sub>c</sub></sub> "
        "D<sup>−1/2</sup> E<sub>σ²/c</sub> T<sup>0.5</sup> R<sub>x</sub>R<sub>x</sub> "
        "noise_scale test_cone rho<sup>2</sup><sub>alpha,t-1</sub> f*<sub>t</sub> C<sub>e1</sub> "
        "i<sup>beta<sub>e</sub></sup> T<sup>log_power</sup> LEVEL_SHARE</p><code>R_t</code>"
    )


def test_the_search_works_from_a_disk(site, browser):
    from selenium.webdriver.support.wait import WebDriverWait

    place, _ = site
    browser.get((place / "build" / "site" / "index.html").as_uri())
    browser.find_element("css selector", ".md-search__button").click()
    dialog = WebDriverWait(browser, 10).until(lambda it: it.switch_to.active_element.shadow_root)
    dialog.find_element("css selector", "input").send_keys("certificate")
    shown = "return arguments[0].querySelector('dialog').innerText"
    WebDriverWait(browser, 10).until(
        lambda it: (
            "The best action known, with a bound on its regret" in it.execute_script(shown, dialog)
        )
    )


def test_a_phone_shows_whole_pages_and_whole_pictures(site, browser):
    """Nothing to scroll sideways; figures of several panels show one panel below the other."""
    place, _ = site
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True},
    )
    try:
        for name in (
            "index",
            "gallery/index",
            "gallery/textbook",
            "start",
            "evidence/reproduction",
        ):
            browser.get((place / "build" / "site" / f"{name}.html").as_uri())
            width = "return document.documentElement.scrollWidth"
            assert browser.execute_script(width) == 390, name
            beyond = browser.execute_script(
                "return [...document.querySelectorAll('article img')].filter(one => "
                "!one.closest('.panels') && one.getBoundingClientRect().right > 390).length"
            )
            assert not beyond, name
        browser.get((place / "build" / "site" / "gallery" / "textbook.html").as_uri())
        shown = browser.execute_script(
            "return [...document.querySelectorAll('.panels > span')].map(one => one.clientHeight)"
        )
        assert len(shown) == 3 and min(shown) > 200
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_tour_is_shown_within_its_page(site, browser):
    place, _ = site
    browser.get((place / "build" / "site" / "tour.html").as_uri())
    browser.switch_to.frame(browser.find_element("css selector", "iframe.tour"))
    assert browser.find_element("css selector", "#norms svg").is_displayed()


# What people type who look for something, and the page that should be among what they find.
SOUGHT = {
    "categorical variables": "how-to/categories",
    "Excel": "questions/faq",
    "beta": "questions/faq",
    "unknown noise": "how-to/noise",
    "hyperparameters": "gallery/hyperparameters",
    "GP-UCB": "questions/faq",
    "safe": "questions/comparison",
    "batch": "how-to/bandits",
    "parallel": "how-to/bandits",
    "constraint": "questions/faq",
}


@pytest.mark.parametrize("words", SOUGHT)
def test_the_search_finds_what_people_type(site, words):
    """One section of the page has all of the words; each may go on, as in batch and batches."""
    place, _ = site
    items = json.loads((place / "build" / "site" / "search.json").read_text())["items"]
    found = set()
    for item in items:
        text = f"{item['title']} {item['text']}".lower()
        if all(re.search(rf"\b{re.escape(word)}", text) for word in words.lower().split()):
            found.add(item["location"].split(".html")[0])
    assert SOUGHT[words] in found, found


def test_the_mark_of_the_site_is_that_of_the_package():
    mark = ROOT / "src" / "kernelbounds" / "display" / "mark.svg"
    assert (DOCS / "assets" / "mark.svg").read_bytes() == mark.read_bytes()


def test_the_site_shows_the_version():
    configuration = yaml.load((ROOT / "mkdocs.yml").read_text(), Loader)
    assert configuration["site_name"] == f"kernelbounds {kb.__version__}"
    assert configuration["copyright"].startswith(f"kernelbounds {kb.__version__}")


def test_small_pictures_are_those_of_the_figures(monkeypatch):
    """Drawn again, they are the same; or else `python website/thumbnails.py` is to be run."""
    monkeypatch.syspath_prepend(str(ROOT / "website"))
    import thumbnails

    used = set(
        re.findall(r"images/small/([\w-]+)\.png", (DOCS / "gallery" / "index.md").read_text())
    )
    assert used == set(thumbnails.PANELS)
    for name in used:
        path = thumbnails.IMAGES / "small" / f"{name}.png"
        assert path.stat().st_size < 25_000
        kept, made = (one.convert("RGB") for one in (Image.open(path), thumbnails.thumbnail(name)))
        assert kept.size == made.size
        # Another release of Pillow may choose other colours of a palette, by little.
        assert np.abs(np.asarray(kept, float) - np.asarray(made, float)).mean() < 2, name


def test_figures_are_cut_between_their_panels():
    """`data-cuts` names columns of a figure that are white from top to bottom."""
    cut = [found for page in DOCS.rglob("*.md")
           for found in re.findall(r"images/([\w-]+)\.png\)\{ data-cuts=\"([\d. ]+)\" \}",
                                   page.read_text())]  # fmt: skip
    assert len(cut) > 20
    for name, places in cut:
        figure = Image.open(DOCS / "images" / f"{name}.png").convert("RGBA")
        white = Image.new("RGBA", figure.size, "white")
        white.alpha_composite(figure)
        for place in map(float, places.split()):
            column = np.asarray(white)[:, round(place / 100 * figure.width), :3]
            assert column.min() > 250, f"{name} at {place} per cent"


def test_every_page_is_in_the_navigation():
    configuration = yaml.load((ROOT / "mkdocs.yml").read_text(), Loader)
    listed = list(pages_of(configuration["nav"]))
    assert len(listed) == len(set(listed))
    assert set(listed) == {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}


PUBLIC = (
    bandits, bounds, checking, facts, functionals, mixtures, plot, kb.problem, sensitivity, study,
    theory,
)  # fmt: skip


def public_names():
    """All that users may import, each by the shortest of its names; all else is machinery."""
    found = {}
    for module in (*PUBLIC, kb):
        for name in module.__all__:
            thing = getattr(module, name)
            if not inspect.ismodule(thing):
                found[id(thing)] = f"{module.__name__}.{name}", thing
    return found.values()


def test_every_public_name_is_in_the_reference_and_has_an_example():
    text = "\n".join(page.read_text() for page in REFERENCE.glob("*.md"))
    listed = set(re.findall(r"^::: (\S+)", text, re.MULTILINE))
    for name, thing in public_names():
        if isinstance(thing, dict):  # which has no docstring of its own
            assert f"`{name}`" in text, f"{name} is not on a page of docs/reference."
            continue
        # A function that is named as its module is listed in full, or the module would be shown.
        full = f"{getattr(thing, '__module__', '')}.{name.rpartition('.')[2]}"
        assert {name, full} & listed, f"{name} is not on a page of docs/reference."
        assert ">>>" in (inspect.getdoc(thing) or ""), f"{name} has no example in its docstring."


def test_versions_of_files_are_those_of_the_code():
    page = (REFERENCE / "files.md").read_text()
    for module in (storage, saving, results):
        assert re.search(rf"`{module.FORMAT}`.*\| {module.VERSION} \|", page), module.FORMAT
    assert problem_file.FORMAT in page


def commands(command, path=("kernelbounds",)):
    yield " ".join(path), command
    for name, one in getattr(command, "commands", {}).items():
        yield from commands(one, (*path, name))


def test_every_command_and_option_is_in_the_reference():
    """Generated by `make docs`; the exact form depends on the release of Typer."""
    page = (REFERENCE / "command-line.md").read_text()
    sections = dict(re.findall(r"^#+ `([^`]+)`\n(.*?)(?=^#+ `|\Z)", page, re.MULTILINE | re.DOTALL))
    for name, command in commands(typer.main.get_command(app)):
        assert name in sections, f"docs/reference/command-line.md lacks {name}: run `make docs`."
        for option in (o for parameter in command.params for o in parameter.opts if o[:2] == "--"):
            assert option in sections[name], f"{name} {option} is missing: run `make docs`."


def test_words_are_spelled_right():
    """By the list of common slips that codespell keeps; its settings are in pyproject.toml."""
    pytest.importorskip("codespell_lib", reason="the extra docs is not installed")
    checked = subprocess.run(
        [sys.executable, "-m", "codespell_lib"], cwd=ROOT, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_slip_of_spelling_is_noticed(tmp_path):
    pytest.importorskip("codespell_lib", reason="the extra docs is not installed")
    slip = "recie" + "ved"
    (tmp_path / "page.md").write_text(f"What was {slip}.\n")
    assert subprocess.run([sys.executable, "-m", "codespell_lib", tmp_path], cwd=ROOT).returncode

"""The documentation runs, links to what exists, and covers every public name and command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import kernelbounds as kb
from kernelbounds import theory

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_snippets_run(page, capsys):
    namespace: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL):
        exec(compile(block, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_code_named_in_the_paper_table_exists():
    text = (ROOT / "docs" / "paper-to-code.md").read_text()
    for name in set(
        re.findall(r"`((?:bounds|engine|bandits|kernels|paper|theory)/\w+\.py|(?:\w+)\.py)`", text)
    ):
        places = [ROOT / "src" / "kernelbounds" / name, ROOT / "tests" / name]
        assert any(place.exists() for place in places), name


def test_tests_named_in_the_paper_table_exist():
    text = (ROOT / "docs" / "paper-to-code.md").read_text()
    for name in set(re.findall(r"\btest_\w+", text)):
        assert (ROOT / "tests" / f"{name}.py").exists(), name


def test_every_public_name_is_documented():
    text = "".join(page.read_text() for page in PAGES)
    for name in kb.__all__:
        assert name in text, name
        assert getattr(kb, name).__doc__, name


def test_every_name_of_the_theory_is_documented():
    text = (ROOT / "docs" / "theory.md").read_text()
    for name in theory.__all__:
        assert f"`{name}`" in text, name
        assert getattr(theory, name).__doc__, name


def test_every_make_target_in_the_readme_exists():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\S+)", (ROOT / "README.md").read_text(), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target

"""The notebooks of the docs: their pages are theirs, and they still show what they showed."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
AGAIN = "run `python website/notebooks.py`"


@pytest.fixture
def notebooks(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(ROOT / "website"))
    import notebooks

    return notebooks


def texts(notebook):
    """What the cells print and return, without figures, which depend on Matplotlib's release."""
    outputs = [one for cell in notebook["cells"] for one in cell.get("outputs", [])]
    return [one.get("text") or one["data"].get("text/plain") for one in outputs]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_pages_are_those_of_the_notebooks(path, notebooks):
    page, figures = notebooks.page(json.loads(path.read_text()), path.stem)
    assert path.with_suffix(".md").read_text() == page, AGAIN
    assert figures
    for name, image in figures.items():
        assert (path.parent / name).read_bytes() == image, AGAIN


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_show_what_they_showed(path, notebooks):
    kept = json.loads(path.read_text())
    again = copy.deepcopy(kept)
    notebooks.run(again)
    assert texts(again) == texts(kept), AGAIN


def test_a_cell_shows_what_it_prints_returns_and_draws(notebooks):
    code = ["from matplotlib import pyplot\n", "print(1)\n", "ax = pyplot.gca()\n", "'two'"]
    cells = [
        {"cell_type": "markdown", "source": ["# Title"]},
        {"cell_type": "code", "source": code},
    ]
    notebook = {"cells": cells}
    notebooks.run(notebook)
    assert texts(notebook) == [["1\n"], ["'two'"], None]
    page, figures = notebooks.page(notebook, "name")
    assert page.startswith("# Title\n\nThis page is a notebook: [download it](name.ipynb)")
    assert "```text\n1\n```\n\n```text\n'two'\n```\n\n![" in page
    assert list(figures) == ["name-1.png"] and figures["name-1.png"].startswith(b"\x89PNG")

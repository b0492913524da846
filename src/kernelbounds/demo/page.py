"""The page: a template, its style and script, and the numbers, in one file without a network."""

from __future__ import annotations

import dataclasses
import json
import re
from html import escape
from importlib.resources import files

from kernelbounds.demo.tour import Tour
from kernelbounds.version import __version__


def as_html(tour: Tour, seed: int) -> str:
    """The whole page."""
    parts = {
        "style": _file("tour.css"),
        "script": _file("tour.js"),
        "data": _json(tour),
        "version": escape(__version__),
        "seed": str(seed),
    }
    return re.sub(r"\{\{ (\w+) \}\}", lambda match: parts[match[1]], _file("tour.html"))


def _file(name: str) -> str:
    return files("kernelbounds.demo").joinpath(name).read_text(encoding="utf-8")


def _json(tour: Tour) -> str:
    """Fit for a script element: no ``<`` can end it."""
    data = dataclasses.asdict(tour)
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")

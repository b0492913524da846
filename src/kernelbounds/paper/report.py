"""The report: one HTML file that needs no network."""

from __future__ import annotations

from pathlib import Path

from kernelbounds.paper.summary import Runs


def as_html(runs: dict[str, list[Runs]], facts: dict[str, str], figures: Path) -> str:
    """The whole page; ``figures`` is the folder that holds figure1.svg, if that was made."""
    return "<html></html>"

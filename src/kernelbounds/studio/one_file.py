"""The page of a study as one file, to be sent to somebody: no server, no script, no network."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

from kernelbounds.display import page_style
from kernelbounds.io.files import failure_reported, write_text
from kernelbounds.studio import sections
from kernelbounds.studio.desk import OpenStudy

MOST_TRIALS = 1000  # in the table of the report, the newest


def as_html(one: OpenStudy) -> str:
    """Return the whole page of a study, with the pictures at its best settings."""
    problem, nothing = one.study.problem, dict[str, list[str]]()
    parts = {"What is known": sections.summary(one, nothing)}
    if len(one.study) and problem.inputs.numbers:
        parts["The band through the most promising settings"] = sections.bands(one)
        if len(problem.inputs.numbers) > 1:
            parts["Maps"] = sections.maps(one)
    if one.study.pending:
        parts["To be tried"] = sections.to_try(one, nothing)
    parts["Progress"] = sections.progress(one, nothing)
    parts["What is assumed"] = sections.assumptions(one, nothing)
    parts["All trials"] = sections.trials(one, {"part": ["table"]}, MOST_TRIALS)
    own = files("kernelbounds.studio").joinpath("static", "studio.css").read_text(encoding="utf-8")
    return sections.render(
        "report.html",
        style=page_style() + own,
        parts=[
            (title, sections.render(template, live=False, **values))
            for title, (template, values) in parts.items()
        ],
        made=f"{datetime.now(UTC):%Y-%m-%d}",
        confidence=sections.confidence(problem),
        **sections.frame(one),
    )


def save(study: Path, out: Path) -> None:
    """Write the page of a study to a file, whole or not at all."""
    one = OpenStudy(study.stem, study)
    try:
        page = as_html(one)
    finally:
        one.study.close()
    with failure_reported(f"write the page to {str(out)!r}"):
        write_text(out, page)

"""The sections of the page of a study, and the page as one file.

A section is the name of a template and the values for it. All templates of a study also have its
``name``, ``study`` and ``problem``, and ``live``, which is false in a file without a server.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.display import page_style
from kernelbounds.display.numbers import about, at_least, at_most
from kernelbounds.errors import EmptyConfidenceSetError, InputError, MissingExtraError
from kernelbounds.io.files import check_writable, content_begins, failure_reported, write_text
from kernelbounds.problem.model import norm_at_least
from kernelbounds.studio import svg
from kernelbounds.studio.desk import OpenStudy
from kernelbounds.studio.forms import Answers, first, number, settings, whole
from kernelbounds.study import Status, Trial
from kernelbounds.study.revision import certainty, condition_of, kernel_in_words, proved_delta
from kernelbounds.study.status import checked_in_words
from kernelbounds.study.telling import told_text
from kernelbounds.surface import unlimited_estimate
from kernelbounds.version import __version__

Section = tuple[str, dict[str, Any]]

# A page is looked at often, so its certificates have less time than those that are asked for.
CERTIFICATE_SECONDS, HISTORY_SECONDS = 4.0, 10.0
TRIALS_OF_PAGE = 50
MOST_TRIALS = 1000  # The table of the report has the newest ones, up to this many.
# How the title of a page ends, by which an earlier page is known.
OF_A_PAGE = "· kernelbounds</title>"
AIMS = {
    "best": "the most promising settings",
    "certificate": "what proves soonest how good the best is",
    "learning": "where least is known",
}
QUANTITIES = {
    "estimate": "estimate",
    "lower": "guaranteed at least",
    "upper": "guaranteed at most",
    "width": "width of the band",
}


@cache
def _templates() -> Any:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise MissingExtraError("The page of a study", "studio") from error
    found = Environment(
        loader=PackageLoader("kernelbounds.studio"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    found.globals |= {"version": __version__, "at_least": at_least, "at_most": at_most}
    found.filters |= {"about": about, "setting": _setting_text, "sentence": _sentence}
    return found


def render(template: str, **values: Any) -> str:
    """Fill a template; all values are escaped, but for pictures that were made here."""
    text: str = _templates().get_template(template).render(**values)
    return text


def render_of_study(one: OpenStudy, template: str, live: bool = True, **values: Any) -> str:
    """Fill a template about a study."""
    return render(
        template, name=one.name, study=one.study, problem=one.study.problem, live=live,
        certainty=certainty(one.study.problem, one.study.revisions, _in_percent),
        condition=condition_of(one.study.revisions), **values,
    )  # fmt: skip


def _setting_text(value: float | str) -> str:
    """Write a setting: the name of a level, or a number as it would be dialled in."""
    return value if isinstance(value, str) else f"{value:.10g}"


def _in_percent(delta: float) -> str:
    return f"{100 * (1 - delta):.12g} %"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def soon(one: OpenStudy, given: Answers) -> Section:
    """Show the best estimate at settings tried, while the search for better ones goes on."""
    study, problem = one.study, one.study.problem
    sequence, sign = study.sequence, -1 if study.minimise else 1
    at = int((sign * unlimited_estimate(sequence.known, sequence.points)).argmax())
    point = problem.unscaled(sequence.points[at : at + 1])
    try:
        (estimate,), (lower,), (upper,) = study.estimate_with_bounds(point)
    except EmptyConfidenceSetError:
        return "soon.html", {"estimate": None}
    known = {"estimate": float(estimate), "lower": float(lower), "upper": float(upper)}
    return "soon.html", known | {"values": problem.inputs.named(point[0])}


def status(one: OpenStudy) -> Status:
    """Return the status of the study, which is computed once until the study changes."""
    return one.kept("status", lambda: one.study.status(CERTIFICATE_SECONDS))


def summary(one: OpenStudy, given: Answers) -> Section:
    """Show the best estimate first, then what is guaranteed, and what that means."""
    if not one.computes:
        return "many.html", {}
    return "summary.html", {"status": status(one)}


def to_try(one: OpenStudy, given: Answers) -> Section:
    """Show the pending trials, each with a field for its outcome."""
    return "next.html", {"trials": one.study.pending, "aims": AIMS}


def look(one: OpenStudy, given: Answers) -> Section:
    """Draw the band along each input, or a map over two, through the settings of the sliders."""
    problem = one.study.problem
    if not one.computes:
        return "many.html", {}
    at, what = _place(one, given), first(given, "what", "bands")
    names = [problem.inputs[i].name for i in problem.inputs.numbers]
    across, up = first(given, "across", names[0]), first(given, "up", names[-1])
    values = _seen(one, at, what, (across, up)) | {
        "controls": list(zip(problem.inputs, at.tolist(), strict=True)),
        "numbers": names, "what": what, "quantities": QUANTITIES, "across": across, "up": up,
    }  # fmt: skip
    return "look_pictures.html" if given.get("part") else "look.html", values


def bands(one: OpenStudy) -> Section:
    """Draw the band along each input, through the most promising settings."""
    at = _place(one, {})
    found = _seen(one, at, "bands", ("", ""))
    return "look_pictures.html", found | {"values": one.study.problem.inputs.named(at)}


def maps(one: OpenStudy) -> Section:
    """Draw maps of all quantities over the first two numbers."""
    problem, at = one.study.problem, _place(one, {})
    across, up = (problem.inputs[i].name for i in problem.inputs.numbers[:2])
    found = [_seen(one, at, what, (across, up)) for what in QUANTITIES]
    drawn = [picture for one in found for picture in one["pictures"]]
    return "look_pictures.html", found[0] | {"pictures": drawn, "values": problem.inputs.named(at)}


def _seen(one: OpenStudy, at: Array, what: str, axes: tuple[str, str]) -> dict[str, Any]:
    """Return what is known at settings (d,), and pictures through them."""
    problem, study = one.study.problem, one.study
    is_map = what in QUANTITIES and len(problem.inputs.numbers) > 1
    if is_map and axes[0] == axes[1]:
        raise InputError("a map needs two different inputs.")

    def draw() -> list[tuple[str, str]]:
        if is_map:
            return [svg.map_of(study, what, QUANTITIES[what], axes, at)]
        return svg.bands(study, at)

    found: dict[str, Any] = {"pictures": [], "refuted": "", "values": {}}
    try:
        known = study.estimate_with_bounds(at[None])
        found["here"] = [float(part[0]) for part in known]
        key = "look", what, axes if is_map else (), tuple(at.tolist())
        found["pictures"] = one.kept(key, draw)
    except EmptyConfidenceSetError:
        found["refuted"] = "There are no bounds, because the data refute the assumptions."
    return found


def _place(one: OpenStudy, given: Answers) -> Array:
    """Return the settings of the sliders, (d,); at first the best known, or the middle."""
    problem = one.study.problem
    if any(f"at-{name}" in given for name in problem.inputs.names):
        typed = settings(problem, given, "at-")
        return np.asarray(problem.inputs.checked_points([list(typed.values())])[0])
    if len(one.study):
        found = status(one)
        if found.most_promising is not None:
            best = {name: [value] for name, value in found.most_promising.values.items()}
            return np.asarray(problem.inputs.points(best)[0])
    middle = [0.0 if i.levels else 0.5 for i in problem.inputs]
    return np.asarray(problem.inputs.settable(np.array([middle]))[0])


def progress(one: OpenStudy, given: Answers) -> Section:
    """Draw the outcomes with what was known at each time, and the certificates over time."""
    if not one.computes:
        return "many.html", {}
    if not len(one.study):
        return "progress.html", {"pictures": []}
    found = one.kept("progress", lambda: svg.over_time(one.study, HISTORY_SECONDS))
    return "progress.html", {"pictures": found}


def assumptions(one: OpenStudy, given: Answers) -> Section:
    """Show the assumptions, and what the data say about them."""
    problem, study = one.study.problem, one.study
    found = status(one) if one.computes else None
    rows: list[tuple[str, str, str, str]] = []
    default = ""
    if found is not None:
        for name, checked, assumed, least in checked_in_words(found):
            state = "strained" if checked.strained else "fine"
            state = "refuted" if checked.at_least > checked.assumed else state
            needed = f"the data need at least {least}" if checked.at_least > 0 else ""
            if math.isinf(checked.at_least):
                needed = "no value is enough for the data"
            rows.append((name, assumed, needed, state))
        if found.noise.at_most is not None and math.isfinite(found.noise.at_most):
            most = problem.stated_noise.text(found.noise.at_most, at_most)
            rows.append(("noise, by the data", f"at most {most}", "", "fine"))
        if (best := found.certificate) is not None:
            # A value with some room, so that there is something to ask about.
            room = 0.25 * (best.upper - best.lower)
            default = f"{best.upper + room if study.minimise else best.lower - room:.3g}"
    kernel = kernel_in_words(problem).removeprefix("kernel ")
    rows.append(("kernel", kernel, "of inputs scaled to [0, 1]", ""))
    rows.append((problem.output.name, problem.output.description, "plausible, not a limit", ""))
    rows.append(("turns", f"at most {problem.turns} along an input", "unless said there", ""))
    if len(problem.inputs) > 1:
        rows.append(("interactions", problem.interactions, "", ""))
    # That is true of a norm bound that was suggested before the data, and for these statements.
    if "norm_bound" in problem.suggested and not study.revisions:
        missed = 100 * (problem.delta + 1 - problem.quantile)
        rows.append((
            "systems that the band misses", f"about {missed:.3g} of 100",
            "of those like the random functions with this range and these turns", "",
        ))  # fmt: skip
    fails = proved_delta(problem, study.revisions)
    rows.append(("probability that a bound ever fails", f"{fails:g}", "", ""))
    # A question about the assumptions is asked again when the study has changed.
    asked = first(given, "value") if first(given, "asked") else ""
    return "assumptions.html", {"status": found, "rows": rows, "default": default, "asked": asked}


def holds(one: OpenStudy, given: Answers) -> Section:
    """Show how wrong B and the noise may be before a statement about the best settings fails."""
    study, problem = one.study, one.study.problem
    value = number(first(given, "value"), problem.output.name)
    found = one.kept(("holds", value), lambda: _holds(one, value))
    side = "at most" if study.minimise else "at least"
    said = f"{problem.output.name} at the best settings known is {side} {value:g}"
    return "holds.html", {"said": said + problem.output.after_number, "lines": found}


def _holds(one: OpenStudy, value: float) -> list[str]:
    study, problem = one.study, one.study.problem
    best = status(one).certificate
    if best is None:
        return ["Nothing is certified yet."]
    at = problem.scaled([best.x])[0]
    scaled = float(problem.output.scaled(value))
    asked: dict[str, Any] = {"below" if study.minimise else "above": (at, scaled)}
    try:
        found = study.sequence.sensitivity(**asked)
    except InputError as error:
        return [f"It does not hold as things are: {error}"]
    largest = norm_at_least(problem, found.norm_bound)
    lines = [
        f"It holds for norm bounds up to {problem.output.norm_text(largest, _limit)} "
        f"(assumed: {problem.norm_text})."
    ]
    if not problem.stated_noise.is_unknown and problem.stated_noise.scale is not None:
        scale = _limit(problem.stated_noise.in_units(found.noise_scale))
        lines.append(f"It holds for noise up to {scale} (assumed: {problem.stated_noise.text()}).")
    return lines


def _limit(value: float) -> str:
    return "any" if math.isinf(value) else at_least(value)


def trials(one: OpenStudy, given: Answers, most: int = TRIALS_OF_PAGE) -> Section:
    """List the trials that were told, the newest first, a page at a time.

    The answer ``filter`` is a text that is looked for in all columns.
    """
    wanted = first(given, "filter").lower()
    rows = [_told(trial) for trial in reversed(one.study.trials) if trial.state == "told"]
    rows = [row for row in rows if wanted in " ".join(map(str, row.values())).lower()]
    taken_back = [
        f"trial {number}: {one.study.problem.inputs.settings_text(values.values())} "
        f"{told_text(one.study.problem, told)}"
        for number, values, told in one.study.taken_back
    ]
    pages = max(math.ceil(len(rows) / most), 1)
    page = min(whole(first(given, "page", "1"), "page"), pages)
    return "trials_table.html" if given.get("part") else "trials.html", {
        "rows": rows[(page - 1) * most : page * most], "filter": first(given, "filter"),
        "page": page, "pages": pages, "count": len(rows), "taken_back": taken_back,
    }  # fmt: skip


def _told(trial: Trial) -> dict[str, Any]:
    """Return a line of the table of trials."""
    ran, outcome = trial.ran or trial.values, trial.outcome
    values = outcome if isinstance(outcome, tuple) else (outcome,)
    return {
        "trial": trial.number,
        "settings": [_setting_text(value) for value in ran.values()],
        "measured": [f"{value:g}" for value in values if value is not None],
        "told": (trial.told or "").replace("T", " ")[:16],
        "note": "; ".join(map(str, trial.notes)),
    }


SECTIONS = {
    "summary": summary, "soon": soon, "next": to_try, "look": look, "progress": progress,
    "assumptions": assumptions, "holds": holds, "trials": trials,
}  # fmt: skip


# --- the page as one file, to be sent to somebody: no server, no script, no network


def report(one: OpenStudy) -> str:
    """Return the whole page of a study, with the pictures at its best settings."""
    problem, nothing = one.study.problem, dict[str, list[str]]()
    parts = {"What is known": summary(one, nothing)}
    if len(one.study) and problem.inputs.numbers:
        parts["The band through the most promising settings"] = bands(one)
        if len(problem.inputs.numbers) > 1:
            parts["Maps"] = maps(one)
    if one.study.pending:
        parts["To be tried"] = to_try(one, nothing)
    parts["Progress"] = progress(one, nothing)
    parts["What is assumed"] = assumptions(one, nothing)
    parts["All trials"] = trials(one, {"part": ["table"]}, MOST_TRIALS)
    own = files("kernelbounds.studio").joinpath("static", "studio.css").read_text(encoding="utf-8")
    return render_of_study(
        one,
        "report.html",
        live=False,
        style=page_style() + own,
        parts=[
            (title, render_of_study(one, template, live=False, **values))
            for title, (template, values) in parts.items()
        ],
        made=f"{datetime.now(UTC):%Y-%m-%d}",
    )


def save_report(study: Path, out: Path) -> None:
    """Write the page of a study to a file, whole or not at all.

    A file that is there already is replaced only if it is such a page, and never if it is a study.
    """
    doing = f"write the page to {str(out)!r}"
    with failure_reported(doing):
        check_writable(out)
        begins = content_begins(out, 4096).decode(errors="replace")
        if begins and OF_A_PAGE not in begins:
            raise OSError(
                0, "it is there already, and is not the page of a study; name another file: --out"
            )
    one = OpenStudy(study.stem, study)
    try:
        page = report(one)
    finally:
        one.study.close()
    with failure_reported(doing):
        write_text(out, page)

"""What the page shows of a study, section by section, and what its forms do.

A section is the name of a template and the values for it. A form is a function that changes the
study and says what it did, in one sentence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.display.numbers import about, at_least, at_most
from kernelbounds.errors import EmptyConfidenceSetError, InputError, MissingExtraError
from kernelbounds.kernels.text import kernel_to_text
from kernelbounds.problem import Input, Problem
from kernelbounds.problem.quantities import NUMBER
from kernelbounds.studio import svg
from kernelbounds.studio.desk import OpenStudy
from kernelbounds.study import Status, Trial
from kernelbounds.study.status import checked_in_words
from kernelbounds.study.telling import told_text
from kernelbounds.surface import unlimited_estimate
from kernelbounds.version import __version__

Section = tuple[str, dict[str, Any]]
Answers = Mapping[str, list[str]]

# A page is looked at often, so a certificate has less time than one that is asked for.
CERTIFICATE_SECONDS, HISTORY_SECONDS = 4.0, 10.0
TRIALS_OF_PAGE = 50
SLIDER_STEPS = 100
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
    found.globals["version"] = __version__
    return found


def render(template: str, **values: Any) -> str:
    """Fill a template; all values are escaped, but for pictures that were made here."""
    text: str = _templates().get_template(template).render(**values)
    return text


def first(given: Answers, name: str, default: str = "") -> str:
    """Return an answer without spaces around it."""
    return (given.get(name) or [default])[0].strip()


def number(text: str, what: str) -> float:
    """Read a number that somebody typed, with a point or a comma."""
    plain = text.replace(",", ".") if text.count(",") == 1 and "." not in text else text
    if not NUMBER.fullmatch(plain):
        raise InputError(f"{what} must be a number, got {text!r}.")
    return float(plain)


# --- what is shown


def frame(one: OpenStudy) -> dict[str, Any]:
    """Return what the page says before anything is computed."""
    study, problem = one.study, one.study.problem
    return {
        "name": one.name,
        "revision": one.revision,
        "goal": "minimise" if study.minimise else "maximise",
        "output": problem.output,
        "inputs": problem.inputs,
        "count": len(study),
        "drawn": bool(problem.numbers),
        "soon": len(study) > 0 and one.computes and not one.has("status"),
    }


def soon(one: OpenStudy, given: Answers) -> Section:
    """Say the best estimate at settings tried, while the search for more than that goes on."""
    study, problem = one.study, one.study.problem
    sequence, sign = study.sequence, -1 if study.minimise else 1
    at = int((sign * unlimited_estimate(sequence.known, sequence.points)).argmax())
    point = problem.unscaled(sequence.points[at : at + 1])
    try:
        (estimate,), (lower,), (upper,) = study.estimate_with_bounds(point)
    except EmptyConfidenceSetError:
        return "soon.html", {"estimate": None}
    return "soon.html", {
        "estimate": f"{about(float(estimate))}{problem.output.after_number}",
        "between": problem.output.between(float(lower), float(upper)),
        "settings": settings(problem, problem.named(point[0]).values()),
    }


def status(one: OpenStudy) -> Status:
    """Return how the study stands; it is computed once for each state of the study."""
    return one.kept("status", lambda: one.study.status(CERTIFICATE_SECONDS))


def summary(one: OpenStudy, given: Answers) -> Section:
    """Say the estimate first, then what is guaranteed, and what that means."""
    problem = one.study.problem
    if not one.computes:
        return "many.html", {"name": one.name, "count": len(one.study)}
    found = status(one)
    values: dict[str, Any] = {
        "name": one.name, "status": found, "advice": found.advice, "certificate": None,
        "promising": None, "confidence": confidence(problem),
    }  # fmt: skip
    out = problem.output
    if (best := found.most_promising) is not None:
        values["promising"] = {
            "settings": settings(problem, best.values.values()),
            "estimate": f"{about(best.estimate)}{out.after_number}",
            "between": out.between(best.lower, best.upper),
        }
    if (proved := found.certificate) is not None:
        limit = float(found.limit or 0.0)
        beyond = at_least(limit, 4) if found.minimise else at_most(limit, 4)
        values["certificate"] = {
            "settings": settings(problem, problem.named(proved.x).values()),
            "between": out.between(proved.lower, proved.upper),
            "within": out.amount(proved.regret),
            "limit": f"{beyond}{out.after_number}",
            "reached": found.stop,
            "picture": proved.picture(),
        }
    return "summary.html", values


def confidence(problem: Problem) -> str:
    """Return the probability with which all bounds hold, in percent."""
    return f"{100 * (1 - problem.delta):.6g} %"


def settings(problem: Problem, values: Any) -> list[tuple[str, str]]:
    """Return names of inputs, and their values with units."""
    return [
        (one.name, f"{_value_text(value)}{one.after_number}")
        for one, value in zip(problem.inputs, values, strict=True)
    ]


def _value_text(value: float | str) -> str:
    """Write a setting: the name of a level, or a number as it would be dialled in."""
    return value if isinstance(value, str) else f"{value:.10g}"


def to_try(one: OpenStudy, given: Answers) -> Section:
    """Show the pending trials, each with a field for its outcome."""
    problem = one.study.problem
    return "next.html", {
        "name": one.name,
        "trials": [_trial(problem, trial) for trial in one.study.pending],
        "measured": problem.measured,
        "output": problem.output,
        "inputs": problem.inputs,
        "aims": AIMS,
    }


def _trial(problem: Problem, trial: Trial) -> dict[str, Any]:
    return {
        "number": trial.number,
        "settings": settings(problem, trial.values.values()),
        "known": problem.output.about(trial.estimate, trial.lower, trial.upper),
        "why": getattr(trial, "why", ""),
    }


def look(one: OpenStudy, given: Answers) -> Section:
    """Draw the band along each input, or a map over two, through the settings of the sliders."""
    problem = one.study.problem
    if not one.computes:
        return "many.html", {"name": one.name, "count": len(one.study)}
    at, what = _place(one, given), first(given, "what", "bands")
    names = [problem.inputs[i].name for i in problem.numbers]
    across, up = first(given, "across", names[0]), first(given, "up", names[-1])
    values = _seen(one, at, what, (across, up)) | {
        "name": one.name,
        "controls": [_control(i, value) for i, value in zip(problem.inputs, at, strict=True)],
        "numbers": names, "what": what, "quantities": QUANTITIES, "across": across, "up": up,
    }  # fmt: skip
    return "look_pictures.html" if given.get("part") else "look.html", values


def bands(one: OpenStudy) -> Section:
    """Draw the band along each input, through the most promising settings."""
    problem, at = one.study.problem, _place(one, {})
    values = _seen(one, at, "bands", ("", ""))
    return "look_pictures.html", values | {
        "settings": settings(problem, problem.named(at).values())
    }


def maps(one: OpenStudy) -> Section:
    """Draw maps of all quantities over the first two numbers."""
    problem, at = one.study.problem, _place(one, {})
    across, up = (problem.inputs[i].name for i in problem.numbers[:2])
    found = [_seen(one, at, what, (across, up)) for what in QUANTITIES]
    drawn = [picture for one in found for picture in one["pictures"]]
    return "look_pictures.html", found[0] | {
        "pictures": drawn, "settings": settings(problem, problem.named(at).values())
    }  # fmt: skip


def _seen(one: OpenStudy, at: Array, what: str, axes: tuple[str, str]) -> dict[str, Any]:
    """Return what is known at settings (d,), and pictures through them."""
    problem, study = one.study.problem, one.study
    found: dict[str, Any] = {"pictures": [], "refuted": "", "settings": [], "here": {}}
    is_map = what in QUANTITIES and len(problem.numbers) > 1
    if is_map and axes[0] == axes[1]:
        raise InputError("a map needs two different inputs.")

    def draw() -> list[tuple[str, str]]:
        if is_map:
            return [svg.map_of(study, what, QUANTITIES[what], axes, at)]
        return svg.bands(study, at)

    try:
        estimate, lower, upper = (
            float(part[0]) for part in problem.estimate_with_bounds(study.sequence, at[None])
        )
        found["here"] = {
            "estimate": f"{about(estimate)}{problem.output.after_number}",
            "between": problem.output.between(lower, upper),
        }
        key = "look", what, axes if is_map else (), tuple(at.tolist())
        found["pictures"] = one.kept(key, draw)
    except EmptyConfidenceSetError as error:
        found["refuted"] = str(error)
    return found


def _place(one: OpenStudy, given: Answers) -> Array:
    """Return the settings of the sliders, (d,); at first the best known, or the middle."""
    problem = one.study.problem
    if any(f"at-{name}" in given for name in problem.names):
        typed = [first(given, f"at-{name}") for name in problem.names]
        values = [
            text if i.levels else number(text, i.name)
            for i, text in zip(problem.inputs, typed, strict=True)
        ]
        return np.asarray(problem.checked_points([values])[0])
    if len(one.study):
        found = status(one)
        if found.most_promising is not None:
            best = {name: [value] for name, value in found.most_promising.values.items()}
            return np.asarray(problem.points(best)[0])
    middle = [0.0 if i.levels else 0.5 for i in problem.inputs]
    return np.asarray(problem.settable(np.array([middle]))[0])


def _control(one: Input, value: float) -> dict[str, Any]:
    """Return what a slider, or a choice of levels, needs to know."""
    common: dict[str, Any] = {"name": one.name, "label": one.label}
    if one.levels:
        return common | {"levels": one.levels, "value": one.value(value)}
    step = 1.0 if one.integer else (one.high - one.low) / SLIDER_STEPS
    return common | {
        "levels": (), "low": one.low, "high": one.high, "step": f"{step:.6g}",
        "value": f"{value:.10g}", "text": _value_text(value),
    }  # fmt: skip


def progress(one: OpenStudy, given: Answers) -> Section:
    """Draw outcomes and what was known at each time, and the certificate of each time."""
    if not one.computes:
        return "many.html", {"name": one.name, "count": len(one.study)}
    if not len(one.study):
        return "progress.html", {"pictures": []}
    found = one.kept("progress", lambda: svg.over_time(one.study, HISTORY_SECONDS))
    return "progress.html", {"pictures": found}


def assumptions(one: OpenStudy, given: Answers) -> Section:
    """Say what is assumed, and what the data say of it."""
    problem, study = one.study.problem, one.study
    found = status(one) if one.computes else None
    out = problem.output
    rows: list[tuple[str, str, str, str]] = []
    if found is not None:
        noise = found.noise
        for name, checked, assumed, least in checked_in_words(found):
            state = "strained" if checked.strained else "fine"
            state = "refuted" if checked.at_least > checked.assumed else state
            needed = f"the data need at least {least}" if checked.at_least > 0 else ""
            rows.append((name, assumed, needed, state))
        if noise.at_most is not None and math.isfinite(noise.at_most):
            most = problem.stated_noise.text(noise.at_most, at_most)
            rows.append(("noise, by the data", f"at most {most}", "", "fine"))
    kernel = "" if problem.kernel is None else kernel_to_text(problem.kernel)
    rows.append(("kernel", kernel, "of inputs scaled to [0, 1]", ""))
    rows.append(("probability that a bound ever fails", f"{problem.delta:g}", "delta", ""))
    facts = []
    for words in problem.facts_in_words:
        share = None if found is None else found.binding.get(words)
        said = "" if share is None else f"makes bounds narrower at {100 * share:.0f} % of settings"
        facts.append((words, said))
    best = None if found is None else found.certificate
    side = None
    if best is not None:
        # A value with some room, so that there is something to ask about.
        room = 0.25 * (best.upper - best.lower)
        side = best.upper + room if study.minimise else best.lower - room
    return "assumptions.html", {
        "name": one.name, "rows": rows, "facts": facts,
        "contradicted": "" if found is None else found.contradicted,
        "kernels": "" if found is None else found.kernels,
        "output": out, "minimise": study.minimise,
        "default": "" if side is None else f"{side:.3g}",
        # What was asked of the assumptions is asked again when the study has changed.
        "asked": first(given, "value") if first(given, "asked") else "",
        "inputs": [(i.name, i.description) for i in problem.inputs],
    }  # fmt: skip


def holds(one: OpenStudy, given: Answers) -> Section:
    """Say how wrong B and the noise may be before a statement about the best settings fails."""
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
    largest = problem.norm_at_least(found.norm_bound)
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
    """List what was told, newest first, a page at a time; ``filter`` is looked for everywhere."""
    study, problem = one.study, one.study.problem
    wanted, page = first(given, "filter").lower(), _whole(first(given, "page", "1"), "page")
    rows = [_told(problem, one) for one in reversed(study.trials) if one.state == "told"]
    if wanted:
        rows = [row for row in rows if wanted in " ".join(map(str, row.values())).lower()]
    pages = max(math.ceil(len(rows) / most), 1)
    page = min(page, pages)
    shown = rows[(page - 1) * most : page * most]
    part = "trials_table.html" if given.get("part") else "trials.html"
    return part, {
        "name": one.name, "rows": shown, "filter": first(given, "filter"), "page": page,
        "pages": pages, "count": len(rows), "inputs": problem.inputs, "measured": problem.measured,
    }  # fmt: skip


def _told(problem: Problem, trial: Trial) -> dict[str, Any]:
    """Return a line of the table of trials."""
    ran, outcome = trial.ran or trial.values, trial.outcome
    values = outcome if isinstance(outcome, tuple) else (outcome,)
    return {
        "trial": trial.number,
        "settings": [_value_text(value) for value in ran.values()],
        "measured": [f"{value:g}" for value in values if value is not None],
        "told": (trial.told or "").replace("T", " ")[:16],
        "note": "; ".join(map(str, trial.notes)),
    }


# --- what forms do


def compute(one: OpenStudy, given: Answers) -> str:
    """Compute bounds however many outcomes there are."""
    one.compute()
    return "Bounds are being computed; this may take minutes."


def ask(one: OpenStudy, given: Answers) -> str:
    """Ask for new trials, beside those that are pending."""
    count = _whole(first(given, "count", "1"), "the number of trials")
    try:
        new = one.study.ask(count, more=True, purpose=first(given, "aim", "best"))
    except EmptyConfidenceSetError:
        raise InputError(
            "the data refute what is assumed, so nothing can be suggested; see what to do above."
        ) from None
    numbers = ", ".join(str(trial.number) for trial in new)
    return f"Trial{'s' * (count > 1)} {numbers} to be run."


def tell(one: OpenStudy, given: Answers) -> str:
    """Tell the outcome of a trial, or of a run with settings of one's own."""
    study, problem = one.study, one.study.problem
    value = _outcome(problem, given)
    if number_of_trial := first(given, "trial"):
        trial = study.trial(_whole(number_of_trial, "trial"))
        told = study.tell(trial, value)
    else:
        typed = {i.name: first(given, i.name) for i in problem.inputs}
        point = {
            i.name: typed[i.name] if i.levels else number(typed[i.name], i.name)
            for i in problem.inputs
        }
        told = study.tell(point, value)
    if note := first(given, "note"):
        study.note(told.trial, note)
    return f"Trial {told.trial}: {told_text(problem, value)} is safe in the file."


def drop(one: OpenStudy, given: Answers) -> str:
    """Give up a pending trial."""
    return f"Trial {one.study.drop(_trial_number(given)).number} was given up."


def undo(one: OpenStudy, given: Answers) -> str:
    """Take back the outcome of a trial."""
    one.study.undo(_trial_number(given))
    return f"The outcome of trial {_trial_number(given)} was taken back; it is pending again."


def correct(one: OpenStudy, given: Answers) -> str:
    """Put right an outcome that was typed wrongly."""
    problem, trial = one.study.problem, _trial_number(given)
    value = _outcome(problem, given)
    told = one.study.correct(trial, value)
    done = "was told like that already" if told.again else "is corrected"
    return f"Trial {trial} {done}: {told_text(problem, value)}."


def note(one: OpenStudy, given: Answers) -> str:
    """Write something down on a trial."""
    return f"Noted on trial {one.study.note(_trial_number(given), first(given, 'text')).trial}."


def import_runs(one: OpenStudy, path: Path, given: Answers) -> str:
    """Add the runs of a table."""
    skip = first(given, "skip")
    told = one.study.import_runs(
        path, skip=_whole(skip, "the number of rows", least=0) if skip else None, name=path.name
    )
    new = sum(not one.again for one in told)
    return f"Imported {new} run{'s' * (new != 1)}; the study has {len(one.study)} observations."


def _outcome(problem: Problem, given: Answers) -> Any:
    values = tuple(number(first(given, name), name) for name in problem.measured)
    return values[0] if problem.counts is None else values


def _trial_number(given: Answers) -> int:
    return _whole(first(given, "trial"), "trial")


def _whole(text: str, what: str, least: int = 1) -> int:
    if not text.isdecimal() or int(text) < least:
        raise InputError(f"{what} must be a whole number from {least} on, got {text!r}.")
    return int(text)

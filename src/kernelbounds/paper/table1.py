"""Table 1 as text, LaTeX, CSV and HTML, with the numbers printed in the paper beside ours."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Callable
from functools import cache
from html import escape
from importlib.resources import files
from typing import NamedTuple

from kernelbounds.paper import cells, results, specs
from kernelbounds.paper.cells import Cell, MethodRuns
from kernelbounds.paper.results import Estimate
from kernelbounds.paper.specs import Choices, Experiment, Rows, Setting

NAMES = {
    "CMM": "Kernel CMM-UCB",
    "DMM": "Kernel DMM-UCB",
    "AMM": "Kernel AMM-UCB",
    "AY": "AY-GP-UCB",
    "IGP": "IGP-UCB",
}
# From a mean, a standard deviation and whether the mean is the smallest of its column to text.
Shown = Callable[[float, float, bool], str]


class Published(NamedTuple):
    """The mean and standard deviation, over 10 repetitions, of the regret after 1000 rounds."""

    mean: float
    std: float


@cache
def printed_table() -> dict[tuple[str, float, str], Published]:
    """Read the paper's Table 1, by kernel, length scale and method."""
    kernels = {(name.split("-")[0], nu): name for name, nu in specs.SMOOTHNESS.items()}
    text = files("kernelbounds.paper").joinpath("table1.csv").read_text()
    return {
        (
            kernels[row["kernel"], float(row["nu"]) if row["nu"] else None],
            float(row["length_scale"]),
            row["method"],
        ): Published(float(row["mean"]), float(row["std"]))
        for row in csv.DictReader(text.splitlines())
    }


def published(setting: Setting, method: str) -> Published | None:
    """Return what the paper prints for a method in a setting, if anything."""
    if setting != Setting(setting.kernel, setting.length_scale):
        return None
    return printed_table().get((setting.kernel, setting.length_scale, method))


def z_score(one: MethodRuns) -> float:
    """Return the difference to the published mean, in standard errors of that difference."""
    known = published(one.setting, one.method)
    if known is None or len(one.final) < 2:
        return math.nan
    variance = one.std**2 / len(one.final) + known.std**2 / specs.REPETITIONS
    return (one.mean - known.mean) / math.sqrt(variance)


def paired_difference(runs: list[MethodRuns], setting: Setting) -> Estimate | None:
    """Estimate the regret of CMM minus that of DMM, on the same problems."""
    one, two = (cells.find(runs, setting, method) for method in ("CMM", "DMM"))
    return Estimate.of_mean(one.final - two.final) if one and two else None


def published_order(runs: list[MethodRuns]) -> tuple[int, int]:
    """Count pairs of methods that differ clearly in print, and those in the opposite order here.

    Clearly is by more than the standard error of the difference.
    """
    clear = turned = 0
    for one, other in itertools.combinations(runs, 2):
        a, b = (published(run.setting, run.method) for run in (one, other))
        if one.setting != other.setting or a is None or b is None:
            continue
        if abs(a.mean - b.mean) > math.hypot(a.std, b.std) / math.sqrt(specs.REPETITIONS):
            clear += 1
            turned += (a.mean - b.mean) * (one.mean - other.mean) <= 0
    return clear, turned


def recursion_comparison(runs: list[MethodRuns], timed: list[MethodRuns]) -> str:
    """Compare the time of a whole table with what the plain recursion would take without CMM.

    AMM, AY and IGP cost the recursion one inverse each, DMM five, and Random nothing. The text is
    empty where the recursion was not timed.
    """
    table = [one for one in runs if one.method in specs.METHODS]
    times = {one.method: one.seconds.sum(axis=1) for one in timed}
    if not table or not {"AMM recursion", "DMM recursion"} <= times.keys():
        return ""
    one_inverse, five = (float(times[f"{name} recursion"].mean()) for name in ("AMM", "DMM"))
    cost = {"DMM": five, "Random": 0.0} | dict.fromkeys(("AMM", "AY", "IGP"), one_inverse)
    rivals = [one for one in table if one.method in cost]
    ours = sum(float(one.seconds.sum()) for one in table)
    theirs = sum(cost[one.method] * len(one.final) for one in rivals)
    count, rival_count = (sum(len(one.final) for one in some) for some in (table, rivals))
    measured = len(times["AMM recursion"]) + len(times["DMM recursion"])
    return (
        f"the {count} runs of Table 1 took {ours:.0f} s of computing; the recursion with explicit "
        f"inverses would take {theirs:.0f} s for the {rival_count} without CMM "
        f"({theirs / ours:.1f} times as long; extrapolated from {measured} timed runs with a "
        "Matérn-5/2 kernel, ℓ = 0.5)"
    )


def bounds_and_baselines(runs: list[MethodRuns]) -> list[str]:
    """Return the methods that the table has: the paper's in its order, then the user's own."""
    found = dict.fromkeys(one.method for one in runs)
    return [*(m for m in specs.METHODS if m in found), *(m for m in found if specs.is_users_own(m))]


def name_of(method: str) -> str:
    """Return the name of a method for the head of a row or a legend."""
    if specs.is_users_own(method):
        place, _, name = method.partition(":")
        return f"{name} ({place})"
    return NAMES.get(method, method)


def jobs(choices: Choices, dim: int = 3) -> list[Cell]:
    """Return the cells of the table and of Figure 2, or the same in another dimension."""
    return cells.cells_in(choices.settings(dim), choices)


def as_text(runs: list[MethodRuns]) -> str:
    """Return the table for the terminal: ours, and below it the paper's."""

    def shown(mean: float, std: float, _: bool) -> str:
        return results.plus_minus(mean, std)

    settings = cells.settings_of(runs)
    rows = [["", *(setting.title for setting in settings)]]
    for method, ours in _ours(runs, shown).items():
        rows.append([name_of(method), *ours])
        beside = _papers(runs, method, shown, "{:+.1f}".format)
        rows += [[f"  {label}", *texts] for label, texts in beside.items() if any(texts)]
    gaps = [paired_difference(runs, setting) for setting in settings]
    if any(gaps):
        rows.append(
            ["CMM - DMM, paired [95 %]", *(gap.shown(".1f") if gap else "" for gap in gaps)]
        )
    lines = results.aligned(rows)
    clear, turned = published_order(runs)
    if clear:
        lines.append(f"{clear} pairs of methods differ clearly in print; {turned} are reversed")
    return "\n".join(lines) + "\n"


def as_latex(runs: list[MethodRuns]) -> str:
    """Return a tabular like the paper's; the smallest mean of each column is bold."""

    def shown(mean: float, std: float, bold: bool) -> str:
        text = rf"\textbf{{{mean:.1f}}}" if bold else f"{mean:.1f}"
        return text + ("" if math.isnan(std) else rf" $\pm$ {std:.1f}")

    settings = cells.settings_of(runs)
    titles = " & ".join(
        s.title.replace("é", r"\'{e}").replace("ℓ = ", r"$\ell = $ ") for s in settings
    )
    columns = "c" * len(settings)
    lines = [rf"\begin{{tabular}}{{l{columns}}}", r"\toprule", rf" & {titles} \\", r"\midrule"]
    for method, ours in _ours(runs, shown).items():
        head = name_of(method).replace("_", r"\_")
        lines.append(rf"{head} & {' & '.join(ours)} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def as_rows(runs: list[MethodRuns]) -> Rows:
    """Yield one row for each cell of the table."""
    for one in runs:
        kernel, known = one.setting.kernel, published(one.setting, one.method)
        yield {
            "kernel": kernel.split("-")[0],
            "nu": specs.SMOOTHNESS[kernel] or "",
            "length_scale": one.setting.length_scale,
            "method": one.method,
            "mean": one.mean,
            "std": one.std,
            "published_mean": str(known.mean) if known else "",
            "published_std": str(known.std) if known else "",
            "z": z_score(one),
        }


def as_html(runs: list[MethodRuns]) -> str:
    """Return a table element; the smallest mean of each column is bold."""
    settings = cells.settings_of(runs)
    bodies = []
    for method, ours in _ours(runs, _html).items():
        beside = _papers(runs, method, _html, _score)
        soft = (_row(label, texts, "soft") for label, texts in beside.items())
        bodies.append(_row(name_of(method), ours) + "".join(soft))
    gaps = [paired_difference(runs, setting) for setting in settings]
    means = [_html(gap.value) if gap else "" for gap in gaps]
    reach = [
        f"[{_signed(gap.low)}, {_signed(gap.high)}]" if gap and math.isfinite(gap.low) else ""
        for gap in gaps
    ]
    bodies.append(_row("CMM − DMM, paired", means) + _row("95 % interval", reach, "soft"))
    head = "".join(f'<th scope="col">{escape(setting.title)}</th>' for setting in settings)
    body = "".join(f"<tbody>{rows}</tbody>" for rows in bodies if rows)
    return f"<table><thead><tr><td></td>{head}</tr></thead>{body}</table>"


def _ours(runs: list[MethodRuns], shown: Shown) -> dict[str, list[str]]:
    """Return our numbers by method: a text for each setting, empty where there are none."""
    best = {s: min(one.mean for one in runs if one.setting == s) for s in cells.settings_of(runs)}
    return {
        method: [
            shown(one.mean, one.std, one.mean == least)
            if (one := cells.find(runs, s, method))
            else ""
            for s, least in best.items()
        ]
        for method in bounds_and_baselines(runs)
    }


def _papers(
    runs: list[MethodRuns], method: str, shown: Shown, score: Callable[[float], str]
) -> dict[str, list[str]]:
    """Return the paper's numbers for a method, and how far ours are from them, as texts."""
    found = [cells.find(runs, setting, method) for setting in cells.settings_of(runs)]
    printed = [published(one.setting, method) if one else None for one in found]
    scores = [z_score(one) if one else math.nan for one in found]
    return {
        "published": [shown(*known, False) if known else "" for known in printed],
        "z": ["" if math.isnan(z) else score(z) for z in scores],
    }


def _row(label: str, texts: list[str], css: str = "ours") -> str:
    """Return a row of the HTML table, or nothing where all texts are empty."""
    columns = "".join(f"<td>{text}</td>" for text in texts)
    head = f'<th scope="row">{escape(label)}</th>'
    return f'<tr class="{css}">{head}{columns}</tr>' if any(texts) else ""


def _html(mean: float, std: float = math.nan, bold: bool = False) -> str:
    text = f"<b>{_signed(mean)}</b>" if bold else _signed(mean)
    return f'{text} <span class="std">{"" if math.isnan(std) else f"± {std:.1f}"}</span>'


def _score(z: float) -> str:
    text = f'<span class="far">{_signed(z, "+")}</span>' if abs(z) > 2 else _signed(z, "+")
    return f'{text} <span class="std"></span>'


def _signed(value: float, plus: str = "") -> str:
    return f"{value:{plus}.1f}".replace("-", "−")


EXPERIMENT = Experiment(jobs, cells.collect, {"txt": as_text, "tex": as_latex}, as_rows)

"""Table 1 as text, LaTeX, CSV and HTML, with the published numbers beside ours.

The numbers printed in the paper.

What the cells of a setting say together.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from kernelbounds.arrays import Array
from kernelbounds.paper import specs as own
from kernelbounds.paper.specs import METHODS, REPETITIONS, SMOOTHNESS, Cell, Setting
from kernelbounds.paper.store import Store


class Published(NamedTuple):
    """Mean and standard deviation over 10 repetitions of the regret after 1000 rounds."""

    mean: float
    std: float


@cache
def table1() -> dict[tuple[str, float, str], Published]:
    """Table 1, by kernel, length scale and method."""
    kernels = {(name.split("-")[0], nu): name for name, nu in SMOOTHNESS.items()}
    text = files("kernelbounds.paper").joinpath("table1.csv").read_text()
    return {
        (
            kernels[row["kernel"], float(row["nu"]) if row["nu"] else None],
            float(row["length_scale"]),
            row["method"],
        ): Published(float(row["mean"]), float(row["std"]))
        for row in csv.DictReader(text.splitlines())
    }


def of(setting: Setting, method: str) -> Published | None:
    """What the paper prints for a method in a setting, if anything."""
    papers = Setting(setting.kernel, setting.length_scale)
    return (
        table1().get((setting.kernel, setting.length_scale, method)) if setting == papers else None
    )


@dataclass(frozen=True)
class Runs:
    """All repetitions of one method in one setting."""

    setting: Setting
    method: str
    regret: Array  # cumulative, (repetitions, rounds)
    seconds: Array  # of each step, (repetitions, rounds)

    @property
    def final(self) -> Array:
        """Cumulative regret at the end, (repetitions,)."""
        return np.asarray(self.regret[:, -1])

    @property
    def mean(self) -> float:
        """Mean over the repetitions, at the end."""
        return float(self.final.mean())

    @property
    def std(self) -> float:
        """Standard deviation over the repetitions, at the end; nan for a single one."""
        return float(self.final.std(ddof=1)) if len(self.final) > 1 else math.nan

    @property
    def published(self) -> Published | None:
        """The paper's numbers, where it has any for these settings."""
        return of(self.setting, self.method)

    @property
    def z(self) -> float:
        """The difference to the published mean, in standard errors of that difference."""
        if self.published is None or len(self.final) < 2:
            return math.nan
        variance = self.std**2 / len(self.final) + self.published.std**2 / REPETITIONS
        return (self.mean - self.published.mean) / math.sqrt(variance)


@dataclass(frozen=True)
class Paired:
    """Regret of one method minus that of another, on the same problems."""

    setting: Setting
    mean: float
    low: float  # a 95 % confidence interval, by Student's t
    high: float


def collect(cells: list[Cell], store: Store) -> list[Runs]:
    """The runs of each setting and method, in the order of the cells."""
    groups: dict[tuple[Setting, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.setting, cell.method), []).append(cell)
    result = []
    for (setting, method), members in groups.items():
        found = [store.read(cell) for cell in sorted(members, key=lambda cell: cell.repetition)]
        regret = np.cumsum([one["regret"] for one in found], axis=1)
        result.append(Runs(setting, method, regret, np.array([one["seconds"] for one in found])))
    return result


def compare(one: Runs, other: Runs) -> Paired:
    """The paired difference of two methods in the same setting."""
    difference = one.final - other.final
    mean, count = float(difference.mean()), len(difference)
    if count < 2:
        return Paired(one.setting, mean, -math.inf, math.inf)
    error = float(difference.std(ddof=1)) / math.sqrt(count)
    reach = float(student.ppf(0.975, count - 1)) * error
    return Paired(one.setting, mean, mean - reach, mean + reach)


def published_order(runs: list[Runs]) -> tuple[int, list[tuple[Runs, Runs]]]:
    """Pairs of methods whose published means differ by more than the standard error of that.

    How many there are, and which of them are in the opposite order here.
    """
    clear, turned = 0, []
    for one, other in itertools.combinations(runs, 2):
        a, b = one.published, other.published
        if one.setting != other.setting or a is None or b is None:
            continue
        if abs(a.mean - b.mean) > math.hypot(a.std, b.std) / math.sqrt(REPETITIONS):
            clear += 1
            if (a.mean - b.mean) * (one.mean - other.mean) <= 0:
                turned.append((one, other))
    return clear, turned


@dataclass(frozen=True)
class Speed:
    """Time for a whole table, ours and what the plain recursion would take without CMM."""

    ours: float  # seconds, of all runs of the table
    runs: int
    rival: float  # seconds, extrapolated from ``measured`` runs
    rival_runs: int
    measured: int

    def __str__(self) -> str:
        return (
            f"the {self.runs} runs of Table 1 took {self.ours:.0f} s of computing; the recursion "
            f"with explicit inverses would take {self.rival:.0f} s for the {self.rival_runs} "
            f"without CMM ({self.rival / self.ours:.1f} times as long; extrapolated from "
            f"{self.measured} timed runs with a Matérn-5/2 kernel, ℓ = 0.5)"
        )


def speed(runs: list[Runs], timed: list[Runs]) -> Speed | None:
    """AMM, AY and IGP cost the recursion one inverse each, DMM five; Random nothing."""
    table = [one for one in runs if one.method in METHODS]
    times = {one.method: one.seconds.sum(axis=1) for one in timed}
    if not table or not {"AMM recursion", "DMM recursion"} <= times.keys():
        return None
    single, five = (float(times[name].mean()) for name in ("AMM recursion", "DMM recursion"))
    cost = {"DMM": five, "AMM": single, "AY": single, "IGP": single, "Random": 0.0}
    rivals = [one for one in table if one.method in cost]
    return Speed(
        sum(float(one.seconds.sum()) for one in table),
        sum(len(one.final) for one in table),
        sum(cost[one.method] * len(one.final) for one in rivals),
        sum(len(one.final) for one in rivals),
        len(times["AMM recursion"]) + len(times["DMM recursion"]),
    )


def find(runs: list[Runs], setting: Setting, method: str) -> Runs | None:
    """The runs of a method in a setting, if there are any."""
    matches = [one for one in runs if (one.setting, one.method) == (setting, method)]
    return matches[0] if matches else None


NAMES = {
    "CMM": "Kernel CMM-UCB",
    "DMM": "Kernel DMM-UCB",
    "AMM": "Kernel AMM-UCB",
    "AY": "AY-GP-UCB",
    "IGP": "IGP-UCB",
    "Random": "Random",
}


def methods(runs: list[Runs]) -> list[str]:
    """Those that are a bound or a baseline: the paper's in its order, then the user's own."""
    found = dict.fromkeys(one.method for one in runs)
    return [*(m for m in METHODS if m in found), *(m for m in found if own.is_own(m))]


def name_of(method: str) -> str:
    """For the head of a row."""
    return own.label(method) if own.is_own(method) else NAMES.get(method, method)


def columns(runs: list[Runs]) -> list[Setting]:
    """The settings, in order."""
    return list(dict.fromkeys(one.setting for one in runs))


def title(setting: Setting) -> str:
    """For the head of a column."""
    names = {"rbf": "RBF", "matern-5/2": "Matérn-5/2", "matern-3/2": "Matérn-3/2"}
    return f"{names[setting.kernel]}, ℓ = {setting.length_scale:g}"


def as_text(runs: list[Runs]) -> str:
    """For the terminal: ours, and below it the paper's."""
    settings = columns(runs)
    rows = [["", *(title(setting) for setting in settings)]]
    for method in methods(runs):
        found = [find(runs, setting, method) for setting in settings]
        rows.append([name_of(method), *(_number(one) if one else "" for one in found)])
        if any(one and one.published for one in found):
            rows.append(["  published", *(_published(one) for one in found)])
            rows.append(
                [
                    "  z",
                    *(f"{one.z:+.1f}" if one and not math.isnan(one.z) else "" for one in found),
                ]
            )
    rows += _paired_rows(runs, settings)
    lines = aligned(rows)
    clear, turned = published_order(runs)
    if clear:
        lines.append(
            f"{clear} pairs of methods differ clearly in print; {len(turned)} are reversed"
        )
    return "\n".join(lines) + "\n"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with the columns of a table under each other."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def as_latex(runs: list[Runs]) -> str:
    """A tabular like the paper's; the smallest mean of each column is bold."""
    settings = columns(runs)
    head = " & ".join(
        title(s).replace("é", r"\'{e}").replace("ℓ = ", r"$\ell = $ ") for s in settings
    )
    lines = [
        rf"\begin{{tabular}}{{l{'c' * len(settings)}}}",
        r"\toprule",
        rf" & {head} \\",
        r"\midrule",
    ]
    best = {s: min(one.mean for one in runs if one.setting == s) for s in settings}
    for method in methods(runs):
        found = [find(runs, setting, method) for setting in settings]
        cells = [_latex(one, one is not None and one.mean == best[one.setting]) for one in found]
        head = name_of(method).replace("_", r"\_")
        lines.append(rf"{head} & {' & '.join(cells)} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def as_csv(runs: list[Runs]) -> str:
    """One row a cell of the table."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head = ("kernel", "nu", "length_scale", "method", "mean", "std")
    writer.writerow([*head, "published_mean", "published_std", "z"])
    for one in runs:
        known = one.published
        writer.writerow(
            [
                one.setting.kernel.split("-")[0],
                _or_empty(SMOOTHNESS[one.setting.kernel]),
                one.setting.length_scale,
                one.method,
                f"{one.mean:.6g}",
                _or_empty(one.std),
                *((known.mean, known.std) if known else ("", "")),
                _or_empty(one.z),
            ]
        )
    return out.getvalue()


def as_html(runs: list[Runs]) -> str:
    """A table element; the smallest mean of each column is bold."""
    settings = columns(runs)
    best = {s: min(one.mean for one in runs if one.setting == s) for s in settings}
    bodies = []
    for method in methods(runs):
        found = [find(runs, setting, method) for setting in settings]
        ours = [_html(o.mean, o.std, o.mean == best[o.setting]) if o else "" for o in found]
        theirs = [_html(*o.published) if o and o.published else "" for o in found]
        scores = [_score(o.z) if o else "" for o in found]
        rows = (
            _row(name_of(method), ours),
            _row("published", theirs, "soft"),
            _row("z", scores, "soft"),
        )
        bodies.append("".join(rows))
    pairs = [(find(runs, setting, "CMM"), find(runs, setting, "DMM")) for setting in settings]
    gaps = [compare(one, other) if one and other else None for one, other in pairs]
    means = [_html(gap.mean) if gap else "" for gap in gaps]
    reach = [
        f"[{_signed(gap.low)}, {_signed(gap.high)}]" if gap and math.isfinite(gap.low) else ""
        for gap in gaps
    ]
    bodies.append(_row("CMM − DMM, paired", means) + _row("95 % interval", reach, "soft"))
    head = "".join(f'<th scope="col">{escape(title(setting))}</th>' for setting in settings)
    body = "".join(f"<tbody>{rows}</tbody>" for rows in bodies if rows)
    return f"<table><thead><tr><td></td>{head}</tr></thead>{body}</table>"


def _row(label: str, texts: list[str], css: str = "ours") -> str:
    """Nothing when there is nothing to say."""
    cells = "".join(f"<td>{text}</td>" for text in texts)
    head = f'<th scope="row">{escape(label)}</th>'
    return f'<tr class="{css}">{head}{cells}</tr>' if any(texts) else ""


def _html(mean: float, std: float = math.nan, bold: bool = False) -> str:
    text = f"<b>{_signed(mean)}</b>" if bold else _signed(mean)
    return f'{text} <span class="std">{"" if math.isnan(std) else f"± {std:.1f}"}</span>'


def _score(z: float) -> str:
    text = f'<span class="far">{_signed(z, "+")}</span>' if abs(z) > 2 else _signed(z, "+")
    return "" if math.isnan(z) else f'{text} <span class="std"></span>'


def _signed(value: float, plus: str = "") -> str:
    return f"{value:{plus}.1f}".replace("-", "−")


def _paired_rows(runs: list[Runs], settings: list[Setting]) -> list[list[str]]:
    """CMM minus DMM on the same problems."""
    texts = []
    for setting in settings:
        one, other = find(runs, setting, "CMM"), find(runs, setting, "DMM")
        if one is None or other is None:
            texts.append("")
            continue
        found = compare(one, other)
        interval = "" if math.isinf(found.low) else f" [{found.low:.1f}, {found.high:.1f}]"
        texts.append(f"{found.mean:.1f}{interval}")
    return [["CMM - DMM, paired [95 %]", *texts]] if any(texts) else []


def _number(one: Runs) -> str:
    return f"{one.mean:.1f}" + ("" if math.isnan(one.std) else f" ± {one.std:.1f}")


def _published(one: Runs | None) -> str:
    known = one.published if one else None
    return f"{known.mean:.1f} ± {known.std:.1f}" if known else ""


def _latex(one: Runs | None, bold: bool) -> str:
    if one is None:
        return ""
    mean = rf"\textbf{{{one.mean:.1f}}}" if bold else f"{one.mean:.1f}"
    return mean if math.isnan(one.std) else rf"{mean} $\pm$ {one.std:.1f}"


def _or_empty(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.6g}"

"""Table 1 as text, LaTeX, CSV and HTML, with the published numbers beside ours."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from html import escape

from kernelbounds.paper import own
from kernelbounds.paper.specs import METHODS, SMOOTHNESS, Setting
from kernelbounds.paper.summary import Runs, compare, find, published_order

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

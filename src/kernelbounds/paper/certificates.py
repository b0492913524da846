"""How many rounds it takes to certify a small regret: tables and figure."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.paper import functions, trials
from kernelbounds.paper.figures import COLOURS, figure_files
from kernelbounds.paper.store import Store
from kernelbounds.paper.tables import aligned
from kernelbounds.paper.trials import LEVELS, Trial

# How a regret is certified, and the arrays in which it is stored.
MEASURES = {"by_bounds": "max upper − lower", "regret": "by differences"}
MIXTURES = {"paper": "the paper's c", "default": "default"}
COLOUR = {
    ("CMM", "default"): COLOURS["CMM"], ("DMM", "default"): COLOURS["DMM"],
    ("CMM", "paper"): COLOURS["IGP"], ("DMM", "paper"): COLOURS["AY"],
}  # fmt: skip


@dataclass(frozen=True)
class Certified:
    """All repetitions of a policy on a function."""

    trial: Trial  # the first of them
    norm: float
    rounds: Array  # in which certificates were computed, (n,)
    certified: dict[str, Array]  # by measure, (repetitions, n); the range of the function is 1
    true_regret: Array  # (repetitions, n)

    def first(self, measure: str, level: float) -> Array:
        """The first of the rounds with so good a certificate, or infinity; (repetitions,)."""
        enough = self.certified[measure] <= level
        return np.where(enough.any(axis=1), self.rounds[enough.argmax(axis=1)], math.inf)

    @property
    def wrong(self) -> int:
        """Repetitions in which the best action was worse than certified, at some time."""
        least = np.minimum(*self.certified.values())
        return int((self.true_regret > least).any(axis=1).sum())

    @property
    def kernel(self) -> str:
        """For the head of a row."""
        return f"Matérn-{2 * self.trial.nu:g}/2, ℓ = {self.trial.length_scale:g}"


def write(members: list[Trial], store: Store, folder: Path) -> str:
    """Make the table and the figure of the experiment, and return the table as text."""
    found = collect(members, store)
    text = as_text(found)
    (folder / "certificates.txt").write_text(text, encoding="utf-8")
    (folder / "certificates.csv").write_text(as_csv(found), encoding="utf-8")
    draw(found, folder)
    return text


def collect(members: list[Trial], store: Store) -> list[Certified]:
    """The repetitions of each policy together, in order."""
    groups: dict[tuple[str, float, float, str, str], list[Trial]] = {}
    for one in members:
        key = (one.function, one.nu, one.length_scale, one.bound, one.mixture)
        groups.setdefault(key, []).append(one)
    result = []
    for group in groups.values():
        runs = [store.read(one) for one in group]
        certified = {name: np.array([run[name] for run in runs]) for name in MEASURES}
        true = np.array([run["true_regret"] for run in runs])
        norm, rounds = float(runs[0]["norm"][0]), runs[0]["rounds"]
        result.append(Certified(group[0], norm, rounds, certified, true))
    return result


def as_text(found: list[Certified]) -> str:
    """For the terminal: a table for each function."""
    count, rounds = len(found[0].true_regret), found[0].trial.rounds
    lines = [
        f"Rounds until the regret is certified to be at most a part of the range: median of "
        f"{count} (smallest to largest), at most {rounds}",
    ]
    for name in dict.fromkeys(one.trial.function for one in found):
        members = [one for one in found if one.trial.function == name]
        target = functions.target(name)
        norms = {one.kernel: one.norm for one in members}
        said = "; ".join(
            f"{kernel}: norm {norm:.3g}, B = {trials.SLACK * norm:.3g}"
            for kernel, norm in norms.items()
        )
        lines += ["", f"{target.title}, {len(target.points)} points; range 1; {said}"]
        rows = [["kernel", "bound", "radius", "certified", *(f"{100 * x:g} %" for x in LEVELS)]]
        for one in members:
            policy = [one.kernel, one.trial.bound, MIXTURES[one.trial.mixture]]
            for measure, label in MEASURES.items():
                shown = [_shown(one.first(measure, level), rounds) for level in LEVELS]
                rows.append([*policy, label, *shown])
                policy = ["", "", ""]  # once is enough
        lines += aligned(rows)
    wrong, total = sum(one.wrong for one in found), sum(len(one.true_regret) for one in found)
    lines += ["", f"a certificate was wrong at some time in {wrong} of {total} runs"]
    return "\n".join(lines) + "\n"


def as_csv(found: list[Certified]) -> str:
    """One row for each policy, measure and level."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = ["function", "nu", "length_scale", "norm", "norm_bound", "bound", "mixture"]
    writer.writerow([*names, "certified", "level", "median", "smallest", "largest", "repetitions"])
    for one in found:
        t = one.trial
        norms = [f"{one.norm:.6g}", f"{trials.SLACK * one.norm:.6g}"]
        policy = [t.function, t.nu, t.length_scale, *norms, t.bound, t.mixture]
        for measure in MEASURES:
            for level in LEVELS:
                first = one.first(measure, level)
                ends = [f"{x:g}" if math.isfinite(x) else "" for x in _summary(first)]
                writer.writerow([*policy, measure, level, *ends, len(first)])
    return out.getvalue()


def draw(found: list[Certified], folder: Path) -> None:
    """A panel for each function; kernels differ by the line, bounds and radii by the colour."""
    names = list(dict.fromkeys(one.trial.function for one in found))
    with figure_files(folder, "certificates", math.ceil(len(names) / 2), min(2, len(names))) as all:
        axes = dict(zip(names, all.flat, strict=False))
        for name, axis in axes.items():
            members = [one for one in found if one.trial.function == name]
            kernels = list(dict.fromkeys(one.kernel for one in members))
            for one in members:
                policy = one.trial.bound, one.trial.mixture
                axis.plot(
                    one.rounds,
                    np.median(one.certified["regret"], axis=0),
                    ("-", "--", ":")[kernels.index(one.kernel)],
                    color=COLOUR[policy],
                    label=f"{policy[0]}, {MIXTURES[policy[1]]}, Matérn-{2 * one.trial.nu:g}/2",
                    # Of two that coincide both can be seen.
                    linewidth=1.8 if policy[0] == "CMM" else 0.9,
                )
            for level in LEVELS:
                axis.axhline(level, color="black", linewidth=0.4)
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.set_yticks([1.0, *LEVELS, 0.01], ["1", *map(str, LEVELS), "0.01"])
            # A certificate of more than the range says nothing.
            axis.set_ylim(top=2.0)
            axis.set_xticks([1, 10, 100], ["1", "10", "100"])
            axis.minorticks_off()
            lengths = " and ".join(f"{one.split(' = ')[1]}" for one in kernels)
            axis.set_title(f"{functions.target(name).title}; ℓ = {lengths}", fontsize=9)
        for axis in all[-1]:
            axis.set_xlabel("round")
        for axis in all[:, 0]:
            axis.set_ylabel("certified regret / range")
        handles, labels = all.flat[0].get_legend_handles_labels()
        all.flat[0].figure.legend(
            handles, labels, loc="outside upper center", ncols=all.shape[1] + 1, fontsize=7,
            frameon=False,
        )  # fmt: skip


def _summary(first: Array) -> tuple[float, float, float]:
    """Median, smallest and largest; of an even number the larger of the two in the middle."""
    inside = np.sort(first)
    return float(inside[len(inside) // 2]), float(inside[0]), float(inside[-1])


def _shown(first: Array, rounds: int) -> str:
    median, low, high = (
        f"{x:.0f}" if math.isfinite(x) else f"over {rounds}" for x in _summary(first)
    )
    return median if low == high else f"{median} ({low} to {high})"

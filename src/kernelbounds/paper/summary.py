"""What the cells of a setting say together."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from kernelbounds.arrays import Array
from kernelbounds.paper import published
from kernelbounds.paper.specs import METHODS, REPETITIONS, Cell, Setting
from kernelbounds.paper.store import Store


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
    def published(self) -> published.Published | None:
        """The paper's numbers, where it has any for these settings."""
        return published.of(self.setting, self.method)

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

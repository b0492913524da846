"""How far estimates are from the truth: that of ``seq.estimate``, and the others one could take.

Six systems, of which four are those of the documentation, each with random points and noise, after
10, 20, 40 and 80 outcomes. Errors are root mean squares over 300 points that fill the box, and the
largest ones, both as shares of the spread of the truth. All estimates are moved into the bounds.

========================  ==================================================================
estimate                  what it is
========================  ==================================================================
``likeliest ridge``       ``seq.estimate``: the ridge at which outcomes are likeliest
``middle``                (lower + upper) / 2, which has the smallest error in the worst case
``ridge (R_t/B)^2``       the minimiser of |f_t - y_t|^2 / R_t^2 + |f|^2 / B^2
``minimum norm``          of all f with |f_t - y_t| <= R_t
``ridge of forecasts``    sigma^2/c, with c = 0.03 B^2
``leave-one-out``         the ridge with the smallest error at outcomes that were left out
========================  ==================================================================

``python -m benchmarks.estimate`` prints the whole table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

import kernelbounds as kb
from benchmarks.problem import Array
from benchmarks.report import Row, progress

COUNTS, RUNS = (10, 20, 40, 80), 10
LOG_RIDGES = np.linspace(np.log(1e-10), np.log(1e5), 150)
OURS, MIDDLE = "likeliest ridge", "middle"


def _oven(X: Array) -> Array:
    u, v = (X[:, 0] - 170) / 50, (X[:, 1] - 25) / 30
    return 20 + 30 * np.exp(-1.5 * (u + 0.5 * v) ** 2 - 0.8 * (v - 0.3 * u) ** 2)


def _reactor(X: Array) -> Array:
    t, p, c = (X[:, 0] - 180) / 40, (X[:, 1] - 1e5) / 2e5, (X[:, 2] - 0.1) / 0.8
    return (
        30
        + 25 * np.exp(-((t - 0.6) ** 2) / 0.3)
        + 15 * (1 - np.exp(-2.5 * p))
        - 20 * (c - 0.5) ** 2
    )


def _alloy(X: Array) -> Array:
    hot, carbon, held = (X[:, 0] - 800) / 150, (X[:, 1] - 0.2) / 0.6, (X[:, 2] - 5) / 55
    quench = np.array([0.0, 4.0, -4.0])[X[:, 3].astype(int)]
    of_numbers = 11 * carbon * (1 - 0.3 * carbon) + 3 * np.sin(2.5 * hot) - 5 * (held - 0.4) ** 2
    return 46 + quench + of_numbers


def _pump(X: Array) -> Array:
    flow = X[:, 0] / 8
    return 20 + 60 * flow * (2 - flow) - 3 * np.sin(8 * flow)


def _fermentation(X: Array) -> Array:
    optimum = np.exp(-(((X[:, 0] - 33) / 6) ** 2) - (X[:, 1] - 6.2) ** 2)
    return 0.4 + 4 * optimum * X[:, 2] / (X[:, 2] + 8)


OVEN = ["temperature=140:190", "minutes=10:40"], "strength=0:60"
SYSTEMS: dict[str, tuple[kb.Problem, Callable[[Array], Array], float]] = {
    "oven": (kb.Problem(*OVEN, 0.5, turns=1, limits="0:60"), _oven, 0.5),
    "oven, unknown noise": (kb.Problem(*OVEN, "unknown", turns=1, limits="0:60"), _oven, 0.5),
    "oven, noise stated 3 times too large": (kb.Problem(*OVEN, 1.5, turns=1), _oven, 0.5),
    "reactor": (
        kb.Problem(
            ["temperature=180:220", "pressure=1e5:3e5", "catalyst=0.1:0.9"], "yield=0:100", 0.5,
            turns=1, interactions="none",
        ), _reactor, 0.5,
    ),
    "alloy": (
        kb.Problem(
            ["temperature=800:950", "carbon=0.2:0.8", "time=5:60", "quench=oil|water|air"],
            "hardness=35:65", 0.5, turns=1,
        ), _alloy, 0.5,
    ),
    "pump": (kb.Problem(["flow=1:12"], "efficiency=0:100", 1.0), _pump, 1.0),
    "fermentation, logarithms": (
        kb.Problem(
            ["temperature=25:40", "pH=5:7.5", "sugar=2:40:log"], "productivity=0.2:5:log", "5%",
            turns=1,
        ), _fermentation, float(np.log(1.05)),
    ),
}  # fmt: skip


def run() -> list[Row]:
    rows = []
    for system in SYSTEMS:
        found = errors(system)
        for at, count in enumerate(COUNTS):
            ours, middle = (found[name][at, 0] for name in (OURS, MIDDLE))
            rows.append(
                Row(
                    f"estimate, {system}, t = {count}: error / of the middle", f"{ours:.2%}",
                    f"{middle:.2%}", ours / middle, "of its error", ("<=", 1.2),
                )
            )  # fmt: skip
    return rows


def errors(system: str) -> dict[str, Array]:
    """Root mean square and largest errors of each estimate, (counts, 2), means over the runs."""
    problem, truth, noise = SYSTEMS[system]
    problem = problem.settled()
    filling = problem.inputs.unit_box.filling(300)
    true = problem.output.scaled(truth(problem.unscaled(filling)))
    total: dict[str, Array] = {}
    for seed in range(RUNS):
        progress(f"estimate, {system}, {seed + 1} of {RUNS}")
        rng, sequence = np.random.default_rng(seed), problem.sequence()
        unit = problem.inputs.unit_box.scaled(rng.random((COUNTS[-1], len(problem.inputs))))
        X = problem.unscaled(unit)
        y = problem.output.scaled(truth(X)) + noise * rng.standard_normal(len(X))
        for at, count in enumerate(COUNTS):
            new = slice(len(sequence), count)
            sequence.update(problem.scaled(X[new]), y[new])
            for name, estimate in _estimates(sequence, filling):
                error = np.abs(estimate - true) / np.ptp(true)
                sums = total.setdefault(name, np.zeros((len(COUNTS), 2)))
                sums[at] += np.array([np.sqrt(np.mean(error**2)), error.max()]) / RUNS
    return total


def _estimates(sequence: kb.ConfidenceSequence, points: Array) -> Iterator[tuple[str, Array]]:
    """Each estimate at points, from scratch but for ours."""
    ours, lower, upper = sequence.estimate_with_bounds(points)
    yield OURS, ours
    yield MIDDLE, (lower + upper) / 2
    known = sequence.known
    X, y, B = known.points, known.outcomes, known.assumptions.norm_bound
    values, Q = np.linalg.eigh(known.kernel(X))
    values, z, u = np.maximum(values, 0.0), Q.T @ y, Q.T @ known.kernel(X, points)
    grid = np.exp(LOG_RIDGES) * np.mean(known.kernel.diag(X))
    shrunk = values / (values + grid[:, None])
    misfits = (((1 - shrunk) * z) ** 2).sum(axis=1)
    left_out = (((1 - shrunk) * z) @ Q.T) / (1 - shrunk @ (Q**2).T)
    squared = known.radius.squared
    ridges = {
        "ridge (R_t/B)^2": squared / B**2,
        "minimum norm": grid[min(np.searchsorted(misfits, squared), len(grid) - 1)],
        "ridge of forecasts": known.reference_ridge,
        "leave-one-out": grid[(left_out**2).sum(axis=1).argmin()],
    }
    level = known.evidence.offset.at(points)
    for name, ridge in ridges.items():
        yield name, np.clip(level + (z / (values + ridge)) @ u, lower, upper)


if __name__ == "__main__":
    for name in SYSTEMS:
        table = errors(name)
        for at, count in enumerate(COUNTS):
            cells = [f"{100 * e[at, 0]:.2g} ({100 * e[at, 1]:.2g})" for e in table.values()]
            if name == next(iter(SYSTEMS)) and at == 0:
                print("| system | t | " + " | ".join(table) + " |")
                print("|---|--:|" + "--:|" * len(table))
            print(
                f"| {name if at == 0 else ''} | {count} | " + " | ".join(cells) + " |", flush=True
            )

"""What facts cost in time, and what they save in experiments.

Times are those of bounds on a grid of 1,681 points after 30 observations of two inputs, with limits
at 81 places, as a share of those without facts, and of the cone program at a few points.

``python -m benchmarks.facts 20`` counts, in 20 runs of KernelUCB on the README's oven, the
experiments until a setting is certified to be within a half, a quarter and a tenth of the range of
the best one.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import cvxpy
import numpy as np
from sklearn.gaussian_process.kernels import Matern

import kernelbounds as kb
from benchmarks.problem import Array
from benchmarks.report import Row, faster, share
from benchmarks.timing import fastest, once
from kernelbounds import kernels
from kernelbounds.bounds.with_facts import inequalities

BOX = kb.Box([0.0, 0.0], [1.0, 1.0])
SIDE = np.linspace(0, 1, 41)
GRID = np.stack(np.meshgrid(SIDE, SIDE, indexing="ij"), -1).reshape(-1, 2)
LIMITS = kb.facts.Between(0.0, 1.0, region=BOX)
CASES = {
    "limits": ([LIMITS], 30.0),
    "limits that never bind": ([kb.facts.Between(-50.0, 50.0, region=BOX)], 3.0),
    "rising in both": ([kb.facts.Increasing(axis, region=BOX) for axis in (0, 1)], None),
}
CONE_POINTS = 5
RANGE, NOISE, MOST_EXPERIMENTS = 60.0, 0.5, 100
PARTS = (0.5, 0.25, 0.1)


def run() -> list[Row]:
    rows = []
    for name, (facts, target) in CASES.items():
        ours, plain = fastest(
            name, once(lambda facts=facts: _bounds(facts)), once(lambda: _bounds(None))
        )
        title = f"facts, {name}, 1,681 points, t = 30 / without facts"
        rows.append(share(title, ours.sum(), plain.sum(), target))
    known, points = _sequence([LIMITS]).known, GRID[:: len(GRID) // CONE_POINTS][:CONE_POINTS]
    ours, rival = fastest(
        "limits", once(lambda: _bounds([LIMITS])), once(lambda: _cone(known, points))
    )
    per_point = ours.sum() / (2 * len(GRID)), rival.sum() / len(points)
    return [*rows, faster("facts, limits, a bound / cone program", *per_point, 50.0)]


def _sequence(facts: list[kb.facts.Fact] | None) -> kb.ConfidenceSequence:
    rng = np.random.default_rng(0)
    X = rng.random((30, 2))
    y = (1 - np.exp(-2 * X[:, 0])) * (1 - np.exp(-3 * X[:, 1])) + 0.02 * rng.standard_normal(30)
    sequence = kb.ConfidenceSequence(Matern(0.5, nu=2.5), 3.0, 0.02, facts=facts)
    sequence.update(X, y)
    return sequence


def _bounds(facts: list[kb.facts.Fact] | None) -> tuple[Array, Array]:
    return _sequence(facts).bounds(GRID)


def _cone(known: kb.bounds.ConfidenceSet, points: Array) -> list[float]:
    facts, found = inequalities(known), []
    for x in points:
        places = np.vstack([known.points, facts.centres, x[None]])
        values, basis = np.linalg.eigh(kernels.cross(known.kernel, places, places))
        root = basis * np.sqrt(np.maximum(values, 0.0))
        data, of_facts = root[: known.count], facts.rows @ root[known.count : -1]
        v = cvxpy.Variable(len(root))
        constraints = [
            cvxpy.norm(data @ v - known.outcomes) <= np.sqrt(known.radius.squared),
            cvxpy.norm(v) <= known.assumptions.norm_bound,
            of_facts @ v >= facts.least,
        ]
        found.append(cvxpy.Problem(cvxpy.Maximize(root[-1] @ v), constraints).solve("CLARABEL"))
    return found


def _strength(unit: Array) -> Array:
    """The oven of examples/curing.py, of inputs scaled to [0, 1]."""
    u, v = unit[:, 0] - 0.6, unit[:, 1] - 0.5
    return 20 + 30 * np.exp(-1.5 * (u + 0.5 * v) ** 2 - 0.8 * (v - 0.3 * u) ** 2)


def experiments_needed(problem: kb.Problem, facts: list[kb.facts.Fact], seed: int) -> list[int]:
    """Count the experiments of KernelUCB until the certified regret is each part of the range."""
    rng, side = np.random.default_rng(seed), np.linspace(0, 1, 17)
    actions = kb.Finite(np.stack(np.meshgrid(side, side, indexing="ij"), -1).reshape(-1, 2))
    sequence = problem.sequence()
    sequence._known = replace(sequence._known, stated_facts=tuple(facts))
    ucb, found = kb.KernelUCB(sequence, actions), list[int]()
    for count in range(1, MOST_EXPERIMENTS + 1):
        x = ucb.ask().x
        ucb.tell(x, float(_strength(x[None])[0] + NOISE * rng.standard_normal()))
        regret = ucb.certificate().regret
        while len(found) < len(PARTS) and regret <= PARTS[len(found)] * RANGE:
            found.append(count)
        if len(found) == len(PARTS):
            break
    return found + [MOST_EXPERIMENTS] * (len(PARTS) - len(found))


if __name__ == "__main__":
    oven = kb.Problem(
        ["temperature=140:190", "minutes=10:40"], f"strength=0:{RANGE:g}", NOISE, turns=1
    ).settled()
    for title, chosen in {"without": [], "limits 0:60": [kb.facts.Between(0.0, RANGE)]}.items():
        counts = [experiments_needed(oven, chosen, seed) for seed in range(int(sys.argv[1]))]
        medians = dict(zip(PARTS, np.median(counts, axis=0), strict=True))
        print(f"{title}: median number of experiments by certified part of the range, {medians}")

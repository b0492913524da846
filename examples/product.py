"""A productivity that is a product of effects: a table of runs, or what a logarithmic scale buys.

python examples/product.py --runs 60 --out runs.csv
python examples/product.py
"""

from __future__ import annotations

import argparse

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.io.csv_table import write_csv
from kernelbounds.problem import Problem, assume

INPUTS = ["temperature[°C]=180:220", "pressure=1:3", "catalyst=0.1:0.9"]
NOISE = 0.03  # of the natural logarithm: 3 %
# The same system as a user may state it. On a linear scale the effects of the inputs depend on
# each other, and the noise must be that of the largest values: 4 % of 5.
STATEMENTS = {
    "`productivity=1:5`": {"output": "productivity[kg/h]=1:5", "noise": 0.2},
    "`productivity=1:5:log`": {"output": "productivity[kg/h]=1:5:log", "noise": "4%"},
    "`productivity=1:5:log`, `--interactions none`": {
        "output": "productivity[kg/h]=1:5:log",
        "noise": "4%",
        "interactions": "none",
    },
}


def truth(X: Array) -> Array:
    """Return kilograms an hour, between 1.1 and 3.8, at points (m, 3)."""
    temperature, pressure, catalyst = X.T
    hill = 1 - 0.4 * ((temperature - 205) / 25) ** 2
    return np.asarray(1.7 * hill * (0.7 + 0.3 * pressure) * (0.9 + 0.5 * np.sqrt(catalyst)))


def runs(count: int, seed: int) -> tuple[Array, Array]:
    """Return settings that were drawn at random, and what was measured there."""
    rng = np.random.default_rng(seed)
    X = Problem(INPUTS, "productivity=1:5").inputs.settable(rng.random((count, 3)))
    return X, truth(X) * np.exp(NOISE * rng.standard_normal(count))


def main() -> None:
    """Write a table, or print how wide the bands are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--functions", type=int, default=200)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    X, y = runs(arguments.runs, arguments.seed)
    if arguments.out:
        columns = dict(zip(["temperature", "pressure", "catalyst"], X.T, strict=True))
        write_csv(arguments.out, columns | {"productivity": np.round(y, 3)})
        return
    new, _ = runs(500, arguments.seed + 1)
    print("| said | B | mean width, kg/h | truth inside |\n|---|---|---|---|")
    for name, said in STATEMENTS.items():
        problem = Problem(INPUTS, turns=1, experiments=arguments.runs, **said)
        problem = assume(problem, arguments.functions).problem
        sequence = problem.sequence()
        sequence.update(problem.scaled(X), *problem.scaled_outcomes(y))
        lower, upper = problem.bounds(sequence, new)
        inside = np.mean((lower <= truth(new)) & (truth(new) <= upper))
        print(
            f"| {name} | {problem.norm_bound:.3g} | {np.mean(upper - lower):.3g} | {inside:.0%} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

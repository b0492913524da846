"""A simulated robot that grasps parts: a table of successes in tries, at several forces.

python examples/grasps.py --out grasps.csv
"""

from __future__ import annotations

import argparse

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.io.csv_table import write_csv


def rate(force: Array) -> Array:
    """Return the true rate of success, which is best at 14 newtons: parts slip, or are crushed."""
    return 0.25 + 0.7 * np.exp(-(((force - 14) / 6) ** 2))


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    force = np.round(rng.uniform(4, 24, arguments.runs), 1)
    # Runs have different numbers of tries, but each number is fixed before its run.
    attempts = rng.integers(30, 51, arguments.runs)
    grasped = rng.binomial(attempts, rate(force))
    write_csv(arguments.out, {"force": force, "grasped": grasped, "attempts": attempts})


if __name__ == "__main__":
    main()

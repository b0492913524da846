"""A simulated oven that cures a resin: a table of runs, or the strength at settings of your choice.

python examples/curing.py --runs 30 --out runs.csv
python examples/curing.py temperature=165 minutes=25
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from kernelbounds.io.csv_table import write_csv

RANGES = {"temperature": (140.0, 190.0), "minutes": (10.0, 40.0)}
NOISE = 0.5  # MPa


def strength(temperature: np.ndarray, minutes: np.ndarray) -> np.ndarray:
    """In MPa: too little heat leaves the resin soft, and too much burns it."""
    u, v = (temperature - 170) / 50, (minutes - 25) / 30
    return 20 + 30 * np.exp(-1.5 * (u + 0.5 * v) ** 2 - 0.8 * (v - 0.3 * u) ** 2)


def main() -> None:
    """Write a table, or print one outcome."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("settings", nargs="*", metavar="NAME=VALUE")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("runs.csv"))
    parser.add_argument("--seed", type=int, default=None, help="of the noise, and of a table")
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    if arguments.settings:
        given = dict(pair.split("=") for pair in arguments.settings)
        value = strength(*(float(given[name]) for name in RANGES))
        print(f"{value + NOISE * rng.standard_normal():.2f}")
        return
    columns = {
        name: rng.uniform(*limits, arguments.runs).round(1) for name, limits in RANGES.items()
    }
    outcomes = strength(**columns) + NOISE * rng.standard_normal(arguments.runs)
    write_csv(arguments.out, columns | {"strength": outcomes.round(2)})
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()

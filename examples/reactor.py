"""A simulated reactor: a table of runs, or the yield at settings of your choice.

python examples/reactor.py --runs 60 --out runs.csv
python examples/reactor.py temperature=200 pressure=2e5 catalyst=0.4
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from kernelbounds.io.csv_table import write_csv

RANGES = {"temperature": (180.0, 220.0), "pressure": (1e5, 3e5), "catalyst": (0.1, 0.9)}
NOISE = 0.5


def true_yield(temperature: np.ndarray, pressure: np.ndarray, catalyst: np.ndarray) -> np.ndarray:
    """In percent: an optimal temperature, more pressure with less and less effect.

    The effects add up, so that it is honest to say ``--interactions none`` of it.
    """
    t, p, c = (temperature - 180) / 40, (pressure - 1e5) / 2e5, (catalyst - 0.1) / 0.8
    hump = 25 * np.exp(-((t - 0.6) ** 2) / 0.3)
    return 30 + hump + 15 * (1 - np.exp(-2.5 * p)) - 20 * (c - 0.5) ** 2


def main() -> None:
    """Write a table, or print one outcome."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("settings", nargs="*", metavar="NAME=VALUE")
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path("runs.csv"))
    parser.add_argument("--seed", type=int, default=None, help="of the noise, and of a table")
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    if arguments.settings:
        given = dict(pair.split("=") for pair in arguments.settings)
        value = true_yield(*(float(given[name]) for name in RANGES))
        print(f"{value + NOISE * rng.standard_normal():.2f}")
        return
    columns = {
        "temperature": rng.uniform(*RANGES["temperature"], arguments.runs).round(1),
        "pressure": rng.uniform(*RANGES["pressure"], arguments.runs).round(-2),
        "catalyst": rng.uniform(*RANGES["catalyst"], arguments.runs).round(3),
    }
    outcomes = true_yield(**columns) + NOISE * rng.standard_normal(arguments.runs)
    write_csv(arguments.out, columns | {"yield": outcomes.round(2)})
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()

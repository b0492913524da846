"""What turns cost: the suggested B, and the band after some experiments, by inputs and turns.

python examples/turns.py
"""

from __future__ import annotations

import argparse

from kernelbounds.problem import Problem, assume
from kernelbounds.problem.model import predicted_half_widths

NOISE = 0.02  # of an output between -1 and 1: one per cent of its range


def row(dim: int, turns: int, interactions: str, counts: list[int], functions: int) -> list[str]:
    """In Markdown cells; a kernel is chosen for each number of experiments."""
    inputs = [f"x{i}=0:1" for i in range(dim)]
    problem = Problem(inputs, "y=-1:1", NOISE, turns, interactions)
    cells = []
    for count in counts:
        found = assume(problem.replace(experiments=count), functions)
        width = 100 * predicted_half_widths(found.problem, count)[0] / 2
        cells.append(f"±{float(f'{width:.2g}'):g} %")
    name, bound = found.chosen.name, found.problem.norm_bound
    return [f"{dim}", interactions if dim > 1 else "", f"{turns}", name, f"{bound:.1f}", *cells]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--turns", type=int, nargs="+", default=[0, 1, 2, 4])
    parser.add_argument("--experiments", type=int, nargs="+", default=[30, 100, 300])
    parser.add_argument("--functions", type=int, default=200)
    arguments = parser.parse_args()
    counts = arguments.experiments
    print("| inputs | interactions | turns | kernel | B / half-range |", end="")
    print("".join(f" band after {count} |" for count in counts))
    print("|---" * (5 + len(counts)) + "|")
    for dim in arguments.inputs:
        for interactions in ["all", "none"] if dim > 1 else ["all"]:
            for turns in arguments.turns:
                cells = row(dim, turns, interactions, counts, arguments.functions)
                print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()

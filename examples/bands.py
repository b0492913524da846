"""Draw the picture of the README: the five bounds on one test function, each in a panel.

python examples/bands.py --out docs/images/bands.png
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from kernelbounds.paper.figures import BANDS, Figure1, draw_figure1


def main() -> None:
    """Draw it, and print the widths."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("bands.png"), help="PNG, SVG or PDF")
    parser.add_argument("--observations", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1, help="of the function and the noise")
    arguments = parser.parse_args()
    found = Figure1(arguments.observations, arguments.seed).run()
    for name, lower, upper in zip(BANDS.values(), found["lower"], found["upper"], strict=True):
        width = np.mean(upper - lower)
        inside = 100 * np.mean((lower <= found["truth"]) & (found["truth"] <= upper))
        print(f"{name:10}  mean width {width:.3f}  truth inside {inside:.0f}%")
    draw_figure1(found, arguments.out)


if __name__ == "__main__":
    main()

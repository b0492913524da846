"""Draw the picture of the README: the five bounds on one test function, each in a panel.

python examples/bands.py --out docs/images/bands.png
"""

from __future__ import annotations

import argparse
from pathlib import Path

from kernelbounds.paper.figures import draw_figure1, run_figure1


def main() -> None:
    """Draw it, and print the widths."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("bands.png"), help="PNG, SVG or PDF")
    parser.add_argument("--observations", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1, help="of the function and the noise")
    arguments = parser.parse_args()
    found = run_figure1(arguments.observations, arguments.seed)
    for band in found.bands:
        inside = 100 * band.coverage(found.truth)
        print(f"{band.name:10}  mean width {band.mean_width:.3f}  truth inside {inside:.0f}%")
    draw_figure1(found, arguments.out.parent, arguments.out.name)


if __name__ == "__main__":
    main()

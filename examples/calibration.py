"""A sensor is calibrated: its error between -20 and 60 °C, from two reference instruments.

The temperatures were planned before the first reading, so that the narrower `FixedDesign` applies.
The error has an unknown level, and the second reference is four times as precise as the first.

python examples/calibration.py --out docs/images
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from sklearn.gaussian_process.kernels import Matern

import kernelbounds as kb
from kernelbounds.functionals import Derivative

RANGE = kb.Box.named(temperature=(-20.0, 60.0))
BENCH, LABORATORY = 0.08, 0.02  # standard deviations of the two references, in kelvin


def error(X: np.ndarray) -> np.ndarray:
    """What the sensor shows too much, in kelvin: the truth, which is to be found."""
    u = (X[:, 0] - 20) / 40
    return 0.6 + 0.25 * u + 0.3 * u**2 - 0.1 * u**3


def main() -> None:
    """Calibrate, print what is certain, and draw it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the picture")
    parser.add_argument("--readings", type=int, default=240, help="with the bench reference")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    pyplot.switch_backend("Agg")

    rng = np.random.default_rng(0)
    bench = np.linspace(-20, 60, arguments.readings)[:, None]
    laboratory = np.array([[-20.0], [0.0], [20.0], [40.0], [60.0]])
    # The data sheet promises an error that varies by ±0.5 K around a level within ±1.5 K, with one
    # turn at most. A bowl of height 1 has norm 4.9 when the length scale is half of the range
    # (docs/how-to/assumptions.md): 0.5 times 4.9, and a half more.
    seq = kb.ConfidenceSequence(
        Matern(length_scale=40.0, nu=2.5), 3.7, BENCH, offset=kb.Offset(0.0, within=1.5)
    )
    seq.update(bench, error(bench) + BENCH * rng.standard_normal(len(bench)))
    seq.update(
        laboratory,
        error(laboratory) + LABORATORY * rng.standard_normal(len(laboratory)),
        noise_scale=LABORATORY,
    )
    grid = np.linspace(-20, 60, 161)[:, None]
    figure, axis = pyplot.subplots(figsize=(8, 4), layout="constrained")
    for bound, colour in ((kb.CMM(), "#d5daf2"), (kb.FixedDesign(), "#8f9bd8")):
        lower, upper = seq.bounds(grid, bound)
        inside = bool(np.all((lower <= error(grid)) & (error(grid) <= upper)))
        half = (upper - lower) / 2
        name = f"{type(bound).__name__}: ±{half.mean():.3f} K on average"
        print(f"{name}, ±{half.max():.3f} K at most, truth inside: {inside}")
        axis.fill_between(grid[:, 0], lower, upper, color=colour, label=name)
    low, high = seq.bounds_of(Derivative([50.0], axis=0))
    print(f"drift at 50 °C: between {1000 * low:.1f} and {1000 * high:.1f} mK per kelvin")
    axis.plot(grid, error(grid), "k--", linewidth=1, label="the truth")
    axis.plot(bench, seq.outcomes[: len(bench)], ".", color="#888888", label="bench reference")
    axis.plot(laboratory, seq.outcomes[len(bench) :], "ko", label="laboratory reference")
    axis.set(xlabel="temperature [°C]", ylabel="error of the sensor [K]")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=9)
    figure.savefig(arguments.out / "gallery-calibration.png", dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    main()

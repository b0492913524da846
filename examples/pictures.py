"""The pictures of docs/how-to/pictures.md: bounds along one, two and several inputs.

python examples/pictures.py --out docs/images
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from sklearn.gaussian_process.kernels import Matern

import kernelbounds as kb

DOSE, NOISE = kb.Box.named(dose=(0.1, 10.0)), 0.1
REACTOR = kb.Box.named(temperature=(20.0, 80.0), pressure=(1.0, 5.0), catalyst=(0.01, 1.0))
LABELS = ["temperature [°C]", "pressure [bar]", "catalyst [g]"]


def log_dose(X: np.ndarray) -> np.ndarray:
    """The kernel's input: from 0 to 1 over the decades of the dose."""
    return np.log10(X / 0.1) / 2


def response(X: np.ndarray) -> np.ndarray:
    """A response that rises with the dose, and falls when there is too much of it."""
    u = log_dose(X)[:, 0]
    return 3 / (1 + np.exp(-12 * (u - 0.35))) - 2.5 / (1 + np.exp(-9 * (u - 0.95)))


def unit(X: np.ndarray) -> np.ndarray:
    """The kernel's inputs: settings of the reactor from 0 to 1, the catalyst by its logarithm."""
    low, high = REACTOR.lower, REACTOR.upper
    logs = np.log(X[:, 2:] / low[2]) / np.log(high[2] / low[2])
    return np.column_stack([(X[:, :2] - low[:2]) / (high[:2] - low[:2]), logs])


def percent(X: np.ndarray) -> np.ndarray:
    """A yield with a broad maximum."""
    u = unit(X) - [0.6, 0.45, 0.55]
    return 60 + 25 * np.exp(-3 * (u**2).sum(axis=1)) + 4 * u[:, 0] * u[:, 2]


def measured_doses(count: int) -> kb.ConfidenceSequence:
    """Measurements, of which few are at high doses."""
    rng = np.random.default_rng(5)
    X = 10 ** (-1 + 2 * np.append(0.6 * rng.random(count), [0.8, 1.0]))[:, None]
    # The response has a norm of about 3.4: that of its interpolant at 200 points.
    seq = kb.ConfidenceSequence(Matern(length_scale=0.4, nu=2.5), 5.0, NOISE)
    seq.update(log_dose(X), response(X) + NOISE * rng.standard_normal(len(X)))
    return seq


def measured_yields(count: int) -> tuple[kb.ConfidenceSequence, np.ndarray]:
    """Measurements all over the reactor's settings, and these settings in their own units."""
    rng = np.random.default_rng(1)
    X = np.column_stack(
        [rng.uniform(20, 80, count), rng.uniform(1, 4, count), 10 ** rng.uniform(-2, 0, count)]
    )
    # Less 65, the yield has a norm of about 36: that of its interpolant at 1024 points.
    kernel = Matern(length_scale=0.7, nu=2.5)
    seq = kb.ConfidenceSequence(kernel, 45.0, 1.0, offset=kb.Offset(65, within=20))
    seq.update(unit(X), percent(X) + rng.standard_normal(count))
    return seq, X


def main() -> None:
    """Draw them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the pictures")
    parser.add_argument("--count", type=int, default=60, help="measurements of the reactor")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    pyplot.switch_backend("Agg")

    doses = measured_doses(24)
    process = kb.plot.gaussian_process(doses)
    band = kb.plot.band(
        lambda X: doses.estimate_with_bounds(log_dose(X)),
        DOSE,
        data=(10 ** (-1 + 2 * doses.points), doses.outcomes),
        truth=response,
        without_guarantee={process.label: lambda X: process(log_dose(X))},
        log={"dose"},
        labels=["dose [mg]"],
        output="response",
        label="bounds, with probability 0.99",
    )
    band.figure.savefig(arguments.out / "pictures-band.png", dpi=130)

    yields, X = measured_yields(arguments.count)
    shown = {"data": (X, yields.outcomes), "log": {"catalyst"}, "labels": LABELS}
    at = {"temperature": 55.0, "pressure": 2.8, "catalyst": 0.12}

    def bounds(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return yields.estimate_with_bounds(unit(X))

    maps = kb.plot.maps(bounds, REACTOR, at=at, output="yield [%]", **shown)
    maps[0].figure.savefig(arguments.out / "pictures-maps.png", dpi=110)
    slices = kb.plot.slices(bounds, REACTOR, at, truth=percent, output="yield [%]", **shown)
    slices[0].figure.savefig(arguments.out / "pictures-slices.png", dpi=120)
    pyplot.close("all")


if __name__ == "__main__":
    main()

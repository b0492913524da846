"""Contexts: the best flow temperature of a heat pump, for whatever weather there is.

The weather is given and not chosen. It is a coordinate like the others, held by `fixed=`, so that
every day teaches about the days that are a little warmer or colder.

python examples/contexts.py --out docs/images
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from sklearn.gaussian_process.kernels import Matern

import kernelbounds as kb

HOUSE = kb.Box.named(outside=(-10.0, 15.0), flow=(25.0, 55.0))  # °C
NOISE = 0.5  # of the daily cost


def cost(X: np.ndarray) -> np.ndarray:
    """Electricity and discomfort of a day: the right flow temperature falls with the weather."""
    outside, flow = X[..., 0], X[..., 1]
    right = 36 - 0.6 * outside
    return 10 - 0.3 * outside + 0.02 * (flow - right) ** 2


def main() -> None:
    """A winter, then what is certified for each kind of weather."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the picture")
    parser.add_argument("--days", type=int, default=120)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    pyplot.switch_backend("Agg")

    rng = np.random.default_rng(0)
    # The cost less 12 has a norm of 40 on a grid of 18 by 18 settings, and it still rises a little.
    kernel = Matern(length_scale=HOUSE.upper - HOUSE.lower, nu=2.5)
    seq = kb.ConfidenceSequence(kernel, 60.0, NOISE, offset=kb.Offset(12.0, within=6.0))
    ucb = kb.KernelUCB(seq, HOUSE, minimise=True)
    for _ in range(arguments.days):
        today = float(rng.uniform(-10, 15))
        asked = ucb.ask(fixed={"outside": today})
        ucb.tell(asked, float(cost(asked.x) + NOISE * rng.standard_normal()))

    weathers = np.linspace(-10, 15, 6)
    print("outside  best flow  certified within  in truth within")
    found = [
        ucb.certificate(fixed={"outside": float(w)}, tolerance=0.1, seconds=4.0) for w in weathers
    ]
    for weather, one in zip(weathers, found, strict=True):
        least = 10 - 0.3 * weather
        print(f"{weather:7.0f}  {one.named['flow']:9.1f}  {one.regret:16.2f}  "
              f"{cost(one.x) - least:15.2f}")  # fmt: skip
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    shown = left.scatter(*seq.points.T, c=np.arange(len(seq)), s=25, cmap="viridis")
    figure.colorbar(shown, label="day of the trial")
    left.plot(weathers, [one.named["flow"] for one in found], "*", color="#9b2335", markersize=12)
    left.plot(weathers, 36 - 0.6 * weathers, "k--", linewidth=1)
    left.set(xlabel="outside [°C]", ylabel="flow [°C]", title="Tried, certified (stars), the truth")
    right.plot(weathers, [one.regret for one in found], "o-", color="#0014a8")
    right.set(xlabel="outside [°C]", ylabel="certified regret")
    right.set_title("The star costs at most this more than the best")
    right.set_ylim(bottom=0)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(arguments.out / "gallery-contexts.png", dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    main()

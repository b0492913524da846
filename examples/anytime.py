"""What anytime means: how often an interval is wrong when one looks at it again and again.

One setting is measured many times. The textbook interval, mean ± 1.645 σ/√n, is right in 90 % of
the cases for one n that was fixed beforehand. Here somebody looks after every measurement, and
would stop when the answer pleases. The anytime bound allows for that.

python examples/anytime.py --out docs/images      # about half a minute
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from sklearn.gaussian_process.kernels import ConstantKernel

import kernelbounds as kb

SIGMA, DELTA, B = 1.0, 0.1, 5.0
TEXTBOOK = 1.6449  # the two-sided normal quantile of DELTA


def anytime_bounds(outcomes: np.ndarray, looks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounds on the constant f*, |f*| <= B, after each of these numbers of measurements."""
    seq = kb.ConfidenceSequence(ConstantKernel(1.0, "fixed"), B, SIGMA, DELTA)
    found = []
    for before, now in zip([0, *looks[:-1]], looks, strict=True):
        seq.update(np.zeros((now - before, 1)), outcomes[before:now])
        lower, upper = seq.bounds([[0.0]])
        found.append((lower[0], upper[0]))
    lower, upper = np.array(found).T
    return lower, upper


def main() -> None:
    """Count, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the picture")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--measurements", type=int, default=300)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    pyplot.switch_backend("Agg")

    last, rng = arguments.measurements, np.random.default_rng(0)
    looks = np.unique(np.geomspace(2, last, 20).astype(int))
    n = np.arange(1, last + 1)
    wrong_textbook, wrong_anytime, shown = np.zeros(last), np.zeros(len(looks)), None
    for _ in range(arguments.runs):
        outcomes = SIGMA * rng.standard_normal(last)  # f* = 0
        mean, half = np.cumsum(outcomes) / n, TEXTBOOK * SIGMA / np.sqrt(n)
        lower, upper = anytime_bounds(outcomes, looks)
        wrong = np.abs(mean) > half
        wrong_textbook += np.maximum.accumulate(wrong)
        wrong_anytime += np.maximum.accumulate((lower > 0) | (upper < 0))
        if shown is None and wrong[10:].any():
            shown = mean, half, lower, upper, wrong
    textbook, anytime = wrong_textbook / arguments.runs, wrong_anytime / arguments.runs
    print(f"wrong at some look up to {last}, of {arguments.runs} runs (10 % are allowed):")
    print(f"  textbook, after every measurement: {100 * textbook[-1]:.0f} %")
    print(f"  anytime bound, at {len(looks)} looks: {100 * anytime[-1]:.0f} %")

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
    if shown is not None:
        mean, half, lower, upper, wrong = shown
        left.fill_between(looks, lower, upper, color="#d5daf2", label="anytime, 90 %")
        left.plot(n, mean - half, color="#c46210", linewidth=1)
        left.plot(n, mean + half, color="#c46210", linewidth=1, label="textbook, 90 %")
        left.plot(n[wrong], np.zeros(wrong.sum()), "o", color="#9b2335", markersize=3,
                  label="textbook is wrong")  # fmt: skip
    left.axhline(0, color="black", linewidth=1, linestyle="--", label="the truth")
    left.set(xscale="log", ylim=(-2, 2), xlabel="measurements", title="One run")
    left.legend(frameon=False, fontsize=9, loc="upper right")
    right.plot(n, 100 * textbook, color="#c46210", label="textbook, looked at every time")
    right.plot(looks, 100 * anytime, color="#0014a8", label="anytime bound")
    right.axhline(100 * DELTA, color="black", linewidth=1, linestyle="--", label="allowed")
    right.set(xscale="log", ylim=(0, 100), xlabel="measurements", title="Wrong so far, % of runs")
    right.legend(frameon=False, fontsize=9)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(arguments.out / "ideas-anytime.png", dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    main()

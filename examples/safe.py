"""Safe optimisation of one input: how the safe set grows, and stops at the limit.

The output grows with the speed, and so does the temperature, which must not exceed 70 degrees. At
a speed of 0.1 the machine stays cool for sure; nobody knows where it does not.

python examples/safe.py --out docs/images
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes
from sklearn.gaussian_process.kernels import Matern

import kernelbounds as kb

LIMIT, TOO_FAST = 70.0, np.sqrt(50 / 80)
LINE = np.linspace(0, 1, 401)[:, None]
BLUE, GREY, RED, GREEN = "#0014a8", "#bbbbbb", "#b22222", "#4b8b3b"


def temperature(speed: np.ndarray) -> np.ndarray:
    """The temperature in degrees, which the policy does not know."""
    return 20 + 80 * speed**2


def make_policy() -> kb.SafeUCB:
    """Make the policy, with what is assumed of the machine."""
    # Interpolants on 150 even points have the norms 1.75, and 145 for the temperature minus 50.
    kernel = Matern(1.0, nu=2.5)
    output = kb.ConfidenceSequence(kernel, norm_bound=2.5, noise_scale=0.02)
    heat = kb.ConfidenceSequence(kernel, 160.0, noise_scale=1.0, offset=50.0, delta=0.001)
    return kb.SafeUCB(
        output, kb.Finite(LINE), constraints={"heat": (heat, None, LIMIT)}, seed=[LINE[40]]
    )


def draw(axes: Axes, policy: kb.SafeUCB, rounds: int) -> None:
    """Draw the band of the temperature, the trials and what is known to be safe."""
    (heat,) = policy.others
    lower, upper = heat.bounds(LINE)
    speeds = LINE[:, 0]
    axes.fill_between(speeds, lower, upper, color=GREY, alpha=0.6, linewidth=0)
    axes.plot(speeds, temperature(speeds), color="black", linewidth=1)
    axes.axhline(LIMIT, color=RED, linewidth=1)
    safe = policy.is_safe(LINE)
    axes.fill_between(speeds, 0, 4, where=safe, color=GREEN, linewidth=0)
    axes.plot(heat.points[:, 0], heat.outcomes, ".", color=BLUE, markersize=5)
    axes.set(title=f"{rounds} trials", xlabel="speed", ylim=(0, 110))


def main() -> None:
    """Run the machine and draw it after some trials."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, nargs="+", default=[2, 8, 40])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for safe.png")
    arguments = parser.parse_args()
    rng, policy = np.random.default_rng(0), make_policy()

    def trial(x: np.ndarray) -> tuple[float, dict[str, float]]:
        noise = rng.standard_normal(2)
        outcome = np.sin(2 * x[0]) + 0.02 * noise[0]
        return float(outcome), {"heat": float(temperature(x)[0] + noise[1])}

    sizes = (3 * len(arguments.rounds), 2.8)
    figure, panels = pyplot.subplots(
        1, len(arguments.rounds), figsize=sizes, sharey=True, squeeze=False, layout="constrained"
    )
    for axes, rounds in zip(panels[0], arguments.rounds, strict=True):
        policy.run(trial, rounds - len(policy.sequence))
        draw(axes, policy, rounds)
        fastest = float(policy.sequence.points.max())
        known = float(LINE[policy.is_safe(LINE)].max())
        print(f"{rounds} trials: fastest {fastest:.4f}, safe up to {known:.4f}")
        assert fastest <= TOO_FAST
    panels[0][0].set_ylabel("temperature")
    arguments.out.mkdir(parents=True, exist_ok=True)
    figure.savefig(arguments.out / "safe.png", dpi=120)


if __name__ == "__main__":
    main()

"""Tune the two gains of a pendulum's controller by KernelUCB, with a certificate.

An inverted pendulum is held upright by a motor: torque = -kp angle - kd rate, from noisy sensors,
with a lag and a limit. Large gains shake, small ones let it swing. We look for gains of small cost
by experiments alone and stop when those found are provably within a factor of two of the best.

    python examples/pendulum.py --out pictures

``docs/gallery/pendulum.md`` explains it step by step.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import Matern

import kernelbounds as kb

# --- the rig

STEP, STEPS = 0.01, 300  # control at 100 Hz, for 3 s a release
RELEASES = 80  # in one trial
TILT, TILT_SPREAD = 0.3, 0.01  # rad, at release
ANGLE_NOISE, RATE_NOISE = 0.01, 0.6  # rad, rad/s, of the sensors
EFFORT = 0.003  # cost of a torque of 1 N m, against 1 rad^2

GAINS = kb.Box.named(kp=(4.0, 12.0), kd=(0.8, 2.4))  # N m/rad, N m s/rad
AT_FIRST = {"kp": 4.0, "kd": 2.4}  # soft and well damped, to begin with


@dataclass(frozen=True)
class Pendulum:
    """A rod with a mass at its end, and the motor at its foot."""

    mass: float  # kg
    length: float  # m
    friction: float  # N m s/rad
    lag: float  # s, of the motor
    limit: float  # N m

    def rates(self, state: np.ndarray, command: np.ndarray) -> np.ndarray:
        """Time derivatives of angle, rate and torque."""
        angle, rate, torque = state
        gravity = 9.81 * self.mass * self.length * np.sin(angle)
        inertia = self.mass * self.length**2
        return np.stack(
            [
                rate,
                (gravity - self.friction * rate + torque) / inertia,
                (command - torque) / self.lag,
            ]
        )


DESIGN = Pendulum(mass=0.45, length=0.5, friction=0.0, lag=0.04, limit=4.0)  # as drawn
RIG = Pendulum(mass=0.5, length=0.5, friction=0.02, lag=0.05, limit=4.0)  # as built


def release(pendulum: Pendulum, gains: np.ndarray, rng: np.random.Generator, count: int):
    """Costs (n, count) and angles (STEPS, n, count) of releases with gains (n, 2).

    All gains meet the same tilts and the same sensor noise.
    """
    kp, kd = gains.T[:, :, None]
    state = np.zeros((3, len(gains), count))
    state[0] = TILT + TILT_SPREAD * rng.standard_normal(count)
    cost, angles = np.zeros(state.shape[1:]), []
    for _ in range(STEPS):
        seen = state[0] + ANGLE_NOISE * rng.standard_normal(count)
        felt = state[1] + RATE_NOISE * rng.standard_normal(count)
        command = np.clip(-kp * seen - kd * felt, -pendulum.limit, pendulum.limit)
        # Runge-Kutta of order four; the command is held for one step.
        first = pendulum.rates(state, command)
        second = pendulum.rates(state + STEP / 2 * first, command)
        third = pendulum.rates(state + STEP / 2 * second, command)
        fourth = pendulum.rates(state + STEP * third, command)
        state = state + STEP / 6 * (first + 2 * second + 2 * third + fourth)
        cost += (2 - 2 * np.cos(state[0]) + EFFORT * command**2) / STEPS
        angles.append(state[0])
    return cost, np.array(angles)


# --- what is measured, and what is assumed of it before the first trial

OFFSET = -1.5  # decades; near the middle of the design model's range
NORM_BOUND = 10.0  # B
NOISE_SCALE = 0.02  # sigma
DELTA = 0.01
KERNEL = Matern(length_scale=GAINS.upper - GAINS.lower, nu=2.5)
TARGET = float(np.log10(2))  # stop when provably within a factor of two of the best


def trials(pendulum: Pendulum, gains: np.ndarray, rng: np.random.Generator, count: int = 1):
    """Outcomes (n, count): the logarithm of the mean cost of RELEASES releases, less OFFSET."""
    costs = [release(pendulum, gains, rng, RELEASES)[0].mean(axis=1) for _ in range(count)]
    return np.log10(costs).T - OFFSET


def grid(side: int) -> np.ndarray:
    """Gains on a grid that covers the box, (side^2, 2)."""
    ticks = np.linspace(0, 1, side)
    return GAINS.scaled(np.stack(np.meshgrid(ticks, ticks, indexing="ij"), -1).reshape(-1, 2))


def interpolation_norm(gains: np.ndarray, values: np.ndarray) -> float:
    """The smallest norm of a function with these values: a lower bound on that of f*."""
    weights = np.linalg.solve(KERNEL(gains), values)
    return kb.RKHSFunction(KERNEL, gains, weights).norm


def study(pendulum: Pendulum, seed: int) -> None:
    """Norms and noise of a pendulum; those of DESIGN justify NORM_BOUND and NOISE_SCALE."""
    for side in (9, 17):
        values = trials(pendulum, grid(side), np.random.default_rng(seed), 2).mean(axis=1)
        norm = interpolation_norm(grid(side), values)
        limits = f"{values.min():.2f} to {values.max():.2f}"
        print(f"  {side} x {side} grid: values {limits}, norm at least {norm:.1f}")
    spread = trials(pendulum, grid(5), np.random.default_rng(seed), 60).std(axis=1, ddof=1)
    print(f"  standard deviation of a trial: {spread.min():.4f} to {spread.max():.4f}")


# --- tuning

CHECK_EVERY = 5


@dataclass(frozen=True)
class Run:
    """A policy after its trials, and the regret it could certify on the way."""

    policy: kb.KernelUCB | kb.RandomPolicy
    rounds: list[int]
    regret: list[float]
    certificate: kb.Certificate


def tune(policy: kb.KernelUCB | kb.RandomPolicy, rounds: int, seed: int, target: float) -> Run:
    """Ask, try, tell; now and then certify, and stop when the certificate is good enough."""
    rng = np.random.default_rng(seed)
    checked, regret = [], []
    for done in range(1, rounds + 1):
        x = policy.ask().x
        policy.tell(x, trials(RIG, x[None], rng)[0, 0])
        if done % CHECK_EVERY == 0 or done == rounds:
            certificate = policy.certificate(tolerance=0.02, seconds=30)
            checked.append(done)
            regret.append(certificate.regret)
            if certificate.regret < target:
                break
    return Run(policy, checked, regret, certificate)


def sequence() -> kb.ConfidenceSequence:
    """What is known before the first trial."""
    return kb.ConfidenceSequence(KERNEL, NORM_BOUND, NOISE_SCALE, DELTA)


# --- afterwards: was it true?


def check(run: Run, seed: int) -> None:
    """Compare the certificate with averages of many trials, which no real user has."""
    gains, rng = grid(21), np.random.default_rng(seed)
    truth = trials(RIG, gains, rng, 5).mean(axis=1)
    found = run.certificate
    many = trials(RIG, found.x[None], rng, 100)[0]
    lower, upper = run.policy.sequence.bounds(gains)
    covered = np.mean((lower <= truth) & (truth <= upper))
    best = truth.argmin()
    at_first = trials(RIG, GAINS.point(AT_FIRST)[None], rng, 100)[0].mean()
    kp, kd = gains[best]
    print("  truth, by many trials:")
    print(f"    best of a 21 x 21 grid: {truth[best]:.3f}, at kp {kp:.2f}, kd {kd:.2f}")
    error = many.std(ddof=1) / np.sqrt(len(many))
    print(f"    certified gains: {many.mean():.3f} (standard error {error:.4f})")
    print(f"    gains at first: {at_first:.3f}")
    print(f"    grid points within their bounds: {covered:.1%}")


# --- pictures


def draw_angles(path: Path, certificate: kb.Certificate) -> None:
    """The angle over time, before and after tuning."""
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(6.4, 3.2), layout="constrained")
    seconds = STEP * np.arange(1, STEPS + 1)
    for gains, label, colour in (
        (AT_FIRST, "before", "#c46210"),
        (certificate.named, "after", "#0014a8"),
    ):
        x = GAINS.point(gains)
        angles = np.degrees(release(RIG, x[None], np.random.default_rng(0), 5)[1][:, 0])
        label = f"{label}: kp {x[0]:.1f}, kd {x[1]:.1f}"
        axis.plot(seconds, angles, color=colour, linewidth=0.8, alpha=0.7)
        axis.plot([], [], color=colour, label=label)
    axis.set(xlabel="time [s]", ylabel="angle [degrees]", xlim=(0, STEP * STEPS))
    axis.axhline(0, color="black", linewidth=0.5)
    axis.legend(frameon=False)
    _finish(figure, path)


def draw_bounds(path: Path, run: Run) -> None:
    """Lower and upper bounds on the cost over the box, and the gains tried."""
    from matplotlib import pyplot

    side, points = 61, run.policy.sequence.points
    maps = run.policy.sequence.bounds(grid(side))
    figure, axes = pyplot.subplots(1, 2, figsize=(8.4, 3.4), sharey=True, layout="constrained")
    for axis, values, name in zip(axes, maps, ("lower", "upper"), strict=True):
        kp, kd = grid(side).T.reshape(2, side, side)
        colours = axis.contourf(kp, kd, values.reshape(side, side) + OFFSET, 14, cmap="viridis")
        axis.plot(*points.T, "wo", markersize=3, mec="black", mew=0.4, clip_on=False)
        axis.plot(*run.certificate.x, "r*", markersize=11)
        axis.set_title(f"{name} bound on log10 of the cost", fontsize=10)
        axis.set_xlabel("kp [N m/rad]")
        figure.colorbar(colours, ax=axis)
    axes[0].set_ylabel("kd [N m s/rad]")
    _finish(figure, path)


def draw_regret(path: Path, runs: dict[str, Run], target: float) -> None:
    """The certified regret over the trials."""
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(6.4, 3.2), layout="constrained")
    for (name, run), colour in zip(runs.items(), ("#0014a8", "#c46210"), strict=True):
        axis.semilogy(run.rounds, run.regret, "o-", markersize=3, color=colour, label=name)
    axis.axhline(target, color="black", linewidth=0.8, linestyle="--", label="target")
    axis.set(xlabel="trials", ylabel="certified regret [decades]")
    ticks = [0.3, 0.5, 1, 2, 5]
    axis.set_yticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    axis.legend(frameon=False)
    _finish(figure, path)


def _finish(figure, path: Path) -> None:
    from matplotlib import pyplot

    for axis in figure.axes:
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def main() -> None:
    """Choose, tune, certify, check, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100, help="trials at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="folder for the pictures; none by default")
    parser.add_argument("--quick", action="store_true", help="without the studies before and after")
    options = parser.parse_args()
    start = time.perf_counter()

    if not options.quick:
        print("The design model:")
        study(DESIGN, options.seed)
    print(f"Assumed: norm at most {NORM_BOUND:g}, noise scale {NOISE_SCALE:g}, delta {DELTA:g}")

    ucb = kb.KernelUCB(sequence(), GAINS, minimise=True)
    tuned = tune(ucb, options.rounds, options.seed, TARGET)
    budget = len(ucb.sequence)
    baseline = kb.RandomPolicy(sequence(), GAINS, minimise=True, rng=options.seed)
    drawn = tune(baseline, budget, options.seed, 0.0)
    runs = {"KernelUCB": tuned, "random": drawn}
    for name, run in runs.items():
        found = run.certificate
        print(f"{name} after {budget} trials (target: regret below {TARGET:.3f}):")
        print(f"  gains {', '.join(f'{key} {value:.2f}' for key, value in found.named.items())}")
        print(f"  outcome between {found.lower:.3f} and {found.upper:.3f}")
        print(f"  no gains in the box are below {found.min_lower:.3f}; regret {found.regret:.3f}")
        print(f"  the norm of f* is at least {run.policy.sequence.norm_lower_bound:.2f}")
        print(f"  mean outcome of the trials {run.policy.sequence.outcomes.mean():.3f}")
        if not options.quick:
            check(run, options.seed + 1)
    if not options.quick:
        print("The rig, studied like the design model:")
        study(RIG, options.seed)
    print(f"{time.perf_counter() - start:.0f} s")

    if options.out is not None:
        import matplotlib

        matplotlib.use("Agg")
        options.out.mkdir(parents=True, exist_ok=True)
        draw_angles(options.out / "pendulum-angle.png", tuned.certificate)
        draw_bounds(options.out / "pendulum-bounds.png", tuned)
        draw_regret(options.out / "pendulum-regret.png", runs, TARGET)
        print(f"pictures in {options.out}")


if __name__ == "__main__":
    main()

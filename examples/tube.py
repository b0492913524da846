"""A tube around all that a robot's arm may do in its next 20 steps, and a plan that is safe.

An arm with a motor is to turn from -0.8 rad to 0.5 rad, and there is a wall at 0.75 rad. A model of
it is known. What the model does not say, friction and a load, is an unknown function of the state
for each of two states. Measured transitions give bounds on both, all of which hold together with
probability 0.99. From a box of initial states these bounds lead to a box for every later step. Of
plans that hurry for longer and longer, we take the last whose whole tube is before the wall.

python examples/tube.py --out docs/images

The states are the angle, and s = rate + SLOPE angle. In these the model is a cascade, with
coefficients that are not negative, so that boxes do not turn, and do not grow by being turned.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from sklearn.gaussian_process.kernels import RBF

import kernelbounds as kb

STEP, HORIZON = 0.05, 20  # s, and the number of steps
SLOPE, GAIN = 3.0, 6.0  # 1/s
START = np.array([[-0.82, -2.46], [-0.78, -2.34]])  # the corners of the box of initial states
TARGET, HURRY, WALL = 0.5, 1.5, 0.75  # rad; a plan that hurries aims at HURRY first
LOWEST, HIGHEST = np.array([-1.2, -4.0]), np.array([1.2, 5.0])  # where transitions are measured
NOISE = 0.002, 0.02  # of measurements of the two states after a step
KERNEL = RBF([1.2, 4.0])
DELTA = 0.01
CELLS = 16  # along each side of a box


def nominal(states: np.ndarray, aim: float) -> np.ndarray:
    """One step of the model with its controller, which cancels all but this; it is increasing."""
    angle, s = states.T
    return np.stack(
        [angle + STEP * (s - SLOPE * angle), s + STEP * GAIN * (SLOPE * aim - s)], axis=1
    )


def truth() -> list[kb.RKHSFunction]:
    """What is unknown: near to tanh and cosine, as sums of kernel functions with a known norm."""
    grid = np.stack(np.meshgrid(*np.linspace(LOWEST, HIGHEST, 7).T), axis=-1).reshape(-1, 2)
    angle, rate = grid[:, 0], grid[:, 1] - SLOPE * grid[:, 0]
    loads = 0.012 * np.tanh(0.5 * rate), STEP * (4.0 * np.cos(angle) - np.tanh(0.5 * rate))
    inverse = np.linalg.inv(KERNEL(grid) + 1e-3 * np.eye(len(grid)))
    return [kb.RKHSFunction(KERNEL, grid, inverse @ load) for load in loads]


def learnt(residuals: list[kb.RKHSFunction], count: int, seed: int) -> kb.FrozenOutputs:
    """Bounds on both residuals from measured transitions; the norms are known to a factor."""
    rng = np.random.default_rng(seed)
    states = rng.uniform(LOWEST, HIGHEST, (count, 2))
    frozen = []
    for residual, noise in zip(residuals, NOISE, strict=True):
        seq = kb.ConfidenceSequence(KERNEL, 1.5 * residual.norm, noise, delta=DELTA / 2)
        seq.update(states, residual(states) + noise * rng.standard_normal(count))
        frozen.append(seq.frozen())
    return kb.FrozenOutputs(frozen)


def tube(bounds: kb.FrozenOutputs, plan: np.ndarray) -> np.ndarray:
    """Lower and upper corners of a box for each step, (steps + 1, 2, 2)."""
    boxes = [START]
    for aim in plan:
        edges = np.linspace(*boxes[-1], CELLS + 1)  # (CELLS + 1, 2)
        low, high = (
            np.stack(np.meshgrid(*part.T), axis=-1).reshape(-1, 2)
            for part in (edges[:-1], edges[1:])
        )
        least, most = bounds.bounds_in_boxes(low, high)  # (2, cells) each
        below, above = nominal(low, aim) + least.T, nominal(high, aim) + most.T
        rounding = 1e-12  # far more than that of the few operations here
        boxes.append(np.array([below.min(axis=0) - rounding, above.max(axis=0) + rounding]))
    return np.array(boxes)


def simulated(
    states: np.ndarray, plan: np.ndarray, residuals: list[kb.RKHSFunction] | None
) -> np.ndarray:
    """Trajectories from initial states, (steps + 1, n, 2); of the model alone for None."""
    paths = [states]
    for aim in plan:
        paths.append(nominal(paths[-1], aim))
        if residuals is not None:
            paths[-1] += np.stack([one(paths[-2]) for one in residuals], axis=1)
    return np.array(paths)


def inside(paths: np.ndarray, boxes: np.ndarray) -> bool:
    """Whether all trajectories are in the box of each step."""
    return bool(np.all((paths >= boxes[:, :1]) & (paths <= boxes[:, 1:])))


def draw(path: Path, boxes: np.ndarray, paths: np.ndarray, plan: np.ndarray) -> None:
    """The angle over time, and both states."""
    times = STEP * np.arange(HORIZON + 1)
    alone = simulated(START.mean(axis=0, keepdims=True), plan, None)[:, 0]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    left.bar(times, boxes[:, 1, 0] - boxes[:, 0, 0], 0.8 * STEP, boxes[:, 0, 0],
             color="#c5cae9", label="tube, with probability 0.99")  # fmt: skip
    left.plot(times, paths[..., 0], color="#0014a8", linewidth=0.5)
    left.plot([], color="#0014a8", label=f"{paths.shape[1]} true trajectories")
    left.plot(times, alone[:, 0], "--", color="#c46210", label="the model alone")
    left.axhspan(WALL, 1.0, color="#9b2335", alpha=0.25, linewidth=0)
    left.text(0.02, WALL + 0.04, "wall", color="#9b2335")
    left.set(xlabel="time [s]", ylabel="angle [rad]", ylim=(-1.0, 0.9),
             xlim=(-0.03, 1.03), title="The angle in the next 20 steps")  # fmt: skip
    left.legend(loc="lower right")
    for low, high in boxes:
        right.add_patch(pyplot.Rectangle(low, *(high - low), facecolor="#c5cae9", alpha=0.6,
                                         edgecolor="#5560a0", linewidth=0.8))  # fmt: skip
    right.plot(paths[..., 0], paths[..., 1], ".", color="#0014a8", markersize=1)
    right.plot(*alone.T, "--", color="#c46210")
    right.axvspan(WALL, 1.0, color="#9b2335", alpha=0.25, linewidth=0)
    right.set(xlabel="angle [rad]", ylabel="rate + 3 angle [rad/s]", xlim=(-1.0, 0.9),
              title="A box for each step")  # fmt: skip
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def main() -> None:
    """Learn, choose the plan, and count how often trajectories leave the tube."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the picture")
    parser.add_argument("--transitions", type=int, default=300, help="how many are measured")
    parser.add_argument("--repeats", type=int, default=20, help="sets of measurements")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    pyplot.switch_backend("Agg")

    residuals = truth()
    corners = np.stack(np.meshgrid(*START.T), axis=-1).reshape(-1, 2)
    states = np.concatenate([corners, np.random.default_rng(0).uniform(*START, (496, 2))])
    bounds = learnt(residuals, arguments.transitions, seed=0)
    print("The largest angle, in rad:\n")
    print("| steps in a hurry | of the model | of true trajectories | of the tube |")
    print("|--:|--:|--:|--:|")
    found, times = [], []
    for steps in range(10):
        plan = np.where(np.arange(HORIZON) < steps, HURRY, TARGET)
        start = time.process_time()
        boxes = tube(bounds, plan)
        times.append(time.process_time() - start)
        paths = simulated(states, plan, residuals)
        angles = simulated(states, plan, None)[..., 0], paths[..., 0], boxes[..., 0]
        print(f"| {steps} | {' | '.join(f'{one.max():.3f}' for one in angles)} |")
        if boxes[..., 0].max() < WALL:
            found.append((steps, plan, boxes, paths))
    assert found, "no plan is certainly safe; measure more transitions"
    steps, plan, boxes, paths = found[-1]
    held = sum(
        inside(paths, tube(learnt(residuals, arguments.transitions, seed), plan))
        for seed in range(arguments.repeats)
    )
    print(f"\nhurry for {steps} steps; {held} of {arguments.repeats} sets of measurements have "
          f"tubes that contain all {len(states)} true trajectories; a tube takes "
          f"{1e3 * min(times):.0f} ms of processor time")  # fmt: skip
    draw(arguments.out / "control-tube.png", boxes, paths, plan)


if __name__ == "__main__":
    main()

"""What is drawn: bounds, data, the truth, and overlays without a guarantee."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelbounds.arrays import Array, as_floats, as_observations, brief
from kernelbounds.errors import InputError
from kernelbounds.plot.canvas import COLOURS, DASHED, NO_GUARANTEE, STYLES, as_written, tidy
from kernelbounds.plot.inputs import REACH, Inputs
from kernelbounds.sequence import ConfidenceSequence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Pair = Callable[[Array], tuple[Any, Any]]  # of points (m, d): lower (m,) and upper (m,)
Bounds = ConfidenceSequence | Pair
Data = tuple[Any, Any]  # X (n, d) and y (n,)
Overlay = Pair | Mapping[str, Pair]


def evaluate(bounds: Bounds, points: Array, name: str = "bounds") -> tuple[Array, Array]:
    """Lower and upper bounds (m,) at points (m, d), with nan where they are not finite."""
    if isinstance(bounds, ConfidenceSequence):
        return bounds.bounds(points)
    found = _called(bounds, points, name)
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise InputError(f"{name} must give a pair (lower, upper), got {brief(found)}.")
    lower, upper = (_column(side, len(points), name) for side in found)
    return lower, upper


def evaluate_truth(truth: Callable[[Array], Any], points: Array) -> Array:
    """The truth (m,) at points (m, d)."""
    return _column(_called(truth, points, "truth"), len(points), "truth")


def own_or_given(data: Data | None, bounds: Bounds, dim: int) -> Data | None:
    """Checked data, X (n, d) and y (n,): those given, or else those of a sequence."""
    if data is None:
        if not isinstance(bounds, ConfidenceSequence) or not len(bounds):
            return None
        data = bounds.points, bounds.outcomes
    return checked_data(data, dim)


def checked_data(data: Any, dim: int) -> Data | None:
    """X (n, d) and y (n,); None where there are none. One input may be given as (n,)."""
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise InputError(f"data must be (X, y), got {brief(data)}.")
    points = as_floats(data[0], "X of data")
    if dim == 1 and points.ndim == 1:
        points = points[:, None]
    if points.size == 0:
        return None
    x, y = as_observations(points, data[1], None)
    if x.shape[1] != dim:
        raise InputError(f"data has {x.shape[1]} inputs, the box has {dim}.")
    return x, y


def name_of(bounds: Bounds) -> str:
    """What a legend calls bounds."""
    if isinstance(bounds, ConfidenceSequence):
        return f"bounds, with probability {1 - bounds.assumptions.delta:.12g}"
    return "bounds"


def as_overlays(without_guarantee: Overlay | None) -> dict[str, Pair]:
    """Pairs by their labels, which all say that there is no guarantee."""
    if without_guarantee is None:
        return {}
    pairs: Any = without_guarantee
    if not isinstance(pairs, Mapping):
        pairs = {getattr(pairs, "label", "no guarantee"): pairs}
    return {
        label if "no guarantee" in label else f"{label} (no guarantee)": pair
        for label, pair in pairs.items()
    }


def draw_band(
    ax: Axes, x: Array, pair: tuple[Array, Array], label: str, *, number: int = 0, fill: bool = True
) -> None:
    """Both bounds as lines, and what is between them; ``number`` chooses colour and style."""
    lower, upper = map(_finite, pair)
    colour, style = COLOURS[number % len(COLOURS)], STYLES[number % len(STYLES)]
    if fill:
        ax.fill_between(x, lower, upper, color=colour, alpha=0.16, linewidth=0)
    ax.plot(x, upper, color=colour, linestyle=style, linewidth=1.3, label=as_written(label))
    ax.plot(x, lower, color=colour, linestyle=style, linewidth=1.3)


def draw_rest(
    ax: Axes,
    inputs: Inputs,
    shown: int,
    points: Array,
    overlays: Mapping[str, tuple[Array, Array]],
    truth: Array | None,
    data: Data | None,
    reach: float = REACH,
) -> None:
    """What there is beside a band along one input, through points (m, d), and the axis itself."""
    x = points[:, shown]
    for name, pair in overlays.items():
        draw_overlay(ax, x, pair, name)
    if truth is not None:
        draw_truth(ax, x, truth)
    if data is not None:
        opacity = inputs.nearness(data[0], points[0], [shown], reach)
        label = "data" if data[0].shape[1] == 1 else "data, fainter away from the slice"
        draw_dots(ax, data[0][:, shown], data[1], opacity, label)
    inputs.label_axis(ax, "x", shown)
    tidy(ax)


def draw_overlay(ax: Axes, x: Array, pair: tuple[Array, Array], label: str) -> None:
    """What has no guarantee is dashed and not filled."""
    lower, upper = map(_finite, pair)
    style: dict[str, Any] = {"color": NO_GUARANTEE, "linestyle": DASHED, "linewidth": 1.2}
    ax.plot(x, upper, label=as_written(label), **style)
    ax.plot(x, lower, **style)


def draw_truth(ax: Axes, x: Array, values: Array) -> None:
    """A thin black line."""
    ax.plot(x, _finite(values), color="black", linewidth=0.9, label="truth")


def draw_dots(ax: Axes, x: Array, y: Array, opacity: Array, label: str | None = None) -> None:
    """Black dots with thin white edges, which stay apart on lines and on colours; (n,) each."""
    seen = opacity > 0
    if label is not None:  # a key that is not faded as the first dot may be
        ax.scatter([], [], s=14, color="black", label=label)
    ax.scatter(
        x[seen], y[seen], s=16, zorder=3, linewidths=0.5,
        facecolors=[(0, 0, 0, one) for one in opacity[seen]],
        edgecolors=[(1, 1, 1, one) for one in opacity[seen]],
    )  # fmt: skip


def _finite(values: Array) -> Array:
    return np.where(np.isfinite(values), values, np.nan)


def _called(function: Any, points: Array, name: str) -> Any:
    if not callable(function):
        wanted = "a ConfidenceSequence or a function" if name == "bounds" else "a function"
        raise InputError(f"{name} must be {wanted} of points (m, d), got {brief(function)}.")
    return function(points.copy())


def _column(values: Any, count: int, name: str) -> Array:
    try:
        column = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{name} must give numbers, got {brief(values)}.") from None
    if column.shape != (count,):
        raise InputError(
            f"{name} gave shape {column.shape} for {count} points; it must be ({count},)."
        )
    return column

"""What is drawn: bounds, data, the truth, and overlays without a guarantee.

A Gaussian process beside the bounds, because people ask for one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize_scalar

from kernelbounds.arrays import Array, as_floats, as_observations, as_points, as_scalar, brief
from kernelbounds.assume.offset import Offset
from kernelbounds.engine import Engine
from kernelbounds.errors import InputError
from kernelbounds.plot.canvas import COLOURS, DASHED, NO_GUARANTEE, STYLES, as_written, tidy
from kernelbounds.plot.inputs import REACH, Inputs
from kernelbounds.sequence import ConfidenceSequence

# The variance of the process is looked for in this range, in units of sigma^2 over the mean of
# k(x,x): from nothing but noise to next to none.
LEAST, MOST = 1e-6, 1e12
# Without noise the ridge is this times the trace of the kernel matrix, so that double precision
# leaves six digits of y' K^-1 y.
NUGGET = 1e-8
TRIED = 73  # four a decade; the best of them is then refined


@dataclass(frozen=True)
class GaussianProcess:
    """Posterior mean ± some standard deviations, as a function of points (m, d).

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=5.0, noise_scale=0.1)
    >>> seq.update([[0.1], [0.5], [0.9]], [0.3, 0.8, 0.2])
    >>> kb.plot.gaussian_process(seq, deviations=3).label
    'Gaussian process ±3 sd (no guarantee)'
    """

    engine: Engine
    ridge: float
    variance: float
    offset: Offset
    deviations: float

    @property
    def label(self) -> str:
        """What a legend calls it."""
        return f"Gaussian process ±{self.deviations:g} sd (no guarantee)"

    def __call__(self, X: Array) -> tuple[Array, Array]:
        """Two arrays of shape (m,): the mean less, and plus, so many standard deviations."""
        points = as_points(X, "X", self.engine.data.dim, one=True)
        found = self.engine.predict(points, np.array([self.ridge]))
        middle = self.offset.at(points) + found.mean[0]
        half = self.deviations * np.sqrt(self.variance * found.variance[0])
        return middle - half, middle + half


def gaussian_process(sequence: ConfidenceSequence, deviations: float = 2.0) -> GaussianProcess:
    """What a Gaussian process says where the sequence has bounds; it guarantees nothing.

    Its prior has the level of the offset as its mean and v k as its covariance, where k is
    ``sequence.kernel`` and v the variance of largest likelihood; the noise is Gaussian with the
    noise scales of the sequence. Nothing else is fitted. With v K + sigma^2 I =
    sigma^2 (I + K/alpha) and alpha = sigma^2/v, twice the negative log-likelihood is
    E_alpha/sigma^2 + ln det(I + K/alpha), up to a constant.

    It is that of the observations so far, for :func:`band` and :func:`slices`.

    Parameters
    ----------
    sequence : ConfidenceSequence
        Whose data, kernel and noise scales the process has.
    deviations : float
        So many standard deviations of f(x) given the data, on either side of the mean.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=5.0, noise_scale=0.1)
    >>> seq.update([[0.1], [0.5], [0.9]], [0.3, 0.8, 0.2])
    >>> low, high = gaussian_process(seq)([[0.3]])
    >>> bool(low[0] < high[0])
    True
    """
    if not isinstance(sequence, ConfidenceSequence):
        raise InputError(f"sequence must be a ConfidenceSequence, got {brief(sequence)}.")
    times = as_scalar(deviations, "deviations", above=0.0)
    with sequence.known.lock:
        known = sequence.known
        if not known.count:
            raise InputError("a Gaussian process needs observations for its variance; there are 0.")
        engine, noise = known.radius_engine.snapshot(), known.assumptions.noise_scale
        offset = known.offset
    if noise == 0:  # the likeliest variance is y' K^-1 y / t
        ridge = NUGGET * engine.data.trace
        variance = engine.path().energy_and_log_det(ridge)[0] / (ridge * engine.data.count)
        return GaussianProcess(engine, ridge, variance, offset, times)
    ridge = _likeliest_ridge(engine, noise)
    return GaussianProcess(engine, ridge, noise**2 / ridge, offset, times)


def _likeliest_ridge(engine: Engine, noise: float) -> float:
    path, unit = engine.path(), engine.data.trace / engine.data.count

    def surprise(log_ridge: float) -> float:
        energy, log_det = path.energy_and_log_det(math.exp(log_ridge))
        return energy / noise**2 + log_det

    grid = np.linspace(math.log(unit / MOST), math.log(unit / LEAST), TRIED)
    best = int(np.argmin([surprise(one) for one in grid]))
    around = grid[max(best - 1, 0)], grid[min(best + 1, TRIED - 1)]
    return math.exp(minimize_scalar(surprise, bounds=around, method="bounded").x)


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

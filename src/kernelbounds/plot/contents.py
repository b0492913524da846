"""The contents of pictures: bounds, data, the truth, and overlays without a guarantee.

One overlay is made here, a Gaussian process, because people ask for one beside the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import brute

from kernelbounds.arrays import Array, as_floats, as_observations, as_points, as_scalar, brief
from kernelbounds.engine import Engine
from kernelbounds.errors import InputError
from kernelbounds.plot import canvas
from kernelbounds.plot.canvas import PlottedInputs
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.structure.offset import Offset

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A function of points (m, d): lower (m,) and upper (m,), or an estimate (m,) before these two.
Pair = Callable[[Array], tuple[Any, ...]]
Bounds = ConfidenceSequence | Pair
Data = tuple[Any, Any]  # X (n, d) and y (n,)
Overlay = Pair | Mapping[str, Pair]


class Sides(NamedTuple):
    """Bounds at m points, (m,) each, and an estimate where there is one; nan is not drawn."""

    lower: Array
    upper: Array
    estimate: Array | None = None

    def part(self, of_points: slice) -> Sides:
        """Return the sides at some of the points."""
        middle = None if self.estimate is None else self.estimate[of_points]
        return Sides(self.lower[of_points], self.upper[of_points], middle)


# The variance of the process is looked for in this range, in units of sigma^2 over the mean of
# k(x,x): from noise alone to next to no noise.
LEAST_VARIANCE, MOST_VARIANCE = 1e-6, 1e12
TRIED_RIDGES = 73  # four a decade; the best of them is then refined
# Without noise the ridge is this times the trace of the kernel matrix, so that double precision
# leaves six digits of y' K^-1 y.
NUGGET = 1e-8


def evaluate(bounds: Bounds, points: Array, name: str = "bounds") -> Sides:
    """Compute lower and upper bounds (m,) at points (m, d), and the estimate if there is one."""
    if isinstance(bounds, ConfidenceSequence):
        bounds = bounds.estimate_with_bounds
    found = _called(bounds, points, name)
    if not isinstance(found, tuple | list) or len(found) not in (2, 3):
        raise InputError(
            f"{name} must give a pair (lower, upper), or (estimate, lower, upper), got "
            f"{brief(found)}."
        )
    numbers = [checked_numbers(side, len(points), f"{name} must give") for side in found]
    return Sides(*numbers[-2:], *numbers[:-2])


def observed_data(data: Any, bounds: Bounds | None, dim: int) -> Data | None:
    """Check data X (n, d) and y (n,), or else take those of a sequence; None where there are none.

    One input may be given as (n,).
    """
    if data is None:
        if not isinstance(bounds, ConfidenceSequence) or not len(bounds):
            return None
        data = bounds.points, bounds.outcomes
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
    """Return the name of bounds in a legend."""
    if isinstance(bounds, ConfidenceSequence):
        delta = bounds.assumptions.delta
        return f"bounds, with probability {1 - delta:.12g}" if delta else "bounds, for certain"
    return "bounds"


def as_overlays(without_guarantee: Overlay | None) -> dict[str, Pair]:
    """Return overlays by their labels, which all say that there is no guarantee."""
    if without_guarantee is None:
        return {}
    pairs: Any = without_guarantee
    if not isinstance(pairs, Mapping):
        pairs = {getattr(pairs, "label", "no guarantee"): pairs}
    return {
        label if "no guarantee" in label else f"{label} (no guarantee)": pair
        for label, pair in pairs.items()
    }


@dataclass
class Slice:
    """The contents of a picture along one input, at points (m, d)."""

    inputs: PlottedInputs
    shown: int  # the input
    points: Array
    bounds: dict[str, Sides]  # by their names in the legend; the first is filled
    overlays: dict[str, Sides]
    truth: Array | None
    data: Data | None
    level: str = ""  # of categories, if there are several
    number: int = 0  # of that level, from 0 on

    def draw(self, ax: Axes, reach: float = canvas.REACH) -> None:
        """Draw the slice; data fade with their distance from it, up to ``reach``."""
        x = self.points[:, self.shown]
        first = self.number == 0
        for number, (name, sides) in enumerate(self.bounds.items()):
            style = canvas.line_style(number + self.number)
            if self.level:  # After the first level, the name of the level is enough.
                name = f"{self.level}: {name}" if first or number else self.level
            if number == 0:
                colour, label = style["color"], "estimate" if first else None
                ax.fill_between(x, *sides[:2], color=colour, alpha=0.16, linewidth=0)
                if sides.estimate is not None:
                    ax.plot(x, sides.estimate, color=colour, linewidth=1.8, label=label)
            _draw_sides(ax, x, sides, name, linewidth=0.9, **style)
        for name, sides in self.overlays.items():
            # What has no guarantee is dashed and not filled.
            style = {"color": canvas.NO_GUARANTEE, "linestyle": canvas.DASHED, "linewidth": 1.2}
            _draw_sides(ax, x, sides, name if first else "", **style)
        if self.truth is not None:
            label = "truth" if first else None
            ax.plot(x, self.truth, color="black", linewidth=0.9, label=label)
        if self.data is not None:
            observed, outcomes = self.data
            opacity = self.inputs.nearness(observed, self.points[0], [self.shown], reach)
            alone = self.inputs.box.dim - len(self.inputs.box.categories) == 1
            label = "data" if alone else "data, fainter away from the slice"
            colour = canvas.line_style(self.number)["color"] if self.level else "black"
            shown = observed[:, self.shown]
            draw_dots(ax, shown, outcomes, opacity, label if first else None, colour)
        self.inputs.label_axis(ax, "x", self.shown)


def shade_beyond(ax: Axes, limits: tuple[float | None, float | None] | None) -> None:
    """Shade values that are known to be impossible, within the range of the axis as it is."""
    bottom, top = ax.get_ylim()
    low, high = limits or (None, None)
    style: dict[str, Any] = {"color": "black", "alpha": 0.07, "linewidth": 0, "zorder": 0}
    label = "beyond the limits"
    # Far beyond the axis, since it may be made longer; values below 0 have no place on a log axis.
    log = ax.get_yscale() == "log"
    least = bottom / 1e6 if log else bottom - 100 * (top - bottom)
    for end, outwards in ((low, least), (high, top + 100 * (top - bottom))):
        if end is not None and bottom < end < top:
            ax.axhspan(end, outwards, label=label, **style)
            label = ""
    ax.set_ylim(bottom, top)


def slices_along(
    inputs: PlottedInputs,
    lines: Mapping[int, Array],
    bounds: Mapping[str, Bounds],
    without_guarantee: Overlay | None,
    truth: Callable[[Array], Any] | None,
    data: Data | None,
) -> list[Slice]:
    """Evaluate everything along lines, points (m, d) by their input, at all levels.

    Bounds, truth and overlays are each called once, for the points of all lines together.
    """
    faces = inputs.faces()
    places = [(at, number) for number in range(len(faces)) for at in lines]
    moved = [inputs.at_face(lines[at], faces[number][1]) for at, number in places]
    everywhere = np.concatenate(moved)
    pairs = {
        name: evaluate(one, everywhere, f"more[{name!r}]" if number else "bounds")
        for number, (name, one) in enumerate(bounds.items())
    }
    overlays = {
        name: evaluate(pair, everywhere, "without_guarantee")
        for name, pair in as_overlays(without_guarantee).items()
    }
    real = None
    if truth is not None:
        found = _called(truth, everywhere, "truth")
        real = checked_numbers(found, len(everywhere), "truth must give")

    def part_of(named: dict[str, Sides], part: slice) -> dict[str, Sides]:
        return {name: sides.part(part) for name, sides in named.items()}

    slices, size = [], len(everywhere) // len(places)
    for place, ((at, number), points) in enumerate(zip(places, moved, strict=True)):
        part = slice(place * size, (place + 1) * size)
        values = None if real is None else real[part]
        sides, beside = part_of(pairs, part), part_of(overlays, part)
        level = faces[number][0], number
        slices.append(Slice(inputs, at, points, sides, beside, values, data, *level))
    return slices


def _draw_sides(ax: Axes, x: Array, sides: Sides, label: str, **style: Any) -> None:
    ax.plot(x, sides.upper, label=canvas.as_written(label) or None, **style)
    ax.plot(x, sides.lower, **style)


def draw_dots(
    ax: Axes,
    x: Array,
    y: Array,
    opacity: Array,
    label: str | None = None,
    colour: str = "black",
) -> None:
    """Draw dots with thin white edges, which stay apart on lines and on colours."""
    from matplotlib.colors import to_rgb

    seen = opacity > 0
    if label is not None:  # The key in the legend is not faded, as the first dot may be.
        ax.scatter([], [], s=14, color="black", label=label)
    ax.scatter(
        x[seen], y[seen], s=16, zorder=3, linewidths=0.5,
        facecolors=[(*to_rgb(colour), one) for one in opacity[seen]],
        edgecolors=[(1, 1, 1, one) for one in opacity[seen]],
    )  # fmt: skip


@dataclass(frozen=True)
class GaussianProcess:
    """The posterior mean ± some standard deviations, as a function of points (m, d).

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=5.0, noise_scale=0.1)
    >>> seq.update([[0.1], [0.5], [0.9]], [0.3, 0.8, 0.2])
    >>> kb.plot.gaussian_process(seq, deviations=3).label
    'Gaussian process ±3, no guarantee'
    """

    engine: Engine
    ridge: float
    variance: float
    offset: Offset
    deviations: float

    @property
    def label(self) -> str:
        """The name in a legend."""
        return f"Gaussian process ±{self.deviations:g}, no guarantee"

    def __call__(self, X: Array) -> tuple[Array, Array]:
        """Compute the mean minus and plus the standard deviations; two arrays (m,)."""
        points = as_points(X, "X", self.engine.data.dim, one=True)
        found = self.engine.predict(points, np.array([self.ridge]))
        middle = self.offset.at(points) + found.mean[0]
        half = self.deviations * np.sqrt(self.variance * found.variance[0])
        return middle - half, middle + half


def gaussian_process(sequence: ConfidenceSequence, deviations: float = 2.0) -> GaussianProcess:
    """Fit a Gaussian process to the data of a sequence, which guarantees nothing.

    Its prior has the level of the offset as its mean and v k as its covariance, where k is
    ``sequence.kernel`` and v the variance of largest likelihood; the noise is Gaussian with the
    noise scales of the sequence, or with the largest that the data allow where it is unknown.
    Nothing else is fitted. With v K + sigma^2 I =
    sigma^2 (I + K/alpha) and alpha = sigma^2/v, twice the negative log-likelihood is
    E_alpha/sigma^2 + ln det(I + K/alpha), up to a constant.

    The process is that of the observations so far, for :func:`band` and :func:`slices`.

    Parameters
    ----------
    sequence : ConfidenceSequence
        The sequence whose data, kernel and noise scales the process has.
    deviations : float
        The number of standard deviations of f(x) given the data, on either side of the mean.

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
    with sequence.lock:
        known = sequence.known
        if not known.count:
            raise InputError("a Gaussian process needs observations for its variance; there are 0.")
        engine, noise = known.radius_engine.snapshot(), known.assumptions.noise_scale
        offset = known.evidence.offset
    if math.isinf(noise):
        raise InputError(
            "a Gaussian process needs the noise scale, which is unknown, and the data give no "
            "limit yet; some 20 to 40 observations are needed."
        )
    if noise == 0:  # The likeliest variance is y' K^-1 y / t.
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

    ends = math.log(unit / MOST_VARIANCE), math.log(unit / LEAST_VARIANCE)
    best = brute(lambda point: surprise(point.item()), [ends], Ns=TRIED_RIDGES, disp=False)
    return math.exp(np.clip(best.item(), *ends))


def finite(values: Array) -> Array:
    """Replace infinite values by nan, which is not drawn."""
    return np.where(np.isfinite(values), values, np.nan)


def _called(function: Any, points: Array, name: str) -> Any:
    if not callable(function):
        wanted = "a ConfidenceSequence or a function" if name == "bounds" else "a function"
        raise InputError(f"{name} must be {wanted} of points (m, d), got {brief(function)}.")
    return function(points.copy())


def checked_numbers(values: Any, count: int, what: str) -> Array:
    """Check that values are ``count`` numbers; infinite ones become nan, which is not drawn.

    ``what`` begins the message.
    """
    try:
        found = np.array(values, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{what} numbers, got {brief(values)}.") from None
    if found.shape != (count,):
        raise InputError(f"{what} {count} numbers, got an array of shape {found.shape}.")
    return finite(found)

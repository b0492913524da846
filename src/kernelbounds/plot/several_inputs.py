"""Bounds on a function of several inputs: maps over two of them, and slices along each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import Array, as_scalar, brief
from kernelbounds.bandits import Box
from kernelbounds.errors import InputError
from kernelbounds.plot import canvas, contents
from kernelbounds.plot.canvas import REACH, Log, PlottedInputs
from kernelbounds.plot.contents import Bounds, Data, Overlay, Sides

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAP_SIZE = (3.6, 3.1)  # inches
MAP_SPACE = 0.05  # between maps, for the label of a colour bar
MOST_LEVELS = 15  # colours to tell apart
# Both colour maps get darker or lighter all the way, so that they can be read in grey.
VALUE_COLOURS, WIDTH_COLOURS = "viridis", "YlOrBr"
SHOWN = "estimate", "lower", "upper", "width"
MOST_TITLED = 4  # inputs whose values fit a title


def maps(
    bounds: Bounds,
    domain: Box,
    axes: Any = None,
    *,
    data: Data | None = None,
    at: Any = None,
    inputs: tuple[Any, Any] | None = None,
    show: Sequence[str] = SHOWN,
    shared: bool = True,
    log: Log = None,
    labels: Sequence[str] | None = None,
    output: str = "f(x)",
    log_output: bool = False,
    resolution: int = 50,
) -> NDArray[Any]:
    """Draw maps of the estimate, of lower and upper bounds and of their difference.

    Parameters
    ----------
    bounds : ConfidenceSequence, or function of points (m, d) that returns lower and upper, (m,)
        A sequence is drawn with its estimate and its data. A function may have units of its own,
        and may return (estimate, lower, upper); with two there is no map of the estimate.
    domain : Box
        A box with two inputs or more, besides categories.
    axes : four matplotlib axes, or three, for each combination of levels, optional
        The axes to draw on; None makes those of a new figure.
    data : (X, y), optional
        Observations, of which only X is seen, as dots; where there are more than two inputs, they
        fade with their distance from the map. None: those of the sequence, if bounds is one;
        ``seq.bounds`` draws without.
    at : array of shape (d,), dict, Suggestion or Certificate, optional
        The point at which other inputs are held; None is the middle of the box.
    inputs : pair of names or numbers, optional
        The inputs of the horizontal and the vertical axis; None: the first two that are not fixed.
    show : sequence of str
        Which maps are drawn, of "estimate", "lower", "upper" and "width", in that order.
    shared : bool
        Whether lower and upper bounds have the same colours, so that they can be compared. If not,
        each map uses all of them, as that of the estimate always does.
    resolution : int
        The number of points on a side.

    Notes
    -----
    The others are as in :func:`band`. Returns the axes in an array: estimate, lower, upper, width.
    With categories, there is a row of them for each combination of levels, all with the same
    colours.

    Examples
    --------
    >>> from matplotlib import pyplot
    >>> pyplot.switch_backend("Agg")
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.1, 0.2], [0.9, 0.4]], [0.3, -0.2])
    >>> maps = kb.plot.maps(seq, kb.Box.named(a=(0, 1), b=(0, 1)), resolution=5)
    >>> estimate, lower, upper, width = maps
    >>> width.get_xlabel()
    'a'
    >>> pyplot.close("all")
    """
    canvas.require_matplotlib()
    known = PlottedInputs.checked(domain, log, labels)
    across, up = _two(known, inputs)
    point = known.point(at, "at")
    x, y = known.ticks(across, resolution), known.ticks(up, resolution)
    points = np.repeat(point[None], len(x) * len(y), axis=0)
    points[:, across], points[:, up] = np.tile(x, len(y)), np.repeat(y, len(x))
    varying = [i for i in domain.categories if domain.lower[i] < domain.upper[i]]
    faces = known.faces() if varying else [("", point)]
    everywhere = np.concatenate([known.at_face(points, face) for _, face in faces])
    found = contents.evaluate(bounds, everywhere)
    observed = contents.observed_data(data, bounds, domain.dim)
    drawn = _maps_of(found, (len(faces), len(y), len(x)), show, shared, output, log_output)

    columns = len(drawn)
    layout = {"size": MAP_SIZE, "share_x": True, "share_y": True, "space": MAP_SPACE}
    panels = canvas.axes_for(axes, columns * len(faces), "maps", most_columns=columns, **layout)
    for row, (level, face) in enumerate(faces):
        here, beside = known.at_face(point, face), []
        for ax, one in zip(panels[columns * row :], drawn, strict=False):
            contours, ticks = _contours(ax, x, y, one.values[row], one, log_output)
            if observed is not None:
                opacity = known.nearness(observed[0], here, [across, up])
                contents.draw_dots(ax, observed[0][:, across], observed[0][:, up], opacity)
            known.label_axis(ax, "x", across, margin=0.0)
            known.label_axis(ax, "y", up, margin=0.0)
            if not canvas.is_leftmost(ax):
                ax.set_ylabel("")
            if axes is None and row < len(faces) - 1:
                ax.set_xlabel("")
            named = f"{level}: {one.title}" if level else one.title
            ax.set_title(canvas.as_written(named), fontsize="medium")
            beside.append(ax)
            if one.has_bar:
                _add_colour_bar(beside, contours, one.label, ticks, log_output)
                beside = []
    held = [i for i in range(domain.dim) if i not in (across, up, *varying)]
    if axes is None and 0 < len(held) <= MOST_TITLED:
        names = known.box.categories
        at_point = {i: names[i].name(point[i]) if i in names else f"{point[i]:.4g}" for i in held}
        where = ", ".join(f"{known.labels[i]} = {at_point[i]}" for i in held)
        panels[0].figure.suptitle(canvas.as_written(f"at {where}"), fontsize="medium")
    return np.array(panels, dtype=object)


class Map(NamedTuple):
    """The contents of one of the maps, at all combinations of levels."""

    title: str
    values: Array  # (levels, y, x)
    spanned: Array  # the values that the colours span
    colours: str
    label: str  # of the colour bar
    has_bar: bool = True  # If not, the bar is that of the next map.


def _maps_of(
    found: Sides,
    shape: tuple[int, int, int],
    show: Sequence[str],
    shared: bool,
    output: str,
    log_output: bool,
) -> list[Map]:
    """Return the maps that are shown, from left to right."""
    lower, upper = found.lower.reshape(shape), found.upper.reshape(shape)
    both = np.stack([lower, upper])
    last = "upper / lower" if log_output else "width"
    width, of_width = (upper / lower, last) if log_output else (upper - lower, f"width of {output}")
    maps_of = {
        "lower": Map(
            "lower bound", lower, both if shared else lower, VALUE_COLOURS, output,
            has_bar=not (shared and "upper" in show),
        ),
        "upper": Map("upper bound", upper, both if shared else upper, VALUE_COLOURS, output),
        "width": Map(last, width, width, WIDTH_COLOURS, of_width),
    }  # fmt: skip
    if found.estimate is not None:
        estimate = found.estimate.reshape(shape)
        maps_of["estimate"] = Map("estimate", estimate, estimate, VALUE_COLOURS, output)
    drawn = [maps_of[name] for name in SHOWN if name in show and name in maps_of]
    if not drawn or not set(show) <= set(SHOWN):
        raise InputError(f"show must name some of {', '.join(SHOWN)}, got {brief(show)}.")
    return drawn


def _add_colour_bar(
    beside: list[Axes], contours: Any, label: str, ticks: list[float], log: bool
) -> None:
    """Put a colour bar beside the last of these axes, which share it."""
    bar = beside[-1].figure.colorbar(contours, ax=beside, label=canvas.as_written(label))
    bar.set_ticks(ticks, labels=[f"{one:g}" for one in ticks] if log else None, minor=False)
    bar.minorticks_off()
    bar.outline.set_visible(False)


def _contours(
    ax: Axes, x: Array, y: Array, values: Array, one: Map, log: bool
) -> tuple[Any, list[float]]:
    """Draw filled contours of values (y, x), with thin lines between, and return their ticks.

    The colours end where the values do: a class from -20 to 0 makes a bound of 0 look negative.
    """
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import MaxNLocator

    finite = one.spanned[np.isfinite(one.spanned)]
    if not finite.size:
        raise InputError("there is nothing to draw: the bounds are infinite at all points.")
    low, high = float(finite.min()), float(finite.max())
    least = 1e-9 * max(abs(low), abs(high), 1e-300)  # of a map that has one value only
    if log:  # equal ratios between levels, of two digits each
        ticks = sorted({float(f"{step:.2g}") for step in np.geomspace(low, high, MOST_LEVELS)})
    else:
        ticks = list(MaxNLocator(MOST_LEVELS, steps=[1, 2, 5, 10]).tick_values(low, high))
    inner = [step for step in ticks if low + least < step < high - least]
    levels = [low - least, *inner, high + least]
    shown = np.ma.masked_invalid(values)
    norm = LogNorm(levels[0], levels[-1]) if log else None
    drawn = ax.contourf(x, y, shown, levels=levels, cmap=one.colours, norm=norm)
    ax.contour(
        x, y, shown, levels=levels, colors="white", linestyles="-", linewidths=0.4, alpha=0.6
    )
    within = [step for step in ticks if levels[0] <= step <= levels[-1]]
    return drawn, within if high - low > 2 * least else [low]


def _two(known: PlottedInputs, inputs: tuple[Any, Any] | None) -> tuple[int, int]:
    if len(known.free) < 2:
        raise InputError(f"maps needs two inputs, the box has {len(known.free)}; use band.")
    if inputs is None:
        return known.free[0], known.free[1]
    given: Any = inputs
    if not isinstance(given, tuple | list) or len(given) != 2 or given[0] == given[1]:
        raise InputError(f"inputs must be two different inputs, got {brief(inputs)}.")
    return known.position(given[0]), known.position(given[1])


def slices(
    bounds: Bounds,
    domain: Box,
    through: Any,
    axes: Any = None,
    *,
    data: Data | None = None,
    truth: Callable[[Array], Any] | None = None,
    without_guarantee: Overlay | None = None,
    limits: tuple[float | None, float | None] | None = None,
    log: Log = None,
    labels: Sequence[str] | None = None,
    output: str = "f(x)",
    log_output: bool = False,
    label: str | None = None,
    resolution: int = 100,
    reach: float = REACH,
) -> NDArray[Any]:
    """Draw estimates and bounds along each input, through one point; a panel for each.

    Inputs that are fixed have no panel, and neither have categories: each panel has a band for each
    combination of levels, with its data, in a colour of its own. Data fade with their distance from
    the slice: a point off the slice says less about it. Bounds, truth and overlays are each called
    once, for the points of all panels together.

    Parameters
    ----------
    bounds : ConfidenceSequence, or function of points (m, d) that returns lower and upper, (m,)
        A sequence is drawn with its estimate and its data. A function may have units of its own,
        and may return (estimate, lower, upper).
    domain : Box
        The box whose inputs are those of the panels.
    through : array of shape (d,), dict, Suggestion or Certificate
        The point that all slices have in common, marked by a dotted line. A dict may leave
        coordinates out, which are then in the middle of the box.
    axes : matplotlib axes, one for each panel, optional
        The axes to draw on; None makes those of a new figure.
    reach : float
        The distance from a slice at which data are not seen any more, in units of the box.

    Notes
    -----
    The others are as in :func:`band`. Returns the axes in an array, one for each panel.

    Examples
    --------
    >>> from matplotlib import pyplot
    >>> pyplot.switch_backend("Agg")
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.1, 0.2], [0.9, 0.4]], [0.3, -0.2])
    >>> panels = kb.plot.slices(seq, kb.Box.named(a=(0, 1), b=(0, 1)), {"a": 0.5, "b": 0.3})
    >>> len(panels)
    2
    >>> pyplot.close("all")
    """
    canvas.require_matplotlib()
    inputs = PlottedInputs.checked(domain, log, labels)
    point, far = inputs.point(through, "through"), as_scalar(reach, "reach", above=0.0)
    if not inputs.free:
        raise InputError(f"there is nothing to draw: all inputs of {domain!r} are fixed.")
    lines = {at: inputs.line(point, at, resolution) for at in inputs.free}
    named = {label or contents.name_of(bounds): bounds}
    observed = contents.observed_data(data, bounds, domain.dim)
    found = contents.slices_along(inputs, lines, named, without_guarantee, truth, observed)

    panels = canvas.axes_for(axes, len(lines), "slices", share_y=True)
    for number, one in enumerate(found):
        one.draw(panels[number % len(lines)], far)
    for ax, one in zip(panels, found, strict=False):
        at, meeting = point[one.shown], "where the slices meet"
        ax.axvline(at, color="black", linewidth=0.8, linestyle=":", zorder=0, label=meeting)
        if not inputs.log[one.shown]:
            canvas.round_ticks(ax.xaxis)
        if canvas.is_leftmost(ax):
            ax.set_ylabel(canvas.as_written(output))
    for ax in panels:
        canvas.tidy(ax)
        if log_output:
            canvas.log_values(ax)
        contents.shade_beyond(ax, limits)
    canvas.legend(panels, own=axes is None)
    return np.array(panels, dtype=object)

"""Functions of one input: their bounds, and examples to compare with what is known of a system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kernelbounds.arrays import Array, as_floats, brief
from kernelbounds.bandits import Box
from kernelbounds.bounds import AMM, CMM, Bound
from kernelbounds.errors import InputError
from kernelbounds.plot import canvas, contents
from kernelbounds.plot.canvas import Log, PlottedInputs
from kernelbounds.plot.contents import Bounds, Data, Overlay, Slice
from kernelbounds.sequence import ConfidenceSequence

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def band(
    bounds: Bounds,
    domain: Box,
    ax: Axes | None = None,
    *,
    data: Data | None = None,
    truth: Callable[[Array], Any] | None = None,
    more: Mapping[str, Bounds] | None = None,
    without_guarantee: Overlay | None = None,
    limits: tuple[float | None, float | None] | None = None,
    log: Log = None,
    labels: Sequence[str] | None = None,
    output: str = "f(x)",
    log_output: bool = False,
    label: str | None = None,
    resolution: int = 300,
) -> Axes:
    """Draw an estimate of a function of one input, a solid line, in the band of its bounds.

    Parameters
    ----------
    bounds : ConfidenceSequence, or function of points (m, d) that returns lower and upper, (m,)
        A sequence is drawn with its estimate and its data. A function may have units of its own,
        and may return (estimate, lower, upper), as ``seq.estimate_with_bounds`` does.
    domain : Box
        A box with one input that is not fixed, such as ``box.fixed({"pressure": 2})``. Categories
        do not count: there is a band for each level, with its data, in a colour of its own.
    ax : matplotlib axes, optional
        The axes to draw on; None makes those of a new figure.
    data : (X, y), optional
        Observations to draw; None: those of the sequence, if bounds is one; ``seq.bounds`` draws
        without.
    truth : function of points (m, d), optional
        Drawn as a thin line, where it is known.
    more : dict, optional
        More bounds, by their names in the legend; pairs of lines.
    without_guarantee : function as bounds, or dict of them by name, optional
        Drawn dashed, such as :func:`gaussian_process`.
    limits : (low, high), optional
        Values beyond these are known to be impossible, and shaded; None at an end: no limit there.
    log : bools, or names of coordinates, optional
        Which inputs have a logarithmic axis.
    labels : sequence of str, optional
        One for each input, such as "temperature [°C]"; None: the names of the box.
    output : str
        The label of the values.
    log_output : bool
        Whether the axis of the values is logarithmic; they must then be positive.
    label : str, optional
        The name of the bounds in the legend.
    resolution : int
        At how many points bounds are computed.

    Examples
    --------
    >>> from matplotlib import pyplot
    >>> pyplot.switch_backend("Agg")
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.1], [0.9]], [0.3, -0.2])
    >>> ax = kb.plot.band(seq, kb.Box.named(dose=(0.0, 1.0)), resolution=20)
    >>> ax.get_xlabel()
    'dose'
    >>> pyplot.close("all")
    """
    inputs, line = _only_line(domain, log, labels, "band", resolution)
    named = {label or contents.name_of(bounds): bounds} | dict(more or {})
    observed = contents.observed_data(data, bounds, domain.dim)
    found = contents.slices_along(inputs, line, named, without_guarantee, truth, observed)
    return _drawn(found, ax, output, limits, log_output)


def compare(
    sequence: ConfidenceSequence,
    domain: Box,
    bounds: Sequence[Bound] | Mapping[str, Bound] | None = None,
    ax: Axes | None = None,
    *,
    data: Data | None = None,
    truth: Callable[[Array], Any] | None = None,
    log: Log = None,
    labels: Sequence[str] | None = None,
    output: str = "f(x)",
    resolution: int = 300,
) -> Axes:
    """Draw several bounds from the same data on a function of one input.

    The first is filled, and the legend has their mean widths. ``bounds`` are in a sequence, or in
    a dict by their names; None is CMM() and AMM(). All else is as in :func:`band`.

    Examples
    --------
    >>> from matplotlib import pyplot
    >>> pyplot.switch_backend("Agg")
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.1], [0.9]], [0.3, -0.2])
    >>> box = kb.Box.named(dose=(0.0, 1.0))
    >>> ax = kb.plot.compare(seq, box, [kb.CMM(), kb.AMM()], resolution=20)
    >>> ax.get_xlabel()
    'dose'
    >>> pyplot.close("all")
    """
    if not isinstance(sequence, ConfidenceSequence):
        raise InputError(f"sequence must be a ConfidenceSequence, got {brief(sequence)}.")
    inputs, line = _only_line(domain, log, labels, "compare", resolution)
    observed = contents.observed_data(data, sequence, domain.dim)
    if len(inputs.faces()) > 1:
        raise InputError("compare draws one level; hold categories with box.fixed().")
    [found] = contents.slices_along(inputs, line, {}, None, truth, observed)
    for name, bound in _named((CMM(), AMM()) if bounds is None else bounds).items():
        lower, upper = sequence.bounds(found.points, bound)
        sides = contents.Sides(contents.finite(lower), contents.finite(upper))
        found.bounds[f"{name}, mean width {np.mean(upper - lower):#.3g}"] = sides
    return _drawn([found], ax, output)


def _only_line(
    domain: Box, log: Log, labels: Sequence[str] | None, what: str, resolution: int
) -> tuple[PlottedInputs, dict[int, Array]]:
    """Return the inputs of a picture, and points (m, d) along the only one that is not fixed."""
    canvas.require_matplotlib()
    inputs = PlottedInputs.checked(domain, log, labels)
    if len(inputs.free) != 1:
        raise InputError(
            f"{what} needs one input, the box has {len(inputs.free)}; use slices or maps, or "
            "hold the others with box.fixed()."
        )
    return inputs, {at: inputs.line(inputs.centre, at, resolution) for at in inputs.free}


def _drawn(
    found: list[Slice],
    ax: Axes | None,
    output: str,
    limits: tuple[float | None, float | None] | None = None,
    log_output: bool = False,
) -> Axes:
    [axes] = canvas.axes_for(ax)
    for one in found:
        one.draw(axes)
    if log_output:
        canvas.log_values(axes)
    contents.shade_beyond(axes, limits)
    canvas.finish(axes, ax is None, output)
    return axes


def _named(bounds: Sequence[Bound] | Mapping[str, Bound]) -> dict[str, Bound]:
    if isinstance(bounds, Mapping):
        return dict(bounds)
    short = [type(one).__name__ for one in bounds]
    return {
        name if short.count(name) == 1 else repr(one): one
        for name, one in zip(short, bounds, strict=True)
    }


def functions(
    points: ArrayLike,
    values: ArrayLike,
    domain: Box | None = None,
    ax: Axes | None = None,
    *,
    data: Data | None = None,
    log: Log = None,
    labels: Sequence[str] | None = None,
    output: str = "f(x)",
    log_output: bool = False,
) -> Axes:
    """Draw several functions of one input as thin lines: does your system look like these?

    Parameters
    ----------
    points : array of shape (n,)
        The inputs at which the functions are known, in any order.
    values : array of shape (k, n)
        Their values, a row for each function.
    domain : Box, optional
        A box of one input, for its name and limits; None: those of the points.
    data : (X, y), optional
        Observations, to be compared with the functions.

    Notes
    -----
    The others are as in :func:`band`.

    Examples
    --------
    >>> from matplotlib import pyplot
    >>> pyplot.switch_backend("Agg")
    >>> import kernelbounds as kb
    >>> box = kb.Box.named(dose=(0.0, 1.0))
    >>> ax = kb.plot.functions([0.0, 0.5, 1.0], [[0, 1, 0], [1, 0, 1]], box)
    >>> ax.get_xlabel()
    'dose'
    >>> pyplot.close("all")
    """
    x, rows = as_floats(points, "points"), np.atleast_2d(as_floats(values, "values"))
    if x.ndim == 2 and x.shape[1] == 1:
        x = x[:, 0]
    if x.ndim != 1 or len(x) < 2 or rows.ndim != 2 or rows.shape[1] != len(x):
        raise InputError(
            "functions needs points of shape (n,), n at least 2, and values of shape (k, n), got "
            f"shapes {x.shape} and {rows.shape}."
        )
    box = Box([x.min()], [x.max()]) if domain is None else domain
    inputs = PlottedInputs.checked(box, log, labels)
    if box.dim != 1:
        raise InputError(f"functions needs one input, the box has {box.dim}.")
    observed = contents.observed_data(data, None, 1)

    [axes] = canvas.axes_for(ax)
    order = np.argsort(x, kind="stable")
    for number, row in enumerate(rows):
        colour = canvas.line_style(number)["color"]
        axes.plot(x[order], row[order], color=colour, linewidth=0.9, alpha=0.85)
    if observed is not None:
        contents.draw_dots(axes, observed[0][:, 0], observed[1], np.ones(len(observed[1])), "data")
    inputs.label_axis(axes, "x", 0)
    if log_output:
        canvas.log_values(axes)
    canvas.finish(axes, ax is None, output)
    return axes

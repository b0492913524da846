"""Bounds on a function of many inputs, along one of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import Array, as_scalar
from kernelbounds.bandits import Box
from kernelbounds.errors import InputError
from kernelbounds.plot import canvas, contents
from kernelbounds.plot.contents import Bounds, Data, Overlay
from kernelbounds.plot.inputs import REACH, Inputs, Log


def slices(
    bounds: Bounds,
    domain: Box,
    through: Any,
    axes: Any = None,
    *,
    data: Data | None = None,
    truth: Callable[[Array], Any] | None = None,
    without_guarantee: Overlay | None = None,
    log: Log = None,
    labels: Sequence[str] | None = None,
    output: str = "f(x)",
    label: str | None = None,
    resolution: int = 100,
    reach: float = REACH,
) -> NDArray[Any]:
    """Draw lower and upper bounds along each input, through one point; a panel for each.

    Inputs that are fixed have no panel. Data fade with their distance from the slice: a point off
    the slice says less about it. Bounds, truth and overlays are each called once, for the points of
    all panels together.

    Parameters
    ----------
    bounds : ConfidenceSequence, or function of points (m, d) that returns lower and upper, (m,)
        A sequence is drawn with its data. A function may have units of its own.
    domain : Box
        Its inputs are those of the panels.
    through : array of shape (d,), dict, Suggestion or Certificate
        The point that all slices have in common, marked by a dotted line. A dict may leave
        coordinates out, which are then in the middle of the box.
    axes : matplotlib axes, one for each panel, optional
        None: those of a new figure.
    reach : float
        At which distance from a slice data are not seen any more, in units of the box.

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
    inputs = Inputs.checked(domain, log, labels)
    point, far = inputs.point(through, "through"), as_scalar(reach, "reach", above=0.0)
    if not inputs.free:
        raise InputError(f"there is nothing to draw: all inputs of {domain!r} are fixed.")
    lines = [inputs.line(point, at, resolution) for at in inputs.free]
    everywhere = np.concatenate(lines)

    def apart(values: Array) -> list[Array]:
        return np.split(values, len(lines))

    pairs = list(zip(*map(apart, contents.evaluate(bounds, everywhere)), strict=True))
    overlays: list[dict[str, tuple[Array, Array]]] = [{} for _ in lines]
    for name, pair in contents.as_overlays(without_guarantee).items():
        sides = contents.evaluate(pair, everywhere, "without_guarantee")
        for panel, both in zip(overlays, zip(*map(apart, sides), strict=True), strict=True):
            panel[name] = both
    real: Sequence[Array | None] = [None] * len(lines)
    if truth is not None:
        real = apart(contents.evaluate_truth(truth, everywhere))
    observed = contents.own_or_given(data, bounds, domain.dim)

    if axes is None:
        panels = canvas.new_axes(len(lines), share_y=True)
    else:
        panels = canvas.given_axes(axes, len(lines), "slices")
    for number, (ax, at) in enumerate(zip(panels, inputs.free, strict=True)):
        contents.draw_band(
            ax, lines[number][:, at], pairs[number], label or contents.name_of(bounds)
        )
        where = "where the slices meet"
        ax.axvline(point[at], color="black", linewidth=0.8, linestyle=":", zorder=0, label=where)
        contents.draw_rest(
            ax, inputs, at, lines[number], overlays[number], real[number], observed, far
        )
        if not inputs.log[at]:
            canvas.few_ticks(ax.xaxis)
        if canvas.is_leftmost(ax):
            ax.set_ylabel(canvas.as_written(output))
    canvas.legend(panels, own=axes is None)
    return np.array(panels, dtype=object)

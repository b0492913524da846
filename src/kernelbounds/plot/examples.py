"""Example functions, to be compared with what is known of a system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from kernelbounds.arrays import as_floats
from kernelbounds.bandits import Box
from kernelbounds.errors import InputError
from kernelbounds.plot import canvas, contents
from kernelbounds.plot.contents import Data
from kernelbounds.plot.inputs import Inputs, Log

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
) -> Axes:
    """Draw several functions of one input as thin lines: does your system look like these?

    Parameters
    ----------
    points : array of shape (n,)
        Where the functions are known, in any order.
    values : array of shape (k, n)
        Their values, a row for each function.
    domain : Box, optional
        Of one input, for its name and limits; None: those of the points.
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
    inputs = Inputs.checked(box, log, labels)
    if box.dim != 1:
        raise InputError(f"functions needs one input, the box has {box.dim}.")
    observed = None if data is None else contents.checked_data(data, 1)

    axes = canvas.new_axes()[0] if ax is None else canvas.given_axis(ax)
    order = np.argsort(x, kind="stable")
    for number, row in enumerate(rows):
        colour = canvas.COLOURS[number % len(canvas.COLOURS)]
        axes.plot(x[order], row[order], color=colour, linewidth=0.9, alpha=0.85)
    if observed is not None:
        contents.draw_dots(axes, observed[0][:, 0], observed[1], np.ones(len(observed[1])), "data")
    inputs.label_axis(axes, "x", 0)
    axes.set_ylabel(canvas.as_written(output))
    canvas.tidy(axes)
    canvas.legend([axes], own=ax is None)
    return axes

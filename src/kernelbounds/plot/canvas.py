"""Figures, axes, colours and legends, and the inputs that axes show, in the user's units."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelbounds.arrays import Array, as_vector, as_whole, brief
from kernelbounds.bandits import Box
from kernelbounds.errors import InputError, MissingExtraError
from kernelbounds.io import files

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

# Pairs of bounds and runs are told apart in grey, too, by the style of their lines. Dashes, and the
# colour NO_GUARANTEE, are used only for what has no guarantee.
COLOURS = ("#0014a8", "#4b8b3b", "#9b2335", "#0a7e8c", "#6b4c9a", "#7a7a7a")
STYLES: tuple[Any, ...] = (
    "-", (0, (7, 1.5, 1.5, 1.5)), (0, (1, 1.2)), (0, (12, 2)), (0, (7, 1.5, 1, 1.5, 1, 1.5)), "-",
)  # fmt: skip
BAND, NO_GUARANTEE = COLOURS[0], "#c46210"
DASHED = (0, (4, 2.5))
MOST_COLUMNS = 5  # of panels: more would be too small to read across a page
PANEL_SIZES = {1: (5.6, 3.5), 2: (3.6, 2.9), 3: (3.2, 2.7)}  # inches, by the number of columns
SMALL_PANEL = (2.7, 2.4)
# Widths in a legend, in inches: a letter of small print, and a handle with the space around it.
LETTER_WIDTH, HANDLE_WIDTH = 0.066, 0.62
TICK_STEPS = [1, 2, 2.5, 5, 10]  # from one number on an axis to the next, times a power of ten
PLAIN_RANGE = (1e-4, 1e5)  # numbers that are easier to read without an exponent
MARGIN = 0.02  # at both ends of an axis, so that dots on the edge of the box are whole
MOST_FACES = 6  # combinations of levels in one picture, as many as there are colours
REACH = 0.3  # the distance from a slice at which data are not seen any more, in units of the box

Log = Collection[str] | Sequence[bool] | None


def require_matplotlib() -> None:
    """Raise where matplotlib is not installed, before anything is computed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("Drawing a picture", "plot") from error


def new_axes(
    count: int = 1,
    size: tuple[float, float] | None = None,
    *,
    share_x: bool = False,
    share_y: bool = False,
    space: float = 0.06,
    most_columns: int = MOST_COLUMNS,
) -> list[Axes]:
    """Make the axes of a new figure, in rows of at most ``most_columns``.

    Each panel has a ``size`` in inches, by default one that suits their number. The figure is
    pyplot's, so that a notebook or ``pyplot.show()`` shows it.
    """
    require_matplotlib()
    from matplotlib import pyplot

    rows = math.ceil(count / most_columns)
    columns = math.ceil(count / rows)
    width, height = size or PANEL_SIZES.get(columns, SMALL_PANEL)
    figsize = (columns * width, rows * height)
    figure, axes = pyplot.subplots(
        rows, columns, figsize=figsize, squeeze=False, sharex=share_x, sharey=share_y
    )
    figure.set_layout_engine("constrained", wspace=space)
    for unused in axes.flat[count:]:
        unused.remove()
    figure.align_labels()
    return list(axes.flat[:count])


def as_written(text: object) -> str:
    """Escape the dollar signs of a text, between which matplotlib would read a formula.

    All words of a user go through here: names, units and labels.

    >>> print(as_written("price [$], cost [$]"))
    price [\\$], cost [\\$]
    """
    return str(text).replace("$", r"\$")


def axes_for(given: Any, count: int = 1, what: str = "", **layout: Any) -> list[Axes]:
    """Check the axes that a user passes, alone, in a list or in an array of any shape.

    None makes those of a new figure, with the ``layout`` that :func:`new_axes` takes.
    """
    if given is None:
        return new_axes(count, **layout)
    several = list(given) if isinstance(given, Iterable) else [given]
    found = list(np.asarray(several, dtype=object).flat)
    if len(found) != count or not all(hasattr(one, "fill_between") for one in found):
        expected = f"{what} needs {count} axes" if what else "ax must be matplotlib axes"
        raise InputError(f"{expected}, got {brief(given)}.")
    return found


def line_style(number: int) -> dict[str, Any]:
    """Return the colour and the style of one of several lines."""
    at = number % len(COLOURS)
    return {"color": COLOURS[at], "linestyle": STYLES[at]}


def save(axes: Any, path: Path) -> None:
    """Write the figure of these axes to a PNG file, whole or not at all, and close it."""
    from matplotlib import pyplot

    figure = np.ravel(np.asarray(axes, dtype=object))[0].figure
    try:
        with files.failure_reported(f"write the picture {path}"), files.replacing(path) as file:
            figure.savefig(file, format="png", dpi=150)
    finally:
        pyplot.close(figure)


def tidy(ax: Axes) -> None:
    """Remove the spines at the top and on the right."""
    ax.spines[["top", "right"]].set_visible(False)


def round_ticks(axis: Axis, most: int = 4, *, whole: bool = False) -> None:
    """Put a few round numbers on a linear axis, or a few whole ones, where things are counted."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(most, steps=TICK_STEPS, integer=whole))


def log_ticks(axis: Axis, low: float, high: float) -> None:
    """Put a few round numbers on a logarithmic axis, without exponents where that is short."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    if high < 3 * low:  # powers of ten and their multiples would be too few
        round_ticks(axis)
    elif high < 100 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    if PLAIN_RANGE[0] <= low and high <= PLAIN_RANGE[1]:
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def log_values(ax: Axes) -> None:
    """Make the axis of the values logarithmic, after everything is drawn on it."""
    ax.set_yscale("log")
    ax.autoscale_view(scalex=False)
    log_ticks(ax.yaxis, *ax.get_ylim())


def finish(ax: Axes, own: bool, output: str, counted: str = "") -> None:
    """Label a picture of one panel, tidy it and add its legend.

    ``output`` is the label of the values. Where the other axis counts something, ``counted`` says
    what. ``own`` tells whether the figure is one that we made.
    """
    ax.set_ylabel(as_written(output))
    if counted:
        ax.set_xlabel(counted)
        round_ticks(ax.xaxis, 8, whole=True)
    tidy(ax)
    legend([ax], own)


def is_leftmost(ax: Axes) -> bool:
    """Tell whether axes are in the first column of a grid of panels, or in no grid."""
    spec = ax.get_subplotspec()
    return spec is None or spec.is_first_col()


def legend(axes: list[Axes], own: bool) -> None:
    """Put a legend of all panels above those of a figure of our own, where it hides nothing.

    In a figure of the user's, one of the first panel is put into that.
    """
    first = axes[0]
    named: dict[str, Any] = {}
    for ax in axes if own else axes[:1]:
        named |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    if not named:
        return
    if not own:
        first.legend(frameon=True, framealpha=0.8, edgecolor="none", fontsize="small")
        return
    figure: Any = first.figure
    widest = HANDLE_WIDTH + LETTER_WIDTH * max(map(len, named))
    columns = min(max(int(figure.get_figwidth() / widest), 1), len(named))
    figure.legend(
        named.values(), named.keys(), loc="outside upper center", ncols=columns, frameon=False,
        fontsize="small",
    )  # fmt: skip


@dataclass(frozen=True)
class PlottedInputs:
    """The inputs that axes show: a box, and a scale and a label for each of its coordinates."""

    box: Box
    log: tuple[bool, ...]
    labels: tuple[str, ...]

    @classmethod
    def checked(cls, domain: Any, log: Log, labels: Sequence[str] | None) -> PlottedInputs:
        """Check what users pass; by default no axis is logarithmic, and names are the labels."""
        if not isinstance(domain, Box):
            raise InputError(f"domain must be a kernelbounds.Box, got {brief(domain)}.")
        numbered = ("x",) if domain.dim == 1 else tuple(f"x{at}" for at in range(domain.dim))
        shown = tuple(domain.names or numbered if labels is None else labels)
        if len(shown) != domain.dim or not all(isinstance(one, str) for one in shown):
            raise InputError(
                f"labels must be {domain.dim} strings, one for each input, got {brief(labels)}."
            )
        flags = _flags(domain, log)
        for at, flag in enumerate(flags):
            if flag and not domain.lower[at] > 0:
                raise InputError(
                    f"a logarithmic axis needs positive limits, but coordinate {domain.label(at)} "
                    f"starts at {domain.lower[at]:g}."
                )
        return cls(domain, flags, shown)

    @property
    def free(self) -> list[int]:
        """The coordinates that are neither fixed nor categories."""
        extended = np.flatnonzero(self.box.lower < self.box.upper).tolist()
        return [at for at in extended if at not in self.box.categories]

    @property
    def centre(self) -> Array:
        """The middle of the box, as it is shown; the first level of a category."""
        middle = (self._to_axes(self.box.lower) + self._to_axes(self.box.upper)) / 2
        levels = list(self.box.categories)
        middle[levels] = self.box.lower[levels]
        return np.where(self.log, np.exp(np.where(self.log, middle, 0.0)), middle)

    def faces(self) -> list[tuple[str, Array]]:
        """Return the combinations of levels that a picture shows: names, and points (d,) at them.

        Of each point only the categories are to be used. Where none varies, the name is empty.
        """
        varying = [at for at in self.box.categories if self.box.lower[at] < self.box.upper[at]]
        faces = self.box.faces()
        if len(faces) > MOST_FACES:
            raise InputError(
                f"a picture shows at most {MOST_FACES} combinations of levels, and {self.box!r} "
                f"has {len(faces)}; hold some with box.fixed()."
            )
        named = [
            ", ".join(face.categories[at].name(face.lower[at]) for at in varying) for face in faces
        ]
        return [(name, face.lower) for name, face in zip(named, faces, strict=True)]

    def at_face(self, points: Array, face: Array) -> Array:
        """Move points (.., d) to the levels of a face."""
        levels = list(self.box.categories)
        moved = points.copy()
        moved[..., levels] = face[levels]
        return moved

    def position(self, key: Any) -> int:
        """Find a free coordinate by its name or number."""
        names = self.box.names or ()
        at = names.index(key) if key in names else key
        if isinstance(at, bool) or at not in self.free:
            raise InputError(
                f"there is no input {brief(key)} to be drawn in {self.box!r}; use a name or a "
                "number from 0 of one that is not fixed."
            )
        return int(at)

    def point(self, given: Any, name: str) -> Array:
        """Check a point: an array (d,), a dict by names, a suggestion or a certificate.

        None is the middle of the box. A dict may leave coordinates out; they are in the middle.
        """
        if given is None:
            return self.centre
        if isinstance(given, Mapping):
            names, point = self.box.names or (), self.centre
            for key, value in given.items():
                if key not in names:
                    raise InputError(f"{name} has {brief(key)}, which {self.box!r} has not.")
                at = names.index(key)
                levels = self.box.categories.get(at)
                point[at] = value if levels is None else levels.number(value, key)
            given = point
        return as_vector(getattr(given, "x", given), name, self.box.dim)

    def ticks(self, at: int, count: int) -> Array:
        """Return ``count`` values of a coordinate, evenly along its axis."""
        space = np.geomspace if self.log[at] else np.linspace
        number = as_whole(count, "resolution", least=2)
        return np.asarray(space(self.box.lower[at], self.box.upper[at], number))

    def line(self, through: Array, at: int, count: int) -> Array:
        """Return ``count`` points (m, d) along one coordinate."""
        ticks = self.ticks(at, count)
        points = np.repeat(through[None], len(ticks), axis=0)
        points[:, at] = ticks
        return points

    def nearness(
        self, points: Array, through: Array, shown: Sequence[int], reach: float = REACH
    ) -> Array:
        """Compute how near points (n, d) are to a slice, from 1 on it to 0 at ``reach``; (n,).

        The distance is the Euclidean length of what is not shown of x - through, in units of the
        box. A coordinate that is fixed has no width in the box; its unit is that of the points.
        What is outside of the limits of what is shown is not near.
        """
        x, here = self._to_axes(points), self._to_axes(through)
        low, high = self._to_axes(self.box.lower), self._to_axes(self.box.upper)
        levels = list(self.box.categories)
        same = (x[:, levels] == here[levels]).all(axis=1)  # A level is near to no other one.
        hidden = [at for at in range(self.box.dim) if at not in (*shown, *levels)]
        with np.errstate(invalid="ignore"):  # Two points without a place on a log axis.
            apart, width = np.abs(x - here)[:, hidden], (high - low)[hidden]
            unit = np.where(width > 0, width, np.maximum(apart.max(axis=0, initial=0.0), 1e-300))
            near = 1 - np.sqrt(np.square(apart / unit).sum(axis=1)) / reach
        inside = ((low <= x) & (x <= high))[:, shown].all(axis=1) & same
        return np.where(inside & (near > 0), near, 0.0)

    def label_axis(self, ax: Axes, which: str, at: int, margin: float = MARGIN) -> None:
        """Set the scale, limits and label of an axis; ``which`` is "x" or "y"."""
        low, high = (self._to_axes(side)[at] for side in (self.box.lower, self.box.upper))
        limits = np.array([low, high]) + margin * (high - low) * np.array([-1, 1])
        scale, ends = ("log", np.exp(limits)) if self.log[at] else ("linear", limits)
        named = {"scale": scale, "lim": ends, "label": as_written(self.labels[at])}
        ax.set(**{which + name: value for name, value in named.items()})
        if self.log[at]:
            log_ticks(getattr(ax, f"{which}axis"), self.box.lower[at], self.box.upper[at])
        if levels := self.box.categories.get(at):
            getattr(ax, f"set_{which}ticks")(range(len(levels)), map(as_written, levels.names))

    def _to_axes(self, points: Array) -> Array:
        """Return points (.., d) with logarithms where axes are logarithmic."""
        # Values that are not positive are infinitely far from all others on such an axis.
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(points > 0, np.log(points), -np.inf)
        return np.where(self.log, logs, points)


def drawable(box: Box, point: Array) -> Box:
    """Return the box, at the levels of a point (d,) if it has too many for one picture."""
    if len(box.faces()) <= MOST_FACES:
        return box
    return box.fixed({at: float(point[at]) for at in box.categories})


def _flags(box: Box, log: Log) -> tuple[bool, ...]:
    listed: list[Any] = [log] if isinstance(log, str) else list(() if log is None else log)
    if all(isinstance(one, str) for one in listed):
        for one in listed:
            if one not in (box.names or ()):
                raise InputError(f"log has {brief(one)}, which is no coordinate of {box!r}.")
        return tuple(name in listed for name in box.names or ("",) * box.dim)
    if len(listed) != box.dim or not all(isinstance(one, bool | np.bool_) for one in listed):
        raise InputError(
            f"log must be names of coordinates, or True or False for each of {box.dim}, got "
            f"{brief(log)}."
        )
    return tuple(map(bool, listed))

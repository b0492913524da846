"""Regret, certificates and the size of the noise, round by round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kernelbounds.arrays import Array, as_floats, as_scalar, brief
from kernelbounds.bandits.simulation import Trace
from kernelbounds.errors import InputError
from kernelbounds.plot import canvas
from kernelbounds.plot.contents import checked_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPREADS = ("range", "error")
LOG_FACTOR = 10.0  # Regrets that differ by more than this factor have a logarithmic axis.


def regret(
    runs: Mapping[str, Trace | Sequence[Trace] | ArrayLike],
    ax: Axes | None = None,
    *,
    spread: str = "range",
    output: str = "cumulative regret",
) -> Axes:
    """Draw the cumulative regret of several methods: means over runs, and how these differ.

    Parameters
    ----------
    runs : dict
        By the name of a method: what :func:`kernelbounds.simulate` returns, or a list of those,
        one for each seed; or the regrets of single rounds, (rounds,) or (seeds, rounds). They are
        added up here.
    ax : matplotlib axes, optional
        The axes to draw on; None makes those of a new figure.
    spread : str
        What is shaded, where there are several runs: "range" is from the smallest to the largest,
        "error" the standard error of the mean on both sides of it.
    output : str
        The label of the vertical axis.

    Examples
    --------
    >>> from matplotlib import pyplot
    >>> pyplot.switch_backend("Agg")
    >>> import kernelbounds as kb
    >>> ax = kb.plot.regret({"ours": [[1.0, 0.5, 0.2], [0.8, 0.6, 0.1]], "random": [1.0, 1.0, 1.0]})
    >>> len(ax.lines)
    2
    >>> pyplot.close("all")
    """
    if not isinstance(runs, Mapping) or not runs:
        raise InputError(f"runs must be a dict of regrets by name, got {brief(runs)}.")
    if spread not in SPREADS:
        raise InputError(f"spread must be one of {', '.join(SPREADS)}, got {brief(spread)}.")
    totals = {name: np.cumsum(_regrets(one, name), axis=1) for name, one in runs.items()}

    [axes] = canvas.axes_for(ax)
    for number, (name, total) in enumerate(totals.items()):
        style = canvas.line_style(number)
        rounds, mean = 1 + np.arange(total.shape[1]), total.mean(axis=0)
        shown = canvas.as_written(name)
        axes.plot(rounds, mean, linewidth=1.4, label=shown, **style)
        if len(total) > 1:
            low, high = total.min(axis=0), total.max(axis=0)
            if spread == "error":
                error = total.std(axis=0, ddof=1) / np.sqrt(len(total))
                low, high = mean - error, mean + error
            axes.fill_between(rounds, low, high, color=style["color"], alpha=0.15, linewidth=0)
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    canvas.finish(axes, ax is None, output, "round")
    return axes


def certificate(
    rounds: ArrayLike,
    regrets: ArrayLike | None = None,
    ax: Axes | None = None,
    *,
    limits: ArrayLike | None = None,
    best: ArrayLike | None = None,
    enough: float | None = None,
    output: str | None = None,
) -> Axes:
    """Draw a certificate that closes in: the certified regret, or an interval around the optimum.

    What is infinite is left out. The axis of regrets is logarithmic where they are positive and
    span more than a factor of ten.

    Parameters
    ----------
    rounds : array of shape (n,)
        The number of observations of each certificate, increasing.
    regrets : array of shape (n,), optional
        The ``regret`` of each; it is not drawn where ``limits`` and ``best`` are given.
    limits, best : arrays of shape (n,), optional
        What the optimum does not exceed, and what the best action achieves at least: ``max_upper``
        and ``lower`` of certificates, or ``min_lower`` and ``upper`` when minimising. The interval
        between them contains the optimum.
    enough : float, optional
        A regret that is good enough, as a dotted line.
    output : str, optional
        The label of the vertical axis.

    Examples
    --------
    >>> from matplotlib import pyplot
    >>> pyplot.switch_backend("Agg")
    >>> import kernelbounds as kb
    >>> ax = kb.plot.certificate([5, 10, 20], [3.0, 1.2, 0.4], enough=0.5)
    >>> ax.get_xlabel()
    'observations'
    >>> pyplot.close("all")
    """
    t = _checked_rounds(rounds)
    if (limits is None) != (best is None):
        raise InputError("limits and best are given together, or not at all.")
    if limits is None and regrets is None:
        raise InputError("certificate needs regrets, or limits and best.")
    if limits is not None and enough is not None:
        raise InputError("enough is a regret, and limits and best are not; leave it out.")
    line = None if enough is None else as_scalar(enough, "enough", above=0.0)
    given = {"regrets": regrets, "limits": limits, "best": best}
    curves = {
        name: checked_numbers(values, len(t), f"{name} must be")
        for name, values in given.items()
        if values is not None
    }

    [axes] = canvas.axes_for(ax)
    if "limits" in curves:
        limit, achieved = curves["limits"], curves["best"]
        axes.fill_between(
            t, achieved, limit, step="post", color=canvas.BAND, alpha=0.16, linewidth=0
        )
        _step(axes, t, limit, canvas.BAND, "no action can beat this")
        _step(axes, t, achieved, canvas.COLOURS[1], "the best action reaches this")
    else:
        _regret_steps(axes, t, curves["regrets"], line)
    label = "certified regret" if limits is None else "f(x)"
    canvas.finish(axes, ax is None, label if output is None else output, "observations")
    return axes


def noise(
    rounds: ArrayLike,
    at_most: ArrayLike,
    at_least: ArrayLike | None = None,
    ax: Axes | None = None,
    *,
    truth: float | None = None,
    output: str = "noise scale",
) -> Axes:
    """Draw how an unknown noise scale closes in: upper and lower bounds on it, on a log axis.

    Where the upper bound is infinite, nothing is known yet, and the picture is grey.

    Parameters
    ----------
    rounds : array of shape (n,)
        Numbers of observations, increasing.
    at_most : array of shape (n,)
        ``noise_upper_bound`` of a sequence after each of them, which needs no right kernel and no
        right norm bound.
    at_least : array of shape (n,), optional
        ``noise_lower_bound``, which needs both; where it is 0, it is left out.
    ax : matplotlib axes, optional
        The axes to draw on; None makes those of a new figure.
    truth : float, optional
        The true noise scale, where it is known, as a dashed line.
    output : str
        The label of the vertical axis.

    Examples
    --------
    >>> from matplotlib import pyplot
    >>> pyplot.switch_backend("Agg")
    >>> import kernelbounds as kb
    >>> ax = kb.plot.noise([10, 30, 100], [float("inf"), 0.9, 0.4], [0.0, 0.1, 0.2])
    >>> ax.get_yscale()
    'log'
    >>> pyplot.close("all")
    """
    t = _checked_rounds(rounds)
    most = checked_numbers(at_most, len(t), "at_most must be")
    line = None if truth is None else as_scalar(truth, "truth", above=0.0)
    drawn = {"at most, whatever the function is": most}
    if at_least is not None:
        least = checked_numbers(at_least, len(t), "at_least must be")
        drawn["at least, if B and the kernel are right"] = np.where(least > 0, least, np.nan)

    [axes] = canvas.axes_for(ax)
    axes.set_yscale("log")
    for (name, values), colour in zip(drawn.items(), canvas.COLOURS, strict=False):
        _step(axes, t, values, colour, name)
    if line is not None:
        axes.axhline(line, color="black", linewidth=0.9, linestyle="--", label="the true noise")
    unknown = np.flatnonzero(~np.isfinite(most))
    if len(unknown):  # The grey ends at the first number of observations with a bound.
        end = t[min(unknown[-1] + 1, len(t) - 1)]
        axes.axvspan(t[0], end, color="0.9", linewidth=0, label="not known yet")
    seen = np.concatenate([*drawn.values(), [np.nan if line is None else line]])
    seen = seen[np.isfinite(seen)]
    if len(seen):
        canvas.log_ticks(axes.yaxis, seen.min(), seen.max())
    canvas.finish(axes, ax is None, output, "observations")
    return axes


def _checked_rounds(given: ArrayLike) -> Array:
    t = as_floats(given, "rounds")
    if t.ndim != 1 or not len(t) or np.any(np.diff(t) < 0):
        raise InputError(f"rounds must be an array (n,) that increases, got {brief(given)}.")
    return t


def _step(ax: Axes, t: Array, values: Array, colour: str, name: str | None = None) -> None:
    """Draw steps, because a number holds until the next one; a dot marks the newest."""
    ax.step(
        t, values, where="post", color=colour, linewidth=1.5, label=name, marker="o", markersize=4,
        markevery=[len(t) - 1],
    )  # fmt: skip


def _regret_steps(ax: Axes, t: Array, regrets: Array, enough: float | None) -> None:
    """Draw certified regrets and the one that is good enough, on a logarithmic axis if it helps."""
    _step(ax, t, regrets, canvas.BAND)
    seen = regrets[np.isfinite(regrets)]
    if enough is not None:
        ax.axhline(enough, color="black", linewidth=0.9, linestyle=":", label="good enough")
        seen = np.append(seen, enough)
    if len(seen) and seen.min() > 0 and seen.max() > LOG_FACTOR * seen.min():
        ax.set_yscale("log")
        canvas.log_ticks(ax.yaxis, seen.min(), seen.max())
    else:
        ax.set_ylim(bottom=0)


def _regrets(given: Any, name: str) -> Array:
    """Check the regrets of single rounds, (seeds, rounds)."""
    if isinstance(given, Trace):
        given = given.regret
    elif isinstance(given, Sequence) and all(isinstance(one, Trace) for one in given):
        given = [one.regret for one in given]
    found = np.atleast_2d(as_floats(given, f"runs[{name!r}]"))
    if found.ndim != 2 or not found.size:
        raise InputError(
            f"runs[{name!r}] must have regrets of shape (rounds,) or (seeds, rounds), got shape "
            f"{found.shape}."
        )
    return found

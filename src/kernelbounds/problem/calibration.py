"""Assumptions from pilot data: estimates and heuristics, none of which is a guarantee."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import chi2
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern, WhiteKernel

from kernelbounds import kernels
from kernelbounds.arrays import Array, as_vector
from kernelbounds.display.numbers import at_most
from kernelbounds.errors import InputError
from kernelbounds.kernels import kernel_to_text
from kernelbounds.problem.candidate_kernels import correlation
from kernelbounds.problem.checked import checked_assumptions, noise_so_far
from kernelbounds.problem.inputs import Input
from kernelbounds.problem.problem import Problem
from kernelbounds.problem.runs import MIN_POINTS, count_repeats

# Length scales are looked for in this range, in units of the ranges of the inputs, and the noise in
# this one, in units of the scatter of the outcomes.
LENGTH_SCALES, NOISES = (0.05, 10.0), (1e-4, 1.0)
# Starts of scikit-learn's optimiser, besides the first.
RESTARTS = 4
# The noise is smaller than what repeats suggest with this probability.
NOISE_CONFIDENCE = 0.95
# With fewer repeats than this, how they scatter says next to nothing about the noise.
MIN_REPEATS = 2


@dataclass(frozen=True)
class Finding:
    """A quantity that pilot data suggest to assume, and what the suggestion rests on.

    Attributes
    ----------
    what : str
        The quantity, such as "noise".
    value : str
        Its value, in the user's units.
    kind : str
        "stated assumption", "guarantee", "estimate" or "heuristic".
    why : str
        Where the value comes from.

    Examples
    --------
    >>> from kernelbounds.problem import Problem, calibrate
    >>> x = np.linspace(0, 1, 8)
    >>> found = calibrate(Problem(["x=0:1"], "y=-1.5:1.5", noise=0.1), x[:, None], np.sin(4 * x))
    >>> {one.kind for one in found.suggestions} <= {"stated assumption", "estimate", "heuristic"}
    True
    """

    what: str
    value: str
    kind: str
    why: str


@dataclass(frozen=True)
class Calibration:
    """The assumptions that pilot data suggest, see :func:`calibrate`.

    Attributes
    ----------
    problem : Problem
        The problem given, with the turns that are suggested, a kernel and a norm bound for them,
        and the noise where it was given or measured by repeats.
    suggestions : tuple of Finding
        One line for each quantity: ``what`` it is, its ``value`` in your units, of which ``kind``
        it is (a stated assumption, a guarantee, an estimate or a heuristic), and ``why``.

    Examples
    --------
    >>> from kernelbounds.problem import Problem, calibrate
    >>> x = np.linspace(0, 1, 8)
    >>> found = calibrate(Problem(["x=0:1"], "y=-1.5:1.5", noise=0.1), x[:, None], np.sin(4 * x))
    >>> turns = found.suggestions[2]
    >>> turns.what, turns.value, turns.kind
    ('turns', 'x 1', 'heuristic')
    >>> found.problem.inputs[0].turns  # and the problem has them
    1
    """

    problem: Problem
    suggestions: tuple[Finding, ...]


def calibrate(problem: Problem, X: Array, y: Array) -> Calibration:
    """Suggest length scales, noise and the least B from pilot data, in the user's units.

    The guarantee of bounds is for assumptions that were made without the data they are used on:
    take other data for those, or say that you did not. For the same reason what is fitted here is
    not guaranteed: the least B is that of a kernel, and often of a noise, fitted to the same data.
    Two things are guaranteed, with probability 1 - delta: the least B under the kernel and the
    noise that ``problem`` has already, if it has both; and, where its noise is unknown, an upper
    bound on that. They rest on the outcomes in the order in which they were measured.

    Examples
    --------
    >>> from kernelbounds.problem import Problem
    >>> x = np.repeat(np.linspace(0, 1, 8), 2)
    >>> y = np.sin(4 * x) + 0.1 * np.tile([-1, 1], 8)
    >>> found = calibrate(Problem(["x=0:1"], "y=-1.5:1.5"), x[:, None], y)
    >>> [one.kind for one in found.suggestions]
    ['estimate', 'heuristic', 'heuristic', 'stated assumption', 'estimate']
    """
    points = problem.scaled(X)
    outcomes, noise_scales = problem.scaled_outcomes(y)
    as_vector(outcomes, "y", len(points))
    distinct = len(points) - count_repeats(points)
    if distinct < MIN_POINTS or np.ptp(outcomes) == 0:
        raise InputError(
            f"calibration needs at least {MIN_POINTS} different points and outcomes that differ, "
            f"got {distinct} points."
        )
    scales, residual = _fitted(problem, points, outcomes)
    noise, estimated = _noise(problem, points, outcomes, residual)
    law = problem.stated_noise.law
    if problem.noise is not None and law is not None:
        kept = f"You stated {problem.stated_noise.text()}; kept"
        said = problem.stated_noise
        if noise.kind == "estimate" and estimated > (said.scale or said.planned):
            kept += ", though that is less: state it again if you have no reason to trust it more"
        noise = replace(noise, why=f"{noise.why}. {kept}")
    # Rice's formula: how often a Gaussian process with an RBF kernel turns on average.
    turns = [math.ceil(math.sqrt(3) / (math.pi * scale)) for scale in scales]
    inputs = list(problem.inputs)
    for at, most in zip(problem.inputs.numbers, turns, strict=True):
        inputs[at] = replace(inputs[at], turns=most)
    numbers = [inputs[at] for at in problem.inputs.numbers]
    level: dict[str, Any] = {}
    if law is None:
        percent = f"{100 * math.expm1(estimated):.3g}%"  # as it is shown
        level["noise"] = percent if problem.output.log else estimated
    suggested = problem.replace(inputs=inputs, kernel=None, norm_bound=None, **level).settled()
    observed = points, outcomes, noise_scales
    least = _least_norm(suggested, observed)
    rest = (
        Finding(
            "length scales", ", ".join(map(_in_units, numbers, scales)), "heuristic",
            "those of largest likelihood for a Gaussian process with a Matérn-5/2 kernel",
        ),
        Finding(
            "turns", ", ".join(f"{i.name} {i.turns}" for i in numbers), "heuristic",
            "what functions with these length scales do on average",
        ),
        Finding(
            "norm bound B", suggested.norm_text,
            "stated assumption",
            f"covers {100 * problem.quantile:g} % of random functions with your range and these "
            f"turns, with the kernel of the narrowest band, {kernel_to_text(suggested.kernel)}",
        ),
        Finding(
            "B at least", least, "estimate",
            "a smaller B does not explain these data with that kernel and noise; that would be "
            f"guaranteed, {problem.certainty}, if neither had been fitted to "
            "the same data, and no data can give an upper limit for B",
        ),
        *_guaranteed(problem, observed),
    )  # fmt: skip
    if problem.noise is None and noise.kind == "heuristic":
        suggested = suggested.replace(noise=None)  # Nobody should rely on a heuristic.
    return Calibration(suggested, (noise, *rest))


def _least_norm(problem: Problem, observed: tuple[Array, Array, Array | None]) -> str:
    """Write the least B that the data allow under the kernel and the noise of a problem."""
    sequence = problem.sequence()
    sequence.update(*observed)
    least = checked_assumptions(problem, sequence)[0].at_least
    return problem.output.norm_text(least) if math.isfinite(least) else "no B is large enough"


def _guaranteed(problem: Problem, observed: tuple[Array, Array, Array | None]) -> list[Finding]:
    """Return what pilot data guarantee, under assumptions that were stated before the data.

    Forecasts by which unknown noise is bounded may be wrong, but must not know the outcomes: they
    are those of the kernel that follows from the problem as it was stated.
    """
    found, sure = [], problem.certainty
    if problem.kernel is not None and problem.stated_noise.law is not None:
        own = problem.settled()
        found.append(
            Finding(
                "B at least, by what was stated", _least_norm(own, observed), "guarantee",
                f"{sure}, with the kernel that you gave, {kernel_to_text(own.kernel)}, and "
                f"{own.stated_noise.clause}: if these hold, and were stated without looking at "
                "these data",
            )
        )  # fmt: skip
    if problem.stated_noise.is_unknown:
        sequence = problem.settled().sequence()
        sequence.update(*observed)
        noise = checked_assumptions(problem, sequence)[1]
        most = float(noise.at_most or 0.0)
        if most >= noise.assumed:
            more = "; the data do not lower this limit yet" if math.isfinite(most) else ""
            found.append(
                Finding(
                    "noise at most", noise_so_far(problem, noise), "stated assumption",
                    f"some 20 to 40 rows are needed before data bound the noise{more}",
                )
            )  # fmt: skip
            return found
        found.append(
            Finding(
                "noise at most", problem.stated_noise.text(most, at_most), "guarantee",
                f"{sure}, whatever the function and the kernel are, if noise is Gaussian with the "
                "same standard deviation in all runs, and the rows are in the order in which they "
                "were measured",
            )
        )  # fmt: skip
    return found


def _in_units(one: Input, scale: float) -> str:
    """Write a length scale in the units of its input."""
    if one.log:
        return f"{one.name} a factor of {(one.high / one.low) ** scale:.3g}"
    return f"{one.name} {scale * one.range:.3g}{one.after_number}"


def _fitted(problem: Problem, points: Array, outcomes: Array) -> tuple[Array, float]:
    """Return the length scales of the numbers and the noise of largest likelihood."""
    scatter = float(np.std(outcomes))
    dim = len(problem.inputs.numbers)
    if not dim:
        raise InputError("calibration fits length scales, and all inputs are categories.")
    matern: Kernel = Matern(np.full(dim, 0.5), [LENGTH_SCALES] * dim, nu=2.5)
    kernel = ConstantKernel(1.0, (1e-2, 1e3))
    if problem.inputs.categories:
        matern = kernels.OnInputs(matern, problem.inputs.numbers)
        for at in problem.inputs.categories:
            level = correlation(problem.inputs[at].matters)
            kernel *= kernels.OnInputs(kernels.Levels(level), [at])
    kernel = kernel * matern + WhiteKernel(0.01, (NOISES[0] ** 2, NOISES[1] ** 2))
    model = GaussianProcessRegressor(kernel, n_restarts_optimizer=RESTARTS, random_state=0)
    with warnings.catch_warnings():
        # Inputs without an effect end at the longest scale: that is the answer, not a failure.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(points, (outcomes - outcomes.mean()) / scatter)
    smooth, white = model.kernel_.k1.k2, model.kernel_.k2
    smooth = getattr(smooth, "kernel", smooth)  # the kernel of the numbers, without categories
    return np.atleast_1d(smooth.length_scale), scatter * math.sqrt(white.noise_level)


def _noise(
    problem: Problem, points: Array, outcomes: Array, residual: float
) -> tuple[Finding, float]:
    """Suggest the noise, from repeats if there are some, or else from the fit; also its scale."""
    if problem.counts is not None:
        why = "that of independent tries, 1 / (2 sqrt(n)) of a rate of n of them"
        found = f"follows from {problem.counts.tries}"
        return Finding("noise", found, "stated assumption", why), problem.counts.noise_scale

    def said(scale: float) -> str:
        return problem.output.noise_text(float(problem.output.difference(scale)), "{:.3g}".format)

    _, group, counts = np.unique(points, axis=0, return_inverse=True, return_counts=True)
    group = group.reshape(-1)
    freedom = len(points) - len(counts)
    if freedom < MIN_REPEATS:
        why = "what a Gaussian process leaves unexplained, and often far too little"
        if problem.noise is None:
            why += (
                ", so that it is not in the problem: repeat some settings to measure it, or state "
                "it generously"
            )
        return Finding("noise", said(residual), "heuristic", why), residual
    means = np.bincount(group, outcomes) / counts
    spread = math.sqrt(float(np.sum((outcomes - means[group]) ** 2)) / freedom)
    # Rounded as it is shown, so that the problem says the same.
    upper = float(f"{spread * math.sqrt(freedom / chi2.ppf(1 - NOISE_CONFIDENCE, freedom)):.3g}")
    why = (
        f"repeats scatter by {said(spread)} ({freedom} degrees of freedom), and Gaussian noise "
        f"is below {said(upper)} with confidence {NOISE_CONFIDENCE:g}"
    )
    return Finding("noise", said(upper), "estimate", why), upper

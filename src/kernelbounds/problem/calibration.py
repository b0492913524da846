"""Tables of runs, and what they say of assumptions: suggestions, doubts and refutations.

:func:`calibrate` turns pilot data into assumptions; :func:`share_alone` and :func:`look_chosen` ask
whether a table suits the assumptions and the bound with which it is about to be used. These are
estimates and heuristics, and none of them is a guarantee or a proof. :func:`checked_assumptions`
gives the smallest values that the data allow, below which an assumption is refuted.
"""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Self

import numpy as np
from scipy.stats import chi2, combine_pvalues, qmc
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern, WhiteKernel

from kernelbounds import kernels
from kernelbounds.arrays import Array, as_vector, brief
from kernelbounds.display.numbers import at_least, at_most
from kernelbounds.errors import InputError
from kernelbounds.io.csv_table import read_csv
from kernelbounds.kernels import kernel_to_text
from kernelbounds.noise import Gaussian
from kernelbounds.problem.assuming import correlation
from kernelbounds.problem.inputs import Input
from kernelbounds.problem.model import norm_at_least
from kernelbounds.problem.noise_in_words import UNKNOWN
from kernelbounds.problem.problem import Problem
from kernelbounds.sequence import ConfidenceSequence

# An observation with correlations below this to all others says nothing about them: at 0.1 it
# explains a hundredth of their variance.
MIN_CORRELATION = 0.1
# A design that was fixed in advance looks chosen with at most this probability, for each of the two
# directions.
FALSE_ALARM_PROBABILITY = 0.001
# After fewer observations there is no best one to speak of.
FIRST_OBSERVATIONS = 5
# Shares of the box are counted on this many points that fill it.
BOX_POINTS = 256
# Length scales are looked for in this range, in units of the ranges of the inputs, and the noise in
# this one, in units of the scatter of the outcomes.
LENGTH_SCALES, NOISES = (0.05, 10.0), (1e-4, 1.0)
# Starts of scikit-learn's optimiser, besides the first.
RESTARTS = 4
# The noise is smaller than what repeats suggest with this probability.
NOISE_CONFIDENCE = 0.95
# With fewer different points a fit of length scales says nothing.
MIN_POINTS = 5
# With fewer repeats than this, how they scatter says next to nothing about the noise.
MIN_REPEATS = 2
# Outcomes that span less than the first part of the stated range, or more than the second, may be
# in another unit: per mille of a percentage, bar for kPa.
USUAL_SPAN = 0.02, 1.5
# An assumption is strained when the data need more than this share of what is assumed.
STRAINED_SHARE = 0.9


@dataclass(frozen=True, eq=False)
class Runs:
    """A table of runs: points (n, d) and outcomes (n,) in the user's units.

    Where outcomes are rates, ``measured`` has successes and tries (n, 2); otherwise it is the same
    as ``outcomes``. For messages, rows are named by their ``lines`` in a CSV file, or by their
    numbers from 1 on. Columns that are neither inputs nor outcomes are ``unused``.
    """

    points: Array
    outcomes: Array
    measured: Array
    lines: Sequence[int]
    noun: str
    unused: tuple[str, ...] = ()

    @classmethod
    def read(cls, problem: Problem, table: Any, name: str | None = None) -> Self:
        """Read runs from a CSV file, a dict of columns or a data frame, by the names of columns.

        Messages call a file by ``name``, or by its path.
        """
        columns, measured = table, problem.measured
        names = [*problem.names, *measured]
        lines: Sequence[int] = range(1, sys.maxsize)
        noun = place = "row"
        if isinstance(table, str | PathLike):
            found = read_csv(table, names, problem.inputs.categories_by_name, name)
            columns, lines, others = found.columns, found.lines.tolist(), found.others
            noun, place = "line", f"{name or os.fspath(table)}: line"
        elif not isinstance(table, Mapping) and not hasattr(table, "columns"):
            raise InputError(f"runs must be a CSV file or columns by name, got {brief(table)}.")
        else:
            others = tuple(str(one) for one in columns if one not in names)
        for column in measured:
            if column not in columns:
                raise InputError(f"a value of {column} is missing.")

        def at(row: int) -> str:
            return f"{place} {lines[row]}: "

        points = problem.inputs.checked_points(columns, at)
        each = [as_vector(columns[one], one, len(points)) for one in measured]
        told = np.stack(each, axis=-1) if problem.counts is not None else each[0]
        scaled, _ = problem.scaled_outcomes(told, at)
        outcomes = told if problem.counts is None else scaled
        return cls(points, outcomes, told, lines, noun, others)

    def refuse_more_levels_than_rows(self, problem: Problem) -> None:
        """Refuse a table that cannot have a row for each level: too little to bound anything."""
        for at, levels in problem.inputs.categories.items():
            if len(levels) > len(self.outcomes):
                raise InputError(
                    f"{problem.names[at]} has {len(levels)} levels, but the table has only "
                    f"{len(self.outcomes)} rows: merge some levels, or make more runs, so that "
                    "each level can have one."
                )

    def place(self, row: int) -> str:
        """Say where a row is: "line 3" of a file, or "row 2"."""
        return f"{self.noun} {self.lines[row]}"


def share_alone(kernel: Kernel, points: Array) -> float:
    """Return the share of the distinct points (n, d) that the kernel relates to no other one.

    If most points are alone, the length scales are far too short for these data: between the
    points, no bound is narrower than without data.
    """
    distinct = np.unique(points, axis=0)
    if len(distinct) < 2:
        return 0.0
    matrix = kernels.cross(kernel, distinct, distinct)
    roots = np.sqrt(np.diag(matrix))
    correlations = np.abs(matrix / np.multiply.outer(roots, roots))
    np.fill_diagonal(correlations, 0.0)
    return float(np.mean(correlations.max(axis=1) < MIN_CORRELATION))


def doubtful_unit(problem: Problem, points: Array, outcomes: Array) -> str:
    """Ask whether outcomes (n,) are in the unit of the range; an empty text where it seems so.

    Points and outcomes are on the scale of the model. Noise explains some more than the range, and
    a few settings say little about how much an output moves.

    >>> problem = Problem(["x=0:1"], "yield[%]=0:100", noise=0.5)
    >>> print(doubtful_unit(problem, np.linspace(0, 1, 5)[:, None], np.linspace(0.5, 0.9, 5)))
    the outcomes of yield span 0.4 %, but its range was stated as 100 %: are both in the same unit?
    """
    out, low, high = problem.output, *USUAL_SPAN
    if problem.counts is not None or not len(outcomes):
        return ""
    span, few = float(np.ptp(outcomes)), len(np.unique(points, axis=0)) < MIN_POINTS
    most = high * out.span + 8 * (problem.stated_noise.scale or 0.0)
    if span <= most and (span >= low * out.span or few):
        return ""
    spanned = out.amount(float(out.difference(span)), "{:.3g}".format)
    return (
        f"the outcomes of {out.name} span {spanned}, but its range was stated as "
        f"{out.stated_range}: are both in the same unit?"
    )


def look_chosen(points: Array, outcomes: Array) -> bool:
    """Tell whether points (n, d), in their order, seem to follow the outcomes before them.

    For each new point after the first few, p is the share of the box around all points that is
    nearer to the best point so far. If the points were drawn from that box beforehand, the p are
    uniform and independent, wherever the best points are, and Fisher's test combines them. Designs
    that fill the box evenly come close to that; where a design seeks the maximum, or the minimum,
    many p are small.
    """
    low, high = points.min(axis=0), points.max(axis=0)
    filling = qmc.Sobol(points.shape[1], rng=np.random.default_rng(0)).random(BOX_POINTS)
    box = low + (high - low) * filling
    shares = []
    for t in range(FIRST_OBSERVATIONS, len(points)):
        if np.any(np.all(points[:t] == points[t], axis=1)):
            continue  # Repeats are made to measure the noise.
        best = points[[np.argmax(outcomes[:t]), np.argmin(outcomes[:t])]]
        distances = np.linalg.norm(points[t] - best, axis=1)
        nearer = np.linalg.norm(box[:, None] - best, axis=2) < distances
        shares.append((np.count_nonzero(nearer, axis=0) + 1) / (BOX_POINTS + 1))
    tests = [combine_pvalues(side, method="fisher") for side in np.transpose(shares)]
    return any(one.pvalue < FALSE_ALARM_PROBABILITY for one in tests)


@dataclass(frozen=True)
class Checked:
    """What the data say of an assumption: ``norm_bound`` or ``noise`` of a :class:`Status`.

    Attributes
    ----------
    assumed : float
        What was assumed when the study was made, in the user's units; for a logarithmic output,
        noise is a share, and the norm bound one of its natural logarithm. Infinite where noise was
        said to be unknown, without a limit.
    at_least : float
        The smallest value that these data allow, when the other assumptions stay as they are.
    at_most : float or None
        Of unknown noise: the largest value that these data allow, whatever the kernel and the norm
        bound are, or the limit that was stated. Infinite while there are too few, some 20 to 40.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> problem = kb.Problem(
    ...     ["speed[rpm]=100:500"], "yield[%]=0:100", noise=0.5, kernel="Matern(0.8, nu=2.5)",
    ...     norm_bound=80.0,
    ... )
    >>> study = kb.Study.create(":memory:", problem)
    >>> study.status().noise  # before the first observation the data allow everything
    Checked(assumed=0.5, at_least=0.0)
    >>> study.status().noise.strained
    False
    """

    assumed: float
    at_least: float
    at_most: float | None = None

    def __repr__(self) -> str:
        more = "" if self.at_most is None else f", at_most={self.at_most!r}"
        return f"Checked(assumed={self.assumed!r}, at_least={self.at_least!r}{more})"

    @property
    def strained(self) -> bool:
        """Whether what is assumed is little more than the data need, or less."""
        return self.at_least > STRAINED_SHARE * self.assumed

    def as_data(self) -> dict[str, float | None]:
        """Return the attributes as plain data for JSON; infinity becomes None."""
        names = ("assumed", "at_least", *["at_most"][: self.at_most is not None])
        values = {name: getattr(self, name) for name in names}
        return {name: one if math.isfinite(one) else None for name, one in values.items()}


def checked_assumptions(problem: Problem, sequence: ConfidenceSequence) -> tuple[Checked, Checked]:
    """Return what the data say of the norm bound, and what they say of the noise."""
    norm = float(problem.norm_bound or 0.0)
    law, in_units = problem.stated_noise.law, problem.stated_noise.in_units
    noise, most = in_units(problem.stated_noise.scale or 0.0, up=True), None
    if isinstance(law, Gaussian) and not law.scale_is_stated:
        noise = in_units(law.at_most or math.inf, up=True)
        most = in_units(sequence.noise_upper_bound, up=True)
    if not len(sequence):
        return Checked(norm, 0.0), Checked(noise, 0.0, most)
    least = sequence.norm_lower_bound
    if sequence.classes is None:
        least = norm_at_least(problem, least)
    else:  # All norm bounds must be multiplied by this.
        least = norm * least / sequence.assumptions.norm_bound
    return Checked(norm, least), Checked(noise, in_units(sequence.noise_lower_bound), most)


def noise_so_far(problem: Problem, noise: Checked) -> str:
    """Write the noise that is assumed and, where it is unknown, what the data say of it.

    >>> problem = Problem(["x=0:1"], "strength[MPa]=20:60", "unknown")
    >>> noise_so_far(problem, Checked(math.inf, 0.21, 0.4321))
    'unknown, at most 0.433 MPa so far (at least 0.210 MPa)'
    >>> noise_so_far(problem, Checked(math.inf, 0.0, math.inf))
    'unknown (not known yet: some 20 to 40 runs are needed)'
    """
    if noise.at_most is None:
        return problem.stated_noise.text()
    if math.isinf(noise.at_most):
        return f"{UNKNOWN} (not known yet: some 20 to 40 runs are needed)"
    stated = noise.at_most >= noise.assumed
    least = ""
    if 0 < noise.at_least < math.inf:
        least = f" (at least {problem.stated_noise.text(noise.at_least, at_least)})"
    # The limit that was stated has the digits with which it was stated.
    most = f"{problem.stated_noise.text()} as stated" if stated else (
        f"{UNKNOWN}, at most {problem.stated_noise.text(noise.at_most, at_most)} so far"
    )  # fmt: skip
    return f"{most}{least}"


@dataclass(frozen=True)
class Finding:
    """Something to assume, with what it rests on.

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
    """Return what pilot data guarantee by what was stated before them, and was not fitted to them.

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
    """Suggest the noise, from repeats where there are some, else from the fit; and its scale."""
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


def count_repeats(points: Array) -> int:
    """Count the rows (n, d) that repeat the settings of an earlier one."""
    return len(points) - len(np.unique(points, axis=0))

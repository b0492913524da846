"""A problem in the user's own words, and what follows from it alone."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel

from kernelbounds.arrays import (
    EPS,
    LARGEST,
    Array,
    as_points,
    as_scalar,
    as_whole,
    brief,
    shortened,
)
from kernelbounds.bandits import Box
from kernelbounds.bounds import Bound
from kernelbounds.categories import Categories
from kernelbounds.display import cards as notebook
from kernelbounds.errors import InputError, said
from kernelbounds.facts import Fact
from kernelbounds.io import files
from kernelbounds.kernels import (
    category_inputs,
    checked_kernel,
    kernel_from_text,
    kernel_to_text,
)
from kernelbounds.noise import Noise, SubGaussian
from kernelbounds.problem import facts_in_words
from kernelbounds.problem.facts_in_words import NO_FACTS, SHAPES, Limits
from kernelbounds.problem.noise_in_words import (
    WITHIN,
    StatedNoise,
    checked_noise,
    parts_of_noise,
)
from kernelbounds.problem.outcomes import Counts, checked_outcomes
from kernelbounds.problem.quantities import Input, Output, checked_turns, in_digits
from kernelbounds.problem.random_functions import with_corners
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.structure.classes import AnyOf

FORMAT = "kernelbounds problem 1"
INTERACTIONS = ("all", "pairs", "none")
# An unknown level adds this share to the square of the norm bound, and so two per cent to B.
LEVEL_SHARE = 0.04
# The arguments that can be suggested, and those that a suggestion follows from.
SUGGESTED = ("kernel", "norm_bound", "candidates")
SUGGESTED_FROM = {
    "inputs", "output", "turns", "interactions", "quantile", "experiments", "kernels", *NO_FACTS,
    "successes",
}  # fmt: skip
KERNELS = ("one", "any")
# Where widths are predicted: points that fill the cube, besides the corners, where bounds are
# widest.
WIDTH_POINTS = 128


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """What is known of a system before any measurement, in the user's own words and units.

    From this alone, without a look at the data, follow the scaling of the inputs, what is known of
    the level of the output, a kernel and a bound B on the norm: see :meth:`settled`.

    Parameters
    ----------
    inputs : sequence of :class:`~kernelbounds.problem.Input`, or of their text form
        ``"temperature[°C]=180:220"``, then ``:log``, ``:integer``, ``:turns=1`` as need be. A
        category is written ``"quench=oil|water|air"``, then ``:matters=0.3`` as need be.
    output : :class:`~kernelbounds.problem.Output`, or ``"yield[%]=0:100"``
        What is measured, with the range that its true values can plausibly have;
        ``"productivity=1.5:5:log"`` where effects and noise multiply.
    noise : float or str, optional
        The standard deviation of the noise, in units of the output; needed for all bounds. That of
        a logarithmic output is a percentage, ``"5%"``. Or ``"unknown"``, where noise is Gaussian
        with one standard deviation in all runs; ``"unknown, at most 2"``; ``"within 0.5"``, where
        no measurement is ever farther from the true value and errors are 0 on average (with
        ``delta=0`` they need not be).
    turns : int
        How many times the output may turn as one input goes through its range and the others stay.
    interactions : "all", "pairs" or "none"
        Whether the effect of an input may depend on all others; "pairs": the output is a sum of
        functions of two inputs each; "none": of functions of single inputs.
    delta : float
        Failure probability of all bounds at once, given that the assumptions are true; it may be 0
        where noise is within a limit.
    quantile : float
        B is suggested such that about this share of random functions with that range and that many
        turns has a smaller norm; all others are not covered by the guarantee.
    experiments : int
        About how many measurements are planned: the kernel is the one whose band is then predicted
        to be the narrowest.
    kernel : kernel or its text, optional
        The kernel, of inputs that are scaled to [0, 1]; None: chosen.
    norm_bound : float, optional
        B in units of the output; None: suggested.
    suggested : sequence of str
        Which of "kernel", "norm_bound" and "candidates" follow from the rest, and anew when that
        changes.
    limits : str or pair, optional
        Hard limits of the true values, ``"0:60"``, ``"0:"`` or ``":60"``: not what is plausible, as
        the range of the output, but what is certain.
    increasing, decreasing, convex, concave : sequences of str
        Names of inputs along which the output never falls, never rises, lies below its chords, or
        above them, whatever the values of the others.
    known : sequence of str
        Values that are known, ``"catalyst=0 -> yield=0"``: where some of the inputs, or all, have
        given values. ``"catalyst=0 & pressure=1 -> yield=2 +- 0.5"`` is within 0.5 of 2.
    kernels : "one" or "any"
        Whether one kernel is chosen, or f* may be in the space of any of several; those that the
        data refute drop out.
    candidates : sequence of (kernel, B)
        With ``kernels="any"``: these kernels, with their norm bounds.
    successes, tries : str, optional
        Where the output is a rate: the columns of successes and of tries, from which the noise
        follows. ``tries="attempts=20"`` also says how many are planned a run; otherwise 1.

    Examples
    --------
    >>> problem = Problem(["temperature[°C]=180:220", "time[s]=1:1000:log"], "yield[%]=0:100", 0.5)
    >>> problem.scaled([[200.0, 10.0]]).round(3)
    array([[0.5  , 0.333]])
    >>> problem.replace(kernel="Matern(0.5, nu=2.5)", norm_bound=200).sequence().offset
    Offset(level=50.0, within=0.0)
    """

    inputs: tuple[Input, ...]
    output: Output
    noise: float | str | None
    turns: int
    interactions: str
    delta: float
    quantile: float
    experiments: int
    kernel: Kernel | None
    norm_bound: float | None
    suggested: tuple[str, ...]
    limits: Limits | None
    increasing: tuple[str, ...]
    decreasing: tuple[str, ...]
    convex: tuple[str, ...]
    concave: tuple[str, ...]
    known: tuple[str, ...]
    kernels: str
    candidates: tuple[tuple[Kernel, float], ...]
    successes: str | None
    tries: str | None

    def __init__(
        self,
        inputs: Sequence[Input | str],
        output: Output | str,
        noise: float | str | None = None,
        turns: int = 2,
        interactions: str = "all",
        *,
        delta: float = 0.01,
        quantile: float = 0.9,
        experiments: int = 100,
        kernel: Kernel | str | None = None,
        norm_bound: float | None = None,
        suggested: Sequence[str] = (),
        limits: str | Limits | None = None,
        increasing: Sequence[str] = (),
        decreasing: Sequence[str] = (),
        convex: Sequence[str] = (),
        concave: Sequence[str] = (),
        known: Sequence[str] = (),
        kernels: str = "one",
        candidates: Sequence[tuple[Kernel | str, float]] = (),
        successes: str | None = None,
        tries: str | None = None,
    ) -> None:
        if isinstance(inputs, str | bytes) or not isinstance(inputs, Sequence) or not inputs:
            raise InputError(f"inputs must be a sequence with at least one, got {brief(inputs)}.")
        parsed = tuple(one if isinstance(one, Input) else Input.parse(one) for one in inputs)
        output = output if isinstance(output, Output) else Output.parse(output)
        names = [one.name for one in (*parsed, output)]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"the name {name!r} is given {names.count(name)} times.")
        if not isinstance(interactions, str) or interactions not in INTERACTIONS:
            raise InputError(
                f"interactions must be one of {', '.join(INTERACTIONS)}, got {brief(interactions)}."
            )
        if not isinstance(kernels, str) or kernels not in KERNELS:
            raise InputError(f"kernels must be one of {', '.join(KERNELS)}, got {brief(kernels)}.")
        counts = Counts.parse(successes, tries)
        if counts is not None:
            counts.refuse_misfit(output, names, noise)
        if noise is not None:
            noise = checked_noise(noise, output)
        if norm_bound is not None:
            norm_bound = _checked_norm_bound(norm_bound, output)
        if kernel is not None:
            kernel = _checked_kernel(kernel)
            _refuse_categories_as_numbers(kernel, parsed)
        shapes = dict(zip(SHAPES, (increasing, decreasing, convex, concave), strict=True))
        shapes = {
            what: facts_in_words.checked_names(given, what, parsed)
            for what, given in shapes.items()
        }
        facts_in_words.refuse_both_ways(shapes["increasing"], shapes["decreasing"], output)
        facts_in_words.refuse_bends_of_logarithms(shapes, output)
        ends = facts_in_words.checked_limits(limits, output, of_rate=counts is not None)
        vars(self).update(
            inputs=parsed,
            output=output,
            noise=noise,
            turns=checked_turns(turns, "turns"),
            interactions=interactions,
            delta=_checked_delta(delta, noise),
            quantile=as_scalar(quantile, "quantile", least=0.5, most=0.99),
            experiments=as_whole(experiments, "experiments", least=1, most=2000),
            kernel=kernel,
            norm_bound=norm_bound,
            suggested=tuple(name for name in SUGGESTED if name in suggested),
            limits=ends,
            **shapes,
            known=facts_in_words.checked_known(known, parsed, output, ends),
            kernels=kernels,
            candidates=tuple(
                (_checked_kernel(one), _checked_norm_bound(norm, output))
                for one, norm in candidates or ()
            ),
            successes=successes,
            tries=tries,
        )

    def __repr__(self) -> str:
        """Write the problem as Python code, without the arguments that have their defaults."""
        arguments = [f"{[one.text for one in self.inputs]}", repr(self.output.text)]
        defaults = inspect.signature(Problem).parameters
        for name, value in self._arguments().items():
            if name in ("inputs", "output", "suggested") or value == defaults[name].default:
                continue
            text = f"{value:.6g}" if name == "norm_bound" else repr(_plain(name, value))
            arguments.append(f"{name}={text}")
        return f"Problem({', '.join(arguments)})"

    def _repr_html_(self) -> str:
        """Return a card for notebooks."""
        return notebook.shown(self, self._card)

    def _card(self) -> notebook.Html:
        out = self.output
        how = {name: " (suggested)" if name in self.suggested else "" for name in SUGGESTED}
        kernel = "to be chosen" if self.kernel is None else _kernel_text(self.kernel)
        kernel += f" or one of {len(self.candidates) - 1} others" if self.candidates else ""
        return notebook.card(
            "Problem",
            [
                *((one.name, one.description) for one in self.inputs),
                ("output", f"{out.name}, {out.description}"),
                ("noise", self.stated_noise.text()),
                ("turns", f"at most {self.turns} along an input, unless said there"),
                *[("interactions", self.interactions)][: self.dim - 1],
                *(("known", words) for words in self.facts_in_words),
                ("kernel", kernel + how["kernel"]),
                ("norm bound B", self.norm_text + how["norm_bound"]),
                ("confidence", f"{1 - self.delta:g}, for all bounds at once"),
            ],
        )

    # --- units

    @property
    def dim(self) -> int:
        """The number of inputs, d."""
        return len(self.inputs)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return tuple(one.name for one in self.inputs)

    @property
    def turns_of_inputs(self) -> Array:
        """How many times the output may turn along each input, (d,).

        Along an input with n whole numbers, the output cannot turn more than n - 2 times. It does
        not turn where it is known to rise or to fall, and once at most where it is convex or
        concave. The levels of a category have no order, and no turns.
        """
        stated = [self.turns if i.turns is None else i.turns for i in self.inputs]
        most = [i.range - 1 if i.integer else math.inf for i in self.inputs]
        most = [0 if i.levels else each for i, each in zip(self.inputs, most, strict=True)]
        for at, name in enumerate(self.names):
            if name in (*self.convex, *self.concave):
                most[at] = min(most[at], 1)
            if name in (*self.increasing, *self.decreasing):
                most[at] = 0
        return np.minimum(stated, most).astype(float)

    @property
    def plausible(self) -> tuple[float, float]:
        """The range of the output, as far as it is within the limits."""
        low, high = self.limits or (None, None)
        out = self.output
        return (
            out.low if low is None else max(low, out.low),
            out.high if high is None else min(high, out.high),
        )

    @property
    def facts(self) -> tuple[Fact, ...]:
        """What is known of the output, for inputs that are :meth:`scaled`.

        >>> Problem(["speed=1:9"], "yield=0:100", increasing=["speed"]).facts[0].axis
        0
        """
        return tuple(fact for _, fact in facts_in_words.stated_facts(self))

    @property
    def facts_in_words(self) -> tuple[str, ...]:
        """What is known of the output, in the user's words.

        >>> Problem(["rpm=1:9"], "yield[%]=0:99", limits="0:", increasing=["rpm"]).facts_in_words
        ('yield at least 0 %', 'yield rises with rpm')
        """
        return tuple(words for words, _ in facts_in_words.stated_facts(self))

    @property
    def box(self) -> Box:
        """The ranges of the inputs, in the user's units."""
        ends = [i.low for i in self.inputs], [i.high for i in self.inputs]
        return Box(*ends, self.names, self.categories)

    @property
    def categories(self) -> dict[int, Categories]:
        """The inputs that are categories, by their positions."""
        found = ((at, one.categories) for at, one in enumerate(self.inputs))
        return {at: levels for at, levels in found if levels is not None}

    @property
    def categories_by_name(self) -> dict[str, Categories]:
        """The inputs that are categories, by their names."""
        return {self.names[at]: levels for at, levels in self.categories.items()}

    @property
    def numbers(self) -> list[int]:
        """The positions of the inputs that are numbers, and no categories."""
        return [at for at, one in enumerate(self.inputs) if not one.levels]

    @property
    def axes(self) -> dict[str, Any]:
        """What pictures are told of the axes: logarithmic ones, and labels with units."""
        return {
            "log": [one.log for one in self.inputs],
            "labels": [one.label for one in self.inputs],
            "output": self.output.label,
            "log_output": self.output.log,
        }

    @property
    def unit_box(self) -> Box:
        """The ranges of the scaled inputs: the unit cube, and the levels of categories."""
        upper = [one.high if one.levels else 1.0 for one in self.inputs]
        return Box(np.zeros(self.dim), upper, self.names, self.categories)

    def points(self, X: Any) -> Array:
        """Read points (m, d), in the user's units, from an array, a dict or a data frame."""
        if isinstance(X, Mapping) or hasattr(X, "columns"):
            missing = [name for name in self.names if name not in X]
            if missing:
                raise InputError(
                    f"there is no value for {missing[0]!r}; the inputs are "
                    f"{shortened(', '.join(self.names), 200)}."
                )
            columns = [one.numbers(X[one.name]) for one in self.inputs]
            if len({column.shape for column in columns}) > 1:
                raise InputError("all inputs must have the same number of values.")
            X = np.stack(columns, axis=-1)
        elif self.categories and not isinstance(X, np.ndarray):
            rows = np.atleast_2d(np.asarray(X, dtype=object))
            if rows.shape[1] == self.dim:  # Levels may be given by name.
                for at, levels in self.categories.items():
                    rows[:, at] = [levels.number(one, self.names[at]) for one in rows[:, at]]
                X = rows.tolist()
        return as_points(X, "X", self.dim, one=True)

    def checked_points(self, X: Any, place: Callable[[int], str] = "row {}: ".format) -> Array:
        """Read points as :meth:`points` does, and raise where a value is out of its range.

        ``place`` says where a row is, at the beginning of the message.
        """
        points = self.points(X)
        for one, values in zip(self.inputs, points.T, strict=True):
            for row in np.flatnonzero(one.outside(values)):
                raise InputError(
                    f"{place(int(row))}{one.name} = {in_digits(values[row])} is not "
                    f"{one.expected}; correct it, or state a wider range."
                )
        return points

    def scaled(self, X: Any) -> Array:
        """Scale points (m, d) in the user's units to the unit cube."""
        return self.nearest(self.checked_points(X))

    def nearest(self, points: Array) -> Array:
        """Scale points (m, d), each from the nearest one that can be set.

        The nearest point is in the ranges, and whole where an input takes whole numbers only.
        """
        columns = zip(self.inputs, points.T, strict=True)
        return np.stack([one.scaled(values) for one, values in columns], axis=-1)

    def unscaled(self, unit: ArrayLike) -> Array:
        """Turn points (m, d) of the unit cube into the user's units."""
        points = as_points(unit, "unit", self.dim, one=True)
        columns = zip(self.inputs, points.T, strict=True)
        return np.stack([one.unscaled(values) for one, values in columns], axis=-1)

    def settable(self, unit: Array) -> Array:
        """Turn points (m, d) of the unit cube into settings, with few digits."""
        columns = zip(self.inputs, unit.T, strict=True)
        return np.stack([one.settable(values) for one, values in columns], axis=-1)

    def named(self, point: Iterable[float]) -> dict[str, Any]:
        """Return the values of a point (d,) by the names of the inputs; levels are names."""
        return {one.name: one.value(x) for one, x in zip(self.inputs, point, strict=True)}

    def columns(self, points: Array) -> dict[str, Any]:
        """Return points (m, d) as columns of a table, (m,) each; levels are names."""
        return {
            one.name: [one.value(x) for x in values] if one.levels else values
            for one, values in zip(self.inputs, points.T, strict=True)
        }

    def settings_text(self, point: Iterable[float | str]) -> str:
        """Write a point (d,) for people, with the units that were stated.

        >>> problem = Problem(["temperature[°C]=180:220", "pH value=1:9"], "yield=0:100")
        >>> problem.settings_text([200, 7.5])
        'temperature=200 °C "pH value"=7.5'
        """
        return " ".join(one.setting_text(x) for one, x in zip(self.inputs, point, strict=True))

    # --- what is measured

    @property
    def counts(self) -> Counts | None:
        """The columns of successes and of tries, where the output is a rate of these."""
        return Counts.parse(self.successes, self.tries)

    @property
    def measured(self) -> tuple[str, ...]:
        """The names of what is measured in a run: the output, or successes and tries.

        >>> problem = Problem(["force=1:9"], "rate=0:1", successes="grasped", tries="attempts=20")
        >>> problem.measured
        ('grasped', 'attempts')
        """
        counts = self.counts
        return (self.output.name,) if counts is None else (counts.successes, counts.tries)

    @property
    def stated_noise(self) -> StatedNoise:
        """The noise: its law on the scale of the model, and what is said of it to people.

        >>> Problem(["x=0:1"], "gain[dB]=1:9", noise="unknown, at most 2").stated_noise.law
        Gaussian(scale=inf, at_most=2.0)
        """
        return StatedNoise(self.noise, self.output, self.counts, self.delta)

    @property
    def norm_text(self) -> str:
        """The norm bound as text, with its unit: ``B = 1718`` is ``1718``."""
        if self.norm_bound is None:
            return "to be chosen"
        return self.output.norm_text(self.norm_bound)

    @property
    def certainty(self) -> str:
        """How sure all bounds are at once, if the assumptions hold.

        >>> Problem(["x=0:1"], "gain[dB]=1:9", noise=0.5).certainty
        'with probability 0.99'
        >>> Problem(["x=0:1"], "gain[dB]=1:9", noise="within 0.5", delta=0).certainty
        'for certain'
        """
        return f"with probability {1 - self.delta:g}" if self.delta else "for certain"

    def scaled_outcomes(
        self, y: Any, place: Callable[[int], str] = "row {}: ".format
    ) -> tuple[Array, Array | None]:
        """Return outcomes (n,) and their noise scales, as :meth:`sequence` takes them.

        Outcomes are in the user's units; where the output is a rate, they are pairs (n, 2) of
        successes and tries. Logarithmic outputs become their natural logarithms. The noise scales
        are None where they are those of the sequence. ``place`` says where a row is, in messages.

        >>> problem = Problem(["force=1:9"], "rate=0:1", successes="grasped", tries="attempts")
        >>> problem.scaled_outcomes([[7, 10], [25, 25]])
        (array([0.7, 1. ]), array([0.15811388, 0.1       ]))
        """
        if self.counts is not None:
            return self.counts.rates(y, place)
        return checked_outcomes(y, self.output, len(y), place), None

    def bounds(
        self, sequence: ConfidenceSequence, X: Any, bound: Bound | None = None
    ) -> tuple[Array, Array]:
        """Return lower and upper bounds at points, all in the user's units, rounded outwards.

        ``sequence`` is one that :meth:`sequence` has made.

        >>> problem = Problem(["x=0:1"], "gain=1:9:log", "5%", kernel="RBF(0.5)", norm_bound=3.0)
        >>> sequence = problem.sequence()
        >>> sequence.update(problem.scaled([[0.2], [0.7]]), *problem.scaled_outcomes([2.1, 4.0]))
        >>> lower, upper = problem.bounds(sequence, [[0.2]])
        >>> bool(1.5 < lower[0] < 2.1 < upper[0] < 3)
        True
        """
        return self.unscaled_bounds(*sequence.bounds(self.scaled(X), bound))

    def estimate_with_bounds(
        self, sequence: ConfidenceSequence, X: Any, bound: Bound | None = None
    ) -> tuple[Array, Array, Array]:
        """Return estimates, lower bounds and upper bounds at points, all in the user's units.

        See :meth:`~kernelbounds.ConfidenceSequence.estimate`. The estimate of a logarithmic output
        is made for its logarithm, and comes back as the bounds do: it is one of the median of
        outcomes.

        >>> problem = Problem(["x=0:1"], "gain=1:9:log", "5%", kernel="RBF(0.5)", norm_bound=3.0)
        >>> sequence = problem.sequence()
        >>> sequence.update(problem.scaled([[0.2], [0.7]]), *problem.scaled_outcomes([2.1, 4.0]))
        >>> estimate, lower, upper = problem.estimate_with_bounds(sequence, [[0.2]])
        >>> print(f"about {estimate[0]:.1f}, between {lower[0]:.1f} and {upper[0]:.1f}")
        about 2.1, between 1.7 and 2.6
        """
        return self.unscaled_estimate(*sequence.estimate_with_bounds(self.scaled(X), bound))

    def unscaled_estimate(
        self, estimate: ArrayLike, lower: ArrayLike, upper: ArrayLike
    ) -> tuple[Array, Array, Array]:
        """Turn estimates and bounds of :meth:`sequence` into the user's units."""
        below, above = self.unscaled_bounds(lower, upper)
        return np.minimum(np.maximum(self.output.most(estimate), below), above), below, above

    def unscaled_bounds(self, lower: ArrayLike, upper: ArrayLike) -> tuple[Array, Array]:
        """Turn lower and upper bounds of :meth:`sequence` into the user's units."""
        below, above = self.output.least(lower), self.output.most(upper)
        if self.output.log and self.limits is not None:
            # A limit comes back from its logarithm as it was stated, and not a few digits beyond.
            low, high = self.limits
            below = _at_limit(below, low) if low is not None else below
            above = _at_limit(above, high) if high is not None else above
        return below, above

    # --- what follows

    def settled(self) -> Problem:
        """Return the problem with a kernel and a norm bound, which follow from it where missing.

        See :func:`kernelbounds.problem.assume`, which says how they were found.
        """
        from kernelbounds.problem.assuming import assume

        if self.kernel is not None and self.norm_bound is not None:
            return self
        return assume(self).problem

    def sequence(
        self,
        bound: Bound | None = None,
        *,
        facts: Sequence[Fact] | None = None,
        noise_scale: float | Noise | None = None,
    ) -> ConfidenceSequence:
        """Make a confidence sequence for points that are :meth:`scaled`.

        Its outcomes are :meth:`scaled_outcomes`, and its bounds are for :meth:`unscaled_bounds`;
        both change nothing unless the output is logarithmic or a rate. On that scale,

        f* = the middle of the output's range + b + g with ||g|| <= B, and an unknown constant b of
        which |b| is at most the whole range: the level to which a function of least norm returns
        may be outside of its values. With the kernel k + w^2 and w^2 = range^2 / (s B^2),
        ||b + g||^2 <= b^2 / w^2 + B^2 <= (1 + s) B^2, s = LEVEL_SHARE. (``Offset(within=...)`` has
        shares that follow the data, and then widths cannot be predicted as well.) That costs two
        percent of the width, and more only where the range is thousands of times B, which no B
        that :func:`assume` suggests is: then w^2 takes digits from k.

        With ``kernels="any"`` f* is in any of the candidates' spaces. ``facts`` are in place of
        those that the problem states, with the one kernel that was chosen; ``facts=()`` is what
        widths can be predicted for. ``noise_scale`` is in place of that of the problem, under the
        same law; noise that was unknown is then known. It may also be another law.
        """
        noise = self.stated_noise.law
        if isinstance(noise_scale, Noise):
            noise = noise_scale
        elif noise_scale is not None:
            noise = SubGaussian(noise_scale) if noise is None else noise.at_scale(noise_scale)
        if noise is None:
            raise InputError(
                "the noise of the output is missing; 0 means that there is none, and 'unknown' "
                "that the data bound it."
            )
        problem, out = self.settled(), self.output
        several = problem.candidates if facts is None else ()
        balls = [
            self._with_level(*one)
            for one in several or [(problem.kernel, float(problem.norm_bound or 0.0))]
        ]
        kernel, norm_bound = (AnyOf(balls), None) if several else balls[0]
        try:
            return ConfidenceSequence(
                kernel, norm_bound, noise, self.delta, bound=bound,
                offset=out.middle, facts=self.facts if facts is None else facts,
            )  # fmt: skip
        except InputError as error:
            raise InputError(facts_in_words.in_users_words(self, str(error))) from None

    def _with_level(self, kernel: Kernel, norm_bound: float) -> tuple[Kernel, float]:
        """Add the unknown constant b to a kernel and its norm bound, see :meth:`sequence`."""
        level = ConstantKernel((self.output.span / norm_bound) ** 2 / LEVEL_SHARE)
        # Rounded up: the quotient above, the root and the product are rounded.
        return kernel + level, norm_bound * math.sqrt(1 + LEVEL_SHARE) * (1 + 4 * EPS)

    def norm_at_least(self, of_sequence: float) -> float:
        """Return the least ||g|| for which the norm of b + g in :meth:`sequence` is at least this.

        ||g||^2 >= ||b + g||^2 - s B^2 for all levels b that are admitted there, at most the range
        away from its middle. So the result is above B where the data refute B.
        """
        level = LEVEL_SHARE * float(self.norm_bound or 0.0) ** 2
        return math.sqrt(max(0.0, of_sequence**2 - level))

    def replace(self, **changes: Any) -> Problem:
        """Return the problem with some arguments changed, without suggestions made for the others.

        A norm bound that was suggested for another kernel is taken back, too. What is given now no
        longer counts as suggested.
        """
        forgotten: dict[str, Any] = {}
        if changes.keys() & SUGGESTED_FROM:
            forgotten = dict.fromkeys(self.suggested)
        elif "kernel" in changes:
            forgotten = dict.fromkeys({"norm_bound", "candidates"} & set(self.suggested))
        given = forgotten.keys() | changes.keys()
        still = {"suggested": tuple(name for name in self.suggested if name not in given)}
        return Problem(**(self._arguments() | forgotten | still | changes))

    def _arguments(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    # --- files

    def as_data(self) -> dict[str, Any]:
        """Return the arguments as plain data for JSON."""
        data = {"format": FORMAT} | self._arguments()
        data["inputs"] = [_input_data(one) for one in self.inputs]
        data["output"] = dataclasses.asdict(self.output)
        data["kernel"] = None if self.kernel is None else kernel_to_text(self.kernel)
        data["suggested"] = list(self.suggested)
        if not self.output.log:
            del data["output"]["log"]
        # A problem that states no facts looks as it did before there were any.
        for name in (*NO_FACTS, "kernels", "candidates", "successes", "tries"):
            value = data.pop(name)
            if value != inspect.signature(Problem).parameters[name].default:
                data[name] = _plain(name, value)
        return data

    @classmethod
    def from_data(cls, data: Any) -> Self:
        """Make a problem from what :meth:`as_data` returned."""
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise InputError(f"this is not a problem of kernelbounds: {FORMAT!r} is not in it.")
        arguments = {key: value for key, value in data.items() if key != "format"}
        try:
            arguments["inputs"] = [Input(**one) for one in arguments["inputs"]]
            arguments["output"] = Output(**arguments["output"])
            return cls(**arguments)
        except (KeyError, TypeError) as error:
            what = f"{error} is missing" if isinstance(error, KeyError) else said(error)
            raise InputError(
                f"the description of the problem is broken: {shortened(what, 200)}."
            ) from None

    def save(self, path: str | PathLike[str]) -> None:
        """Write the problem to a JSON file, whole or not at all."""
        text = json.dumps(self.as_data(), indent=2, ensure_ascii=False) + "\n"
        with files.failure_reported(f"write the problem to {brief(str(path))}"):
            files.write_text(files.as_path(path), text)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a problem that :meth:`save` has written."""
        with files.failure_reported(f"read the problem in {brief(str(path))}"):
            raw = files.as_path(path).read_bytes()
        try:
            data = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{brief(str(path))} is not a JSON file: {said(error)}.") from None
        return cls.from_data(data)


def _checked_delta(given: Any, noise: float | str | None) -> float:
    within = noise is not None and parts_of_noise(noise)[0] == WITHIN
    return as_scalar(given, "delta", **{"least" if within else "above": 0.0}, most=1.0)


def _checked_norm_bound(given: Any, output: Output) -> float:
    # A smaller norm bound is lost in the rounding of the output.
    return as_scalar(given, "norm_bound", least=EPS * output.span, most=LARGEST)


def _at_limit(values: Array, limit: float) -> Array:
    return np.where(np.isclose(values, limit, rtol=1e-12, atol=0.0), limit, values)


def _refuse_categories_as_numbers(kernel: Kernel, inputs: Sequence[Input]) -> None:
    """Refuse a kernel that takes the number of a level for a number."""
    seen = category_inputs(kernel, len(inputs))
    for at, one in enumerate(inputs):
        if one.levels and at not in seen:
            numbers = [other for other in range(len(inputs)) if not inputs[other].levels]
            raise InputError(
                f"the kernel {shortened(_kernel_text(kernel), 100)} takes the levels of {one.name} "
                f"for numbers: use Levels for it, as in OnInputs(Matern(0.5, nu=2.5), {numbers}) * "
                f"OnInputs(Levels(0.5), [{at}])."
            )


def _checked_kernel(given: Any) -> Kernel:
    return kernel_from_text(given) if isinstance(given, str) else checked_kernel(given)


def _input_data(one: Input) -> dict[str, Any]:
    """Return an input as plain data; only a category has ``levels``."""
    data = dataclasses.asdict(one)
    if not one.levels:
        del data["levels"], data["matters"]
    return data


def _plain(name: str, value: Any) -> Any:
    """Return the value of an argument as text, or as lists of it."""
    if name == "kernel":
        return _kernel_text(value)
    if name == "limits":
        return facts_in_words.limits_text(value)
    if name == "candidates":
        return [[_kernel_text(kernel), norm_bound] for kernel, norm_bound in value]
    return list(value) if isinstance(value, tuple) else value


def _kernel_text(kernel: Kernel) -> str:
    """Write a kernel as the command line takes it, or the repr of a user's own kernel class."""
    try:
        return kernel_to_text(kernel)
    except InputError:
        return repr(kernel)


def predicted_half_widths(
    problem: Problem, experiments: int, noise_scale: float | None = None
) -> tuple[float, float]:
    """Bound half of upper - lower after a space-filling design: mean and largest over points.

    Both are on the scale of the model, see :class:`Output`. They are for noise of that scale, or of
    ``problem.stated_noise.planned``; where noise is unknown, nothing can be promised before the
    data.

    See :meth:`kernelbounds.ConfidenceSequence.predicted_width`.
    """
    points = qmc.Sobol(problem.dim, rng=np.random.default_rng(1)).random(WIDTH_POINTS)
    points, design = problem.unit_box.scaled(points), problem.unit_box.filling(experiments)
    corners = with_corners(points, {at: len(one) for at, one in problem.categories.items()})
    noise = problem.stated_noise.planned if noise_scale is None else noise_scale
    sequence = problem.sequence(facts=(), noise_scale=noise)
    widths = sequence.predicted_width(corners, design)
    return float(widths[:WIDTH_POINTS].mean() / 2), float(widths.max() / 2)

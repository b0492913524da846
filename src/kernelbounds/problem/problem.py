"""A problem in the user's own words: what is stated, its checks, and its file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import EPS, LARGEST, Array, as_scalar, as_whole, brief, shortened
from kernelbounds.bounds import Bound
from kernelbounds.display import cards as notebook
from kernelbounds.display.numbers import confidence
from kernelbounds.errors import InputError, said
from kernelbounds.facts import Fact
from kernelbounds.kernels import category_inputs, checked_kernel, kernel_from_text
from kernelbounds.noise import Noise
from kernelbounds.problem import problem_file
from kernelbounds.problem.facts_in_words import (
    NO_FACTS,
    NO_LIMITS,
    SHAPES,
    Limits,
    checked_known,
    checked_shapes,
    stated_facts,
)
from kernelbounds.problem.inputs import Input, Inputs, checked_turns
from kernelbounds.problem.model import confidence_sequence
from kernelbounds.problem.noise_in_words import WITHIN, StatedNoise
from kernelbounds.problem.outcomes import Counts, OutcomeScale
from kernelbounds.problem.outputs import Output
from kernelbounds.sequence import ConfidenceSequence

INTERACTIONS = ("all", "pairs", "none")
# The arguments that can be suggested, and those that a suggestion follows from.
SUGGESTED = ("kernel", "norm_bound", "candidates")
SUGGESTED_FROM = {
    "inputs", "output", "turns", "interactions", "quantile", "experiments", "kernels", *NO_FACTS,
    "successes",
}  # fmt: skip
KERNEL_CHOICES = ("one", "any")


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

    inputs: Inputs
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
        limits: str | tuple[float | None, float | None] | None = None,
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
            example = (
                repr(inputs) if isinstance(inputs, str) and inputs else "'temperature=180:220'"
            )
            raise InputError(
                f"inputs must be a list such as [{shortened(example)}], got {brief(inputs)}."
            )
        parsed = Inputs(one if isinstance(one, Input) else Input.parse(one) for one in inputs)
        output = output if isinstance(output, Output) else Output.parse(output)
        names = [*parsed.names, output.name]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"the name {name!r} is given {names.count(name)} times.")
        if not isinstance(interactions, str) or interactions not in INTERACTIONS:
            raise InputError(
                f"interactions must be one of {', '.join(INTERACTIONS)}, got {brief(interactions)}."
            )
        if not isinstance(kernels, str) or kernels not in KERNEL_CHOICES:
            raise InputError(
                f"kernels must be one of {', '.join(KERNEL_CHOICES)}, got {brief(kernels)}."
            )
        counts = Counts.parse(successes, tries)
        if counts is not None:
            counts.refuse_misfit(output, names, noise)
        stated_noise = StatedNoise.parse(noise, output, counts)
        if norm_bound is not None:
            norm_bound = _checked_norm_bound(norm_bound, output)
        if kernel is not None:
            kernel = _checked_kernel(kernel, parsed)
        shapes = dict(zip(SHAPES, (increasing, decreasing, convex, concave), strict=True))
        ends = Limits.parse(limits, output, of_rate=counts is not None)
        vars(self).update(
            inputs=parsed,
            output=output,
            noise=stated_noise.said,
            turns=checked_turns(turns, "turns"),
            interactions=interactions,
            delta=as_scalar(
                delta,
                "delta",
                **{"least" if stated_noise.words == WITHIN else "above": 0.0},
                most=1.0,
            ),
            quantile=as_scalar(quantile, "quantile", least=0.5, most=0.99),
            experiments=as_whole(experiments, "experiments", least=1, most=2000),
            kernel=kernel,
            norm_bound=norm_bound,
            suggested=tuple(name for name in SUGGESTED if name in suggested),
            limits=ends,
            **checked_shapes(shapes, parsed, output),
            known=checked_known(known, parsed, output, ends),
            kernels=kernels,
            candidates=tuple(
                (_checked_kernel(one, parsed), _checked_norm_bound(norm, output))
                for one, norm in candidates or ()
            ),
            successes=successes,
            tries=tries,
        )

    def __repr__(self) -> str:
        """Write the problem as Python code, without the arguments that have their defaults."""
        arguments = [f"{[one.text for one in self.inputs]}", repr(self.output.text)]
        for name, value in problem_file.stated_arguments(self).items():
            if name not in ("inputs", "output", "suggested"):
                text = f"{value:.6g}" if name == "norm_bound" else repr(value)
                arguments.append(f"{name}={text}")
        return f"Problem({', '.join(arguments)})"

    def _repr_html_(self) -> str:
        """Return a card for notebooks."""
        return notebook.shown(self, self._card)

    def _card(self) -> notebook.Html:
        out = self.output
        how = {name: " (suggested)" if name in self.suggested else "" for name in SUGGESTED}
        kernel = "to be chosen" if self.kernel is None else problem_file.kernel_text(self.kernel)
        kernel += f" or one of {len(self.candidates) - 1} others" if self.candidates else ""
        return notebook.card(
            "Problem",
            [
                *((one.name, one.description) for one in self.inputs),
                ("output", f"{out.name}, {out.description}"),
                ("noise", self.stated_noise.text()),
                ("turns", f"at most {self.turns} along an input, unless said there"),
                *[("interactions", self.interactions)][: len(self.inputs) - 1],
                *(("known", words) for words in self.facts_in_words),
                ("kernel", kernel + how["kernel"]),
                ("norm bound B", self.norm_text + how["norm_bound"]),
                ("confidence", f"{confidence(self.delta)}, for all bounds at once"),
            ],
        )

    # --- inputs

    def scaled(self, X: Any) -> Array:
        """Scale points (m, d) in the user's units to the unit cube."""
        return self.inputs.scaled(X)

    def unscaled(self, unit: ArrayLike) -> Array:
        """Turn points (m, d) of the unit cube into the user's units."""
        return self.inputs.unscaled(unit)

    # --- what is measured

    @property
    def counts(self) -> Counts | None:
        """The columns of successes and of tries, where the output is a rate of these."""
        return Counts.parse(self.successes, self.tries)

    @property
    def outcomes(self) -> OutcomeScale:
        """How outcomes are measured and scaled, and how bounds come back to the user's units.

        >>> problem = Problem(["force=1:9"], "rate=0:1", successes="grasped", tries="attempts=20")
        >>> problem.outcomes.names
        ('grasped', 'attempts')
        """
        return OutcomeScale(self.output, self.counts, (self.limits or NO_LIMITS).ends)

    @property
    def stated_noise(self) -> StatedNoise:
        """The noise: its law on the scale of the model, and what is said of it to people.

        >>> Problem(["x=0:1"], "gain[dB]=1:9", noise="unknown, at most 2").stated_noise.law
        Gaussian(scale=inf, at_most=2.0)
        """
        return StatedNoise.parse(self.noise, self.output, self.counts, self.delta)

    @property
    def facts(self) -> tuple[Fact, ...]:
        """What is known of the output, for inputs that are :meth:`scaled`.

        >>> Problem(["speed=1:9"], "yield=0:100", increasing=["speed"]).facts[0].axis
        0
        """
        return tuple(one.fact for one in stated_facts(self))

    @property
    def facts_in_words(self) -> tuple[str, ...]:
        """What is known of the output, in the user's words.

        >>> Problem(["rpm=1:9"], "yield[%]=0:99", limits="0:", increasing=["rpm"]).facts_in_words
        ('yield at least 0 %', 'yield rises with rpm')
        """
        return tuple(one.words for one in stated_facts(self))

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
        return f"with probability {confidence(self.delta)}" if self.delta else "for certain"

    def scaled_outcomes(
        self, y: Any, place: Callable[[int], str] | None = None
    ) -> tuple[Array, Array | None]:
        """Return outcomes (n,) and their noise scales, as :meth:`sequence` takes them.

        Outcomes are in the user's units; where the output is a rate, they are pairs (n, 2) of
        successes and tries. Logarithmic outputs become their natural logarithms. The noise scales
        are None where they are those of the sequence. ``place`` says where a row is, in messages;
        by default that is its number where there are several.

        >>> problem = Problem(["force=1:9"], "rate=0:1", successes="grasped", tries="attempts")
        >>> problem.scaled_outcomes([[7, 10], [25, 25]])
        (array([0.7, 1. ]), array([0.15811388, 0.1       ]))
        """
        numbered = "row {}: " if len(y) > 1 else ""
        return self.outcomes.scaled(y, place or numbered.format)

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
        return self.outcomes.bounds(*sequence.bounds(self.scaled(X), bound))

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
        return self.outcomes.estimate(*sequence.estimate_with_bounds(self.scaled(X), bound))

    # --- what follows

    @property
    def is_settled(self) -> bool:
        """Whether the problem has a kernel and a norm bound."""
        return self.kernel is not None and self.norm_bound is not None

    def settled(self) -> Problem:
        """Return the problem with a kernel and a norm bound, which follow from it where missing.

        See :func:`kernelbounds.problem.assume`, which says how they were found.
        """
        from kernelbounds.problem.assuming import assume

        return self if self.is_settled else assume(self).problem

    def sequence(
        self,
        bound: Bound | None = None,
        *,
        facts: Sequence[Fact] | None = None,
        noise_scale: float | Noise | None = None,
    ) -> ConfidenceSequence:
        """Make a confidence sequence for points that are :meth:`scaled`.

        Its outcomes are :meth:`scaled_outcomes`, and :attr:`outcomes` turns its bounds into the
        user's units; both change nothing unless the output is logarithmic or a rate. On that scale,
        f* is the middle of the output's range, plus an unknown level that is at most the range,
        plus a function of norm at most B; with ``kernels="any"``, in any of the candidates' spaces.

        ``facts`` replace those that the problem states, with the one kernel that was chosen;
        ``facts=()`` is what widths can be predicted for. ``noise_scale`` replaces that of the
        problem, under the same law, so that noise that was unknown is then known; it may also be
        another law.
        """
        return confidence_sequence(self, bound, facts, noise_scale)

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
        return Problem(**(problem_file.arguments(self) | forgotten | still | changes))

    # --- files

    def as_data(self) -> dict[str, Any]:
        """Return the arguments as plain data for JSON."""
        return problem_file.as_data(self)

    @classmethod
    def from_data(cls, data: Any) -> Self:
        """Make a problem from what :meth:`as_data` returned."""
        try:
            return cls(**problem_file.arguments_from(data))
        except (KeyError, TypeError) as error:
            what = f"{error} is missing" if isinstance(error, KeyError) else said(error)
            raise InputError(
                f"the description of the problem is broken: {shortened(what, 200)}."
            ) from None

    def save(self, path: str | PathLike[str]) -> None:
        """Write the problem to a JSON file, whole or not at all."""
        problem_file.write(path, self.as_data())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a problem that :meth:`save` has written."""
        return cls.from_data(problem_file.read(path))


def _checked_norm_bound(given: Any, output: Output) -> float:
    # A smaller norm bound is lost in the rounding of the output.
    return as_scalar(given, "norm_bound", least=EPS * output.span, most=LARGEST)


def _checked_kernel(given: Any, inputs: Inputs) -> Kernel:
    """Read a kernel, and refuse one that takes the number of a level for a number."""
    kernel = kernel_from_text(given) if isinstance(given, str) else checked_kernel(given)
    for at in sorted(inputs.categories.keys() - category_inputs(kernel, len(inputs))):
        raise InputError(
            f"the kernel {shortened(problem_file.kernel_text(kernel), 100)} takes the levels of "
            f"{inputs[at].name} for numbers: use Levels for it, as in OnInputs(Matern(0.5, "
            f"nu=2.5), {inputs.numbers}) * OnInputs(Levels(0.5), [{at}])."
        )
    return kernel

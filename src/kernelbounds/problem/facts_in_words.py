"""Facts about the output in the user's words and units, and as :mod:`kernelbounds.facts`.

A problem says ``limits="0:60"``, ``increasing=["speed"]``, ``known=["catalyst=0 -> yield=0"]``. The
facts that follow are for inputs scaled to the unit cube, and outcomes on the scale of the model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kernelbounds.arrays import EPS, LARGEST, as_scalar, brief, shortened
from kernelbounds.errors import InputError, did_you_mean
from kernelbounds.facts import Between, Concave, Convex, Decreasing, Fact, Increasing, Region, Value
from kernelbounds.problem.inputs import Input
from kernelbounds.problem.outputs import Output
from kernelbounds.problem.quantities import NUMBER, in_digits

if TYPE_CHECKING:
    from kernelbounds.problem.problem import Problem

# The arguments of a problem that say something about shape: the fact, and how people say it.
SHAPES: dict[str, tuple[type[Any], str]] = {
    "increasing": (Increasing, "rises with"),
    "decreasing": (Decreasing, "falls with"),
    "convex": (Convex, "is convex along"),
    "concave": (Concave, "is concave along"),
}
# All arguments of a problem that state facts, with what they are where nothing is stated.
NO_FACTS: dict[str, Any] = {"limits": None, **dict.fromkeys(SHAPES, ()), "known": ()}
EXAMPLE = "'catalyst=0 -> yield=0', or 'catalyst=0 & pressure=1 -> yield=2 +- 0.5'"
# How messages name what each outcome says by itself, with noise within a limit.
NOISE_OF_OUTCOMES = re.compile(r"noise of at most \S+ in every outcome")


class Limits(NamedTuple):
    """Hard limits of the true values of an output; None: there is no limit on that side."""

    low: float | None
    high: float | None

    @classmethod
    def parse(cls, given: Any, output: Output, *, of_rate: bool = False) -> Limits | None:
        """Read limits from ``"0:60"``, ``"0:"``, ``":60"`` or a pair; None: there are none.

        A rate is between 0 and 1, and limits that are stated may be narrower.
        """
        if given is None:
            return cls(0.0, 1.0) if of_rate else None
        ends: Any = given
        if isinstance(given, str):
            ends = [part.strip() or None for part in given.split(":")]
            if any(one is not None and not NUMBER.fullmatch(one) for one in ends):
                ends = []
            ends = [None if one is None else float(one) for one in ends]
        if isinstance(ends, str | bytes) or not isinstance(ends, Sequence) or len(ends) != 2:
            raise InputError(
                f"limits must be written as 0:60, 0: or :60, or be a pair, got {brief(given)}."
            )
        found = cls(
            *(
                None if end is None else as_scalar(end, "a limit", least=-LARGEST, most=LARGEST)
                for end in ends
            )
        )
        if found == NO_LIMITS:
            raise InputError(f"limits need a lower or an upper end, got {brief(given)}.")
        least, most = found.ends
        if not least < most:
            raise InputError(
                f"the limits of {output.name} are upside down or equal: {in_digits(least)} is not "
                f"below {in_digits(most)}."
            )
        if least >= output.high or most <= output.low:
            raise InputError(
                f"the limits {found.text} leave nothing of the range {output.written} stated for "
                f"{output.name}; correct one of the two."
            )
        if output.log and -math.inf < least <= 0:
            raise InputError(
                f"{output.name} is logarithmic, and so above 0 already: leave out the lower limit "
                f"{in_digits(least)}, or state one above 0."
            )
        if not of_rate:
            return found
        if -math.inf < least < 0 or 1 < most < math.inf:
            raise InputError(
                f"{output.name} is a rate of successes, so its limits are within 0:1, got "
                f"{found.text}."
            )
        return cls(max(least, 0.0), min(most, 1.0))

    @property
    def ends(self) -> tuple[float, float]:
        """The limits, with infinity in the place of one that is not stated."""
        low, high = self
        return -math.inf if low is None else low, math.inf if high is None else high

    @property
    def text(self) -> str:
        """The limits as :meth:`parse` reads them, ``0:60``."""
        return ":".join("" if end is None else in_digits(end) for end in self)

    def sentence(self, output: Output) -> str:
        """Write the limits for people: ``yield between 0 and 60 %``."""
        low, high = (None if end is None else in_digits(end) for end in self)
        if low is not None and high is not None:
            return f"{output.name} between {low} and {high}{output.after_number}"
        side = f"at most {high}" if low is None else f"at least {low}"
        return f"{output.name} {side}{output.after_number}"

    def fact(self, output: Output, region: Region) -> Between:
        """Return the limits on the scale of the model; logarithms are rounded outwards."""
        low, high = (None if end is None else float(output.scaled(end)) for end in self)
        if output.log:
            low = None if low is None else low - 8 * EPS * (1 + abs(low))
            high = None if high is None else high + 8 * EPS * (1 + abs(high))
        return Between(low, high, region)


NO_LIMITS = Limits(None, None)


def checked_shapes(
    given: Mapping[str, Any], inputs: Sequence[Input], output: Output
) -> dict[str, tuple[str, ...]]:
    """Return the names of the inputs along which each of ``SHAPES`` is known, each once."""
    for what, names in given.items():
        if isinstance(names, str | bytes) or not isinstance(names, Sequence):
            raise InputError(f"{what} must be a list of names of inputs, got {brief(names)}.")
        bends = what in ("convex", "concave")
        for name in names:
            one = _input(inputs, name, what)
            if one.levels:
                raise InputError(
                    f"{what} says something about larger and smaller values, and {one.name} is a "
                    "category, whose levels have no order: name an input that is a number."
                )
            if bends and one.log:
                raise InputError(
                    f"{what} says something about equal steps, and {one.name} is on a logarithmic "
                    f"scale: state {one.name} on a linear scale, or leave {what} out."
                )
        if bends and names and output.log:
            raise InputError(
                f"{what} says something about equal steps of {output.name}, which is on a "
                f"logarithmic scale: state it on a linear scale, or leave {what} out."
            )
    for name in given["increasing"]:
        if name in given["decreasing"]:
            raise InputError(
                f"{output.name} cannot both rise and fall with {name}: say increasing or "
                "decreasing, or leave the input out if it has no effect."
            )
    return {what: tuple(dict.fromkeys(names)) for what, names in given.items()}


@dataclass(frozen=True)
class Known:
    """A value of the output that is known where some of the inputs, or all, have given values."""

    output: Output
    where: tuple[tuple[Input, float], ...]
    value: float
    within: float

    @classmethod
    def parse(cls, text: Any, inputs: Sequence[Input], output: Output) -> Known:
        """Make a known value from ``catalyst=0 & pressure=1 -> yield=2 +- 0.5``."""
        left, arrow, right = text.rpartition("->") if isinstance(text, str) else ("", "", "")
        name, _, value = (part.strip() for part in right.partition("="))
        number, _, within = (part.strip() for part in re.sub(r"\+-|±", "±", value).partition("±"))
        pairs = [[part.strip() for part in one.partition("=")[::2]] for one in left.split("&")]
        categories = {one.name for one in inputs if one.levels}
        numbers = [number, within or "0", *(x for at, x in pairs if at not in categories)]
        if not arrow or not all(map(NUMBER.fullmatch, numbers)) or float(within or 0) < 0:
            raise InputError(f"a known value must be written as {EXAMPLE}, got {brief(text)}.")
        if name != output.name:
            raise InputError(
                f"the known value {brief(text)} is of {brief(name)}, and {output.name!r} is "
                f"measured{did_you_mean(name, [output.name])}."
            )
        where = []
        for named, setting in pairs:
            one = _input(inputs, named, "known")
            x = one.number(setting)
            if x is None or one.outside(np.array([x]))[0]:
                raise InputError(
                    f"{brief(text)} is at {one.name} = {setting}, which is not {one.expected}."
                )
            where.append((one, x))
        if output.log and not float(number) - float(within or 0) > 0:
            raise InputError(
                f"{output.name} is logarithmic, so what is known of it must be above 0, got "
                f"{brief(text)}."
            )
        if len(dict(where)) < len(where):
            raise InputError(f"{brief(text)} gives an input twice.")
        return cls(output, tuple(where), float(number), float(within or 0))

    def fact(self, inputs: Sequence[Input], region: Region) -> Value:
        """Return the known value for scaled inputs, on the scale of the model."""
        y, within = float(self.output.scaled(self.value)), self.within
        if self.output.log and within:
            ends = [self.value - within, self.value + within]
            low, high = self.output.scaled(ends).tolist()
            # Rounded up: the logarithms, their sum and their difference are rounded.
            y = (low + high) / 2
            within = (high - low) / 2 + 8 * EPS * (1 + abs(low) + abs(high))
        where = {inputs.index(one): float(one.scaled(np.array(x))) for one, x in self.where}
        if len(where) == len(inputs):
            return Value([where[axis] for axis in range(len(inputs))], y, within=within)
        return Value(y=y, within=within, where=where, region=region)

    @property
    def text(self) -> str:
        """The known value as :meth:`parse` reads it."""
        values = [(one.name, one.value(x)) for one, x in self.where]
        where = [f"{at}={x if isinstance(x, str) else in_digits(x)}" for at, x in values]
        within = f" +- {in_digits(self.within)}" if self.within else ""
        return f"{' & '.join(where)} -> {self.output.name}={in_digits(self.value)}{within}"

    @property
    def sentence(self) -> str:
        """The known value as a sentence for people, with units."""
        where = " and ".join(one.setting_text(x) for one, x in self.where)
        within = f" ± {in_digits(self.within)}" if self.within else ""
        value = f"{in_digits(self.value)}{within}{self.output.after_number}"
        return f"{self.output.name} = {value} where {where}"


def checked_known(
    given: Any, inputs: Sequence[Input], output: Output, limits: Limits | None
) -> tuple[str, ...]:
    """Return the texts of known values, refused where a range or a limit excludes them."""
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise InputError(f"known must be a list of texts such as {EXAMPLE}, got {brief(given)}.")
    stated = {"limits": limits or NO_LIMITS, "range": Limits(output.low, output.high)}
    texts = []
    for text in given:
        one = Known.parse(text, inputs, output)
        for what, ends in stated.items():
            low, high = ends.ends
            if one.value + one.within < low or one.value - one.within > high:
                raise InputError(
                    f"{brief(text)} is outside the {what} {ends.text} stated for "
                    f"{output.name}; correct one of the two."
                )
        texts.append(one.text)
    return tuple(dict.fromkeys(texts))


def _input(inputs: Sequence[Input], name: Any, what: str) -> Input:
    for one in inputs:
        if one.name == name:
            return one
    names = [one.name for one in inputs]
    hint = did_you_mean(name, names) if isinstance(name, str) else ""
    raise InputError(
        f"{what} names {brief(name)}, which is not an input{hint}; the inputs are "
        f"{shortened(', '.join(names), 200)}."
    )


def unit_region(inputs: Sequence[Input]) -> Region:
    """Return the unit cube, in which an input that takes whole numbers has steps.

    A category goes from its first level to its last one, in steps of one. On a logarithmic scale
    whole numbers are not at equal steps; facts are then used at both ends.
    """
    steps = [(1 if one.log else int(one.range)) if one.integer else 0 for one in inputs]
    upper = tuple(one.high if one.levels else 1.0 for one in inputs)
    return Region((0.0,) * len(inputs), upper, tuple(steps) if any(steps) else ())


class StatedFact(NamedTuple):
    """Something that is known of the output, in three forms.

    ``argument`` is what states it alone to a :class:`Problem`, ``words`` are the user's, and
    ``fact`` is for scaled inputs and outcomes on the scale of the model.
    """

    argument: dict[str, Any]
    words: str
    fact: Fact


def stated_facts(problem: Problem) -> tuple[StatedFact, ...]:
    """Return what is known of the output: limits, then shape, then values."""
    inputs, out, region = problem.inputs, problem.output, unit_region(problem.inputs)
    found = []
    if (limits := problem.limits) is not None:
        found.append(StatedFact({"limits": limits}, limits.sentence(out), limits.fact(out, region)))
    for what, (kind, verb) in SHAPES.items():
        for name in getattr(problem, what):
            fact = kind(inputs.names.index(name), region)
            found.append(StatedFact({what: [name]}, f"{out.name} {verb} {name}", fact))
    for text in problem.known:
        known = Known.parse(text, inputs, out)
        found.append(StatedFact({"known": [text]}, known.sentence, known.fact(inputs, region)))
    return tuple(found)


def in_users_words(problem: Problem, message: str) -> str:
    """Replace the facts that a message names by the user's words for them."""
    for one in stated_facts(problem):
        message = message.replace(str(one.fact), f"'{one.words}'")
    message = NOISE_OF_OUTCOMES.sub(f"'{problem.stated_noise.clause}'", message)
    return message.replace("the offset another one", "something of this is not true")

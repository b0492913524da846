"""What is measured and how noisy it is: numbers, percentages, words, and successes out of tries.

An output is modelled on a scale on which effects and noise add up. For most outputs that is the
output itself. For a logarithmic one it is the natural logarithm: what was measured is
f*(x) exp(noise), and noise of 5 % is one of scale ln 1.05 of that logarithm.

Noise may be stated as a standard deviation, as ``unknown``, where it is Gaussian and the same in
all runs, as ``unknown, at most 2``, or as ``within 0.5``, which no measurement is ever farther from
the true value.

A rate of k successes in n tries is the mean of n independent variables in [0, 1]. By Hoeffding's
lemma its noise is 1 / (2 sqrt(n))-sub-Gaussian, whatever the true rate is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from kernelbounds.arrays import EPS, LARGEST, Array, as_floats, as_scalar, as_vector, brief
from kernelbounds.errors import InputError, did_you_mean
from kernelbounds.noise import Bounded, Gaussian, Noise, SubGaussian
from kernelbounds.problem.quantities import NUMBER, Output, Quantity, in_digits

# More tries than this would not be whole numbers in all programs that read a table.
MOST_TRIES = 10**9
UNKNOWN, AT_MOST, WITHIN = "unknown", "unknown, at most", "within"
NOISE_IN_WORDS = re.compile(
    r"unknown(?:\s*,?\s*at\s+most\s+(\S.*))?|within\s+(\S.*)", re.IGNORECASE
)


def checked_noise(given: Any, output: Output) -> float | str:
    """Return what is said of the noise, a number or text in one of the forms of this module.

    This is the only place where the noise is read.

    >>> output = Output.parse("strength[MPa]=20:60")
    >>> [checked_noise(said, output) for said in ("0.5", "Unknown at most 2.0", "within .5")]
    [0.5, 'unknown, at most 2', 'within 0.5']
    """
    text = given.strip() if isinstance(given, str) else ""
    words = NOISE_IN_WORDS.fullmatch(text)
    if words is None:
        if text[:1].isalpha():
            number, some = ("a percentage", "5%") if output.log else ("a number", "0.5")
            word = text.split(",")[0]
            hint = "" if word in (UNKNOWN, WITHIN) else did_you_mean(word, (UNKNOWN, WITHIN))
            raise InputError(
                f"noise must be {number}, 'unknown', 'unknown, at most {some}' or 'within {some}', "
                f"got {brief(given)}{hint}."
            )
        amount = checked_amount(given, "noise", output)
        return _written(amount, output) if output.log else amount
    most, limit = words.groups()
    if most is None and limit is None:
        return UNKNOWN
    amount = checked_amount(most or limit, "noise", output, above=0.0, most=LARGEST)
    if limit is not None and output.log and amount >= 1:
        raise InputError(
            f"a measurement within {_written(amount, output)} of the true value may be 0, which a "
            f"logarithmic output never is; state a smaller limit, or leave out log."
        )
    return f"{AT_MOST if limit is None else WITHIN} {_written(amount, output)}"


def _written(amount: float, output: Output) -> str:
    return f"{in_digits(100 * amount)}%" if output.log else in_digits(amount)


def parts_of_noise(stated: float | str) -> tuple[str, float | None]:
    """Split what :func:`checked_noise` returned into words and a number, which for 5% is 0.05.

    >>> parts_of_noise("unknown, at most 5%"), parts_of_noise("unknown"), parts_of_noise(0.5)
    (('unknown, at most', 0.05), ('unknown', None), ('', 0.5))
    """
    if not isinstance(stated, str):
        return "", stated
    if stated == UNKNOWN:
        return UNKNOWN, None
    words, _, amount = stated.rpartition(" ")
    number = float(amount.removesuffix("%"))
    return words, number / 100 if amount.endswith("%") else number


def law_of_noise(stated: float | str, output: Output) -> Noise:
    """Return the law of noise that :func:`checked_noise` has read, on the scale of the model.

    A measurement within 5 % of the true value is at least 0.95 times that, and ln 0.95 is farther
    from 0 than ln 1.05.

    >>> output = Output.parse("gain=1:9:log")
    >>> [str(law_of_noise(said, output)) for said in ("5%", "unknown, at most 5%", "within 5%")]
    ['SubGaussian(0.0487902)', 'Gaussian(at_most=0.0487902)', 'Bounded(0.0512933)']
    """
    words, amount = parts_of_noise(stated)
    if amount is None:
        return Gaussian()
    if output.log:
        # Rounded up: the quotient, the logarithm and the product are rounded.
        log = -math.log1p(-amount) if words == WITHIN else math.log1p(amount)
        amount = log * (1 + 4 * EPS)
    if words == WITHIN:
        return Bounded(amount, pointwise=True)  # a table or a study has few rows
    return Gaussian(at_most=amount) if words else SubGaussian(amount)


def checked_amount(given: Any, name: str, output: Output, **limits: float) -> float:
    """Read by how much outputs differ: a number in its units, or ``10%`` where it is logarithmic.

    ``10%`` is 0.1, and stands for a factor of 1.1.
    """
    text = given.strip() if isinstance(given, str) else None
    percent = text is not None and text.endswith("%")
    value: Any = given
    if text is not None:
        number = text.removesuffix("%").strip()
        if not NUMBER.fullmatch(number):
            what = "a percentage such as 5%" if output.log else "a number"
            raise InputError(f"{name} must be {what}, got {brief(given)}.")
        value = float(number)
    if percent and not output.log:
        raise InputError(
            f"{name} is a number in units of {output.name}, got {brief(given)}; a percentage of "
            f"the value itself is for a logarithmic output, {output.text}:log."
        )
    if output.log and not percent:
        raise InputError(
            f"{output.name} is logarithmic, so {name} is a percentage such as 5%, got "
            f"{brief(given)}."
        )
    amount = as_scalar(value, name, **(limits or {"least": 0.0, "most": LARGEST}))
    return amount / 100 if percent else amount


@dataclass(frozen=True)
class Counts:
    """The columns of successes and of tries, and how many tries a run is planned to have.

    >>> Counts.parse("grasped", "attempts=20")
    Counts(successes='grasped', tries='attempts', planned=20)
    """

    successes: str
    tries: str
    planned: int = 1

    @classmethod
    def parse(cls, successes: Any, tries: Any) -> Self | None:
        """Read names of columns, with ``tries=20`` where a number of tries is planned."""
        if successes is None and tries is None:
            return None
        if successes is None or tries is None:
            given, missing = ("tries", "successes") if successes is None else ("successes", "tries")
            raise InputError(
                f"{given} is stated without {missing}: a rate needs the columns of both."
            )
        name, equals, number = tries.partition("=") if isinstance(tries, str) else (tries, "", "")
        if equals and not (number.strip().isdecimal() and 0 < int(number) <= MOST_TRIES):
            raise InputError(
                "tries must name a column, and may say how many are planned for each run, such as "
                f"attempts=20, got {brief(tries)}."
            )
        for what in (successes, name):
            Quantity(what, 0, 1)  # which refuses what is no name
        return cls(successes.strip(), name.strip(), int(number) if equals else 1)

    @property
    def noise_scale(self) -> float:
        """The noise scale of a run with as many tries as are planned."""
        return float(_scale_of_tries(np.array(float(self.planned))))

    def refuse_misfit(self, output: Output, taken: Sequence[str], noise: Any) -> None:
        """Raise where an output cannot be a rate, or noise is stated, or a name is taken."""
        if noise is not None:
            raise InputError(
                "noise and tries are both stated, but the noise follows from the tries: leave out "
                f"noise = {brief(noise)}."
            )
        if output.log:
            raise InputError(
                f"{output.name} is a rate of successes, whose noise is added and does not "
                "multiply: leave out log."
            )
        if output.low < 0 or output.high > 1:
            raise InputError(
                f"{output.name} is a rate of successes, so its range must be within 0:1, got "
                f"{output.written}."
            )
        names = [*taken, self.successes, self.tries]
        for name in (self.successes, self.tries):
            if names.count(name) > 1:
                raise InputError(f"the name {name!r} is given {names.count(name)} times.")

    def rates(self, given: Any, place: Callable[[int], str]) -> tuple[Array, Array]:
        """Return rates (n,) and noise scales (n,) of pairs (n, 2) of successes and tries."""
        pairs = as_floats(given, f"{self.successes} and {self.tries}")
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise InputError(
                f"an outcome is a pair, {self.successes} and {self.tries}, got an array of shape "
                f"{pairs.shape} for all of them."
            )
        for row, (k, n) in enumerate(pairs.tolist()):
            wrong = (
                f"{self.tries} = {in_digits(n)} is not a whole number from 1 to {MOST_TRIES}"
                if not (n.is_integer() and 1 <= n <= MOST_TRIES)
                else f"{self.successes} = {in_digits(k)} is not a whole number of at least 0"
                if not (k.is_integer() and k >= 0)
                else f"{self.successes} = {in_digits(k)} is more than {self.tries} = {in_digits(n)}"
                if k > n
                else ""
            )
            if wrong:
                rest = "a run without tries has no outcome" if n == 0 else "correct it"
                raise InputError(f"{place(row)}{wrong}; {rest}.")
        return pairs[:, 0] / pairs[:, 1], _scale_of_tries(pairs[:, 1])


def _scale_of_tries(tries: Array) -> Array:
    # Rounded up: the root, the product and the quotient are rounded.
    return (1 + 4 * EPS) / (2 * np.sqrt(tries))


def checked_outcomes(given: Any, output: Output, count: int, place: Callable[[int], str]) -> Array:
    """Return outcomes (n,) on the scale of the model, see :class:`Output`."""
    values = as_vector(given, output.name, count)
    if output.log:
        for row in np.flatnonzero(values <= 0)[:1]:
            raise InputError(
                f"{place(int(row))}{output.name} = {in_digits(values[row])} has no logarithm, and "
                f"{output.name} was said to be logarithmic: correct it, or leave out log."
            )
    return output.scaled(values)

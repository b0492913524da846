"""What is measured: numbers, logarithms, percentages, and successes out of tries.

An output is modelled on a scale on which effects and noise add up. For most outputs that is the
output itself. For a logarithmic one it is the natural logarithm: what was measured is
f*(x) exp(noise), and noise of 5 % is one of scale ln 1.05 of that logarithm.

A rate of k successes in n tries is the mean of n independent variables in [0, 1]. By Hoeffding's
lemma its noise is 1 / (2 sqrt(n))-sub-Gaussian, whatever the true rate is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from kernelbounds.arrays import EPS, LARGEST, Array, as_floats, as_scalar, as_vector, brief
from kernelbounds.errors import InputError
from kernelbounds.problem.quantities import NUMBER, Output, Quantity, in_digits

# More tries than this would not be whole numbers in all programs that read a table.
MOST_TRIES = 10**9


def checked_amount(given: Any, name: str, output: Output, **limits: float) -> float:
    """Read a difference of outputs: a number in its units, or ``10%`` of a logarithmic one.

    ``10%`` is 0.1, and stands for a factor of 1.1.
    """
    text = given.strip() if isinstance(given, str) else None
    percent = text is not None and text.endswith("%")
    value: Any = given
    if text is not None:
        number = text.removesuffix("%").strip()
        if not NUMBER.fullmatch(number):
            what = "a percentage such as 5%" if output.log else "a number"
            point = ", with a decimal point" if "," in number else ""
            raise InputError(f"{name} must be {what}{point}, got {brief(given)}.")
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
            Quantity(what, 0, 1)  # This refuses what is no name.
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

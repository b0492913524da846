"""Outcomes of runs: numbers, or successes out of tries, and the way to the model and back.

A rate of k successes in n tries is the mean of n independent variables in [0, 1]. By Hoeffding's
lemma its noise is 1 / (2 sqrt(n))-sub-Gaussian, whatever the true rate is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from kernelbounds.arrays import EPS, Array, as_floats, as_vector, brief
from kernelbounds.errors import InputError
from kernelbounds.problem.outputs import Output
from kernelbounds.problem.quantities import Quantity, in_digits

# More tries than this would not be whole numbers in all programs that read a table.
MOST_TRIES = 10**9


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
                f"an outcome is a pair of {self.successes} and {self.tries}, such as (16, 20), and "
                f"not a rate, got {brief(given)}."
            )
        for row, (k, n) in enumerate(pairs.tolist()):
            succeeded, tried = (
                f"{self.successes} = {in_digits(k)}",
                f"{self.tries} = {in_digits(n)}",
            )
            if not (n.is_integer() and 1 <= n <= MOST_TRIES):
                wrong = f"{tried} is not a whole number from 1 to {MOST_TRIES}"
            elif not (k.is_integer() and k >= 0):
                wrong = f"{succeeded} is not a whole number of at least 0"
            elif k > n:
                wrong = f"{succeeded} is more than {tried}"
            else:
                continue
            rest = "a run without tries has no outcome" if n == 0 else "correct it"
            raise InputError(f"{place(row)}{wrong}; {rest}.")
        return pairs[:, 0] / pairs[:, 1], _scale_of_tries(pairs[:, 1])


def _scale_of_tries(tries: Array) -> Array:
    # Rounded up: the root, the product and the quotient are rounded.
    return (1 + 4 * EPS) / (2 * np.sqrt(tries))


@dataclass(frozen=True)
class OutcomeScale:
    """How outcomes are measured, and how bounds on them come back to the user's units.

    Attributes
    ----------
    output : Output
        What the outcomes are values of.
    counts : Counts or None
        The columns of successes and tries, where the output is a rate of these.
    limits : pair of float
        The hard limits of the true values, infinite where there are none.
    """

    output: Output
    counts: Counts | None
    limits: tuple[float, float]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of what is measured in a run: the output, or successes and tries."""
        if self.counts is None:
            return (self.output.name,)
        return self.counts.successes, self.counts.tries

    def scaled(self, y: Any, place: Callable[[int], str]) -> tuple[Array, Array | None]:
        """Return outcomes (n,) on the scale of the model, and their noise scales or None.

        ``place`` says where a row is, at the beginning of a message.
        """
        if self.counts is not None:
            return self.counts.rates(y, place)
        name = self.output.name
        values = as_vector(y, name, len(y))
        if self.output.log:
            for row in np.flatnonzero(values <= 0)[:1]:
                raise InputError(
                    f"{place(int(row))}{name} = {in_digits(values[row])} has no logarithm, and "
                    f"{name} was said to be logarithmic: correct it, or leave out log."
                )
        return self.output.scaled(values), None

    def bounds(self, lower: ArrayLike, upper: ArrayLike) -> tuple[Array, Array]:
        """Turn lower and upper bounds of the model into the user's units."""
        below, above = self.output.least(lower), self.output.most(upper)
        if self.output.log:
            # A limit comes back from its logarithm as it was stated, and not a few digits beyond.
            low, high = self.limits
            return _at_limit(below, low), _at_limit(above, high)
        return below, above

    def estimate(
        self, estimate: ArrayLike, lower: ArrayLike, upper: ArrayLike
    ) -> tuple[Array, Array, Array]:
        """Turn estimates and bounds of the model into the user's units."""
        below, above = self.bounds(lower, upper)
        return np.minimum(np.maximum(self.output.most(estimate), below), above), below, above


def _at_limit(values: Array, limit: float) -> Array:
    return np.where(np.isclose(values, limit, rtol=1e-12, atol=0.0), limit, values)

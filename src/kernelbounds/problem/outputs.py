"""What is measured: numbers, logarithms and percentages.

An output is modelled on a scale on which effects and noise add up. For most outputs that is the
output itself. For a logarithmic one it is the natural logarithm: what was measured is
f*(x) exp(noise), and noise of 5 % is one of scale ln 1.05 of that logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from kernelbounds.arrays import EPS, LARGEST, Array, as_scalar, brief
from kernelbounds.display.numbers import about, at_most, factor
from kernelbounds.errors import InputError
from kernelbounds.problem.quantities import NUMBER, Quantity, parsed_range

# From this share on, ten times as much, the noise of a logarithmic output is written as a factor.
LARGEST_SHARE = 10.0


@dataclass(frozen=True)
class Output(Quantity):
    """What is measured, with the range that its true values can plausibly have.

    An output is modelled on a scale on which effects and noise add up: as it is, or by its natural
    logarithm. ``scaled`` goes to that scale, and ``least``, ``most`` and ``difference`` come back
    from it, rounded so that bounds stay true.

    Parameters
    ----------
    name : str
        The name of its column in tables.
    low, high : float
        The ends of its range.
    unit : str
        The unit, for labels only.
    log : bool
        Whether effects and noise multiply and do not add up; the range must then be positive.

    Examples
    --------
    >>> Output.parse("yield[%]=0:100")
    Output(name='yield', low=0.0, high=100.0, unit='%', log=False)
    >>> output = Output.parse("productivity=1.5:5:log")
    >>> f"{output.scaled(2.0):.4f}, {output.most(0.7):.4f}, {output.difference(0.1):.4f}"
    '0.6931, 2.0138, 0.1052'
    """

    @classmethod
    def parse(cls, text: str) -> Self:
        """Make an output from ``name[unit]=low:high``, and ``:log``."""
        name, unit, low, high, more = parsed_range(text, "output")
        for option in more:
            if option not in ("log", "linear"):
                raise InputError(
                    f"output {brief(name)} has {brief(option)} after its range; only log may "
                    "stand there."
                )
        return cls(name, low, high, unit, "log" in more)

    # --- the scale of the model

    @property
    def span(self) -> float:
        """The length of the range on the scale of the model: high - low, or ln(high / low)."""
        return math.log(self.high / self.low) if self.log else self.range

    @property
    def middle(self) -> float:
        """The middle of the range on the scale of the model."""
        return float(self.scaled(self.low)) + self.span / 2

    @property
    def norm_unit(self) -> str:
        """The unit of B, and "" where it has none, or where it would be misread.

        A logarithm has no unit, and B = 1718 % would be read as a share of something.
        """
        return "" if self.log or self.unit == "%" else self.unit

    def norm_text(self, norm: float, rounded: Callable[[float], str] = about) -> str:
        """Write B or another norm with its unit.

        >>> Output.parse("yield[%]=0:100").norm_text(1718.2)
        '1718'
        >>> Output.parse("strength[MPa]=0:900").norm_text(175912.0)
        '175900 MPa'
        """
        return f"{rounded(norm)}{f' {self.norm_unit}' if self.norm_unit else ''}"

    def scaled(self, values: ArrayLike) -> Array:
        """Return values on the scale of the model: as they are, or their natural logarithms.

        A logarithm is rounded in its last digits, as if an outcome had been read with a relative
        error of 1e-15 |ln y|. The bounds that come back are widened by more than that.
        """
        given = np.asarray(values, dtype=float)
        return np.log(given) if self.log else given

    def least(self, scaled: ArrayLike) -> Array:
        """Return lower bounds in the user's units, rounded down, from those of the model."""
        return self._back(scaled, -1)

    def most(self, scaled: ArrayLike) -> Array:
        """Return upper bounds in the user's units, rounded up, from those of the model."""
        return self._back(scaled, 1)

    def _back(self, scaled: ArrayLike, side: int) -> Array:
        given = np.asarray(scaled, dtype=float)
        if not self.log:
            return given
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(given + side * self._rounding(given)))

    def _rounding(self, scaled: Array) -> Array:
        """Bound the rounding errors of exp at these, and of logarithms there and in the range."""
        ends = abs(math.log(self.low)), abs(math.log(self.high))
        return 8 * EPS * (1 + max(ends) + np.abs(scaled))

    def difference(self, scaled: ArrayLike) -> Array:
        """Return a difference in the user's units, rounded up, from that on the model's scale.

        Differences of a logarithmic output are relative: 0.1 where one value is at most 1.1 times
        another.
        """
        given = np.asarray(scaled, dtype=float)
        if not self.log:
            return given
        with np.errstate(over="ignore"):
            return np.asarray(np.expm1(given + self._rounding(given)))

    def widths(self, scaled: ArrayLike) -> Array:
        """Return widths in the user's units, rounded up: differences, or factors of a logarithmic
        output.
        """
        return 1 + self.difference(scaled) if self.log else self.difference(scaled)

    def between_values(self, low: float, high: float) -> float:
        """Return how far two values in the user's units are apart, as :meth:`difference` does."""
        if not self.log:
            return high - low
        return (high - low) / low * (1 + 8 * EPS) if low > 0 else math.inf

    # --- words

    def amount(self, difference: float, rounded: Callable[[float], str] | None = None) -> str:
        """Write a difference in the user's units: ``0.5 %``, or ``a factor of 1.124``.

        It is rounded up, or as ``rounded`` does it.
        """
        if self.log:
            return f"a factor of {rounded(1 + difference) if rounded else factor(difference)}"
        return f"{(rounded or at_most)(difference)}{self.after_number}"

    @property
    def stated_range(self) -> str:
        """Write the length of the range, ``100 %``, or the factor between its ends."""
        if self.log:
            return f"a factor of {self.high / self.low:.3g}"
        return f"{self.range:g}{self.after_number}"

    def plus_minus(self, half: float) -> str:
        """Write half of a width of the model: ``±0.5 %``, or ``a factor of 1.124 either way``."""
        if self.log:
            return f"a factor of {factor(float(self.difference(half)))} either way"
        return f"±{self.amount(half)}"

    def short_plus_minus(self, half: float) -> str:
        """Write half of a width of the model for a table, ``±0.5 %`` or ``factor 1.124``."""
        return (
            f"factor {factor(float(self.difference(half)))}" if self.log else self.plus_minus(half)
        )

    def noise_text(self, noise: float, rounded: Callable[[float], str] = "{:g}".format) -> str:
        """Write noise in the user's units, which for a logarithmic output are shares.

        >>> output = Output.parse("gain=1:9:log")
        >>> output.noise_text(0.05), output.noise_text(31100.0)
        ('5 %', 'a factor of 31101')
        """
        if self.log:
            large = noise >= LARGEST_SHARE
            return self.amount(noise, rounded) if large else f"{rounded(100 * noise)} %"
        return f"{rounded(noise)}{self.after_number}"


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

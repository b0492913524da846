"""Noise in the user's words: a number, a percentage, ``unknown``, or ``within`` a limit.

Noise may be stated as a standard deviation, as ``unknown``, where it is Gaussian and the same in
all runs, as ``unknown, at most 2``, or as ``within 0.5``, which no measurement is ever farther from
the true value. Where outcomes are successes out of tries, the noise follows from the tries.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from kernelbounds.arrays import EPS, LARGEST, brief
from kernelbounds.errors import InputError, did_you_mean
from kernelbounds.noise import Bounded, Gaussian, Noise, SubGaussian
from kernelbounds.problem.outcomes import Counts
from kernelbounds.problem.outputs import Output, checked_amount
from kernelbounds.problem.quantities import in_digits

UNKNOWN, AT_MOST, WITHIN = "unknown", "unknown, at most", "within"
NOISE_IN_WORDS = re.compile(
    r"unknown(?:\s*,?\s*at\s+most\s+(\S.*))?|within\s+(\S.*)", re.IGNORECASE
)
# The noise for which a kernel is chosen and widths are predicted, relative to the range of the
# output, where it is not stated, and where it is unknown.
MISSING_NOISE, UNKNOWN_NOISE = 0.01, 0.05


@dataclass(frozen=True)
class StatedNoise:
    """The noise of a problem: as it was said, as a law of the model, and in words for people.

    Attributes
    ----------
    words : str
        ``"unknown"``, ``"unknown, at most"`` or ``"within"``; empty for a standard deviation.
    amount : float or None
        The number that was said, which for 5% is 0.05. None without ``words``: nothing was said, or
        there are ``counts``.
    output : Output
        The output that is measured.
    counts : Counts or None
        The successes and tries from which the noise follows.
    delta : float
        The failure probability; with 0, noise need not be 0 on average.

    Examples
    --------
    >>> output = Output.parse("strength[MPa]=20:60")
    >>> [StatedNoise.parse(one, output).said for one in ("0.5", "Unknown at most 2.0", "within .5")]
    [0.5, 'unknown, at most 2', 'within 0.5']
    """

    words: str
    amount: float | None
    output: Output
    counts: Counts | None = None
    delta: float = 0.0

    @classmethod
    def parse(
        cls, given: Any, output: Output, counts: Counts | None = None, delta: float = 0.0
    ) -> Self:
        """Read what is said of the noise, a number or words; None: nothing."""
        if given is None:
            return cls("", None, output, counts, delta)
        text = given.strip() if isinstance(given, str) else ""
        words = NOISE_IN_WORDS.fullmatch(text)
        if words is None:
            if text[:1].isalpha():
                number, some = ("a percentage", "5%") if output.log else ("a number", "0.5")
                word = text.split(",")[0]
                hint = "" if word in (UNKNOWN, WITHIN) else did_you_mean(word, (UNKNOWN, WITHIN))
                raise InputError(
                    f"noise must be {number}, 'unknown', 'unknown, at most {some}' or 'within "
                    f"{some}', got {brief(given)}{hint}."
                )
            return cls("", checked_amount(given, "noise", output), output, counts, delta)
        most, limit = words.groups()
        if most is None and limit is None:
            return cls(UNKNOWN, None, output, counts, delta)
        amount = checked_amount(most or limit, "noise", output, above=0.0, most=LARGEST)
        found = cls(AT_MOST if limit is None else WITHIN, amount, output, counts, delta)
        if limit is not None and output.log and amount >= 1:
            raise InputError(
                f"a measurement {found.said} of the true value may be 0, which a logarithmic "
                "output never is; state a smaller limit, or leave out log."
            )
        return found

    @property
    def said(self) -> float | str | None:
        """The noise as :meth:`parse` reads it, in one way of writing; None: nothing was said."""
        if self.amount is None:
            return self.words or None
        if not self.words and not self.output.log:
            return self.amount
        percent = f"{in_digits(100 * self.amount)}%"
        return f"{self.words} {percent if self.output.log else in_digits(self.amount)}".strip()

    @property
    def law(self) -> Noise | None:
        """The law of the noise on the scale of the model, of a run as planned; None: not said yet.

        A measurement within 5 % of the true value is at least 0.95 times that, and ln 0.95 is
        farther from 0 than ln 1.05.

        >>> output = Output.parse("gain=1:9:log")
        >>> said = "5%", "unknown, at most 5%", "within 5%"
        >>> [str(StatedNoise.parse(one, output).law) for one in said]
        ['SubGaussian(0.0487902)', 'Gaussian(at_most=0.0487902)', 'Bounded(0.0512933)']
        """
        if self.counts is not None:
            return SubGaussian(self.counts.noise_scale)
        amount = self.amount
        if amount is None:
            return Gaussian() if self.words else None
        if self.output.log:
            # Rounded up: the quotient, the logarithm and the product are rounded.
            log = -math.log1p(-amount) if self.words == WITHIN else math.log1p(amount)
            amount = log * (1 + 4 * EPS)
        if self.words == WITHIN:
            return Bounded(amount, pointwise=True)  # a table or a study has few rows
        return Gaussian(at_most=amount) if self.words else SubGaussian(amount)

    @property
    def is_unknown(self) -> bool:
        """Whether the noise was said to be unknown, so that the data bound it."""
        return self.law is not None and not self.law.scale_is_stated

    @property
    def scale(self) -> float | None:
        """The noise scale on the scale of the model; None: it is unknown, or not said yet.

        >>> from kernelbounds import Problem
        >>> round(Problem(["x=0:1"], "gain=1:9:log", noise="5%").stated_noise.scale, 4)  # ln 1.05
        0.0488
        """
        law = self.law
        return law.scale if law is not None and law.scale_is_stated else None

    @property
    def planned(self) -> float:
        """The noise scale for which kernels are chosen and widths predicted.

        It is the one that was stated, or the largest that unknown noise may have; otherwise a
        plausible one: 5 % of the range where noise is unknown, and 1 % where nothing is said.
        """
        law = self.law
        if law is None:
            return MISSING_NOISE * self.output.span
        if isinstance(law, Gaussian) and not law.scale_is_stated:
            return law.at_most or UNKNOWN_NOISE * self.output.span
        return law.scale

    @property
    def planned_text(self) -> str:
        """The noise scale :attr:`planned` for people, in the user's units."""
        return self.output.noise_text(float(self.output.difference(self.planned)), "{:.3g}".format)

    def in_units(self, scale: float, *, up: bool = False) -> float:
        """Turn a noise scale of the model into the user's units, rounded down, or up.

        For a logarithmic output that is a share, 0.05 for 5 %.
        """
        if not self.output.log:
            return scale
        within = isinstance(self.law, Bounded)
        try:
            share = -math.expm1(-scale) if within else math.expm1(scale)
        except OverflowError:
            return math.inf
        return share * (1 + 4 * EPS if up else 1 - 4 * EPS)

    def exceeds_range(self, noise: float) -> bool:
        """Tell whether noise in the user's units is more than the output itself moves by.

        Such a number, of noise that the data would need, says only that something else is wrong.
        The noise of a rate is that of a run with the planned tries, which other runs need not have.
        It is reported as a multiple of that of independent tries, so no size is meaningless.
        """
        return self.counts is None and noise > float(self.output.difference(self.output.span))

    @property
    def clause(self) -> str:
        """What is assumed of the noise, as a part of a sentence.

        >>> from kernelbounds import Problem
        >>> Problem(["x=0:1"], "gain[dB]=1:9", noise="within 0.5", delta=0).stated_noise.clause
        'no measurement farther than 0.5 dB from the true value'
        >>> Problem(["x=0:1"], "gain[dB]=1:9", noise="unknown").stated_noise.clause
        'Gaussian noise of the same standard deviation in all runs, whatever it is'
        """
        if not self.words:
            return f"noise of at most {self.text()}"
        size = "" if self.amount is None else self.output.noise_text(self.amount)
        if self.words == WITHIN:
            average = "" if self.delta == 0 else " and errors that are 0 on average"
            return f"no measurement farther than {size} from the true value{average}"
        most = f"at most {size}" if size else "whatever it is"
        return f"Gaussian noise of the same standard deviation in all runs, {most}"

    def text(
        self, at_least: float | None = None, rounded: Callable[[float], str] = "{:g}".format
    ) -> str:
        """Write the noise that is assumed, or another one in the user's units, for people."""
        if self.counts is not None:
            usual = "that of independent tries"
            if at_least is None:
                return usual
            return f"{rounded(at_least / self.counts.noise_scale)} times {usual}"
        if at_least is not None:
            return self.output.noise_text(at_least, rounded)
        if self.said is None:
            return "not said yet"
        size = "" if self.amount is None else self.output.noise_text(self.amount)
        return f"{self.words} {size}".strip()

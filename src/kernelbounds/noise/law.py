"""The interface of noise laws, and the radius that follows from sub-Gaussian noise."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

from kernelbounds.arrays import as_scalar, brief
from kernelbounds.engine import Engine, ExactEngine
from kernelbounds.errors import InputError
from kernelbounds.mixtures import Mixture
from kernelbounds.mixtures.ledger import LossLedger
from kernelbounds.noise.unknown import ScaleForecasts

SMALLEST_NOISE, LARGEST_NOISE = 1e-100, 1e100  # Their squares neither vanish nor overflow.


class RadiusInputs(NamedTuple):
    """Everything from which a noise law computes R_t, besides the law itself."""

    mixture: Mixture
    engine: Engine
    ledger: LossLedger
    forecasts: ScaleForecasts | None  # None where the noise scale was stated
    mixture_scale: float  # c
    ridge: float  # sigma^2/c
    delta: float
    most: float  # (|y_t| + B sqrt(tr K))^2, which R_t^2 is while no noise scale is known

    def of_mixture(self, scale: float) -> tuple[float, float]:
        """R_t^2 for sub-Gaussian noise of a scale, see :meth:`Mixture.squared_radius`."""
        if scale == 0:
            return 0.0, 0.0
        known_at, losses = self.ledger.sums(self.mixture, self.engine, self.ridge, scale)
        return self.mixture.squared_radius(self.engine, self.ridge, known_at, self.delta, losses)


class Noise(ABC):
    """What is known of the noise y - f*(x).

    A noise law of one's own is a frozen dataclass with the methods below. Its
    :meth:`squared_radius` promises that ||f*_t - y_t|| <= R_t at all t at once, with probability at
    least 1 - delta. The default keeps this promise if the noise is ``scale``-sub-Gaussian given its
    x and all observations added before.

    Attributes
    ----------
    scale : float
        The number that the law is about: sigma, or a limit; infinite where it is not known.
    may_be_certain : bool
        Whether delta may be 0; False unless a law says otherwise.
    is_sub_gaussian : bool
        Whether bounds that speak of a stated noise scale hold: AY, IGP and fixed designs. True
        unless a law says otherwise.
    is_gaussian : bool
        Whether the noise is Gaussian and independent, which fixed designs make use of; False
        unless a law says otherwise.
    averages_out : bool
        Whether the mean of w outcomes has the noise scale of one, divided by sqrt(w); True unless a
        law says otherwise.
    takes_covariance : bool
        Whether the law also holds for combinations of outcomes whose noise is uncorrelated; False
        unless a law says otherwise.
    largest : float
        The largest number in the place of ``scale`` that the outcomes leave possible; infinite
        unless a law says otherwise.

    Examples
    --------
    >>> from kernelbounds.noise import Bounded, Energy, Gaussian, Noise, SubGaussian
    >>> laws = [Bounded(1.0), Energy(2.0), Gaussian(), SubGaussian(0.1)]
    >>> [law.scale for law in laws if isinstance(law, Noise)]
    [1.0, 2.0, inf, 0.1]
    """

    scale: float
    may_be_certain: ClassVar[bool] = False
    is_sub_gaussian: ClassVar[bool] = True
    is_gaussian: ClassVar[bool] = False
    averages_out: ClassVar[bool] = True
    takes_covariance: ClassVar[bool] = False
    largest: float = math.inf

    @abstractmethod
    def at_scale(self, scale: float) -> Noise:
        """The same law with another number in the place of ``scale``."""

    def squared_radius(self, given: RadiusInputs) -> tuple[float, float]:
        """R_t^2 as a sum of two numbers, as :meth:`Mixture.squared_radius` returns it.

        Unless a law says otherwise it is that of sub-Gaussian noise with this ``scale``.
        """
        return given.of_mixture(self.scale)

    def penalty(
        self, mixture: Mixture, engine: ExactEngine, ridge: float, delta: float
    ) -> tuple[float, float]:
        """P and a least ridge: R_t^2 <= E_alpha + P at all ridges above it, whatever the outcomes.

        See :meth:`Mixture.penalty`.
        """
        return mixture.penalty(engine, ridge, self.scale, delta)

    @abstractmethod
    def margin(self, count: int, delta: float) -> float:
        """A size that the noise of ``count`` outcomes exceeds with probability at most delta."""

    @property
    def unit(self) -> float:
        """The noise scale of an observation of weight 1, as ``update`` takes noise scales."""
        return self.scale

    @property
    def scale_is_stated(self) -> bool:
        """Whether the scale is a number that the user stated."""
        return True

    def limit_of_each(self, delta: float) -> float | None:
        """The most by which f*(x) differs from each outcome; None: not known, or not used.

        Bounds take longer where it is used.
        """
        return None

    @property
    def in_words(self) -> tuple[str, str]:
        """The law and its number in words, for messages about data that refute the assumptions.

        The first ends the sentence "no function is compatible with them ..."; the second is what
        the number is called there.
        """
        return f"at noise_scale {self.scale:g}", "noise_scale"

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.scale:g})"


def checked_scale(given: Any, name: str, *, zero: bool = False) -> float:
    """Check the number that a law is about, which is positive or, if asked for, zero."""
    found = as_scalar(given, name, least=0.0, most=LARGEST_NOISE)
    if found < SMALLEST_NOISE and not (zero and found == 0):
        least = f"0 or at least {SMALLEST_NOISE:g}" if zero else f"at least {SMALLEST_NOISE:g}"
        raise InputError(f"{name} must be {least}, got {brief(found)}.")
    return found

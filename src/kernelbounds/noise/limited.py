"""Noise with a limit that is never exceeded: on each outcome, or on the sum of their squares."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from kernelbounds.arrays import EPS, as_flag, set_checked
from kernelbounds.engine import ExactEngine
from kernelbounds.mixtures import Mixture
from kernelbounds.noise.law import Noise, RadiusInputs, checked_scale

# Where R_t is known for certain, widths are predicted for ridges from this times sigma^2/c on.
SMALL_RIDGE = 1e-3


@dataclass(frozen=True)
class Bounded(Noise):
    """Noise that is never larger than a limit: |eps| <= b.

    R_t^2 is the mixture's, with sigma = b (Hoeffding), or t b^2, which is for certain, whichever is
    smaller. With ``delta=0`` it is t b^2 and nothing is random: the noise need not have mean zero,
    it may be chosen by an adversary, and bounds hold for certain. Each outcome also says
    |f*(x_s) - y_s| <= b by itself, which can be used as :mod:`facts <kernelbounds.facts>` are. Then
    bounds are often several times narrower, and take some hundred times as long.

    Parameters
    ----------
    limit : float
        b > 0. With ``update(noise_scale=...)``, the limits of single observations.
    pointwise : bool, optional
        Whether each outcome is used by itself; None: with ``delta=0``.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), 2.0, kb.noise.Bounded(0.1), delta=0)
    >>> seq.update([[0.2], [0.8]], [0.3, 0.9])
    >>> lower, upper = seq.bounds([[0.2], [0.8]])
    >>> bool((upper - lower <= 0.2 + 1e-9).all())
    True
    """

    limit: float
    pointwise: bool | None = None
    scale: float = field(init=False, repr=False, compare=False)  # b

    may_be_certain = True
    averages_out = False  # The mean of outcomes that are all off by b is off by b.

    def __post_init__(self) -> None:
        if self.pointwise is not None:
            set_checked(self, pointwise=as_flag(self.pointwise, "pointwise"))
        limit = checked_scale(self.limit, "the limit of the noise")
        set_checked(self, limit=limit, scale=limit)

    def limit_of_each(self, delta: float) -> float | None:
        """See :class:`Noise`."""
        used = delta == 0 if self.pointwise is None else self.pointwise
        return self.limit if used else None

    @property
    def in_words(self) -> tuple[str, str]:
        """See :class:`Noise`."""
        return f"under noise of at most {self.limit:g} in each outcome", "the limit of the noise"

    def at_scale(self, scale: float) -> Bounded:
        """See :class:`Noise`."""
        return Bounded(scale, self.pointwise)

    def squared_radius(self, given: RadiusInputs) -> tuple[float, float]:
        """See :class:`Noise`."""
        count = given.engine.data.count
        certain = 0.0, count * self.limit**2 * (1 + 4 * EPS)
        if given.delta == 0:
            return certain
        return min(given.of_mixture(self.limit), certain, key=sum)

    def penalty(
        self, mixture: Mixture, engine: ExactEngine, ridge: float, delta: float
    ) -> tuple[float, float]:
        """See :class:`Noise`; energies are not negative."""
        if delta > 0:
            return super().penalty(mixture, engine, ridge, delta)
        return engine.data.count * self.limit**2 * (1 + 4 * EPS), SMALL_RIDGE * ridge

    def margin(self, count: int, delta: float) -> float:
        """The limit b itself: no noise is larger."""
        return self.limit


@dataclass(frozen=True)
class Energy(Noise):
    """Noise whose squares add up to a limit at most: sum over all s of eps_s^2 <= limit^2.

    Then R_t is the limit, at all times and for certain: CMM is the optimal bound of Lahr et al.
    (2025), and DMM and AMM are their relaxations. Nothing is random and delta has no meaning. With
    ``update(noise_scale=...)``, which are ratios here, each square is divided by that of its ratio;
    with ``update(covariance=W)`` the sum of squares is eps' W^-1 eps.

    Parameters
    ----------
    limit : float
        The square root of the largest noise energy, in the unit of the outcomes.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=kb.noise.Energy(0.3))
    >>> seq.update([[0.2], [0.8]], [0.3, 0.9])
    >>> seq.radius
    0.3
    """

    limit: float
    scale: float = field(init=False, repr=False, compare=False)  # the noise of one outcome at most

    unit = 1.0  # Noise scales of observations are ratios.
    may_be_certain = True
    is_sub_gaussian = False  # The noise may be anything with this energy.
    averages_out = False  # Nothing is random.
    takes_covariance = True

    def __post_init__(self) -> None:
        limit = checked_scale(self.limit, "the limit of the noise energy")
        set_checked(self, limit=limit, scale=limit)

    @property
    def in_words(self) -> tuple[str, str]:
        """See :class:`Noise`."""
        said = f"under noise whose squares add up to at most {self.limit:g}^2"
        return said, "the limit of the noise energy"

    def at_scale(self, scale: float) -> Energy:
        """See :class:`Noise`."""
        return Energy(scale)

    def squared_radius(self, given: RadiusInputs) -> tuple[float, float]:
        """See :class:`Noise`."""
        return 0.0, _squared_above(self.limit)

    def penalty(
        self, mixture: Mixture, engine: ExactEngine, ridge: float, delta: float
    ) -> tuple[float, float]:
        """See :class:`Noise`; energies are not negative."""
        return _squared_above(self.limit), SMALL_RIDGE * ridge

    def margin(self, count: int, delta: float) -> float:
        """The limit, which one outcome may attain."""
        return self.limit


def _squared_above(limit: float) -> float:
    """The square of a number, rounded up."""
    found = limit * limit
    return found if Fraction(found) >= Fraction(limit) ** 2 else math.nextafter(found, math.inf)

"""The laws of noise that can be stated, and the radius that each of them gives."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from kernelbounds.arrays import EPS, as_flag, as_scalar, brief
from kernelbounds.engine import Engine, ExactEngine
from kernelbounds.errors import InputError
from kernelbounds.mixtures import Hybrid, Mixture, Single
from kernelbounds.mixtures.ledger import LossLedger
from kernelbounds.noise.unknown import ScaleForecasts, largest_energy

# Forecasts take no noise scale at its word. So that data refute one that is too small, a share of
# delta is for the largest energy of noise of that scale.
SHARE_OF_ENERGY = 0.02
# Where R_t is known for certain, widths are predicted for ridges from this times sigma^2/c on.
SMALL_RIDGE = 1e-3
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


class Noise(ABC):
    """What is known of the noise y - f*(x).

    A noise law of one's own is a frozen dataclass with the methods below. Where it is random, it
    must make the noise ``scale``-sub-Gaussian, given its x and all observations added before.

    Attributes
    ----------
    scale : float
        The number that the law is about: sigma, or a limit; infinite where it is not known.

    Examples
    --------
    >>> from kernelbounds.noise import Bounded, Energy, Gaussian, Noise, SubGaussian
    >>> laws = [Bounded(1.0), Energy(2.0), Gaussian(), SubGaussian(0.1)]
    >>> [law.scale for law in laws if isinstance(law, Noise)]
    [1.0, 2.0, inf, 0.1]
    """

    scale: float

    @abstractmethod
    def at_scale(self, scale: float) -> Noise:
        """The same law with another number in the place of ``scale``."""

    @abstractmethod
    def squared_radius(self, given: RadiusInputs) -> tuple[float, float]:
        """R_t^2 as a sum of two numbers, as :meth:`Mixture.squared_radius` returns it."""

    def penalty(
        self, mixture: Mixture, engine: ExactEngine, ridge: float, delta: float
    ) -> tuple[float, float]:
        """P and a least ridge: R_t^2 <= E_alpha + P at all ridges above it, whatever the outcomes.

        See :meth:`Mixture.penalty`.
        """
        return mixture.penalty(engine, ridge, self.scale, delta)

    @abstractmethod
    def margin(self, count: int, delta: float) -> float:
        """What none of ``count`` noises exceeds in size, with probability at least 1 - delta."""

    @property
    def unit(self) -> float:
        """The noise scale of an observation of weight 1, as ``update`` takes noise scales."""
        return self.scale

    @property
    def scale_is_stated(self) -> bool:
        """Whether the scale is a number that the user stated."""
        return True

    @property
    def awaits_outcomes(self) -> bool:
        """Whether a bound on the scale is still to be found from outcomes; for Gaussian alone."""
        return False

    @property
    def may_be_certain(self) -> bool:
        """Whether delta may be 0."""
        return False

    @property
    def is_sub_gaussian(self) -> bool:
        """Whether bounds that speak of a stated noise scale hold: AY, IGP and fixed designs."""
        return True

    @property
    def is_gaussian(self) -> bool:
        """Whether the noise is Gaussian and independent, which fixed designs make use of."""
        return False

    @property
    def averages_out(self) -> bool:
        """Whether the mean of w outcomes has the noise scale of one, divided by sqrt(w)."""
        return True

    @property
    def takes_covariance(self) -> bool:
        """Whether the law also holds for combinations of outcomes whose noise is uncorrelated."""
        return False

    def limit_of_each(self, delta: float) -> float | None:
        """The most by which f*(x) differs from each outcome; None: that is not known, or not used.

        Bounds take longer where it is used.
        """
        return None

    @property
    def in_words(self) -> tuple[str, str]:
        """The end of "no function is compatible with the data ...", and what its number is called.

        Both are for messages.
        """
        return f"at noise_scale {self.scale:g}", "noise_scale"

    @property
    def largest(self) -> float:
        """The largest number in the place of ``scale`` that the outcomes leave possible."""
        return math.inf

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.scale:g})"


@dataclass(frozen=True)
class SubGaussian(Noise):
    """Noise that is sigma-sub-Gaussian given the past: E exp(s eps) <= exp(s^2 sigma^2 / 2).

    R_t is that of the mixture; it fails at any time with probability at most delta. Zero is the
    noiseless setting. A number in the place of a law means this.

    Parameters
    ----------
    scale : float
        sigma >= 0. Gaussian noise has its standard deviation; noise within [-b, b] of mean zero has
        b at most, see :class:`Bounded`.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), 2.0, kb.noise.SubGaussian(0.1))
    >>> seq.assumptions == kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1).assumptions
    True
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _checked(self.scale, "noise_scale", zero=True))

    def at_scale(self, scale: float) -> SubGaussian:
        """See :class:`Noise`."""
        return replace(self, scale=scale)

    def squared_radius(self, given: RadiusInputs) -> tuple[float, float]:
        """See :class:`Noise`."""
        return _of_mixture(self.scale, given)

    def margin(self, count: int, delta: float) -> float:
        """sigma sqrt(2 ln(2 n / delta)), rounded up."""
        return self.scale * math.sqrt(2 * math.log(2 * count / delta)) * (1 + 8 * EPS)


@dataclass(frozen=True)
class Gaussian(Noise):
    """Gaussian noise, independent given the past, of a standard deviation that is known or not.

    With a scale, R_t is that of :class:`SubGaussian`; fixed designs and predictions are narrower.

    Without one, sigma is unknown and the same for all observations, but for the ratios that
    ``update(noise_scale=...)`` states. The outcomes then give an upper bound sigma_max on it, at
    all times at once, that needs neither B nor a right kernel; half of delta is spent on that, and
    R_t is the largest radius of all sigma up to sigma_max, at the other half. Noise of another law
    will do if, for 0 < lambda <= 2.4 and all b, E exp(-lambda (eps + b)^2 / (2 sigma^2)) is at
    most (1 + lambda)^(-1/2), and if it is sigma-sub-Gaussian; noise of +-sigma is such a law. (Not
    for :class:`~kernelbounds.FixedDesign` and predictions, which take it to be Gaussian.) Noise
    that is often exactly 0, or of many sizes, is not. Until some 20 to 40 outcomes are there,
    sigma_max is infinite and bounds are those without data.

    Parameters
    ----------
    scale : float, optional
        sigma; None: it is unknown.
    at_most : float, optional
        A number that an unknown sigma does not exceed, for certain.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=5.0, noise_scale=kb.noise.Gaussian())
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 1))
    >>> seq.update(X, np.sin(4 * X[:, 0]) + 0.2 * rng.normal(size=200))
    >>> 0.2 < seq.noise_upper_bound < 0.3
    True
    """

    scale: float = math.inf
    at_most: float | None = None

    def __post_init__(self) -> None:
        given: Any = self.scale
        if given is not None and given != math.inf:
            if self.at_most is not None:
                raise InputError("pass either the scale of Gaussian noise or at_most, not both.")
            object.__setattr__(self, "scale", _checked(given, "noise_scale", zero=True))
            return
        most = None if self.at_most is None else _checked(self.at_most, "at_most")
        object.__setattr__(self, "at_most", most)
        object.__setattr__(self, "scale", math.inf)

    @property
    def scale_is_stated(self) -> bool:
        """Whether the scale was stated."""
        return math.isfinite(self.scale)

    @property
    def awaits_outcomes(self) -> bool:
        """Whether the scale is unknown; :class:`ScaleAtMost` then replaces this law."""
        return not self.scale_is_stated

    @property
    def unit(self) -> float:
        """The scale; 1 where it is unknown, so that ``update`` takes ratios."""
        return self.scale if self.scale_is_stated else 1.0

    @property
    def is_gaussian(self) -> bool:
        """True."""
        return True

    @property
    def takes_covariance(self) -> bool:
        """True."""
        return True

    def at_scale(self, scale: float) -> Gaussian:
        """See :class:`Noise`."""
        return Gaussian(scale)

    def squared_radius(self, given: RadiusInputs) -> tuple[float, float]:
        """See :class:`Noise`; of an unknown scale, :class:`ScaleAtMost` takes the place of this."""
        return _of_mixture(self.scale, given)

    def margin(self, count: int, delta: float) -> float:
        """The quantile of the largest of n absolute values, by a union bound; rounded up."""
        return self.scale * _quantile(count, delta)

    def __str__(self) -> str:
        if self.scale_is_stated:
            return f"Gaussian({self.scale:g})"
        return "Gaussian()" if self.at_most is None else f"Gaussian(at_most={self.at_most:g})"


@dataclass(frozen=True)
class ScaleAtMost(Noise):
    """Gaussian noise whose unknown scale is at most a number, which may depend on the data.

    That is what :class:`Gaussian` without a scale becomes when there are outcomes. R_t is the
    largest radius over all noise scales up to that number, not the radius at the number itself: the
    mixture makes a supermartingale at the true sigma, but not at a number that the outcomes chose.
    Where the largest energy of such noise is less than that, R_t^2 is that energy.
    """

    scale: float
    largest: float = math.inf  # the bound from the outcomes; ``at_most`` may be less

    @property
    def unit(self) -> float:
        """1: noise scales of observations are ratios."""
        return 1.0

    @property
    def scale_is_stated(self) -> bool:
        """False."""
        return False

    @property
    def is_gaussian(self) -> bool:
        """True."""
        return True

    def at_scale(self, scale: float) -> ScaleAtMost:
        """See :class:`Noise`."""
        return replace(self, scale=scale)

    @property
    def in_words(self) -> tuple[str, str]:
        """See :class:`Noise`."""
        most = f"up to {self.scale:.3g}, the largest that the outcomes allow"
        if self.scale < self.largest:
            most = f"up to at_most = {self.scale:g}"
        return f"under Gaussian noise of any scale {most}", "at_most"

    def squared_radius(self, given: RadiusInputs) -> tuple[float, float]:
        """See :class:`Noise`."""
        if not given.engine.data.count or self.scale == 0:
            return 0.0, 0.0
        if math.isinf(self.scale):
            return 0.0, given.most
        if isinstance(given.mixture, Single):  # Its radius increases with sigma.
            ridge, none = self.scale**2 / given.mixture_scale, np.empty(0)
            delta = (1 - SHARE_OF_ENERGY) * given.delta
            return given.mixture.squared_radius(given.engine, ridge, self.scale, delta, none)
        assert isinstance(given.mixture, Hybrid)  # Other mixtures are refused before.
        forecasts, delta = given.forecasts, (1 - SHARE_OF_ENERGY) * given.delta
        assert forecasts is not None  # The scale of this law was not stated.
        reference = np.sqrt(given.mixture_scale * forecasts.ridges)
        found = forecasts.squared_radius(given.mixture, reference, self.scale, delta)
        count = given.engine.data.count
        energy = largest_energy(count, SHARE_OF_ENERGY * given.delta) * self.scale**2
        return 0.0, min(found, energy * (1 + 4 * EPS))

    def penalty(
        self, mixture: Mixture, engine: ExactEngine, ridge: float, delta: float
    ) -> tuple[float, float]:
        """See :class:`Noise`; there is none, because the outcomes decide on the noise scale."""
        return math.inf, ridge

    def margin(self, count: int, delta: float) -> float:
        """See :class:`Gaussian`."""
        return self.scale * _quantile(count, delta)


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

    def __post_init__(self) -> None:
        if self.pointwise is not None:
            object.__setattr__(self, "pointwise", as_flag(self.pointwise, "pointwise"))
        for name in ("limit", "scale"):
            object.__setattr__(self, name, _checked(self.limit, "the limit of the noise"))

    @property
    def may_be_certain(self) -> bool:
        """True."""
        return True

    @property
    def averages_out(self) -> bool:
        """False: the mean of outcomes that are all off by b is off by b."""
        return False

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
        return min(_of_mixture(self.limit, given), certain, key=sum)

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

    def __post_init__(self) -> None:
        for name in ("limit", "scale"):
            object.__setattr__(self, name, _checked(self.limit, "the limit of the noise energy"))

    @property
    def unit(self) -> float:
        """1: noise scales of observations are ratios."""
        return 1.0

    @property
    def may_be_certain(self) -> bool:
        """True."""
        return True

    @property
    def is_sub_gaussian(self) -> bool:
        """False: the noise may be anything with this energy."""
        return False

    @property
    def averages_out(self) -> bool:
        """False: nothing is random."""
        return False

    @property
    def takes_covariance(self) -> bool:
        """True."""
        return True

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
        return 0.0, self.limit**2

    def penalty(
        self, mixture: Mixture, engine: ExactEngine, ridge: float, delta: float
    ) -> tuple[float, float]:
        """See :class:`Noise`; energies are not negative."""
        return self.limit**2, SMALL_RIDGE * ridge

    def margin(self, count: int, delta: float) -> float:
        """The limit, which one outcome may attain."""
        return self.limit


def checked_noise(given: Any) -> Noise:
    """The law that a user passed, or that of sub-Gaussian noise for a number."""
    if isinstance(given, Noise):
        return given
    if isinstance(given, type) and issubclass(given, Noise):
        raise InputError(
            f"noise_scale is the class {given.__name__}; pass a law of that class, such as "
            f"{given.__name__}(0.1)."
        )
    return SubGaussian(given)


def _of_mixture(scale: float, given: RadiusInputs) -> tuple[float, float]:
    """R_t^2 for sub-Gaussian noise of this scale."""
    if scale == 0:
        return 0.0, 0.0
    engine, mixture = given.engine, given.mixture
    known_at, losses = given.ledger.sums(mixture, engine, given.ridge, scale)
    return mixture.squared_radius(engine, given.ridge, known_at, given.delta, losses)


def _quantile(count: int, delta: float) -> float:
    """The number that |N(0, 1)| exceeds with probability delta / n, rounded up."""
    return -float(ndtri(delta / (2 * count))) * (1 + 1e-12)


def _checked(given: Any, name: str, *, zero: bool = False) -> float:
    found = as_scalar(given, name, least=0.0, most=LARGEST_NOISE)
    if found < SMALLEST_NOISE and not (zero and found == 0):
        least = f"0 or at least {SMALLEST_NOISE:g}" if zero else f"at least {SMALLEST_NOISE:g}"
        raise InputError(f"{name} must be {least}, got {brief(found)}.")
    return found

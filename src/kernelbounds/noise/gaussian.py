"""Gaussian noise of a known or an unknown scale."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from kernelbounds.arrays import EPS, set_checked
from kernelbounds.engine import ExactEngine
from kernelbounds.errors import InputError
from kernelbounds.mixtures import Hybrid, Mixture, Single
from kernelbounds.noise.law import Noise, RadiusInputs, checked_scale
from kernelbounds.noise.unknown import SHARE_OF_ENERGY, largest_energy


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

    is_gaussian = True
    takes_covariance = True

    def __post_init__(self) -> None:
        given: Any = self.scale
        if given is not None and given != math.inf:
            if self.at_most is not None:
                raise InputError("pass either the scale of Gaussian noise or at_most, not both.")
            set_checked(self, scale=checked_scale(given, "noise_scale", zero=True))
            return
        most = None if self.at_most is None else checked_scale(self.at_most, "at_most")
        set_checked(self, at_most=most, scale=math.inf)

    @property
    def scale_is_stated(self) -> bool:
        """Whether the scale was stated; else :class:`ScaleAtMost` replaces this law."""
        return math.isfinite(self.scale)

    @property
    def unit(self) -> float:
        """The scale; 1 where it is unknown, so that ``update`` takes ratios."""
        return self.scale if self.scale_is_stated else 1.0

    def at_scale(self, scale: float) -> Gaussian:
        """See :class:`Noise`."""
        return Gaussian(scale)

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

    unit = 1.0  # Noise scales of observations are ratios.
    scale_is_stated = False
    is_gaussian = True

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


def _quantile(count: int, delta: float) -> float:
    """The number that |N(0, 1)| exceeds with probability delta / n, rounded up."""
    return -float(ndtri(delta / (2 * count))) * (1 + 1e-12)

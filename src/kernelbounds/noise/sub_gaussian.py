"""SubGaussian: noise of a known scale, which is what a number in the place of a law means."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from kernelbounds.arrays import EPS, set_checked
from kernelbounds.errors import InputError
from kernelbounds.noise.law import Noise, checked_scale


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
        set_checked(self, scale=checked_scale(self.scale, "noise_scale", zero=True))

    def at_scale(self, scale: float) -> SubGaussian:
        """See :class:`Noise`."""
        return replace(self, scale=scale)

    def margin(self, count: int, delta: float) -> float:
        """sigma sqrt(2 ln(2 n / delta)), rounded up."""
        return self.scale * math.sqrt(2 * math.log(2 * count / delta)) * (1 + 8 * EPS)


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

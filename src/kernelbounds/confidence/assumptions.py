"""What is assumed of the unknown function and of the noise."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from kernelbounds.arrays import Array, as_floats, as_scalar, brief
from kernelbounds.errors import InputError
from kernelbounds.mixtures import Hybrid, Mixture, Prequential, Single
from kernelbounds.noise import Noise
from kernelbounds.noise.law import SMALLEST_NOISE
from kernelbounds.noise.sub_gaussian import checked_noise

# A covariance matrix is symmetric if its entries are to this, relative to the noise scales.
SYMMETRIC = 1e-12
# The condition number of correlation matrices: beyond it, rounding errors of the kernel's values
# would be enlarged to those of single precision.
LARGEST_CONDITION = 1e8


@dataclass(frozen=True)
class Assumptions:
    """What is assumed of f* and of the noise, and how the radius is made.

    A number c in place of a mixture means ``mixtures.Single(c)``, the paper's. A law of
    :mod:`kernelbounds.noise` may be given as ``noise_scale``, which is then the law's number.

    =====================  ========  =====================================================
    name                   paper     meaning
    =====================  ========  =====================================================
    ``norm_bound``         B         ||f*|| <= B in the kernel's function space
    ``noise_scale``        sigma     the number of the law below; 0: there is no noise
    ``delta``              delta     all bounds hold at once with probability >= 1 - delta
    ``mixture``                      how R_t is made, see :mod:`kernelbounds.mixtures`
    ``misspecification``             f* is within this of such a function, everywhere
    ``noise``                        the law of the noise, see :mod:`kernelbounds.noise`
    =====================  ========  =====================================================

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.1], [0.9]], [0.3, -0.2])
    >>> seq.assumptions.norm_bound, seq.assumptions.delta
    (2.0, 0.01)
    """

    norm_bound: float
    noise_scale: float
    delta: float = 0.01
    mixture: Mixture = field(default_factory=Hybrid)
    misspecification: float = 0.0
    noise: Noise = None  # type: ignore[assignment]  # that of ``noise_scale``

    def __post_init__(self) -> None:
        stated: Noise | None = self.noise
        noise = checked_noise(self.noise_scale) if stated is None else stated
        if noise.scale != self.noise_scale and stated is not None:
            noise = noise.at_scale(self.noise_scale)  # another number, of the same law
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "noise_scale", noise.scale)
        limits: dict[str, dict[str, float]] = {
            "norm_bound": {"least": 0.0, "most": 1e100},
            "delta": {"least" if noise.may_be_certain else "above": 0.0, "most": 1.0},
            "misspecification": {"least": 0.0, "most": 1e100},
        }
        for name, limit in limits.items():
            object.__setattr__(self, name, as_scalar(getattr(self, name), name, **limit))
        if not noise.is_sub_gaussian:  # and so not random
            object.__setattr__(self, "delta", 0.0)
        mixture: object = self.mixture
        if not isinstance(mixture, Mixture):
            object.__setattr__(self, "mixture", _single(mixture))
        if 0 < self.misspecification < SMALLEST_NOISE:
            raise InputError(
                f"misspecification must be 0 or at least {SMALLEST_NOISE:g}, got "
                f"{self.misspecification:g}."
            )
        if not noise.scale_is_stated and isinstance(self.mixture, Prequential):
            raise InputError(
                f"the scale of {noise} noise is not stated, and Prequential has no forecasts for "
                "all possible scales; use mixtures.Hybrid() or Single(c) in its place."
            )

    @property
    def mixture_scale(self) -> float:
        """The mixture's scale c; sigma^2/c is the default ridge of AMM, DMM and AY."""
        return self.mixture.scale(self.norm_bound)

    @property
    def misfit(self) -> float:
        """The distance of a typical outcome from a function of norm at most B; 0: no noise."""
        return self.noise_scale + self.misspecification

    def checked_noise_scales(self, given: ArrayLike | None, count: int) -> Array | None:
        """The noise scales of ``count`` observations, as users pass them; None: the usual one."""
        if given is None:
            return None
        scales, own = as_floats(given, "noise_scale"), self.noise.unit
        if scales.shape not in ((), (count,)):
            raise InputError(
                "noise_scale must be a number, or one for each observation, got shape "
                f"{scales.shape} for {count}."
            )
        if own == 0 and np.any(scales != 0):
            raise InputError(
                "a sequence with noise_scale 0 has observations without noise only; give it the "
                "noise scale of a typical observation."
            )
        if own == 0:
            return None
        if not np.all(scales > 0) or not np.all((scales >= 1e-50 * own) & (scales <= 1e50 * own)):
            raise InputError(
                "noise_scale must be positive for each observation, and not beyond 1e50 times that "
                f"of the sequence, got {brief(given)}."
            )
        return np.full(count, scales) if scales.ndim == 0 else scales

    def checked_covariance(self, given: ArrayLike, count: int) -> tuple[Array, Array | None]:
        """The noise scales (n,) and correlation matrix (n, n) of a covariance matrix W.

        The correlation matrix is None where W is diagonal.
        """
        if not self.noise.takes_covariance:
            raise InputError(
                f"covariance= is for noise.Gaussian and noise.Energy; under {self.noise}, outcomes "
                "that are combined so that their noise is uncorrelated need not obey that law."
            )
        W = as_floats(given, "covariance")
        if W.shape != (count, count):
            raise InputError(
                f"covariance must have a row and a column for each of {count} observations, got "
                f"shape {W.shape}."
            )
        variances = np.diagonal(W)
        if not np.all(variances > 0):
            raise InputError(
                "covariance must have positive variances on its diagonal, got "
                f"{variances.min():g} for observation {int(np.argmin(variances))}."
            )
        scales = self.checked_noise_scales(np.sqrt(variances), count)
        assert scales is not None  # None stands for the usual noise scale alone.
        correlation = W / np.multiply.outer(scales, scales)
        if np.abs(correlation - correlation.T).max() > SYMMETRIC:
            raise InputError("covariance must be symmetric up to rounding errors, and it is not.")
        correlation = (correlation + correlation.T) / 2
        np.fill_diagonal(correlation, 1.0)
        if np.count_nonzero(correlation) == count:
            return scales, None
        values = np.linalg.eigvalsh(correlation)
        if values[0] * LARGEST_CONDITION < values[-1]:
            raise InputError(
                "covariance must be positive definite by a margin: the eigenvalues of its "
                f"correlation matrix go from {values[0]:.3g} to {values[-1]:.3g}, and their ratio "
                f"may be {LARGEST_CONDITION:g}; noise that each outcome has by itself belongs on "
                "the diagonal."
            )
        return scales, correlation


def _single(given: object) -> Single:
    if isinstance(given, bool) or not isinstance(given, int | float | np.integer | np.floating):
        raise InputError(
            "mixture must be one of kernelbounds.mixtures.Hybrid(), Single(c), "
            f"Prequential(forecaster), or a number c, got {brief(given)}."
        )
    return Single(float(given))

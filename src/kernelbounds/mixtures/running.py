"""Sums of losses at several noise scales, for an engine that does not keep its forecasts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.engine import Forecasts
from kernelbounds.mixtures.mixture import Mixture

# Other noise scales that may be believed later, relative to the one that is: powers of the root of
# two up to a thousand, in both directions. Between two of them the larger one is taken.
POWERS = np.arange(-20, 21) / 2


@dataclass(frozen=True)
class RunningLosses:
    """What forecasts cost if the noise has this scale, or others.

    Losses depend on errors and deviations relative to the noise scale alone.
    """

    mixture: Mixture
    ridge: float  # sigma^2 / c, at which forecasts are made
    noise_scale: float  # sigma

    def __call__(self, made: Forecasts) -> Array:
        """Losses (n, g j) of forecasts, at g noise scales."""
        ratio = 2.0**POWERS
        errors = np.divide.outer(made.errors, ratio).ravel()
        # v = c rho^2, where c = sigma^2 / ridge.
        variances = self.noise_scale**2 * (made.variances / self.ridge)
        relative = Forecasts(errors, np.divide.outer(variances, ratio**2).ravel())
        losses = self.mixture.losses(relative, self.noise_scale)
        return losses.reshape(len(made.errors), -1)

    def at(self, sums: Array, noise_scale: float) -> tuple[float, Array]:
        """The noise scale at which sums are known, at least the one given, and the sums (j,).

        Noise of one scale is noise of every larger one, too. Beyond the largest that is known the
        sums are infinite.
        """
        if not len(sums):  # before the first
            none = self.mixture.losses(Forecasts(np.empty(0), np.empty(0)), noise_scale)
            return noise_scale, np.zeros(none.shape[1])
        scales = self.noise_scale * 2.0**POWERS
        of_each = sums.reshape(len(POWERS), -1)
        at = int(np.searchsorted(scales, noise_scale * (1 - 1e-12)))
        if at == len(scales):
            return noise_scale, np.full(of_each.shape[1], np.inf)
        return float(scales[at]), of_each[at]

"""The losses of the radius: forecasts, made once each, and the sums of what they cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.engine import Engine, ExactEngine, Forecasts, SparseEngine
from kernelbounds.engine.forecasts import gained_in_blocks
from kernelbounds.mixtures.hybrid import least_forecast_ridge
from kernelbounds.mixtures.mixture import Mixture

# Losses are computed for this many forecasts at a time, so that those of millions of observations
# do not take memory; the sums are the same.
FORECASTS_AT_ONCE = 50_000
# Noise scales that may be assumed later, relative to the present one: powers of the root of two up
# to a thousand, in both directions. Between two of them the larger one is taken.
NOISE_SCALE_POWERS = np.arange(-20, 21) / 2


@dataclass(frozen=True)
class RunningLosses:
    """What forecasts cost at several noise scales, for an engine that does not keep forecasts.

    Losses depend on errors and deviations relative to the noise scale alone.
    """

    mixture: Mixture
    ridge: float  # sigma^2 / c, at which forecasts are made
    noise_scale: float  # sigma

    def __call__(self, made: Forecasts) -> Array:
        """Losses (n, g j) of forecasts, at g noise scales."""
        ratio = 2.0**NOISE_SCALE_POWERS
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
        scales = self.noise_scale * 2.0**NOISE_SCALE_POWERS
        of_each = sums.reshape(len(NOISE_SCALE_POWERS), -1)
        at = int(np.searchsorted(scales, noise_scale))
        if at == len(scales):
            return noise_scale, np.full(of_each.shape[1], np.inf)
        return float(scales[at]), of_each[at]


class LossLedger:
    """The forecasts of a mixture so far, at one noise scale, and the sums of their losses.

    An exact engine makes the forecasts when they are asked for, and they are kept here. A sparse
    engine makes them as observations come, and has added up their losses by :class:`RunningLosses`.
    """

    def __init__(self, forecasts: Forecasts | None = None) -> None:
        self.made = forecasts or Forecasts(np.empty(0), np.empty(0))
        self._count = 0  # the number of observations whose losses are in the sums
        self._sums: Array | float = 0.0

    def forecasts(
        self, mixture: Mixture, engine: Engine, ridge: float, noise_scale: float
    ) -> Forecasts:
        """The forecasts of all outcomes so far; each is made once, and kept as it was.

        A sparse engine keeps no forecasts. Without noise there are none where they depend on the
        noise scale.
        """
        if not isinstance(engine, ExactEngine):
            return self.made
        unknown = noise_scale == 0 or math.isinf(noise_scale)
        if unknown and mixture.forecasts_need_noise_scale:
            return self.made
        while (made := len(self.made.errors)) < engine.data.count:
            new = mixture.forecasts(engine, ridge, noise_scale, made)
            if not len(new.errors):
                break
            # The first as they are, without another copy of those of millions of observations.
            self.made = Forecasts(*map(np.append, self.made, new)) if made else new
        return self.made

    def sums(
        self, mixture: Mixture, engine: Engine, ridge: float, noise_scale: float
    ) -> tuple[float, Array]:
        """The noise scale at which losses are known, and their sums (j,).

        The scale is the one asked for or, with a sparse engine, the next larger one that it has.
        There are no sums (j = 0) where the mixture makes no forecasts.
        """
        if isinstance(engine, SparseEngine):
            return engine.losses_at(noise_scale)
        assert isinstance(engine, ExactEngine)
        first_block, joint = engine.data.blocks_from, list(mixture.joint_losses)
        count, forecasts = engine.data.count, self.forecasts(mixture, engine, ridge, noise_scale)
        if count and not len(forecasts.errors):
            return noise_scale, np.empty(0)
        if self._count < count or not self._count:
            for start in range(self._count, max(count, 1), FORECASTS_AT_ONCE):
                new = Forecasts(*(part[start : start + FORECASTS_AT_ONCE] for part in forecasts))
                losses = mixture.losses(new, noise_scale)
                if first_block is not None:
                    losses[max(first_block - start, 0) :, joint] = 0.0
                # Added in the order of the rounds, however many are added at a time.
                first = np.zeros((1, losses.shape[1])) + self._sums
                self._sums = np.cumsum(np.concatenate([first, losses]), axis=0)[-1]
            self._count = count
        sums = np.array(self._sums)
        if first_block is not None and joint:
            energy, log_det = gained_in_blocks(engine, ridge, least_forecast_ridge(engine))
            sums[joint] += (energy / noise_scale**2 + log_det) / 2
        return noise_scale, sums

"""Radii for comparison: a mixture over scales, and the limit, which only a simulation knows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.engine import Engine
from kernelbounds.mixtures import Hybrid, Mixture
from kernelbounds.mixtures.hybrid import energy_bound

# The noise is what outcomes and values differ by, both of which are rounded: a relative 1e-13 of
# its energy on the paper's problems.
ROUNDING = 1e-10


@dataclass(frozen=True)
class Scales(Mixture):
    """The paper's mixtures at several scales c_j = B^2 / 10^j, with equal weights.

    R_t^2 is the S that solves sum_j w_j exp((S - Q_j) / (2 sigma^2)) = 1 / delta, where Q_j is
    E + sigma^2 l at the ridge sigma^2 / c_j (``docs/mathematics/radius.md``, with rate 1 alone).
    """

    factors: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # c_j / B^2

    def scale(self, norm_bound: float) -> float:
        """That of the factor 1."""
        return norm_bound**2

    def squared_radius(
        self, engine: Engine, ridge: float, noise_scale: float, delta: float, losses: Array
    ) -> tuple[float, float]:
        """See :class:`Mixture`."""
        halves, count = np.zeros(len(self.factors)), engine.data.count
        if count:
            found = [engine.energy_and_log_det(ridge / factor) for factor in self.factors]
            halves += [energy / (2 * noise_scale**2) + log_det / 2 for energy, log_det in found]
        rates = (1.0,) * len(self.factors)
        return 0.0, energy_bound(rates, halves, count, noise_scale, delta)


@dataclass(frozen=True)
class Limit(Mixture):
    """R_t^2 = sum of eps_s^2, the noise energy itself: with less, f* would be outside of the set.

    Parameters
    ----------
    energies : sequence of float
        Of the first t outcomes, from t = 0 on.
    """

    energies: tuple[float, ...] = field(repr=False)

    @classmethod
    def of(cls, noise: Array) -> Limit:
        """From the noise of each round."""
        sums = np.cumsum(np.append(0.0, noise**2)) * (1 + ROUNDING)
        return cls(tuple(sums.tolist()))

    def scale(self, norm_bound: float) -> float:
        """It makes no forecasts; the default's, for ridges to begin a search from."""
        return Hybrid().scale(norm_bound)

    def squared_radius(
        self, engine: Engine, ridge: float, noise_scale: float, delta: float, losses: Array
    ) -> tuple[float, float]:
        """See :class:`Mixture`."""
        return 0.0, self.energies[engine.data.count]

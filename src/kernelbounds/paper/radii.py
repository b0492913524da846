"""Radii for comparison: a mixture over several scales, and the limit that nobody knows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.engine import Engine
from kernelbounds.mixtures import Hybrid, Mixture
from kernelbounds.mixtures.hybrid import energy_bound

# The noise is what outcomes and values differ by, both of which are rounded: a relative 1e-13 of
# its energy on the paper's problems.
NOISE_ROUNDING = 1e-10


@dataclass(frozen=True)
class Scales(Mixture):
    """The paper's mixtures at several scales c_j = B^2 / 10^j, with equal weights.

    R_t^2 is the S that solves sum_j w_j exp((S - Q_j) / (2 sigma^2)) = 1 / delta, where Q_j is
    E + sigma^2 l at the ridge sigma^2 / c_j (``docs/mathematics/radius.md``, with rate 1 alone).
    """

    factors: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # c_j / B^2

    def scale(self, norm_bound: float) -> float:
        """Return the scale of the factor 1."""
        return norm_bound**2

    def squared_radius(
        self, engine: Engine, ridge: float, noise_scale: float, delta: float, losses: Array
    ) -> tuple[float, float]:
        """See :class:`Mixture`."""
        halves, count = np.zeros(len(self.factors)), engine.data.count
        if count:
            for j, factor in enumerate(self.factors):
                energy = engine.energy_above(ridge / factor)
                log_det = engine.log_det_above(ridge / factor)
                halves[j] = energy / (2 * noise_scale**2) + log_det / 2
        rates = (1.0,) * len(self.factors)
        return 0.0, energy_bound(rates, halves, count, noise_scale, delta)


@dataclass(frozen=True)
class Limit(Mixture):
    """The least valid radius: R_t^2 is the noise energy itself, below which f* would be left out.

    Parameters
    ----------
    energies : sequence of float
        The noise energy of the first t outcomes, from t = 0 on.
    """

    energies: tuple[float, ...] = field(repr=False)

    @classmethod
    def of(cls, noise: Array) -> Limit:
        """Make the limit from the noise of each round."""
        sums = np.cumsum(np.append(0.0, noise**2)) * (1 + NOISE_ROUNDING)
        return cls(tuple(sums.tolist()))

    def scale(self, norm_bound: float) -> float:
        """Return the default's scale, for ridges to begin a search from: no forecasts are made."""
        return Hybrid().scale(norm_bound)

    def squared_radius(
        self, engine: Engine, ridge: float, noise_scale: float, delta: float, losses: Array
    ) -> tuple[float, float]:
        """See :class:`Mixture`."""
        return 0.0, self.energies[engine.data.count]

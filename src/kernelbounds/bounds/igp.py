"""IGP: the rival bound of IGP-UCB (Chowdhury and Gopalan 2017, Thm. 2; App. C.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import Array, as_scalar
from kernelbounds.bounds.assumptions import Assumptions
from kernelbounds.bounds.bound import signed
from kernelbounds.engine import Engine


@dataclass(frozen=True)
class IGP:
    """mu(x) +- (sigma sqrt(l + t eta + 2 ln(1/delta)) + B) rho(x), all at the ridge 1 + eta.

    Parameters
    ----------
    eta : float
        Positive; the recommended value is 2/T for a run of T rounds.
    """

    eta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", as_scalar(self.eta, "eta", above=0.0))

    def extremes(
        self, engine: Engine, assumptions: Assumptions, points: Array, signs: Sequence[int]
    ) -> Array:
        """See :class:`~kernelbounds.bounds.Bound`."""
        a, t = assumptions, engine.data.count
        ridge = 1 + self.eta
        mean, variance, _ = engine.predict(points, np.array([ridge]))
        _, log_det = engine.energy_and_log_det(ridge)
        noise = a.noise_scale * np.sqrt(log_det + t * self.eta - 2 * np.log(a.delta))
        width = (noise + a.norm_bound) * np.sqrt(variance)
        return np.asarray((signed(signs, mean) + width)[:, 0])

"""AY: the rival bound of AY-GP-UCB (Abbasi-Yadkori 2012, Thm. 3.11; App. C.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bounds.assumptions import Assumptions
from kernelbounds.bounds.bound import checked_ridge, signed
from kernelbounds.bounds.radius import reference_ridge
from kernelbounds.engine import Engine


@dataclass(frozen=True)
class AY:
    """mu_lambda(x) +- (sigma sqrt(l_lambda + 2 ln(1/delta)) / sqrt(lambda) + B) rho_lambda(x).

    Parameters
    ----------
    ridge : float, optional
        lambda; None is the paper's sigma^2/c.
    """

    ridge: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "ridge", checked_ridge(self.ridge, "ridge"))

    def extremes(
        self, engine: Engine, assumptions: Assumptions, points: Array, signs: Sequence[int]
    ) -> Array:
        """See :class:`~kernelbounds.bounds.Bound`."""
        a = assumptions
        ridge = reference_ridge(engine, a) if self.ridge is None else self.ridge
        mean, variance, _ = engine.predict(points, np.array([ridge]))
        _, log_det = engine.energy_and_log_det(ridge)
        noise = a.noise_scale * np.sqrt((log_det - 2 * np.log(a.delta)) / ridge)
        width = (noise + a.norm_bound) * np.sqrt(variance)
        return np.asarray((signed(signs, mean) + width)[:, 0])

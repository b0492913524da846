"""The radii of the confidence sets, and the smallest norm that the data allow.

==================  ==============  =======================================================
code                paper           meaning
==================  ==============  =======================================================
``energy``          E_alpha         y' (I + K/alpha)^-1 y
``log_det``         l_alpha         ln det(I + K/alpha)
``Radius.squared``  R_t^2           squared radius of the data constraint, Eq. (radius_def)
``around``          R~_alpha,t^2    squared radius of the ridge-centred ellipsoid
==================  ==============  =======================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bounds.assumptions import Assumptions
from kernelbounds.engine import Engine
from kernelbounds.errors import EmptyConfidenceSetError


@dataclass(frozen=True)
class Radius:
    """R_t^2 = E_{sigma^2/c} + sigma^2 l_{sigma^2/c} + 2 sigma^2 ln(1/delta), Eq. (radius_def).

    Kept as its two parts, because at alpha = sigma^2/c the energies in R~^2 cancel exactly.
    Without noise R_t = 0 (Sec. 6.3).
    """

    energy: float
    penalty: float
    norm_bound: float

    @classmethod
    def of(cls, energy: float, log_det: float, assumptions: Assumptions) -> Radius:
        """The radius from E and l at the reference ridge sigma^2/c."""
        a = assumptions
        if a.noise_scale == 0:
            return cls(0.0, 0.0, a.norm_bound)
        penalty = a.noise_scale**2 * (log_det - 2 * math.log(a.delta))
        return cls(energy, penalty, a.norm_bound)

    @property
    def squared(self) -> float:
        """R_t^2."""
        return self.energy + self.penalty

    def around(self, ridge: Array | float, energy: Array | float) -> Array:
        """R~_alpha^2 = R_t^2 + alpha B^2 - E_alpha, Cor. (rkhs_ridge_conf_set)."""
        return np.asarray((self.energy - energy) + self.penalty + ridge * self.norm_bound**2)

    def reach(self, ridge: Array) -> Array:
        """(R~_alpha^2 + E_alpha) / alpha, which is R_t^2 / alpha + B^2."""
        return self.squared / ridge + self.norm_bound**2


def reference_ridge(engine: Engine, assumptions: Assumptions) -> float:
    """sigma^2/c; without noise, the smallest ridge that double precision can tell from zero."""
    if assumptions.noise_scale == 0:
        return float(64 * np.finfo(np.float64).eps * max(engine.data.trace, 1e-100))
    return assumptions.noise_scale**2 / assumptions.mixture_scale


def data_radius(
    engine: Engine, assumptions: Assumptions, known: tuple[float, float] | None = None
) -> Radius:
    """R_t of the observations so far; without noise nothing has to be computed.

    ``known`` are energy and log-determinant at the reference ridge, where they are.
    """
    if assumptions.noise_scale == 0:
        return Radius(0.0, 0.0, assumptions.norm_bound)
    parts = known or engine.energy_and_log_det(reference_ridge(engine, assumptions))
    return Radius.of(*parts, assumptions)


def norm_lower_bound(engine: Engine, assumptions: Assumptions) -> float:
    """B_min = sup over alpha of sqrt((E_alpha - R_t^2) / alpha), the least norm the data allow.

    With probability at least 1 - delta it is at most ||f*|| at all times at once. It is infinite
    when outcomes contradict each other whatever the norm.
    """
    path, squared = engine.path(), data_radius(engine, assumptions).squared

    def excess(log_ridge: Array) -> Array:
        ridges = np.exp(log_ridge)
        return (path.energy(ridges) - squared) / ridges

    bottom, top = (
        math.log(path.eigen.floor),
        math.log(path.eigen.spectrum.max(initial=path.eigen.floor)) + 20,
    )
    if _diverges(*excess(bottom + np.log([1e2, 1e4]))):
        return math.inf
    best = 0.0
    low, high = bottom, top
    for _ in range(4):
        grid = np.linspace(low, high, 48)
        values = excess(grid)
        at = int(values.argmax())
        best = max(best, float(values[at]))
        low, high = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
    return math.sqrt(best)


def refute_if_empty(engine: Engine, assumptions: Assumptions) -> None:
    """Raise :class:`EmptyConfidenceSetError` when B_min > B."""
    least = norm_lower_bound(engine, assumptions)
    if least > assumptions.norm_bound:
        raise EmptyConfidenceSetError(assumptions.norm_bound, assumptions.noise_scale, least)


def _diverges(small: float, large: float) -> bool:
    """Whether the excess still grows like 1/alpha where the ridge is numerically zero."""
    return small > 0 and small > 50 * large

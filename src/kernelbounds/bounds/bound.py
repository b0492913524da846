"""What every confidence bound is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from kernelbounds.arrays import Array, as_scalar
from kernelbounds.bounds.assumptions import Assumptions
from kernelbounds.engine import Engine, RidgePath


class Bound(Protocol):
    """A way to bound the values of the unknown function, given data and assumptions.

    This is all that a confidence sequence needs. Gradients, certified maxima and fast updates on
    fixed sets of points are there for a :class:`DualBound`.
    """

    def extremes(
        self, engine: Engine, assumptions: Assumptions, points: Array, signs: Sequence[int]
    ) -> Array:
        """For each sign s, an upper bound on s f*(x) at each of m points; (signs, m).

        ``engine`` holds at least one observation. Sign +1 gives the upper confidence bound, and
        -1 the negative of the lower one.
        """
        ...


@runtime_checkable
class DualBound(Bound, Protocol):
    """A bound that is the smallest, over some ridges alpha, of

        s mu_alpha(x) + beta_alpha rho_alpha(x)
            =  min over scale > 0 of  (k(x,x) - p'(K + alpha I)^-1 p) / (2 scale)
                                      + scale reach_alpha / 2,

    with p = k_t(x) - s scale y and reach_alpha = beta_alpha^2 + E_alpha / alpha. All bounds in
    this package are. Every ridge in question and every scale gives a valid bound.
    """

    def attained(
        self, engine: Engine, assumptions: Assumptions, points: Array, signs: Sequence[int]
    ) -> Attained:
        """The extremes, and the ridges and scales at which they are attained."""
        ...

    def reach(self, engine: Engine, assumptions: Assumptions, ridges: Array) -> Array:
        """reach_alpha, rounded up, for an array of ridges."""
        ...


@dataclass(frozen=True)
class Attained:
    """Upper bounds on s f*(x), and the ridges and scales at which they are; (signs, m).

    ``path`` is the path on which the ridges were found, where they form a continuum.
    """

    values: Array
    ridges: Array
    scales: Array
    path: RidgePath | None = None


class Ellipsoids(NamedTuple):
    """Intervals s mu_alpha(x) + beta_alpha rho_alpha(x) at m points for g ridges alpha."""

    ridges: Array  # alpha, (g, 1)
    factors: Array  # beta_alpha, (g, 1)
    mean: Array  # mu_alpha, (g, m)
    variance: Array  # rho_alpha^2, (g, m)


class EllipsoidBound(ABC):
    """A :class:`DualBound` on a finite set of ridges: all but CMM."""

    @abstractmethod
    def ellipsoids(self, engine: Engine, assumptions: Assumptions, points: Array) -> Ellipsoids:
        """The intervals, of which the shortest ends count."""

    def extremes(
        self, engine: Engine, assumptions: Assumptions, points: Array, signs: Sequence[int]
    ) -> Array:
        """See :class:`Bound`."""
        _, factors, mean, variance = self.ellipsoids(engine, assumptions, points)
        width = factors * np.sqrt(variance)
        return np.array([(sign * mean + width).min(axis=0) for sign in signs])

    def attained(
        self, engine: Engine, assumptions: Assumptions, points: Array, signs: Sequence[int]
    ) -> Attained:
        """See :class:`DualBound`."""
        ridges, factors, mean, variance = self.ellipsoids(engine, assumptions, points)
        deviation = np.sqrt(variance)
        scales = np.maximum(deviation / np.maximum(factors, 1e-150), 1e-150)
        values = np.multiply.outer(np.asarray(signs, dtype=np.float64), mean) + factors * deviation
        best = values.argmin(axis=1)
        at = best, np.arange(best.shape[1])
        return Attained(
            np.take_along_axis(values, best[:, None], axis=1)[:, 0],
            np.broadcast_to(ridges, mean.shape)[at],
            scales[at],
        )


def checked_ridge(ridge: float | None, name: str) -> float | None:
    """A positive ridge, or None."""
    return None if ridge is None else as_scalar(ridge, name, above=0.0)

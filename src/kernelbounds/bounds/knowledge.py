"""What a bound looks at."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import EPS, Array
from kernelbounds.bounds.assumptions import Assumptions
from kernelbounds.bounds.least_norm import least_norm
from kernelbounds.bounds.radius import Radius
from kernelbounds.engine import Engine, Predictions
from kernelbounds.errors import EmptyConfidenceSetError

# Without noise the reference ridge is this times the trace of the kernel matrix: twice the slack
# by which the engine raises eigenvalues, below which a ridge has no effect.
LEAST_RIDGE = 64 * EPS


class Knowledge:
    """All that a bound may look at: observations, assumptions, and the radius R_t.

    ====================  ===============  ====================================================
    code                  paper            meaning
    ====================  ===============  ====================================================
    ``assumptions``       B, sigma, ..     see :class:`Assumptions`
    ``count``             t                the number of observations
    ``points``            x_1 .. x_t       where they were made, (t, d)
    ``outcomes``          y_t              what was observed, (t,)
    ``reference_ridge``   sigma^2/c        the ridge of the paper's settings
    ``radius``            R_t              ``radius.squared`` is R_t^2, see :class:`Radius`
    ``prior(x)``          k(x,x)           at m points, (m,)
    ``trivial(x)``        B sqrt(k(x,x))   what |f*(x)| never exceeds, (m,)
    ``predict(x, a)``     mu, rho^2, E     at m points and g ridges
    ====================  ===============  ====================================================

    ``lock`` is held while a bound looks, and while observations are added, so that sequences may
    be used from several threads.
    """

    def __init__(self, engine: Engine, assumptions: Assumptions) -> None:
        self.engine, self.assumptions = engine, assumptions
        self.lock = threading.RLock()
        self._radius: tuple[int, Radius] | None = None  # with the count that it is of

    def __getstate__(self) -> dict[str, Any]:
        """For copies, each of which gets a lock of its own."""
        return {name: value for name, value in vars(self).items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.lock = threading.RLock()

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self.engine.data.kernel

    @property
    def count(self) -> int:
        """t."""
        return self.engine.data.count

    @property
    def points(self) -> Array:
        """x_1 .. x_t, (t, d)."""
        return self.engine.data.points

    @property
    def outcomes(self) -> Array:
        """y_t, (t,)."""
        return self.engine.data.outcomes

    @property
    def reference_ridge(self) -> float:
        """sigma^2/c; without noise, the smallest ridge that double precision can tell from 0."""
        a = self.assumptions
        if a.noise_scale == 0:
            return LEAST_RIDGE * max(self.engine.data.trace, 1e-100)
        return a.noise_scale**2 / a.mixture_scale

    @property
    def radius(self) -> Radius:
        """R_t of the observations so far, computed once for each number of them."""
        if self._radius is None or self._radius[0] != self.count:
            a = self.assumptions
            parts = (0.0, 0.0)
            if a.noise_scale > 0 and self.count:
                parts = self.engine.energy_and_log_det(self.reference_ridge)
            self._radius = self.count, Radius.of(*parts, a)
        return self._radius[1]

    def prior(self, points: Array) -> Array:
        """k(x,x) at points (m, d); (m,)."""
        return kernels.diagonal(self.kernel, points)

    def trivial(self, points: Array) -> Array:
        """B sqrt(k(x,x)), which bounds |f*(x)| by Cauchy-Schwarz; (m,)."""
        return np.asarray(self.assumptions.norm_bound * np.sqrt(self.prior(points)))

    def predict(self, points: Array, ridges: Array) -> Predictions:
        """Mean (g, m), variance (g, m), rounded up, and energy (g,), rounded down, at g ridges."""
        return self.engine.predict(points, ridges)

    def energy_and_log_det(self, ridge: float) -> tuple[float, float]:
        """E_alpha = y' (I + K/alpha)^-1 y and ln det(I + K/alpha), both rounded up."""
        return self.engine.energy_and_log_det(ridge)

    @property
    def norm_lower_bound(self) -> float:
        """B_min: with probability at least 1 - delta it is at most ||f*|| at all times at once."""
        return least_norm(self.engine.path(), self.radius.squared) if self.count else 0.0

    def refute_if_empty(self) -> None:
        """Raise :class:`EmptyConfidenceSetError` when B_min > B."""
        a, least = self.assumptions, self.norm_lower_bound
        if least > a.norm_bound:
            raise EmptyConfidenceSetError(a.norm_bound, a.noise_scale, least)

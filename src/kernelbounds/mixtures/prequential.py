"""A radius from forecasts of one's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import LARGEST, Array, brief, set_checked
from kernelbounds.engine import Engine, ExactEngine, Forecasts
from kernelbounds.errors import InputError, said
from kernelbounds.mixtures.hybrid import Hybrid
from kernelbounds.mixtures.mixture import Mixture

Forecaster = Callable[[Array, Array, Array], tuple[float, float]]


@dataclass(frozen=True)
class Prequential(Mixture):
    """The radius of :class:`Hybrid` with forecasts of one's own in place of those of N(0, c K).

    Valid whatever the forecasts are, as long as each is made before its outcome is known: the
    better they are, the smaller is R_t.

    Parameters
    ----------
    forecaster : function of (X, y, x)
        Given the observations so far, X (s, d) and y (s,), and the next point x (d,), it returns
        a mean and a variance of f*(x), not counting the noise. It is called once for each
        observation, in order.
    rates, relative_scale :
        As for :class:`Hybrid`, which also gives the rates their weights; the latter only sets the
        default ridges of AMM, DMM and AY.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> def last_outcome(X, y, x):
    ...     return (y[-1], 0.01) if len(y) else (0.0, 4.0)
    >>> mixture = kb.mixtures.Prequential(last_outcome)
    >>> seq = kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1, mixture=mixture)
    >>> seq.update([[0.1], [0.2], [0.3]], [0.3, 0.4, 0.4])
    >>> seq.radius > 0
    True
    """

    forecaster: Forecaster
    rates: tuple[float, ...] = Hybrid.rates
    relative_scale: float = Hybrid.relative_scale

    def __post_init__(self) -> None:
        if not callable(self.forecaster):
            raise InputError(
                f"forecaster must be a function of (X, y, x), got {brief(self.forecaster)}."
            )
        checked = self._hybrid
        set_checked(self, rates=checked.rates, relative_scale=checked.relative_scale)

    @property
    def _hybrid(self) -> Hybrid:
        """The mixture that takes these forecasts in place of its own."""
        return Hybrid(self.rates, self.relative_scale)

    def scale(self, norm_bound: float) -> float:
        """See :class:`Mixture`."""
        return self._hybrid.scale(norm_bound)

    @property
    def forecasts_need_noise_scale(self) -> bool:
        """False: the forecaster is not told the noise scale."""
        return False

    def forecasts(
        self, engine: ExactEngine, ridge: float, noise_scale: float, start: int
    ) -> Forecasts:
        """The forecaster's next forecast; if a later one fails, those before it are kept.

        Where noise is correlated, the forecasts of a whole block are made. A row sum_j M_sj y_j of
        the whitened outcomes is then forecast by the same sum of the forecasts.
        """
        data = engine.data
        X, y = data.points, data.observed
        stop = next((one.rows.stop for one in data.blocks if one.start == start), start + 1)
        made = [self._forecast(X[:s].copy(), y[:s].copy(), X[s].copy()) for s in range(start, stop)]
        mean, variance = np.array(made).T
        M = data.whitening.part(start, stop)
        errors = M.times(y[start:stop] - mean)
        variances = M.between(np.diag(variance), M).diagonal().copy()
        return Forecasts(np.abs(errors) + M.errors(errors), variances)

    def losses(self, forecasts: Forecasts, noise_scale: float) -> Array:
        """See :class:`Hybrid`."""
        return self._hybrid.losses(forecasts, noise_scale)

    def squared_radius(
        self, engine: Engine, ridge: float, noise_scale: float, delta: float, losses: Array
    ) -> tuple[float, float]:
        """See :class:`Hybrid`."""
        return self._hybrid.squared_radius(engine, ridge, noise_scale, delta, losses)

    def _forecast(self, X: Array, y: Array, x: Array) -> tuple[float, float]:
        count = len(y)
        try:
            found = self.forecaster(X, y, x)
        except Exception as error:
            raise InputError(
                f"forecaster failed after {count} observations: {said(error)}."
            ) from error
        try:
            mean, variance = (float(np.asarray(part).item()) for part in found)
        except (TypeError, ValueError):
            raise InputError(
                f"forecaster must return two numbers, a mean and a variance, got {brief(found)}."
            ) from None
        if not (abs(mean) <= LARGEST and 0 <= variance < math.inf):  # a NaN is not, either
            raise InputError(
                "forecaster must return a finite mean and a variance that is not negative, got "
                f"{mean:g} and {variance:g} after {count} observations."
            )
        return mean, variance

"""What every mixture is: a way to make the radius R_t."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.engine import Engine, ExactEngine, Forecasts


class Mixture(ABC):
    """A way to bound the noise energy, sum over s of (y_s - f*(x_s))^2, at all times at once.

    ===============  ========  ==============================================================
    code             paper     meaning
    ===============  ========  ==============================================================
    ``ridge``        alpha     sigma^2/c, at which forecasts are made; see :meth:`scale`
    ``forecasts``              of each outcome, from what was known before it
    ``losses``                 what they cost; their sums over all rounds make R_t
    ``noise_scale``  sigma     positive
    ===============  ========  ==============================================================

    Examples
    --------
    >>> from kernelbounds.mixtures import Hybrid, Mixture, Prequential, Single
    >>> all(issubclass(one, Mixture) for one in (Hybrid, Single, Prequential))
    True
    """

    @abstractmethod
    def scale(self, norm_bound: float) -> float:
        """c: the mixture is over guesses at f* whose values at the points are N(0, c K).

        The default ridges of AMM, DMM and AY are sigma^2/c and multiples of that.
        """

    @property
    def forecasts_need_noise_scale(self) -> bool:
        """Whether the forecasts depend on the noise scale that is assumed."""
        return True

    @property
    def excess_over_paper(self) -> float:
        """The most by which R_t^2 / sigma^2 exceeds that of the paper, with the same c.

        The paper's regret bounds hold with this added; infinite where nothing is known.
        """
        return math.inf

    def penalty(
        self, engine: ExactEngine, ridge: float, noise_scale: float, delta: float
    ) -> tuple[float, float]:
        """P and a least ridge: R_t^2 <= E_alpha + P at all ridges above it, whatever the outcomes.

        P depends on the points alone; it is infinite where nothing is known. Where the excess over
        the paper's radius is finite, R_t^2 <= E + sigma^2 l + 2 sigma^2 ln(1/delta) + excess
        sigma^2, all at the ridge sigma^2/c, and E_alpha grows with alpha.
        """
        if math.isinf(self.excess_over_paper) or not engine.data.count:
            return math.inf, ridge
        log_det = engine.log_det_above(ridge)
        return noise_scale**2 * (log_det - 2 * math.log(delta) + self.excess_over_paper), ridge

    def forecasts(
        self, engine: ExactEngine, ridge: float, noise_scale: float, start: int
    ) -> Forecasts:
        """Forecasts of outcomes from number ``start`` on, one at least, each from those before it.

        A sequence asks for each of them once, and keeps them. None are made by default.
        """
        return Forecasts(np.empty(0), np.empty(0))

    def losses(self, forecasts: Forecasts, noise_scale: float) -> Array:
        """The cost of each forecast, (n, j); a sequence keeps the sums over n, (j,)."""
        return np.empty((len(forecasts.errors), 0))

    @property
    def joint_losses(self) -> tuple[int, ...]:
        """Which of the losses add up to (E_alpha / sigma^2 + l_alpha) / 2, at the ridge alpha.

        From the first block on (``Observations.blocks_from``) their sums are computed from that.
        """
        return ()

    @abstractmethod
    def squared_radius(
        self, engine: Engine, ridge: float, noise_scale: float, delta: float, losses: Array
    ) -> tuple[float, float]:
        """R_t^2, rounded up, as a sum of two numbers: E_alpha at the ridge, or 0, and the rest.

        With probability at least 1 - delta, the noise energy exceeds it at no time.

        Apart from the rest, E_alpha cancels exactly where it is subtracted.
        """

"""The paper's mixture of Gaussians, at one scale (Eq. 8)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelbounds.arrays import Array, as_scalar, set_checked
from kernelbounds.engine import Engine, Forecasts
from kernelbounds.mixtures.hybrid import energy_bound, half_losses
from kernelbounds.mixtures.mixture import Mixture


@dataclass(frozen=True)
class Single(Mixture):
    """R_t^2 = E_{sigma^2/c} + sigma^2 l_{sigma^2/c} + 2 sigma^2 ln(1/delta), Eq. (8).

    Parameters
    ----------
    c : float
        The mixture over guesses at f* is N(0, c K_t). Any positive value fixed in advance is
        valid; :func:`kernelbounds.mixture_scale` gives the paper's choice for a planned number of
        rounds. It has the square of the outcomes' unit.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1, mixture=kb.mixtures.Single(1.0))
    >>> seq.assumptions == kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1, mixture_scale=1.0).assumptions
    True
    """

    c: float = 1.0

    def __post_init__(self) -> None:
        set_checked(self, c=as_scalar(self.c, "mixture_scale", above=0.0))

    def scale(self, norm_bound: float) -> float:
        """See :class:`Mixture`."""
        return self.c

    @property
    def excess_over_paper(self) -> float:
        """Zero: this is the paper's radius."""
        return 0.0

    def losses(self, forecasts: Forecasts, noise_scale: float) -> Array:
        """See :class:`Mixture`; from forecasts of N(0, c K), their sum makes the same radius.

        A sparse engine makes it so, where each forecast has the inducing points of its time.
        """
        return half_losses((1.0,), forecasts, noise_scale)

    def squared_radius(
        self, engine: Engine, ridge: float, noise_scale: float, delta: float, losses: Array
    ) -> tuple[float, float]:
        """See :class:`Mixture`."""
        if len(losses) and engine.data.count:  # A sparse engine made the forecasts.
            return 0.0, energy_bound((1.0,), losses, engine.data.count, noise_scale, delta)
        energy, log_det = 0.0, 0.0
        if engine.data.count:
            energy, log_det = engine.energy_above(ridge), engine.log_det_above(ridge)
        return energy, noise_scale**2 * (log_det - 2 * math.log(delta))

"""IGP: the rival bound of IGP-UCB (Chowdhury and Gopalan 2017, Thm. 2; App. C.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelbounds.arrays import as_scalar, set_checked
from kernelbounds.bounds.rivals.one_ellipsoid import OneEllipsoid
from kernelbounds.confidence.confidence_set import ConfidenceSet


@dataclass(frozen=True, repr=False)
class IGP(OneEllipsoid):
    """mu(x) +- (sigma sqrt(l + t eta + 2 ln(1/delta)) + B) rho(x), all at the ridge 1 + eta.

    Parameters
    ----------
    eta : float
        Positive; the recommended value is 2/T for a run of T rounds.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.1], [0.9]], [0.3, -0.2])
    >>> lower, upper = seq.bounds([[0.5]], bound=kb.IGP(eta=2 / 1000))
    >>> bool(lower[0] < upper[0])
    True
    """

    eta: float

    def __post_init__(self) -> None:
        set_checked(self, eta=as_scalar(self.eta, "eta", above=0.0))

    def ridge_and_factor(self, known: ConfidenceSet) -> tuple[float, float]:
        """1 + eta, and sigma sqrt(l_(1 + eta) + t eta + 2 ln(1/delta)) + B."""
        a, ridge = known.assumptions, 1 + self.eta
        squared = known.log_det_above(ridge) + known.count * self.eta - 2 * math.log(a.delta)
        return ridge, a.noise_scale * math.sqrt(squared) + a.norm_bound

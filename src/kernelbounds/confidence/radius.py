"""The radii R_t and R~_alpha of the confidence sets, as values.

==================  ==============  =======================================================
code                paper           meaning
==================  ==============  =======================================================
``energy``          E               E_alpha at alpha = sigma^2/c, or 0
``squared``         R_t^2           squared radius of the data constraint, Eq. (8)
``around``          R~_alpha,t^2    squared radius of the ridge-centred ellipsoid
==================  ==============  =======================================================

The noise law (``noise/``) knows R_t^2 itself, or asks a mixture (``mixtures/``);
``ConfidenceSet.radius`` has the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import EPS, Array


@dataclass(frozen=True)
class Radius:
    """The radius R_t of the data constraint, in two terms, and the norm bound B.

    R_t^2 = ``energy`` + ``penalty``. With the paper's mixture the former is E at
    alpha = sigma^2/c, where it cancels exactly in R~^2; with others it is 0. Without noise R_t = 0
    (Sec. 6.3). A bound of one's own finds it as ``known.radius``.

    Attributes
    ----------
    energy, penalty : float
        The two terms of R_t^2.
    norm_bound : float
        B.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.2], [0.8]], [0.1, 0.9])
    >>> radius = seq.known.radius
    >>> radius.squared == radius.energy + radius.penalty, radius.norm_bound
    (True, 2.0)
    >>> energy = seq.known.energy_below(0.5)
    >>> bool(np.isclose(radius.around(0.5, energy), seq.ridge_radius(0.5) ** 2))
    True
    """

    energy: float
    penalty: float
    norm_bound: float

    def enlarged(self, by: float) -> Radius:
        """The radius R_t + ``by``, rounded up."""
        more = by * (2 * math.sqrt(self.squared) + by)
        return Radius(self.energy, (self.penalty + more) * (1 + 16 * EPS), self.norm_bound)

    @property
    def squared(self) -> float:
        """The squared radius R_t^2."""
        return self.energy + self.penalty

    def around(self, ridge: Array | float, energy: Array | float) -> Array:
        """R~_alpha^2 = R_t^2 + alpha B^2 - E_alpha, Cor. 4.3."""
        return np.asarray((self.energy - energy) + self.penalty + ridge * self.norm_bound**2)

    def joint_bound(self, ridge: Array) -> Array:
        """R_t^2 / alpha + B^2, which bounds ||f_t - y_t||^2 / alpha + ||f||^2."""
        return self.squared / ridge + self.norm_bound**2

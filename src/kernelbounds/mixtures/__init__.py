"""Mixtures: how the radius R_t of a confidence sequence is made, one file each.

R_t^2 is a bound on the noise energy, sum over s of (y_s - f*(x_s))^2, that holds at all times at
once with probability at least 1 - delta. Everything else is made from it.
"""

from kernelbounds.mixtures.hybrid import Hybrid
from kernelbounds.mixtures.mixture import Mixture
from kernelbounds.mixtures.prequential import Prequential
from kernelbounds.mixtures.single import Single

__all__ = ["Hybrid", "Mixture", "Prequential", "Single"]

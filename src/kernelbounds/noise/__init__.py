"""Laws of noise: what is known of y - f*(x), and which radius follows from it.

==================  ============================================  ==============================
law                 what it assumes                               what is random
==================  ============================================  ==============================
``SubGaussian(s)``  noise is s-sub-Gaussian, given the past       the noise: R_t fails with
                                                                  probability delta at most
``Gaussian(s)``     it is Gaussian with standard deviation s      the same
``Gaussian()``      it is Gaussian, with one standard deviation   the same, and delta is shared
                    for all outcomes, which nobody knows          with a bound on that
``Bounded(b)``      |noise| <= b; given the past, its mean is 0   the same; with delta = 0 nothing,
                                                                  and the mean may be any
``Energy(g)``       its squares add up to at most g^2             nothing; delta has no meaning
==================  ============================================  ==============================

A number in the place of a law is ``SubGaussian``.
"""

from kernelbounds.noise.gaussian import Gaussian
from kernelbounds.noise.law import Noise
from kernelbounds.noise.limited import Bounded, Energy
from kernelbounds.noise.sub_gaussian import SubGaussian

__all__ = ["Bounded", "Energy", "Gaussian", "Noise", "SubGaussian"]

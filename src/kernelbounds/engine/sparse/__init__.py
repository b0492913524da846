"""Kernel ridge regression from statistics of fixed size, whatever the number of observations.

==============  ===========================  ====================================================
code            symbol                       meaning
==============  ===========================  ====================================================
``inducing``    z_1 .. z_m                   points, chosen without a look at outcomes, (m, d)
``factor``      L, L L' = K_mm + jitter I    lower triangular, (m, m)
``features``    phi(x) = L^-1 k_m(x)         rows of Phi, (n, m); phi(x) . phi(x) <= k(x,x)
``residuals``   r(x) = k(x,x) - |phi(x)|^2   what the inducing points do not see, (n,)
``moments``     A = Phi' Phi                 (m, m), summed over the observations
``products``    b = Phi' y                   (m,)
``excess``      rho >= lambda_max(K - Phi Phi')
==============  ===========================  ====================================================

With R = K - Phi Phi' and any s > 0, the matrix of data and one more point x is at most that of

    K' = Phi Phi' + (1 + s) rho I,   k'(x) = Phi phi(x),   k'(x,x) = |phi(x)|^2 + (1 + 1/s) r(x).

The difference is [[(1 + s) rho I - R, -R_x], [., r(x) / s]], where R_x is the residual of k_t(x)
and |R_x|^2 <= rho r(x), because residuals are a kernel of their own; so it is positive
semi-definite. A larger matrix belongs to a larger function space, in which no function has a larger
norm: bounds from K' are valid, and only looser.

K' is Phi Phi' on the span of Phi, and constant elsewhere. With A = U D U' that span has the basis
Q = Phi U D^-1/2, in which k'(x) is D^1/2 U' phi(x) and the outcomes are D^-1/2 U' b; what is left
of the outcomes is one more direction. So nothing is needed but sums over the observations.

==========================  ======================================================================
file                        idea
==========================  ======================================================================
``dictionary.py``           inducing points, features, and which observations become inducing points
``statistics.py``           the sums, the bound rho on residuals, and forecasts from sums
``sparse_observations.py``  the observations so far, as sums that grow a block at a time
``basis.py``                the span of the features, for CMM and for fixed designs
``dual.py``                 the dual function and what attains it, for gradients and ceilings
``engine.py``               the engine: means, variances and energies of K'
``ranges.py``               parts of a long sequence, each worked on by another machine
``state.py``                all of this in a file, and back
==========================  ======================================================================
"""

from kernelbounds.engine.sparse.dictionary import Block, Dictionary, Growth
from kernelbounds.engine.sparse.dual import DualMaximiser
from kernelbounds.engine.sparse.engine import SparseEngine
from kernelbounds.engine.sparse.sparse_observations import SparseObservations
from kernelbounds.engine.sparse.statistics import Statistics

__all__ = [
    "Block",
    "Dictionary",
    "DualMaximiser",
    "Growth",
    "SparseEngine",
    "SparseObservations",
    "Statistics",
]

"""A Gaussian process beside the bounds, because people ask for one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from kernelbounds.arrays import Array, as_points, as_scalar, brief
from kernelbounds.engine import Engine
from kernelbounds.errors import InputError
from kernelbounds.offset import Offset
from kernelbounds.sequence import ConfidenceSequence

# The variance of the process is looked for in this range, in units of sigma^2 over the mean of
# k(x,x): from nothing but noise to next to none.
LEAST, MOST = 1e-6, 1e12
# Without noise the ridge is this times the trace of the kernel matrix, so that double precision
# leaves six digits of y' K^-1 y.
NUGGET = 1e-8
TRIED = 73  # four a decade; the best of them is then refined


@dataclass(frozen=True)
class GaussianProcess:
    """Posterior mean ± some standard deviations, as a function of points (m, d).

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=5.0, noise_scale=0.1)
    >>> seq.update([[0.1], [0.5], [0.9]], [0.3, 0.8, 0.2])
    >>> kb.plot.gaussian_process(seq, deviations=3).label
    'Gaussian process ±3 sd (no guarantee)'
    """

    engine: Engine
    ridge: float
    variance: float
    offset: Offset
    deviations: float

    @property
    def label(self) -> str:
        """What a legend calls it."""
        return f"Gaussian process ±{self.deviations:g} sd (no guarantee)"

    def __call__(self, X: Array) -> tuple[Array, Array]:
        """Two arrays of shape (m,): the mean less, and plus, so many standard deviations."""
        points = as_points(X, "X", self.engine.data.dim, one=True)
        found = self.engine.predict(points, np.array([self.ridge]))
        middle = self.offset.at(points) + found.mean[0]
        half = self.deviations * np.sqrt(self.variance * found.variance[0])
        return middle - half, middle + half


def gaussian_process(sequence: ConfidenceSequence, deviations: float = 2.0) -> GaussianProcess:
    """What a Gaussian process says where the sequence has bounds; it guarantees nothing.

    Its prior has the level of the offset as its mean and v k as its covariance, where k is
    ``sequence.kernel`` and v the variance of largest likelihood; the noise is Gaussian with the
    noise scales of the sequence. Nothing else is fitted. With v K + sigma^2 I =
    sigma^2 (I + K/alpha) and alpha = sigma^2/v, twice the negative log-likelihood is
    E_alpha/sigma^2 + ln det(I + K/alpha), up to a constant.

    It is that of the observations so far, for :func:`band` and :func:`slices`.

    Parameters
    ----------
    sequence : ConfidenceSequence
        Whose data, kernel and noise scales the process has.
    deviations : float
        So many standard deviations of f(x) given the data, on either side of the mean.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=5.0, noise_scale=0.1)
    >>> seq.update([[0.1], [0.5], [0.9]], [0.3, 0.8, 0.2])
    >>> low, high = gaussian_process(seq)([[0.3]])
    >>> bool(low[0] < high[0])
    True
    """
    if not isinstance(sequence, ConfidenceSequence):
        raise InputError(f"sequence must be a ConfidenceSequence, got {brief(sequence)}.")
    times = as_scalar(deviations, "deviations", above=0.0)
    with sequence.known.lock:
        known = sequence.known
        if not known.count:
            raise InputError("a Gaussian process needs observations for its variance; there are 0.")
        engine, noise = known.base.snapshot(), known.assumptions.noise_scale
        offset = known.offset
    if noise == 0:  # the likeliest variance is y' K^-1 y / t
        ridge = NUGGET * engine.data.trace
        variance = engine.path().energy_and_log_det(ridge)[0] / (ridge * engine.data.count)
        return GaussianProcess(engine, ridge, variance, offset, times)
    ridge = _likeliest_ridge(engine, noise)
    return GaussianProcess(engine, ridge, noise**2 / ridge, offset, times)


def _likeliest_ridge(engine: Engine, noise: float) -> float:
    path, unit = engine.path(), engine.data.trace / engine.data.count

    def surprise(log_ridge: float) -> float:
        energy, log_det = path.energy_and_log_det(math.exp(log_ridge))
        return energy / noise**2 + log_det

    grid = np.linspace(math.log(unit / MOST), math.log(unit / LEAST), TRIED)
    best = int(np.argmin([surprise(one) for one in grid]))
    around = grid[max(best - 1, 0)], grid[min(best + 1, TRIED - 1)]
    return math.exp(minimize_scalar(surprise, bounds=around, method="bounded").x)

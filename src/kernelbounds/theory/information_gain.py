"""Information gain and elliptical potentials of given points (Sec. 6.2, App. D.2).

==================  ===================  ====================================================
code                paper                meaning
==================  ===================  ====================================================
``ridge``           alpha                the ridge value, sigma^2/c in the paper
``gain``            (1/2) ln det         of the points x_1 .. x_t: (1/2) ln det(I + K_t/alpha)
``Bracket.lower``   <= gamma_t(alpha)    the gain that the greedy rule attains
``Bracket.upper``   >= gamma_t(alpha)    the gain that no choice of points can exceed
``potentials``      rho^2_alpha,t-1      how surprising the point of each round was, (T,)
                    (x_t)/alpha
``threshold``       b                    a potential of at least b^2 counts as large
``counts``          tau_t(alpha)         the number of large ones among the first t, (T,)
==================  ===================  ====================================================

gamma_t is a maximum over sequences, so points may repeat: noisy measurements of one point go on
to inform. The gain is a monotone submodular function of the multiset of points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import LARGEST, Array, as_numbers, as_points, as_scalar, as_whole
from kernelbounds.engine.ridge_fit import LazyVariances, RunPass, along_run
from kernelbounds.errors import InputError

FIRST_BATCH = 128  # candidates whose variances are updated together, at first
LAST_PASSES = 4  # over the largest ceilings, for the upper bound at the end


def run_of(kernel: Kernel, X: ArrayLike, ridge: float) -> RunPass:
    """Compute variances and log-determinants along the points X, (T, d), in their order."""
    k = kernels.checked_kernel(kernel)
    points = as_points(X, "X")
    gram = kernels.cross(k, points, points)
    np.fill_diagonal(gram, kernels.diagonal(k, points))
    return along_run(gram, as_scalar(ridge, "ridge", above=0.0))


def elliptical_potentials(kernel: Kernel, X: ArrayLike, ridge: float) -> Array:
    """The potentials rho^2_alpha,t-1(x_t)/alpha of points x_1 .. x_T in their order, (T,).

    Their ln(1 + .) add up to ln det(I + K_T/alpha) (Lemma D.8).

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from kernelbounds import theory
    >>> theory.elliptical_potentials(RBF(0.3), [[0.1], [0.5], [0.9]], ridge=0.1).round(2)
    array([10.  ,  8.46,  8.3 ])
    """
    run = run_of(kernel, X, ridge)
    return np.asarray(run.variances / run.ridge)


def potential_counts(kernel: Kernel, X: ArrayLike, ridge: float, threshold: float = 1.0) -> Array:
    """Count, for t = 1 .. T, the rounds s <= t whose potential is at least b^2: tau_t, Eq. (16).

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from kernelbounds import theory
    >>> theory.potential_counts(RBF(0.3), [[0.1], [0.5], [0.5]], ridge=0.1)
    array([1., 2., 2.])
    """
    b = as_threshold(threshold)
    return np.cumsum(elliptical_potentials(kernel, X, ridge) >= b**2).astype(np.float64)


def as_threshold(threshold: float) -> float:
    """Check a threshold b > 0, whose square must neither vanish nor overflow."""
    return as_scalar(threshold, "threshold", least=1 / LARGEST, most=LARGEST)


def potential_sum_bound(gain: ArrayLike) -> Array:
    """Bound sum_t min(1, potential) by (3/2) ln det(I + K_T/alpha) = 3 gain (Lemma D.4).

    ``gain`` is the information gain (1/2) ln det of the run, or any upper bound on it. Printed
    with 3/2; since min(1, v) <= ln(1 + v)/ln 2 the factor 1/ln 2 = 1.4427 would do.

    Examples
    --------
    >>> from kernelbounds import theory
    >>> theory.potential_sum_bound([1.0, 2.0])
    array([3., 6.])
    """
    return 3.0 * as_numbers(gain, "gain", positive=False)


def potential_count_bound(gain: ArrayLike, threshold: float = 1.0) -> Array:
    """Bound the count tau by 2 gamma / ln(1 + b^2) (Lemma D.9, the second inequality).

    Examples
    --------
    >>> from kernelbounds import theory
    >>> theory.potential_count_bound([1.0, 2.0]).round(2)
    array([2.89, 5.77])
    """
    b = as_threshold(threshold)
    return 2 * as_numbers(gain, "gain", positive=False) / math.log1p(b**2)


def self_consistent_counts(gains: ArrayLike, threshold: float = 1.0) -> Array:
    """Find, for T = 1, 2, ..., the largest n <= T with n <= 2 gamma_n / ln(1 + b^2) (Lemma D.9).

    By the first inequality of the lemma, no run of T rounds has more large potentials than this.
    ``gains`` are upper bounds on gamma_n for n = 1, 2, ...

    Examples
    --------
    >>> from kernelbounds import theory
    >>> theory.self_consistent_counts([0.9, 1.1, 1.2, 1.25, 1.3])
    array([1., 2., 3., 3., 3.])
    """
    bounds = np.atleast_1d(potential_count_bound(gains, threshold))
    if bounds.ndim != 1:
        raise InputError(f"gains must be a 1-D array, one for each n, got shape {bounds.shape}.")
    n = np.arange(1.0, len(bounds) + 1)
    return np.maximum.accumulate(np.where(n <= bounds * (1 + 1e-12), n, 0.0))


def information_gain(kernel: Kernel, X: ArrayLike, ridge: float) -> float:
    """Compute the information gain (1/2) ln det(I + K/alpha) of the points X, (t, d).

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from kernelbounds import theory
    >>> gain = theory.information_gain(RBF(0.3), [[0.1], [0.5], [0.9]], ridge=0.1)
    >>> round(gain, 3)
    3.438
    """
    return float(information_gains(kernel, X, ridge)[-1])


def information_gains(kernel: Kernel, X: ArrayLike, ridge: float) -> Array:
    """Compute the information gains of the first t points, for t = 1 .. T; (T,).

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from kernelbounds import theory
    >>> theory.information_gains(RBF(0.3), [[0.1], [0.5], [0.9]], ridge=0.1).round(3)
    array([1.199, 2.323, 3.438])
    """
    return np.asarray(run_of(kernel, X, ridge).log_dets[1:] / 2)


@dataclass(frozen=True)
class Bracket:
    """lower[t-1] <= gamma_t(alpha) <= upper[t-1] over a finite set of points, t = 1 .. T.

    ``chosen`` are the positions of the points that attain ``lower``, in the order of choice.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from kernelbounds import theory
    >>> points = [[0.0], [0.1], [0.5], [1.0]]
    >>> found = theory.maximum_information_gain(RBF(0.3), points, ridge=0.1, rounds=3)
    >>> found.chosen.tolist()
    [0, 3, 2]
    >>> bool((found.lower <= found.upper).all())
    True
    """

    chosen: NDArray[np.int64]
    lower: Array
    upper: Array


def maximum_information_gain(
    kernel: Kernel, candidates: ArrayLike, ridge: float, rounds: int
) -> Bracket:
    """Bracket gamma_t(alpha) over the rows of ``candidates`` from both sides, by greedy choice.

    The next point is always one of largest variance. By submodularity (Nemhauser et al. 1978)
    greedy >= (1 - (1 - 1/t)^t) gamma_t, which is above 1 - 1/e; a second upper bound comes from
    the gains still to be had (:func:`remaining_gains`), and the smaller one counts.

    Variances only fall as points are added, so an old value is an upper bound, and a candidate
    is evaluated again only when its old value is the largest (lazy evaluation, Minoux 1978).

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from kernelbounds import theory
    >>> points = [[0.0], [0.1], [0.5], [1.0]]
    >>> found = theory.maximum_information_gain(RBF(0.3), points, ridge=0.1, rounds=3)
    >>> found.lower.round(3), found.upper.round(3)
    (array([1.199, 2.398, 3.543]), array([1.199, 2.398, 3.597]))
    """
    k = kernels.checked_kernel(kernel)
    points = as_points(candidates, "candidates")
    alpha = as_scalar(ridge, "ridge", above=0.0)
    total = as_whole(rounds, "rounds", least=1)
    state = LazyVariances(k, points, alpha, total)
    chosen, gains = np.empty(total, dtype=np.int64), np.empty(total)
    upper = remaining_gains(state.ceilings / alpha, total)
    for t in range(total):
        chosen[t] = _most_uncertain(state)
        gains[t] = math.log1p(state.ceilings[chosen[t]] / alpha) / 2
        state.choose(int(chosen[t]))
        if (t + 1) & t == 0 or t + 1 == total:  # powers of two, and the end
            if t + 1 == total:  # Old ceilings are valid, but larger than they need be.
                for _ in range(LAST_PASSES):
                    state.refresh(_largest(state.ceilings, total))
            ahead = remaining_gains(state.ceilings / alpha, total)
            upper = np.minimum(upper, gains[: t + 1].sum() + ahead)
    lower = np.cumsum(gains)
    times = np.arange(1, total + 1)
    share = 1 - (1 - 1 / times) ** times
    return Bracket(chosen, lower, np.maximum(np.minimum(upper, lower / share), lower))


def remaining_gains(potentials: Array, rounds: int) -> Array:
    """Bound the gain of t more points, for t = 1 .. T, given rho^2/alpha at all candidates.

    By submodularity m_i copies of candidate i add at most (1/2) ln(1 + m_i rho_i^2/alpha), and
    the candidates' contributions add up at most. So the answer is the sum of the t largest
    marginal gains, where the j-th copy of a candidate counts with what it adds to the others:
    (1/2) ln(1 + v/(1 + (j - 1) v)), v = rho^2/alpha.
    """
    v = np.sort(potentials[potentials > 1e-300])[::-1][:rounds]
    if not len(v):
        return np.zeros(rounds)
    # The j-th copy counts v/(1 + (j - 1) v), at least 1/(u + 1/v_1) for j - 1 <= u - (1/v - 1/v_1).
    # Bisection finds the least u for which there are as many such copies as rounds.
    offsets = 1 / v - 1 / v[0]
    least, most = 0.0, float(rounds)
    for _ in range(60):
        middle = (least + most) / 2
        enough = _copies(offsets, middle).sum() >= rounds
        least, most = (least, middle) if enough else (middle, most)
    copies = _copies(offsets, most)
    values = np.repeat(v, copies)
    before = np.arange(len(values)) - np.repeat(np.cumsum(copies) - copies, copies)
    gains = np.sort(np.log1p(values / (1 + before * values)))[::-1] / 2
    return np.cumsum(gains)[:rounds]


def _copies(offsets: Array, u: float) -> NDArray[np.int64]:
    return np.asarray(np.maximum(np.floor(u - offsets) + 1, 0), dtype=np.int64)


def _largest(values: Array, count: int) -> NDArray[np.intp]:
    """Find the positions of the largest values, all of them if there are no more than ``count``."""
    return np.argpartition(-values, min(count, len(values)) - 1)[:count]


def _most_uncertain(state: LazyVariances) -> int:
    """Find the first candidate of largest variance, and bring its ceiling up to date."""
    batch = FIRST_BATCH
    while True:
        best = int(state.ceilings.argmax())
        if state.levels[best] == state.count:
            return best
        state.refresh(_largest(state.ceilings, batch))
        batch *= 2

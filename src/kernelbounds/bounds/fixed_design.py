"""FixedDesign: points that were fixed before the outcomes, at one moment in time.

The bound for all x is in ``projection.py``. The bound for one x is a linear estimate, its bias and
its noise:

==============  ==============================  =============================================
code            symbol                          meaning
==============  ==============================  =============================================
``weights``     w = (K + alpha I)^-1 k_t(x)     of the estimate w'y; any others are as valid
``length``      |w|                             the noise of the estimate, in units of sigma
``bias``        |phi(x) - sum_s w_s phi(x_s)|   how far off it can be, in units of B
``margin``      q                               what is added to the bias, in units of the noise
==============  ==============================  =============================================

For w that depends on points alone, w'y - f*(x) = w'eps - <f*, phi(x) - sum_s w_s phi(x_s)>. The
last term is at most B bias, and w'eps is sigma |w|-sub-Gaussian, given all points. The bias pushes
the estimate to one side only: with b = B bias / (sigma |w|) and probability at least 1 - delta, for
delta <= exp(-1/2),

    |w'y - f*(x)|  <=  B bias + sigma |w| q,    exp(-q^2 / 2) + exp(-(2b + q)^2 / 2) = delta

(``docs/mathematics/fixed-designs.md``). q is sqrt(2 ln(2/delta)) where there is no bias, and falls
to sqrt(2 ln(1/delta)) as that grows.

Independent Gaussian noise makes w'y - f*(x) Gaussian with a mean of at most B bias and a standard
deviation of at most sigma |w|, and in place of the right side there is the 1 - delta quantile of
|N(B bias, sigma^2 |w|^2)| (Armstrong and Kolesar, 2018), which grows with both for delta <= 1/2.

The ridge alpha is the one that makes the interval shortest, for each x, whatever the outcomes. That
ridge is chosen for the B and sigma that were assumed at first, and stays where others are assumed
later: the interval then grows with B, and with sigma.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri

from kernelbounds.arrays import EPS, Array, as_flag, as_whole, brief
from kernelbounds.bounds.bound import Bound, Guarantee
from kernelbounds.bounds.projection import Projection
from kernelbounds.confidence.assumptions import Assumptions
from kernelbounds.confidence.confidence_set import ConfidenceSet
from kernelbounds.engine import Estimators, dot_error, vertex
from kernelbounds.errors import InputError, KernelBoundsError
from kernelbounds.functionals.targets import Targets

# Log ridges are tried in such steps, from the slack of the eigenvalues, below which they have no
# effect, to this times the largest one, where a bound is the one without data. The place of the
# minimum is found by a quartic; the bound is that at the place, wherever it is.
LOG_RIDGE_STEP, INFINITE_RIDGE = 0.5, 1e6
# Halvings of an interval of length at most ten, to the last digit.
HALVINGS = 56
# Probabilities and their logarithms are right to a few rounding errors, and their relative slope is
# at least q: this is more than what margins are wrong by.
MARGIN_ERROR = 1e-12
# Of a bias of more than this many standard deviations, one side is all that matters: the
# other has a probability below 1e-300.
ONE_SIDED = 40.0
# Biases at which the search knows the quantile, in standard deviations.
TABLE_OF_BIASES = np.append(np.linspace(0.0, 4.0, 65), ONE_SIDED)


def estimated(
    known: ConfidenceSet, points: Targets, signs: Sequence[int], delta: float, noise: str
) -> Array:
    """Upper bounds on s f* at m points, each of which holds by itself; (signs, m)."""
    found = shortest(known, points, delta, noise)
    half = _half_widths(known, found, delta, noise)
    return np.array([sign * found.values + half for sign in signs])


def estimated_half_widths(known: ConfidenceSet, points: Targets, delta: float, noise: str) -> Array:
    """(upper - lower) / 2, which does not depend on outcomes, rounding apart; (m,)."""
    return _half_widths(known, shortest(known, points, delta, noise), delta, noise)


def _half_widths(known: ConfidenceSet, found: Estimators, delta: float, noise: str) -> Array:
    path, half = known.engine.eigenpath(), half_widths(known, found, margins(delta, noise))
    # The estimate itself is an inner product of c and z, and z of eigenvectors and outcomes.
    lost = 2 * dot_error(path.eigen.count, path.eigen.accuracy) * path.outcome_norm * found.length
    return np.asarray(half * (1 + 16 * EPS) + lost)


def shortest(known: ConfidenceSet, points: Targets, delta: float, noise: str) -> Estimators:
    """The ridge estimators with the shortest intervals under the B and sigma assumed at first."""
    path = known.engine.eigenpath()
    path = path.leading(path.eigen.eigenvectors)
    query = known.engine.query_along(path, points)
    low, high = math.log(path.eigen.slack), math.log(INFINITE_RIDGE * float(path.levels.max()))
    # From the largest eigenvalue, which does not depend on how observations are merged.
    grid = high - LOG_RIDGE_STEP * np.arange(5.0 + math.ceil((high - low) / LOG_RIDGE_STEP))[::-1]
    table = margins(delta, noise)(TABLE_OF_BIASES)
    found = query.estimators(np.exp(grid))
    tried = half_widths(
        known, found, lambda biases: np.interp(biases, TABLE_OF_BIASES, table), known.chosen_for
    )
    return query.estimates(np.exp(vertex(grid, tried)))


def half_widths(
    known: ConfidenceSet,
    found: Estimators,
    margin: Callable[[Array], Array],
    assumed: Assumptions | None = None,
) -> Array:
    """B bias + sigma |w| q, rounded up but for the last digit, for the B and sigma assumed."""
    a, directions = assumed or known.assumptions, known.engine.eigenpath().eigen.eigenvectors
    squared = known.engine.squared_norms_of_directions(np.array([directions]))
    orthonormal = math.sqrt(float(squared[0]))
    bias, deviation = a.norm_bound * found.bias, a.noise_scale * orthonormal * found.length
    return np.asarray(bias + deviation * margin(bias / np.maximum(deviation, 1e-300)))


def margins(delta: float, noise: str) -> Callable[[Array], Array]:
    """q as a function of the bias in standard deviations, rounded up."""
    if noise == "Gaussian":
        return lambda biases: folded_margins(biases, delta)
    return lambda biases: sub_gaussian_margins(biases, delta)


def sub_gaussian_margins(biases: Array, delta: float) -> Array:
    """q(b) with exp(-q^2 / 2) + exp(-(2b + q)^2 / 2) = delta, for delta at most exp(-1/2).

    Divided by the first term and in logarithms, which neither underflow nor cancel, this is
    q^2 / 2 - ln(1 + exp(-2b (b + q))) = ln(1/delta).
    """
    b, level = np.minimum(biases, ONE_SIDED), -math.log(delta)

    def enough(q: Array) -> Array:
        return np.asarray(q**2 / 2 - np.log1p(np.exp(-2 * b * (b + q))) >= level)

    return _least(math.sqrt(2 * level), math.sqrt(2 * (level + math.log(2))), enough, b)


def folded_margins(biases: Array, delta: float) -> Array:
    """q(b) such that |N(b, 1)| exceeds b + q with probability delta, for delta at most 1/2.

    That is P(N > q) + P(N > 2b + q) = delta, so that q is between the quantiles of delta and of
    delta/2, and falls with b. The upper end of the last interval is returned.
    """
    b = np.minimum(biases, ONE_SIDED)

    def enough(q: Array) -> Array:
        return np.asarray(ndtr(-q) + ndtr(-2 * b - q) <= delta)

    return _least(-ndtri(delta), -ndtri(delta / 2), enough, b)


def _least(low: float, high: float, enough: Callable[[Array], Array], biases: Array) -> Array:
    """The least margin that is enough, from above, between two numbers; one for each bias."""
    below, above = np.full_like(biases, low), np.full_like(biases, high + MARGIN_ERROR)
    for _ in range(HALVINGS):
        middle = (below + above) / 2
        found = enough(middle)
        below, above = np.where(found, below, middle), np.where(found, middle, above)
    return np.asarray(above + MARGIN_ERROR)


# Of delta, what the leading directions are given, and the noise energy the rest: its set is rarely
# the narrower one, but sees when noise is larger than sigma says. With all of delta for the
# directions bounds are up to half a percent narrower.
SHARE_OF_DIRECTIONS = 0.9


@dataclass(frozen=True, repr=False)
class FixedDesign(Bound):
    """Narrower bounds for points that nobody chose by looking at outcomes, at one time.

    The points, their noise scales, and how many there are, are fixed before any outcome is known:
    by a plan, a grid or a random number generator. The noise of each row is sigma-sub-Gaussian
    given *all* of the points and the outcomes of the rows before it, in the order in which they
    were made; they may be added in any. For points chosen as one goes along, by whomever, and for
    data that are looked at while they come, it is **not valid**; that is what CMM is for. So it is
    not for a table that somebody else has filled, unless the plan is known by which they did.

    All x at once: the noise has only p coordinates V_p' eps along the p leading eigenvectors of the
    kernel matrix, with |V_p' eps| <= r_p as in :mod:`kernelbounds.bounds.projection`. The bound is

        max f(x)  subject to  |V_p'(f_t - y_t)| <= r_p  and  ||f|| <= B

    at nine tenths of delta, or that with p = t, V_p = I, the energy of the noise at one time, at
    the rest of delta, whichever is smaller. p is chosen from the points alone.

    One x: a linear estimate of f*(x), its largest bias and its noise, at half of delta
    (:mod:`kernelbounds.bounds.fixed_design`), or the bound for all x at the other half.

    Parameters
    ----------
    simultaneous : bool
        Whether the bounds hold at all x together, as those of the other methods do. Else each
        holds on its own with probability 1 - delta, and most are narrower.
    points : int
        With ``simultaneous=False``: the bounds hold together at any ``points`` x that were fixed
        beforehand, as the points of the data were.
    noise : "sub-Gaussian" or "Gaussian"
        Gaussian noise, independent given all of the points and of standard deviation at most
        sigma, allows for narrower ones. :class:`kernelbounds.noise.Gaussian` says so, too.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.3), norm_bound=3.0, noise_scale=0.2)
    >>> plan = np.linspace(0, 1, 60)[:, None]
    >>> seq.update(plan, np.sin(4 * plan[:, 0]) + 0.2 * np.random.default_rng(0).normal(size=60))
    >>> for bound in (kb.CMM(), FixedDesign(), FixedDesign(simultaneous=False)):
    ...     lower, upper = seq.bounds([0.5], bound)
    ...     print(f"{upper[0] - lower[0]:.2f} ({bound.guarantee})")
    0.70 (all times, all x, adaptive points, sub-Gaussian noise)
    0.55 (one time, all x, fixed points, sub-Gaussian noise)
    0.39 (one time, one x, fixed points, sub-Gaussian noise)
    """

    simultaneous: bool = True
    points: int = 1
    noise: Literal["sub-Gaussian", "Gaussian"] = "sub-Gaussian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "simultaneous", as_flag(self.simultaneous, "simultaneous"))
        object.__setattr__(self, "points", as_whole(self.points, "points", least=1))
        if not isinstance(self.noise, str) or self.noise not in ("sub-Gaussian", "Gaussian"):
            raise InputError(
                f'noise must be "sub-Gaussian" or "Gaussian", got {brief(self.noise)}.'
            )
        if self.simultaneous and self.points != 1:
            raise InputError(
                "points is for simultaneous=False; simultaneous bounds hold at any number of them."
            )

    @property
    def guarantee(self) -> Guarantee:
        """One time and points fixed beforehand; all x together, or each on its own."""
        return Guarantee(anytime=False, uniform=self.simultaneous, adaptive=False, noise=self.noise)

    @property
    def points_at_once(self) -> int | None:
        """``points``, where the guarantee is for that number of points together."""
        return None if self.simultaneous or self.points == 1 else self.points

    @property
    def bounds_functionals(self) -> bool:
        """True: the bound sees a point by its representer alone."""
        return True

    def extremes(self, known: ConfidenceSet, points: Targets, signs: Sequence[int]) -> Array:
        """See :class:`~kernelbounds.bounds.Bound`."""
        sets, noise = self._sets(known), self._noise_in(known)
        if not sets:
            return np.full((len(signs), len(points)), np.inf)
        if self.simultaneous or len(sets) == 1:
            return _smallest(sets, points, signs)
        both = _smallest(sets, points, (1, -1))
        delta = known.assumptions.delta / (2 * self.points)
        narrower = np.minimum(both, estimated(known, points, (1, -1), delta, noise))
        # An estimate that the other bounds rule out failed, as it may at one x in 2/delta. It is
        # left out, but not where other assumptions are tried: intervals that come back when B
        # shrinks would not be nested, and one that is empty speaks against that B.
        found = narrower
        if known.evidence.growing:
            found = np.where(narrower.sum(axis=0) < 0, both, narrower)
        return found[[0 if sign > 0 else 1 for sign in signs]]

    def predicted_width(self, known: ConfidenceSet, points: Targets) -> Array:
        """An upper bound on upper - lower with noise, whatever the outcomes; (m,).

        The width is that along the leading directions or, for single points, that of the linear
        estimate where it is smaller.
        """
        _, *directions = self._sets(known)
        if not directions:  # all functions vanish at the points
            return 2 * known.trivial(points)
        half = directions[0].half_widths(points)
        if not self.simultaneous:
            delta = known.assumptions.delta / (2 * self.points)
            noise = self._noise_in(known)
            half = np.minimum(half, estimated_half_widths(known, points, delta, noise))
        return 2 * half

    def norm_lower_bound(self, known: ConfidenceSet) -> float:
        """See :class:`~kernelbounds.bounds.Bound`; it leaves neither of the two sets empty."""
        return max((one.norm_lower_bound for one in self._sets(known)), default=0.0)

    def refute(self, known: ConfidenceSet) -> None:
        """See :class:`~kernelbounds.bounds.Bound`; called where bounds cross."""
        sets = self._sets(known)
        for one in sets:
            one.refute_if_empty()
        if len(sets) > 1:
            raise KernelBoundsError(
                f"the intervals that {self!r} intersects exclude each other: norm_bound, "
                "noise_scale or the kernel is wrong, or the points were chosen by looking at "
                "outcomes, or something of probability at most delta has happened."
            )

    def _sets(self, known: ConfidenceSet) -> tuple[Projection, ...]:
        """The noise energy's set and that of the leading directions, each at its share of delta.

        The first is all there is without noise, when it is exact, and where all functions vanish at
        the points. There is none while nothing is known of the noise scale.
        """
        a, noise = known.assumptions, self._noise_in(known)
        delta = a.delta / (1 if self.simultaneous else 2)
        directions = known.engine.eigenpath().eigen.eigenvectors
        if math.isinf(a.noise_scale):
            return ()
        if a.noise_scale == 0 or not directions:
            return (Projection.of_energy(known, delta, noise),)
        rest = Projection.of_energy(known, (1 - SHARE_OF_DIRECTIONS) * delta, noise)
        return rest, Projection.of(known, SHARE_OF_DIRECTIONS * delta, noise)

    def _noise_in(self, known: ConfidenceSet) -> str:
        """The kind of noise, which the law of the sequence may state as well."""
        return "Gaussian" if known.stated.noise.is_gaussian else self.noise


def _smallest(sets: Sequence[Projection], points: Targets, signs: Sequence[int]) -> Array:
    """The smaller bound of the sets, for each point and side."""
    return np.asarray(np.min([one.extremes(points, signs) for one in sets], axis=0))

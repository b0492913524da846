"""The interface of bounds that are minima of one dual function: CMM, DMM, AMM, AY and IGP."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import EPS, Array
from kernelbounds.bounds.bound import Bound
from kernelbounds.confidence.confidence_set import ConfidenceSet
from kernelbounds.engine import RidgePath
from kernelbounds.functionals.targets import Targets


@dataclass(frozen=True)
class DualMinimum:
    """The values of a :class:`DualBound`, and the ridges and scales that attain them.

    Attributes
    ----------
    values : array of shape (signs, m)
        Upper bounds on s f*(x) at m points.
    ridges, scales : arrays of shape (signs, m)
        The alpha and the scale at which the formula of :class:`DualBound` gives these values.
    path : RidgePath or None
        The path on which the ridges were found, where they form a continuum.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.2], [0.8]], [0.1, 0.9])
    >>> found = kb.AMM(ridge=0.5).attained(seq.known, np.array([[0.4]]), signs=(1, -1))
    >>> found.ridges.tolist()
    [[0.5], [0.5]]
    >>> bool(found.values[0, 0] == seq.upper([0.4], bound=kb.AMM(ridge=0.5))[0])
    True
    """

    values: Array
    ridges: Array
    scales: Array
    path: RidgePath | None = None


def dual_value(unexplained: Array, scale: Array, joint_bound: Array) -> Array:
    """unexplained / (2 scale) + scale joint_bound / 2, as in :class:`DualBound`, rounded up.

    ``joint_bound`` has at most three rounding errors, and this line adds three more.
    """
    first, second = unexplained / (2 * scale), scale * joint_bound / 2
    return np.asarray(first + second + 4 * EPS * (np.abs(first) + second))


class DualBound(Bound):
    """A bound that is the smallest, over some ridges alpha, of

        s mu_alpha(x) + beta_alpha rho_alpha(x)
            =  min over scale > 0 of  (k(x,x) - p'(K + alpha I)^-1 p) / (2 scale)
                                      + scale joint_bound_alpha / 2,

    with p = k_t(x) - s scale y and joint_bound_alpha = beta_alpha^2 + E_alpha / alpha, which bounds
    ||f_t - y_t||^2 / alpha + ||f||^2 for all functions f in question. CMM, DMM, AMM,
    AY and IGP are of this kind. Every ridge in question and every scale gives a valid bound.

    An interval around ridge estimates is written most easily as an
    :class:`~kernelbounds.bounds.EllipsoidBound`, which has all methods but
    ``ellipsoids``; where its factors are not R~_alpha / sqrt(alpha), it needs a
    :meth:`joint_bound` of its own.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from kernelbounds.bounds import DualBound
    >>> isinstance(kb.AMM(), DualBound)
    True
    """

    bounds_functionals = True  # The dual sees a point by its representer alone.

    takes_facts = True  # Sums of values with multipliers are bounded as values are.

    @property
    def exact(self) -> bool:
        """Whether the bound is the maximum of s f(x) over functions f of norm at most B.

        Such a bound changes between x and c by at most B |phi(x) - phi(c)|.
        """
        return False

    @abstractmethod
    def attained(self, known: ConfidenceSet, points: Targets, signs: Sequence[int]) -> DualMinimum:
        """The extremes, and the ridges and scales at which they are attained."""

    @abstractmethod
    def joint_bound(self, known: ConfidenceSet, ridges: Array) -> Array:
        """joint_bound_alpha for an array of ridges, made from quantities that are rounded up."""

    def lasting(self, known: ConfidenceSet) -> bool:
        """Whether the same ridges are used when observations are added.

        False where the ridge follows the data, as the reference ridge does without noise, or with
        noise of an unknown scale.
        """
        return known.stated.noise.scale_is_stated and known.stated.misfit > 0

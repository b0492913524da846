"""Neiswanger: the prior-posterior ratio of a Gaussian process (Neiswanger and Ramdas 2021)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import EPS, Array, as_scalar, set_checked
from kernelbounds.bounds.bound import Bound
from kernelbounds.confidence.confidence_set import ConfidenceSet
from kernelbounds.errors import InputError
from kernelbounds.functionals.targets import Targets


@dataclass(frozen=True, repr=False)
class Neiswanger(Bound):
    """The largest f(x) with ||f_t - y_t|| <= R_t and no bound on the norm: infinite off the data.

    This is the prior-posterior ratio of a Gaussian process (Neiswanger and Ramdas 2021). The
    functions whose density under the prior N(0, c k) is at most 1/delta times that under the
    posterior are those within the paper's R_t,

        ||f_t - y_t||^2  <=  E_(sigma^2/c) + sigma^2 l_(sigma^2/c) + 2 sigma^2 ln(1/delta).

    The ratio does not see a value of f where nothing was observed. At a point with n
    outcomes of mean m, the bound is m +- sqrt((R_t^2 - scatter)/n). Without a norm bound this
    holds for every function, in the kernel's space or not. Users see it cut off at B sqrt(k(x,x)).

    Parameters
    ----------
    scale : float
        c, the scale of the prior; theirs is the kernel itself.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.1], [0.9]], [0.3, -0.2])
    >>> bound = kb.bounds.Neiswanger()
    >>> bound.extremes(seq.known, np.array([[0.1], [0.100001]]), signs=(1,)).round(2)
    array([[0.73,  inf]])
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        set_checked(self, scale=as_scalar(self.scale, "scale", above=0.0))

    def extremes(self, known: ConfidenceSet, points: Targets, signs: Sequence[int]) -> Array:
        """See :class:`~kernelbounds.bounds.Bound`."""
        a = known.assumptions
        if a.noise_scale == 0:
            raise InputError("Neiswanger is for noisy data; use CMM() where noise_scale is 0.")
        assert isinstance(points, np.ndarray)  # functionals are refused before
        ridge = a.noise_scale**2 / self.scale
        squared = known.energy_above(ridge) - known.radius_engine.data.scatter
        squared += a.noise_scale**2 * (known.log_det_above(ridge) - 2 * math.log(a.delta))
        found, upper = _means_by_point(known), np.full((len(signs), len(points)), np.inf)
        for column, point in enumerate(points):
            if (key := _key(point)) in found:
                mean, number = found[key]
                half = math.sqrt(squared / number) * (1 + (32 + known.count) * EPS)
                upper[:, column] = [sign * mean + half for sign in signs]
        return upper


def _means_by_point(known: ConfidenceSet) -> dict[bytes, tuple[float, float]]:
    """The mean outcome and the number of outcomes at each point, both by their weights."""
    sums: dict[bytes, tuple[float, float]] = {}
    for point, outcome, weight in zip(known.points, known.outcomes, known.weights, strict=True):
        total, number = sums.get(_key(point), (0.0, 0.0))
        sums[_key(point)] = total + weight * outcome, number + weight**2
    return {key: (total / number, number) for key, (total, number) in sums.items()}


def _key(point: Array) -> bytes:
    return (point + 0.0).tobytes()  # which makes -0.0 and 0.0 equal

"""The bounds of the literature that are ridge estimates with an interval, and all of them by name.

:class:`AY` and :class:`IGP`, with which the paper compares, and the sets of
``forecast_sets.py`` have files of their own. ``docs/mathematics/rivals.md`` has the theorems.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import EPS, Array, as_numbers, as_scalar
from kernelbounds.bounds.ay import AY
from kernelbounds.bounds.bound import Bound, Guarantee
from kernelbounds.bounds.ellipsoids import (
    Ellipsoids,
    OneEllipsoid,
    bayesian_ridge,
    checked_ridge,
)
from kernelbounds.bounds.forecast_sets import Emmenegger, OnlineToSet
from kernelbounds.bounds.igp import IGP
from kernelbounds.confidence.assumptions import Assumptions
from kernelbounds.confidence.confidence_set import ConfidenceSet
from kernelbounds.errors import InputError
from kernelbounds.functionals.targets import Targets
from kernelbounds.kernels.rkhs import mixture_scale


@dataclass(frozen=True, repr=False)
class Srinivas(OneEllipsoid):
    """mu(x) +- sqrt(2 B^2 + 300 gamma_t ln^3(t/delta)) rho(x), from t - 1 outcomes, ridge sigma^2.

    This is the bound of GP-UCB (Srinivas, Krause, Kakade and Seeger 2010, Thm. 6). gamma_t is the
    largest information gain of t points of the domain. The theorem is for noise that never exceeds
    sigma, and for k(x,x) <= 1.

    Parameters
    ----------
    gains : sequence of float
        Upper bounds on gamma_1, gamma_2, ... at the ridge sigma^2, as
        :func:`kernelbounds.theory.maximum_information_gain` has them. Without them it is
        (t/2) ln(1 + 1/sigma^2), which no t points exceed.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=kb.noise.Bounded(0.1))
    >>> seq.update([[0.1], [0.9]], [0.3, -0.2])
    >>> lower, upper = seq.bounds([[0.5]], bound=kb.bounds.Srinivas())
    >>> float(upper[0] - lower[0])  # what the norm alone says
    4.0
    """

    gains: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.gains, Iterable):
            raise InputError(f"gains must be a sequence of numbers, got {self.gains!r}.")
        found = as_numbers(list(self.gains), "gains", positive=False) if len(self.gains) else ()
        object.__setattr__(self, "gains", tuple(float(gain) for gain in found))

    @property
    def guarantee(self) -> Guarantee:
        """All times, all x, adaptive points; noise that never exceeds sigma."""
        return Guarantee(noise="bounded")

    def ellipsoids(self, known: ConfidenceSet, points: Targets) -> Ellipsoids:
        """See :class:`~kernelbounds.bounds.ellipsoids.EllipsoidBound`."""
        _require_unit_variance(known.prior(points))
        return super().ellipsoids(known, points)

    def ridge_and_factor(self, known: ConfidenceSet) -> tuple[float, float]:
        """sigma^2, and sqrt(2 B^2 + 300 gamma_t ln^3(t/delta))."""
        a, t = known.assumptions, known.count + 1
        if a.noise_scale == 0 or np.any(known.weights != 1):
            raise InputError(
                "Srinivas is for noise of one positive scale; use CMM() without noise, or where "
                "observations have noise scales of their own."
            )
        _require_unit_variance(known.prior(known.points))
        squared = (
            2 * a.norm_bound**2 + 300 * self._gain(t, a.noise_scale) * math.log(t / a.delta) ** 3
        )
        return a.noise_scale**2, math.sqrt(squared) * (1 + 16 * EPS)

    def _gain(self, t: int, noise_scale: float) -> float:
        """An upper bound on gamma_t."""
        if not self.gains:
            return t / 2 * math.log1p(1 / noise_scale**2)
        if t > len(self.gains):
            raise InputError(
                f"gains must be bounds on gamma_1 up to gamma_{t} after {t - 1} observations, got "
                f"{len(self.gains)} of them; compute them for more rounds."
            )
        return self.gains[t - 1]


def _require_unit_variance(prior: Array) -> None:
    if prior.max(initial=0.0) > 1 + 1e-9:
        raise InputError(
            f"Srinivas is for kernels with k(x,x) <= 1, and this has {prior.max():g}; use CMM()."
        )


@dataclass(frozen=True, repr=False)
class Fiedler(OneEllipsoid):
    """mu(x) +- (B + sigma sqrt(ln det(m/lambda K + m I) + 2 ln(1/delta)) / sqrt(lambda)) rho(x).

    This is Chowdhury and Gopalan's bound for any ridge (Fiedler et al. 2021, Thm. 1). Here
    m = max(1, lambda), so that it is AY for ridges lambda up to 1, and has t ln(lambda) more
    under the root for larger ones.

    Parameters
    ----------
    ridge : float, optional
        lambda; None is the paper's sigma^2/c, as for AY. Users of Gaussian processes have sigma^2.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=9.0, noise_scale=0.5)
    >>> seq.update([[0.1], [0.9]], [0.3, -0.2])
    >>> for ridge in (0.25, 2.0):
    ...     both = kb.bounds.Fiedler(ridge), kb.AY(ridge)
    ...     print([f"{seq.upper([0.1], bound)[0]:.2f}" for bound in both])
    ['5.79', '5.79']
    ['8.34', '8.28']
    """

    ridge: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "ridge", checked_ridge(self.ridge, "ridge"))

    def ridge_and_factor(self, known: ConfidenceSet) -> tuple[float, float]:
        """lambda, and AY's factor with t ln max(1, lambda) more under the root."""
        a, ridge = known.assumptions, known.reference_ridge if self.ridge is None else self.ridge
        more = known.count * math.log(max(ridge, 1.0)) * (1 + 4 * EPS)
        noise = math.sqrt((known.log_det_above(ridge) + more - 2 * math.log(a.delta)) / ridge)
        return ridge, a.noise_scale * noise + a.norm_bound


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
        object.__setattr__(self, "scale", as_scalar(self.scale, "scale", above=0.0))

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


@dataclass(frozen=True, repr=False)
class Vakili(OneEllipsoid):
    """mu_lambda(x) +- (B + sigma sqrt(2 ln(2/delta)) / sqrt(lambda)) rho_lambda(x), at one x.

    This is the bound of Vakili, Bouziani, Jalali, Bernacchia and Shiu (2021, Thm. 1) for points
    that are fixed before the outcomes, at one time and one x. Each side holds with
    probability 1 - delta/2. :class:`FixedDesign` with ``simultaneous=False`` is as general.

    Parameters
    ----------
    ridge : float, optional
        lambda; None is sigma^2/B^2.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.3), norm_bound=3.0, noise_scale=0.2)
    >>> plan = np.linspace(0, 1, 60)[:, None]
    >>> seq.update(plan, np.sin(4 * plan[:, 0]) + 0.2 * np.random.default_rng(0).normal(size=60))
    >>> for bound in (kb.bounds.Vakili(), kb.FixedDesign(simultaneous=False)):
    ...     lower, upper = seq.bounds([0.5], bound)
    ...     print(f"{upper[0] - lower[0]:.2f} ({bound.guarantee})")
    0.48 (one time, one x, fixed points, sub-Gaussian noise)
    0.39 (one time, one x, fixed points, sub-Gaussian noise)
    """

    ridge: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "ridge", checked_ridge(self.ridge, "ridge"))

    @property
    def guarantee(self) -> Guarantee:
        """One time, one x, and points fixed beforehand."""
        return Guarantee(anytime=False, uniform=False, adaptive=False)

    def ridge_and_factor(self, known: ConfidenceSet) -> tuple[float, float]:
        """lambda, and B + sigma sqrt(2 ln(2/delta)) / sqrt(lambda)."""
        a = known.assumptions
        ridge = bayesian_ridge(known) if self.ridge is None else self.ridge
        noise = a.noise_scale * math.sqrt(2 * math.log(2 / a.delta) / ridge)
        return ridge, (a.norm_bound + noise) * (1 + 8 * EPS)


Rival = Callable[[int, Kernel, int, Assumptions], Bound]

# From the number of rounds, the kernel, the dimension of points and the assumptions to a bound.
# Where a paper leaves a ridge to the user, it is the one that its experiments or rates use;
# docs/mathematics/rivals.md has the theorems.
RIVALS: dict[str, Rival] = {
    "Srinivas 2010": lambda horizon, kernel, dim, a: Srinivas(),
    "AY 2012": lambda horizon, kernel, dim, a: AY(),
    "OnlineToSet 2012": lambda horizon, kernel, dim, a: OnlineToSet(),
    "IGP 2017": lambda horizon, kernel, dim, a: IGP(eta=2 / horizon),
    "Durand 2018": lambda horizon, kernel, dim, a: AY(ridge=(a.noise_scale / a.norm_bound) ** 2),
    "Fiedler 2021": lambda horizon, kernel, dim, a: Fiedler(ridge=a.noise_scale**2),
    "Neiswanger 2021": lambda horizon, kernel, dim, a: Neiswanger(),
    "Vakili 2021": lambda horizon, kernel, dim, a: Vakili(),
    "Emmenegger 2023": lambda horizon, kernel, dim, a: Emmenegger(),
    "Whitehouse 2023": lambda horizon, kernel, dim, a: AY(
        ridge=1 / mixture_scale(kernel, dim, horizon)
    ),
}

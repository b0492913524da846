"""A slow reference in 50-digit arithmetic: every formula as it stands in the paper."""

from __future__ import annotations

from functools import partial

import mpmath as mp
import numpy as np
from exact_kernels import exact as exact_value, exact_derivative, exact_squared_norm
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.functionals import Derivative, Sum
from kernelbounds.mixtures import Hybrid

mp.mp.dps = 50


def kernel_value(name: str, length_scale: float, variance: float, x, z) -> mp.mpf:
    if name == "levels":  # of a number and a category
        between = mp.mpf(1) if x[1] == z[1] else mp.mpf(0.7)
        return between * kernel_value("matern52", length_scale, variance, x[:1], z[:1])
    r = mp.sqrt(mp.fsum((mp.mpf(float(a)) - mp.mpf(float(b))) ** 2 for a, b in zip(x, z)))
    s = r / mp.mpf(length_scale)
    if name == "rbf":
        value = mp.exp(-(s**2) / 2)
    elif name == "matern32":
        value = (1 + mp.sqrt(3) * s) * mp.exp(-mp.sqrt(3) * s)
    elif name == "matern52":
        value = (1 + mp.sqrt(5) * s + 5 * s**2 / 3) * mp.exp(-mp.sqrt(5) * s)
    else:
        raise ValueError(name)
    return mp.mpf(variance) * value


def forecast_scales(prior):
    """The power of two above the largest k(x,x) so far, to which forecasts relate their ridge."""
    return np.ldexp(1.0, np.frexp(np.maximum.accumulate(prior))[1])


def hybrid_energy(gram, y, noise_scale, delta, rates, weights, ridge):
    """R_t^2 of ``mixtures.Hybrid``: forecasts of N(0, c K), c = sigma^2/ridge, or the constant."""
    noise, rates = mp.mpf(noise_scale) ** 2, [mp.mpf(rate) for rate in rates]
    losses = [mp.mpf(0) for _ in rates]
    for s, outcome in enumerate(y):
        mean, v = mp.mpf(0), gram[s, s]
        if s:
            k = gram[:s, s]
            solved = mp.lu_solve(gram[:s, :s] + ridge * mp.eye(s), k)
            mean = mp.fsum(solved[i] * y[i] for i in range(s))
            v -= mp.fsum(solved[i] * k[i] for i in range(s))
        v *= noise / ridge
        for j, rate in enumerate(rates):
            constant = noise / rate * -mp.log(1 - rate) if rate < 1 else mp.inf
            known_before = noise / rate * mp.log(1 + rate * v / noise)
            expected = known_before + noise * (noise + v) / (noise + rate * v)
            forecast = known_before + noise * (outcome - mean) ** 2 / (noise + rate * v)
            losses[j] += forecast if expected < constant else constant
    return _level_reached(rates, weights, losses, noise, delta)


def _level_reached(rates, weights, losses, noise, delta):
    """The S with sum_j w_j exp(lambda_j (S - Q_j) / (2 sigma^2)) = 1/delta, by bisection."""
    level = mp.fsum(weights) / mp.mpf(delta)
    each = list(zip(rates, map(mp.mpf, weights), losses))
    low = min(losses)
    high = min(q + 2 * noise / rate * mp.log(level / w) for rate, w, q in each)
    for _ in range(160):
        S = (low + high) / 2
        parts = (w * mp.exp(rate * (S - q) / (2 * noise)) for rate, w, q in each)
        low, high = (S, high) if mp.fsum(parts) < level else (low, S)
    return high


class Exact:
    """Kernel ridge regression on t points at any ridge, by an exact eigendecomposition.

    The radius is the paper's, or that of a ``mixture`` that is a ``Hybrid``, whose forecasts are
    made at ``forecast_ridge``; or it is given.

    The kernel is a function of two points, or one of scikit-learn's. Observations may have noise
    scales of their own, or a covariance (t, t) of their noise, and f* a known level. ``scatter`` is
    what every energy has beyond that of the observations given.
    """

    scatter = mp.mpf(0)

    def __init__(
        self, kernel, X, y, norm_bound, noise_scale, delta, mixture_scale,
        mixture=None, forecast_ridge=None, noise_scales=None, level=0.0, radius_squared=None,
        covariance=None,
    ):  # fmt: skip
        self.formula = kernel if isinstance(kernel, Kernel) else None
        if self.formula is not None:
            kernel = partial(exact_value, self.formula)
        self.kernel, self.X, self._given = kernel, X, radius_squared
        scales = [noise_scale] * len(X) if noise_scales is None else noise_scales
        self.w = [mp.mpf(noise_scale) / mp.mpf(float(s)) if s else mp.mpf(1) for s in scales]
        self.M = mp.diag(self.w)
        if covariance is not None:
            self.M = mp.mpf(noise_scale) * mp.cholesky(mp.matrix(covariance.tolist())) ** -1
        self.level = mp.mpf(level)
        y = list(self.M * mp.matrix([mp.mpf(float(v)) - self.level for v in y]))
        self.B, self.sigma = mp.mpf(norm_bound), mp.mpf(noise_scale)
        self.delta, self.c = mp.mpf(delta), mp.mpf(mixture_scale)
        t = len(X)
        gram = mp.matrix(t, t)
        for i in range(t):
            for j in range(t):
                gram[i, j] = kernel(X[i], X[j])
        gram = self.M * gram * self.M.T
        gram = (gram + gram.T) / 2
        self._hybrid = None
        if isinstance(mixture, Hybrid) and noise_scale:
            rates, weights = mixture.rates, mixture.weights
            ridge = mp.mpf(forecast_ridge)
            self._hybrid = hybrid_energy(gram, y, noise_scale, delta, rates, weights, ridge)
        self.values, self.Q = mp.eigsy(gram)
        self.values = [max(v, mp.mpf(0)) for v in self.values]
        self.t = t
        self.z = self._rotate(y)
        self.reference = self.sigma**2 / self.c

    def _rotate(self, vector):
        return [mp.fsum(self.Q[i, k] * vector[i] for i in range(self.t)) for k in range(self.t)]

    def at(self, x):
        """Bounds are on f(x), or on a functional; ``size`` is the sum of the norms of its terms."""
        self.of_level = self.level
        if isinstance(x, Derivative):
            at = x.point, x.axis
            self.of_level = mp.mpf(0)
            self.prior = exact_squared_norm(self.formula, *at)
            self.size = mp.sqrt(self.prior)
            vector = [exact_derivative(self.formula, *at, xi) for xi in self.X]
        else:
            terms = [(mp.mpf(1), x)]
            if isinstance(x, Sum):
                terms = [(mp.mpf(float(w)), z) for w, z in zip(x.weights, x.points)]
            k = self.kernel
            self.of_level *= mp.fsum(w for w, _ in terms)
            self.prior = mp.fsum(v * w * k(a, b) for v, a in terms for w, b in terms)
            self.prior = max(self.prior, mp.mpf(0))
            self.size = mp.fsum(abs(w) * mp.sqrt(k(z, z)) for w, z in terms)
            vector = [mp.fsum(w * k(xi, z) for w, z in terms) for xi in self.X]
        self.u = self._rotate(list(self.M * mp.matrix(vector)))
        return self

    def mean(self, a):
        return mp.fsum(u * z / (v + a) for u, z, v in zip(self.u, self.z, self.values))

    def deviation(self, a):
        explained = mp.fsum(u * u / (v + a) for u, v in zip(self.u, self.values))
        return mp.sqrt(max(self.prior - explained, mp.mpf(0)))

    def energy(self, a):
        return a * mp.fsum(z * z / (v + a) for z, v in zip(self.z, self.values)) + self.scatter

    def log_det(self, a):
        return mp.fsum(mp.log1p(v / a) for v in self.values)

    def radius_squared(self):
        if self.sigma == 0:
            return mp.mpf(0)
        if self._given is not None:
            return self._given
        if self._hybrid:
            return self._hybrid
        a = self.reference
        return (
            self.energy(a)
            + self.sigma**2 * self.log_det(a)
            - 2 * self.sigma**2 * mp.log(self.delta)
        )

    def amm(self, a, sign):
        squared = self.radius_squared() + a * self.B**2 - self.energy(a)
        return sign * self.mean(a) + mp.sqrt(squared / a) * self.deviation(a)

    def ay(self, a, sign):
        noise = self.sigma * mp.sqrt((self.log_det(a) - 2 * mp.log(self.delta)) / a)
        return sign * self.mean(a) + (noise + self.B) * self.deviation(a)

    def igp(self, eta, sign):
        a = 1 + mp.mpf(eta)
        noise = self.sigma * mp.sqrt(self.log_det(a) + self.t * eta - 2 * mp.log(self.delta))
        return sign * self.mean(a) + (noise + self.B) * self.deviation(a)

    def cmm(self, sign):
        """Golden section in log alpha: the function is quasiconvex.

        ``amm`` at each alpha, where mean, deviation and energy share their fractions 1/(v + alpha).
        """
        if self.sigma == 0:
            return self.amm(mp.mpf(10) ** -40, sign)
        squared = self.radius_squared()
        uz, uu, zz = (
            [p * q for p, q in zip(one, other)]
            for one, other in ((self.u, self.z), (self.u, self.u), (self.z, self.z))
        )

        def value(s):
            a = mp.exp(s)
            fractions = [1 / (v + a) for v in self.values]
            mean, explained, energy = (mp.fdot(one, fractions) for one in (uz, uu, zz))
            deviation = mp.sqrt(max(self.prior - explained, mp.mpf(0)))
            left = (squared - self.scatter) / a + self.B**2 - energy
            return sign * mean + mp.sqrt(left) * deviation

        low, high = mp.mpf(-60), mp.mpf(40)
        golden = (mp.sqrt(5) - 1) / 2
        left, right = high - golden * (high - low), low + golden * (high - low)
        f_left, f_right = value(left), value(right)
        for _ in range(70):
            if f_left <= f_right:
                high, right, f_right = right, left, f_left
                left = high - golden * (high - low)
                f_left = value(left)
            else:
                low, left, f_left = left, right, f_right
                right = low + golden * (high - low)
                f_right = value(right)
        return min(f_left, f_right)

    def clipped(self, value):
        trivial = self.B * mp.sqrt(self.prior)
        return float(max(-trivial, min(trivial, value)) / trivial)

    def gap(self, found, value, sign):
        """How far a bound on s L f exceeds the exact one, in units of B |r| and of B ``size``."""
        trivial = self.B * mp.sqrt(self.prior)
        gap = mp.mpf(float(found)) - sign * self.of_level - max(-trivial, min(trivial, value))
        return float(gap / max(trivial, mp.mpf(10) ** -40)), float(gap / (self.B * self.size))


def random_data(kernel, rng, X, norm_bound, noise_scale):
    """Outcomes at X of a function of norm at most ``norm_bound``, with Gaussian noise."""
    centres = rng.random((6, X.shape[1]))
    weights = rng.standard_normal(6)
    weights *= 0.9 * norm_bound / np.sqrt(weights @ kernel(centres) @ weights)
    return kernel(X, centres) @ weights + noise_scale * rng.standard_normal(len(X))


class Projected(Exact):
    """The same for f and y known along some directions alone, the columns of ``basis`` (t, p).

    CMM of it is the maximum of s f(x) with |V'(f_t - y_t)| <= r and ||f|| <= B, for the V given, in
    whatever way it was computed; r^2 is ``squared_radius``.
    """

    def __init__(self, whole: Exact, basis, squared_radius):
        self.whole, self.squared_radius = whole, mp.mpf(squared_radius)
        self.B, self.sigma = whole.B, whole.sigma
        self.along = mp.matrix(basis.T.tolist()) * whole.Q
        self.values, rotation = mp.eigsy(self.along * mp.diag(whole.values) * self.along.T)
        self.along = rotation.T * self.along
        self.z = list(self.along * mp.matrix(whole.z))

    def at(self, x):
        self.whole.at(x)
        self.prior, self.u = self.whole.prior, list(self.along * mp.matrix(self.whole.u))
        return self

    def radius_squared(self):
        return self.squared_radius


def estimated(whole: Exact, basis, weights, margin):
    """w'y and its half-width, B bias + sigma |w| q(B bias / (sigma |w|)), for w = V c."""
    along = whole.Q.T * mp.matrix(basis.tolist())
    w = list(along * mp.matrix([mp.mpf(float(one)) for one in weights]))
    squared = whole.prior + mp.fsum(
        a * (v * a - 2 * u) for a, u, v in zip(w, whole.u, whole.values)
    )
    bias, deviation = whole.B * mp.sqrt(squared), whole.sigma * mp.sqrt(mp.fsum(a * a for a in w))
    # Of a bias of more than a hundred deviations, one side is all that matters.
    half = bias + (deviation and deviation * margin(min(bias / deviation, mp.mpf(100))))
    return mp.fsum(a * z for a, z in zip(w, whole.z)), half


def folded_margin(bias, delta):
    """q such that |N(b, 1)| exceeds b + q with probability delta, by bisection."""
    low, high = mp.mpf(0), mp.mpf(20)
    for _ in range(120):
        q = (low + high) / 2
        beyond = mp.ncdf(-q) + mp.ncdf(-2 * bias - q)
        low, high = (low, q) if beyond <= delta else (q, high)
    return high


def sub_gaussian_failures(most, q, bias):
    """P(Z > most + q - bias) + P(-Z > most + q + bias), at most, for 1-sub-Gaussian Z."""
    return mp.exp(-((most + q - bias) ** 2) / 2) + mp.exp(-((most + q + bias) ** 2) / 2)


def sub_gaussian_margin(bias, delta):
    """The margin at which the bound on the probability to fail is delta, by bisection."""
    low, high = mp.mpf(0), mp.mpf(20)
    for _ in range(120):
        q = (low + high) / 2
        low, high = (low, q) if sub_gaussian_failures(bias, q, bias) <= delta else (q, high)
    return high

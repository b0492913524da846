"""What a bound looks at."""

from __future__ import annotations

import copy
import dataclasses
import math
import operator
import threading
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import EPS, Array
from kernelbounds.assume.assumptions import Assumptions
from kernelbounds.assume.offset import Level, Offset
from kernelbounds.assume.parts import Parts, count_for_shares
from kernelbounds.bounds.radius import (
    Radius,
    certain_noise,
    least_noise,
    least_norm,
    least_squared_radius,
)
from kernelbounds.copies import CopiedWhole
from kernelbounds.engine import Engine, Forecasts, Outcomes, Predictions, SparseEngine
from kernelbounds.errors import EmptyConfidenceSetError
from kernelbounds.functionals.targets import Functionals, Targets, squared_norms

# Without noise the reference ridge is this times the trace of the kernel matrix: twice the slack
# by which the engine raises eigenvalues, below which a ridge has no effect.
LEAST_RIDGE = 64 * EPS
# A norm bound that is nothing beside the noise would make sigma^2/c overflow.
LARGEST_RIDGE = 1e200
# So that millions of observations do not take memory; the sums are the same.
LOSSES_AT_ONCE = 50_000
NONE_MADE = Forecasts(np.empty(0), np.empty(0))


class ConfidenceSet(CopiedWhole):
    """All that a bound may look at: observations, assumptions, and the radius R_t.

    ====================  ===============  ====================================================
    code                  paper            meaning
    ====================  ===============  ====================================================
    ``assumptions``       B, sigma, ..     see :class:`Assumptions`
    ``count``             t                the number of observations
    ``points``            x_1 .. x_t       where they were made, (t, d)
    ``outcomes``          y_t              what was observed, (t,), less the offset, and times the
                                           weight of each
    ``weights``           w_t              sigma / sigma_s of each observation, (t,)
    ``reference_ridge``   sigma^2/c        the ridge of the paper's settings
    ``radius``            R_t              ``radius.squared`` is R_t^2, see :class:`Radius`
    ``prior(x)``          k(x,x)           at m points, (m,)
    ``trivial(x)``        B sqrt(k(x,x))   what |f*(x)| never exceeds, but for the offset, (m,)
    ``predict(x, a)``     mu, rho^2, E     at m points and g ridges
    ====================  ===============  ====================================================

    Of an observation with a noise scale of its own, w (y - offset) is one of w (f* - offset) with
    noise of scale sigma: in predictions and energies, w_s k(., x_s) takes the place of k(., x_s).

    Where f* has parts, R_t comes from the kernel with equal shares (``base``), and all else from
    one with shares that suit the points (``engine``). What R_t bounds is the noise, whatever the
    kernel, and the shares of ``base`` do not look ahead.

    ``lock`` is held while a bound looks, while observations are added and while a copy is made, so
    that sequences may be used from several threads.

    Examples
    --------
    It is what ``extremes`` of a bound gets, and also ``known`` of a confidence sequence:

    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.2], [0.8]], [0.1, 0.9])
    >>> known = seq.known
    >>> known.count, known.trivial(np.array([[0.5]])).tolist()
    (2, [2.0])
    >>> known.predict(np.array([[0.5]]), ridges=np.array([0.1, 1.0])).mean.shape
    (2, 1)
    """

    def __init__(
        self,
        engine: Engine,
        assumptions: Assumptions,
        forecasts: Forecasts | None = None,
        parts: Parts | None = None,
        offset: Offset | None = None,
    ) -> None:
        self.base, self.assumptions = engine, assumptions
        self.parts, self.offset = parts, offset or Offset()
        # What c, and other settings that are valid whatever they are, were chosen for.
        self.chosen_for = assumptions
        self.apart = False  # whether it is one of :meth:`believing`, on data that do not grow
        self._keeps_shares = False  # see :meth:`keep_shares`
        self._lock = threading.RLock()
        self._shares: tuple[float, ...] = ()  # of the parts, in ``engine``
        self._shared, self._decided_by = engine, 0  # that engine, and the points that decided
        self._radius: tuple[int, Radius] | None = None  # with the count that it is of
        self._forecasts = forecasts or NONE_MADE
        self._sums: tuple[int, Array | float] = 0, 0.0  # of losses, with the count they are of

    @property
    def lock(self) -> threading.RLock:
        """It is the object's own; copies have others."""
        return self._lock

    def __setstate__(self, parts: dict[str, Any]) -> None:
        vars(self).update(parts)
        self._lock = threading.RLock()

    def _parts(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def at_delta(self, delta: float) -> ConfidenceSet:
        """The same with another delta, for a bound that shares its own among several; to be read.

        Paths, fits and forecasts are shared, so that they are computed once.
        """
        # Before the copy: R_t makes the forecasts, and the engine its shares.
        _, _ = self.radius, self.engine
        other = copy.copy(self)
        other.assumptions, other._radius = dataclasses.replace(self.assumptions, delta=delta), None
        return other

    def append(self, points: Array, outcomes: Array, noise_scales: Array | None = None) -> None:
        """Add observations, with noise scales of their own (n,) or that of the assumptions."""
        with self.lock:
            self.append_to(self.base, points, outcomes, noise_scales)

    def append_to(
        self, engine: Engine, points: Array, outcomes: Array, noise_scales: Array | None
    ) -> None:
        """:meth:`append` with another engine in the place of ``base``, which stays as it is."""
        engine.append(points, self.told(points, outcomes, noise_scales))

    def told(self, points: Array, outcomes: Array, noise_scales: Array | None) -> Outcomes:
        """Outcomes as an engine takes them, with noise scales of their own or the usual one."""
        weights = np.ones(len(points))
        if noise_scales is not None:
            weights = self.assumptions.noise_scale / noise_scales
        return self.weighed(points, outcomes, weights)

    def weighed(self, points: Array, outcomes: Array, weights: Array) -> Outcomes:
        """The same with weights in place of noise scales."""
        known = self.mean(points)
        return Outcomes(outcomes, outcomes if known is None else outcomes - known.values, weights)

    @property
    def engine(self) -> Engine:
        """Kernel ridge regression on the observations, with shares that suit the points."""
        data = self.base.data
        if self.parts is None or not self.base.keeps_observations:
            return self.base
        n = self._decided_by if self._keeps_shares else count_for_shares(data.count)
        if n != self._decided_by or not self._shares:
            self._shares, self._decided_by = self.parts.equal_shares, n
            self._shared = self.base
            if n:
                # Of these points alone, whenever that is asked for.
                points, weights = data.points[:n], data.weights[:n]
                trace = float((kernels.diagonal(data.kernel, points) * weights**2).sum())
                ridge = n * self.assumptions.misfit**2 + LEAST_RIDGE * max(trace, 1e-100)
                self._shares = self.parts.shares(points, weights, ridge, LEAST_RIDGE)
                self._shared = Engine(self.parts.kernel(self._shares))
        new = slice(self._shared.data.count, None)
        if len(observed := data.observed[new]):
            points = data.points[new]
            self._shared.append(points, self.weighed(points, observed, data.weights[new]))
        return self._shared

    def keep_shares(self) -> None:
        """Let the observations so far decide on the shares of the parts, and later ones not.

        So the space in which f* has norm at most 1 stays the same, whatever is added.
        """
        _ = self.engine  # which decides
        self._keeps_shares = True

    def seen_by(self, holds_for_any_shares: bool) -> ConfidenceSet:
        """What a bound may look at: all of this, if it is valid whatever the shares of the parts.

        A bound by a log-determinant speaks of the noise as the features of one kernel see it, which
        must be fixed in advance. It sees that of ``base`` in all.
        """
        return self if holds_for_any_shares or self.parts is None else _WithEqualShares(self)

    @property
    def shares(self) -> tuple[float, ...]:
        """Those of the parts of f* in ``engine``; none where it has no parts."""
        return self._shares if self.engine is self._shared else ()

    @property
    def kernel(self) -> Kernel:
        """The kernel; that of ``engine`` where f* has parts."""
        return self.engine.data.kernel

    @property
    def count(self) -> int:
        """t."""
        return self.base.data.count

    @property
    def points(self) -> Array:
        """x_1 .. x_t, (t, d)."""
        return self.base.data.points

    @property
    def outcomes(self) -> Array:
        """y_t, (t,), less the offset, and times the weights."""
        return self.base.data.outcomes

    @property
    def weights(self) -> Array:
        """sigma / sigma_s, (t,)."""
        return self.base.data.weights

    @property
    def observed(self) -> Array:
        """The outcomes as they were told, (t,)."""
        return self.base.data.observed

    def mean(self, points: Targets) -> Level | None:
        """What is known of the level at points, or of functionals; None where it is 0."""
        if self.offset.constant == 0:
            return None
        if isinstance(points, Functionals):
            return points.of_mean(self.offset)
        return Level(self.offset.at(points))

    def level(self, points: Targets) -> Level | None:
        """What f* is beside the function that is bounded: the level, and h where it is g + h."""
        mean, most = self.mean(points), self.assumptions.misspecification
        if not most:
            return mean
        times = points.amplification() if isinstance(points, Functionals) else 1.0
        return (mean or Level(np.zeros(len(points)))).within(most * times)

    def constant_level(self, *, of_differences: bool = False) -> Level | None:
        """:meth:`level` where it is the same at all points, or for all differences."""
        constant, most = self.offset.constant or 0.0, self.assumptions.misspecification
        if of_differences:
            constant, most = 0.0, 2 * most
        return Level(np.array(constant), most) if constant or most else None

    @property
    def mixture_scale(self) -> float:
        """c, which stays as it is where another norm bound is believed."""
        return self.chosen_for.mixture_scale

    @property
    def reference_ridge(self) -> float:
        """sigma^2/c; without noise epsilon^2/c, with epsilon = ``misspecification``.

        Without either, it is the smallest ridge that double precision can tell from 0.
        """
        a = self.assumptions
        scale = a.noise_scale or a.misspecification
        if scale == 0:
            return self._finest_ridge
        return min(scale**2 / max(self.mixture_scale, 1e-300), LARGEST_RIDGE)

    @property
    def _finest_ridge(self) -> float:
        """The smallest ridge that double precision can tell from 0."""
        return LEAST_RIDGE * max(self.base.data.trace, 1e-100)

    @property
    def radius(self) -> Radius:
        """R_t of the observations so far, computed once for each number of them.

        Where f* = g + h with |h| <= epsilon, ||g_t - y_t|| <= R_t + epsilon ||w_t||, and that
        takes the place of R_t.
        """
        if self._radius is None or self._radius[0] != self.count:
            a, parts = self.assumptions, (0.0, 0.0)
            if a.noise_scale > 0:
                scale, losses = self._scale_and_losses()
                parts = a.mixture.squared_radius(
                    self.base, self.reference_ridge, scale, a.delta, losses
                )
            radius = Radius(*parts, a.norm_bound)
            if a.misspecification and self.count:
                radius = radius.enlarged(self._most_misspecified)
            self._radius = self.count, radius
        return self._radius[1]

    @property
    def _most_misspecified(self) -> float:
        """epsilon ||w_t||, rounded up."""
        length = math.sqrt(self.base.data.squared_weights) * (1 + self.count * EPS)
        return self.assumptions.misspecification * length

    def believing(
        self, *, norm_bound: float | None = None, noise_scale: float | None = None
    ) -> ConfidenceSet:
        """The observations so far under another B or sigma, with all settings as they were chosen.

        So c stays, and with it R_t and the reference ridge where only B is another one; and so do
        the directions and weights of a fixed design, which look at ``chosen_for``.
        Noise scales of single observations are multiplied by what multiplies sigma, so that their
        weights stay, and parts keep their shares. What is believed after that shares the work on
        the kernel matrix, which is the same: start from ``believing()`` to ask for several.
        """
        a, other = self.assumptions, copy.copy(self)
        other.assumptions = dataclasses.replace(
            a,
            norm_bound=a.norm_bound if norm_bound is None else norm_bound,
            noise_scale=a.noise_scale if noise_scale is None else noise_scale,
        )
        if not self.apart:  # engines of its own, whose fits do not crowd out ours
            shared, base = self.engine, self.base.snapshot()
            other.base, other._shared = base, base if shared is self.base else shared.snapshot()
            other.apart = True
        if noise_scale in (None, a.noise_scale):
            other._radius = (
                self.count,
                dataclasses.replace(self.radius, norm_bound=other.assumptions.norm_bound),
            )
            return other
        other._radius, other._sums = None, (0, 0.0)
        other._forecasts = NONE_MADE if a.mixture.forecasts_need_noise_scale else self.forecasts()
        return other

    def outcome_free(self) -> tuple[float, float]:
        """P and a ridge from which on R_t^2 <= E_alpha + P, whatever the outcomes are.

        P is infinite where nothing is known. Where f* has parts, R_t is made of the kernel with
        equal shares s, and E_alpha of another. That one is at most max_i s / s_i times the first,
        and so are ridges at which its energy is no less.
        """
        a = self.assumptions
        if a.noise_scale == 0:
            return 0.0, self.reference_ridge
        found, least = a.mixture.penalty(self.base, self.reference_ridge, a.noise_scale, a.delta)
        if self.parts is None or not (shares := self.shares):
            return found, least
        return found, least * max(map(operator.truediv, self.parts.equal_shares, shares))

    def forecasts(self) -> Forecasts:
        """Those of the mixture, of all outcomes so far; each is made once, and kept as it was."""
        a = self.assumptions
        if a.noise_scale == 0 and a.mixture.forecasts_need_noise_scale:
            return self._forecasts
        if not self.base.keeps_observations:  # which has added up what they cost
            return self._forecasts
        while (made := len(self._forecasts.errors)) < self.count:
            new = a.mixture.forecasts(self.base, self.reference_ridge, a.noise_scale, made)
            if not len(new.errors):
                break
            # The first as they are, without another copy of those of millions of observations.
            self._forecasts = Forecasts(*map(np.append, self._forecasts, new)) if made else new
        return self._forecasts

    def _scale_and_losses(self) -> tuple[float, Array]:
        """sigma and the sums of losses; of a sparse engine, at the next larger sigma it has."""
        noise_scale = self.assumptions.noise_scale
        if self.base.keeps_observations:
            return noise_scale, self._losses()
        return cast(SparseEngine, self.base).losses_at(noise_scale)

    def _losses(self) -> Array:
        """Sums of what the forecasts cost, in the order of the rounds, however they were added."""
        forecasts, (count, sums) = self.forecasts(), self._sums
        if self.count and not len(forecasts.errors):  # a mixture without
            return np.empty(0)
        if count < self.count or not count:
            a = self.assumptions
            first_block = self.base.blocks_from if self.base.keeps_observations else None
            for start in range(count, max(self.count, 1), LOSSES_AT_ONCE):
                new = Forecasts(*(part[start : start + LOSSES_AT_ONCE] for part in forecasts))
                losses = a.mixture.losses(new, a.noise_scale)
                if first_block is not None and a.mixture.joint:
                    losses[max(first_block - start, 0) :, list(a.mixture.joint)] = 0.0
                first = np.zeros((1, losses.shape[1])) + sums
                sums = np.cumsum(np.concatenate([first, losses]), axis=0)[-1]
            self._sums = self.count, sums
        return np.asarray(sums)

    @property
    def forecasts_made(self) -> Forecasts:
        """Those that were made already; a forecaster that fails does not take them away."""
        return self._forecasts

    def prior(self, points: Targets) -> Array:
        """k(x,x) at points (m, d), or |r|^2 of functionals <f, r>, rounded up; (m,)."""
        if not isinstance(points, Functionals):
            return kernels.diagonal(self.kernel, points)
        return squared_norms(self.kernel, points, self.engine.data.accuracy_in(points.dim))

    def trivial(self, points: Targets) -> Array:
        """B sqrt(k(x,x)), which bounds |f*(x)|, less its :meth:`level`, by Cauchy-Schwarz; (m,)."""
        return np.asarray(self.assumptions.norm_bound * np.sqrt(self.prior(points)))

    def predict(self, points: Targets, ridges: Array) -> Predictions:
        """Mean (g, m), variance (g, m), rounded up, and energy (g,), rounded down, at g ridges."""
        return self.engine.predict(points, ridges)

    def energy_and_log_det(self, ridge: float) -> tuple[float, float]:
        """E_alpha = y' (I + K/alpha)^-1 y and ln det(I + K/alpha), both rounded up."""
        return self.engine.energy_and_log_det(ridge)

    def within_spans(self) -> Iterator[ConfidenceSet]:
        """What is known of functions in the span of a sparse engine's inducing points alone.

        Each of these functions is in the confidence set of an exact engine with this R_t.
        """
        for engine, away in cast(SparseEngine, self.base).within_spans():
            radius = math.sqrt(self.radius.squared) - self.assumptions.norm_bound * away
            if radius > 0:
                other = copy.copy(self)
                other.base = other._shared = cast(Engine, engine)
                other._radius = self.count, Radius(0.0, radius**2, self.assumptions.norm_bound)
                yield other

    @property
    def norm_lower_bound(self) -> float:
        """B_min: with probability at least 1 - delta it is at most ||f*|| at all times at once."""
        if not self.count:
            return 0.0
        return least_norm(self.engine.path(), self.radius.squared, self.base.data.scatter)

    @property
    def noise_lower_bound(self) -> float:
        """The smallest noise scale under which some function of norm at most B fits the data.

        With probability at least 1 - delta it is at most the true sigma, if B and the kernel are
        right. It is the last one, on a grid of steps of one percent, below the first with an R_t
        that leaves a function.
        """
        a = self.assumptions
        least = least_squared_radius(self.engine.path(), a.norm_bound) if self.count else 0.0
        # The noise has to explain what misspecification does not of the least misfit.
        energy = max(math.sqrt(least) - self._most_misspecified, 0.0) ** 2
        if energy == 0:
            return 0.0
        self.forecasts()  # which those below share, where they do not depend on sigma
        now = self.believing()

        def admissible(noise_scale: float) -> bool:
            return now.believing(noise_scale=noise_scale).radius.squared >= least

        # The grid is fixed by what was assumed, and has its unit.
        anchor = a.noise_scale or a.norm_bound or 1.0
        return least_noise(admissible, certain_noise(energy, self.count, a.delta), anchor)

    def refute_if_empty(self) -> None:
        """Raise :class:`EmptyConfidenceSetError` when B_min > B."""
        a, least = self.assumptions, self.norm_lower_bound
        if least > a.norm_bound:
            raise EmptyConfidenceSetError(
                a.norm_bound, a.noise_scale, least, self.noise_lower_bound, self.parts is not None
            )


class _WithEqualShares(ConfidenceSet):
    """What is known, with the kernel of ``base``; R_t and all else is that of the whole."""

    def __init__(self, whole: ConfidenceSet) -> None:
        vars(self).update(vars(whole))
        self._whole = whole

    @property
    def engine(self) -> Engine:
        """Kernel ridge regression with equal shares."""
        return self.base

    @property
    def shares(self) -> tuple[float, ...]:
        """They never change."""
        return ()

    @property
    def radius(self) -> Radius:
        """R_t."""
        return self._whole.radius

    def forecasts(self) -> Forecasts:
        """Each is made once, for the whole."""
        return self._whole.forecasts()

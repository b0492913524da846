"""The confidence set: what a bound looks at."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import EPS, Array
from kernelbounds.confidence.assumptions import Assumptions
from kernelbounds.confidence.evidence import LEAST_RIDGE, Evidence
from kernelbounds.confidence.radius import Radius
from kernelbounds.engine import Engine, ExactEngine, Forecasts, Predictions
from kernelbounds.engine.base import DataView
from kernelbounds.errors import InputError
from kernelbounds.facts import Fact, Region
from kernelbounds.facts.limits import NearOutcomes
from kernelbounds.functionals.targets import Functionals, Targets, squared_norms
from kernelbounds.mixtures.ledger import LossLedger
from kernelbounds.noise import Gaussian
from kernelbounds.noise.gaussian import ScaleAtMost
from kernelbounds.noise.law import SMALLEST_NOISE, RadiusInputs
from kernelbounds.structure.offset import Level

# A norm bound that is nothing beside the noise would make sigma^2/c overflow.
LARGEST_RIDGE = 1e200


@dataclass(frozen=True, eq=False, repr=False)
class ConfidenceSet:
    """All that a bound may look at: observations, assumptions, and the radius R_t.

    It stands for the functions f with norm at most B and ||f_t - y_t|| <= R_t (Lemma 4.2). Another
    delta, B or sigma makes another confidence set on the same evidence.

    ====================  ===============  ====================================================
    code                  paper            meaning
    ====================  ===============  ====================================================
    ``assumptions``       B, sigma, ..     see :class:`Assumptions`
    ``count``             t                the number of observations
    ``points``            x_1 .. x_t       where they were made, (t, d)
    ``outcomes``          y_t              what was observed, (t,), less the offset, and times the
                                           weight of each
    ``weights``           w_t              sigma / sigma_s of each observation, (t,)
    ``data.whitening``    M                with the weights on its diagonal; where noise is
                                           correlated, ``weights`` are refused, and M takes
                                           their place
    ``reference_ridge``   sigma^2/c        the ridge of the paper's settings
    ``radius``            R_t              ``radius.squared`` is R_t^2, see :class:`Radius`
    ``prior(x)``          k(x,x)           at m points, (m,)
    ``trivial(x)``        B sqrt(k(x,x))   what |f*(x)| never exceeds, but for the offset, (m,)
    ``predict(x, a)``     mu, rho^2, E     at m points and g ridges
    ====================  ===============  ====================================================

    Of an observation with a noise scale of its own, w (y - offset) is one of w (f* - offset) with
    noise of scale sigma: in predictions and energies, w_s k(., x_s) takes the place of k(., x_s).

    Examples
    --------
    A bound's ``extremes`` is given a confidence set, and a confidence sequence has the present one:

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

    evidence: Evidence
    stated: Assumptions  # as the user stated them; ``assumptions`` are those in force
    # The assumptions that c and the settings of a fixed design were chosen for; None: ``stated``.
    settings_for: Assumptions | None = None
    equal_shares: bool = False  # whether parts have equal shares in all, and not in R_t alone
    own_radius: Radius | None = None  # in place of the R_t that the evidence gives
    stated_facts: tuple[Fact, ...] = ()  # what users know of f* besides its norm
    uses_facts: bool = True
    region: Region | None = None  # where facts without a region of their own are used

    def __repr__(self) -> str:
        a = self.stated
        return (
            f"ConfidenceSet(norm_bound={a.norm_bound:g}, noise_scale={a.noise_scale:g}, "
            f"delta={a.delta:g}) of {self.count} observations"
        )

    @property
    def assumptions(self) -> Assumptions:
        """The assumptions with the numbers that are in force.

        As a rule they are those that were stated. Where the noise scale is unknown, half of delta
        is spent on a bound sigma_max, and sigma is at most that with the other half.
        """
        a = self.stated
        if not isinstance(a.noise, Gaussian) or a.noise.scale_is_stated:
            return a
        return self.evidence.kept(("in force", a), self._in_force)

    def _in_force(self) -> Assumptions:
        a = self.stated
        assert isinstance(a.noise, Gaussian)
        most = math.inf if a.noise.at_most is None else a.noise.at_most
        found = self.evidence.scale_forecasts.upper_bound(a.delta / 2)
        noise = ScaleAtMost(min(found, most), found)
        return dataclasses.replace(a, noise_scale=noise.scale, noise=noise, delta=a.delta / 2)

    @property
    def chosen_for(self) -> Assumptions:
        """The assumptions for which c, directions and weights of fixed designs were chosen.

        These choices must not depend on outcomes. Where the noise scale is unknown, they are made
        for the largest one that is possible or else for sqrt(c), whose ridge is 1.
        """
        a = self.settings_for or self.stated
        if not isinstance(a.noise, Gaussian) or a.noise.scale_is_stated:
            return a
        typical = math.sqrt(max(a.mixture_scale, SMALLEST_NOISE**2))
        noise = Gaussian(a.noise.at_most or typical)
        return dataclasses.replace(a, noise_scale=noise.scale, noise=noise)

    @property
    def facts(self) -> tuple[Fact, ...]:
        """What is known of f*: the facts that were stated, and what each outcome says for certain.

        See :class:`~kernelbounds.noise.Bounded`.
        """
        a = self.assumptions
        if not self.uses_facts:
            return ()
        limit = a.noise.limit_of_each(a.delta)
        keeps_outcomes = isinstance(self.radius_engine, ExactEngine)
        if limit is None or not self.count or not keeps_outcomes:
            return self.stated_facts
        key = "near outcomes", a.noise_scale
        return (*self.stated_facts, self.evidence.kept(key, self._near_outcomes))

    def without_facts(self) -> ConfidenceSet:
        """The confidence set of the data and the norm bound alone."""
        return dataclasses.replace(self, uses_facts=False)

    def _near_outcomes(self) -> Fact:
        data = self.data
        limit = self.assumptions.noise_scale / data.weights
        return NearOutcomes.of(data.points, data.observed, limit)

    def in_classes(self) -> list[ConfidenceSet]:
        """The confidence sets in each of several classes, all with the same R_t."""
        a, radius = self.assumptions, self.radius
        return [
            dataclasses.replace(
                self,
                evidence=evidence,
                stated=dataclasses.replace(a, norm_bound=a.norm_bound * norm),
                settings_for=self.chosen_for,
                own_radius=dataclasses.replace(radius, norm_bound=a.norm_bound * norm),
            )
            for evidence, norm in self.evidence.in_balls()
        ]

    @property
    def engine(self) -> Engine:
        """Kernel ridge regression on the observations, for all but R_t."""
        if self.equal_shares:
            return self.radius_engine
        return self.evidence.engine(self.chosen_for.misfit)

    @property
    def radius_engine(self) -> Engine:
        """Kernel ridge regression by which R_t is made; parts have equal shares there."""
        return self.evidence.radius_engine

    def with_fixed_shares(self) -> ConfidenceSet:
        """The confidence set in the kernel that R_t is made with, whose parts have equal shares.

        Bounds by a log-determinant need it: they hold for the features of one kernel, which must
        be fixed in advance.
        """
        if self.evidence.parts is None:
            return self
        return dataclasses.replace(self, equal_shares=True)

    @property
    def shares(self) -> tuple[float, ...]:
        """The shares of the parts of f* in ``engine``; none where they never change."""
        return () if self.equal_shares else self.evidence.shares(self.chosen_for.misfit)

    @property
    def kernel(self) -> Kernel:
        """The kernel; that of ``engine`` where f* has parts."""
        return self.engine.data.kernel

    @property
    def data(self) -> DataView:
        """The observations as the engine keeps them, such as ``whitening`` and ``observed``."""
        return self.radius_engine.data

    @property
    def count(self) -> int:
        """The number of observations, t."""
        return self.data.count

    @property
    def points(self) -> Array:
        """The points x_1 .. x_t, (t, d)."""
        return self.data.points

    @property
    def outcomes(self) -> Array:
        """The outcomes less the offset, times the weights or M; (t,).

        ``ConfidenceSequence.outcomes`` are as they were passed: those are ``data.observed`` here.
        """
        return self.data.outcomes

    @property
    def weights(self) -> Array:
        """The weights sigma / sigma_s, (t,); refused where noise is correlated."""
        if self.data.whitening.blocks:
            raise InputError(
                "some of these observations have correlated noise, which weights do not tell; "
                "known.predict allows for it, and known.data.whitening is what takes their place."
            )
        return self.data.weights

    def level(self, points: Targets) -> Level | None:
        """The part of f* beside the function that is bounded: the level, and h where f* = g + h."""
        mean, most = self.evidence.known_level(points), self.assumptions.misspecification
        if not most:
            return mean
        times = points.amplification() if isinstance(points, Functionals) else 1.0
        return (mean or Level(np.zeros(len(points)))).within(most * times)

    @property
    def reference_ridge(self) -> float:
        """sigma^2/c; without noise epsilon^2/c, with epsilon = ``misspecification``.

        Without either, it is the smallest ridge that double precision can tell from 0.
        """
        a = self.assumptions
        scale = a.noise_scale or a.misspecification
        if scale == 0:
            return self._finest_ridge
        if math.isinf(scale):  # too few outcomes to tell
            scale = self.chosen_for.noise_scale
        return min(scale**2 / max(self.chosen_for.mixture_scale, 1e-300), LARGEST_RIDGE)

    @property
    def _finest_ridge(self) -> float:
        """The smallest ridge that double precision can tell from 0."""
        return LEAST_RIDGE * max(self.data.trace, 1e-100)

    @property
    def radius(self) -> Radius:
        """The radius R_t of the data constraint, from the observations so far.

        Where f* = g + h with |h| <= epsilon, ||g_t - y_t|| <= R_t + epsilon ||w_t||, and that
        takes the place of R_t. Where noise is correlated, at least ||M h_t|| / epsilon is in the
        place of ||w_t||.
        """
        if self.own_radius is not None:
            return self.own_radius
        a = self.assumptions
        key = a.norm_bound, a.noise, a.delta, a.misspecification, self.chosen_for.mixture_scale
        return self.evidence.kept(key, self._radius)

    def _radius(self) -> Radius:
        a, engine = self.assumptions, self.radius_engine
        forecasts = None if a.noise.scale_is_stated else self.evidence.scale_forecasts
        terms = a.noise.squared_radius(
            RadiusInputs(
                a.mixture, engine, self.evidence.ledger, forecasts, self.chosen_for.mixture_scale,
                self.reference_ridge, a.delta, self._most_noise_energy,
            )
        )  # fmt: skip
        radius = Radius(*terms, a.norm_bound)
        if a.misspecification and self.count:
            radius = radius.enlarged(self.most_misspecified)
        return radius

    @property
    def _most_noise_energy(self) -> float:
        """(|y_t| + B sqrt(tr K))^2, rounded up: no f of norm B is farther from the outcomes.

        It stands in for R_t^2 while the noise scale is infinite; otherwise it is not needed, and
        infinite itself.
        """
        data, a = self.data, self.assumptions
        if math.isfinite(a.noise_scale):
            return math.inf
        length = float(np.linalg.norm(data.outcomes)) + a.norm_bound * math.sqrt(data.trace)
        return length**2 * (1 + (16 + data.count) * data.accuracy)

    @property
    def most_misspecified(self) -> float:
        """epsilon ||w_t||, rounded up."""
        length = math.sqrt(self.data.squared_weights) * (1 + self.count * EPS)
        return self.assumptions.misspecification * length

    def assuming(
        self, *, norm_bound: float | None = None, noise_scale: float | None = None
    ) -> ConfidenceSet:
        """The confidence set under another B or sigma, with all settings as they were chosen.

        So c stays; where only B changes and sigma is known, so do R_t and the reference ridge. The
        directions and weights of a fixed design stay too, as they look at ``chosen_for``.
        Noise scales of single observations are multiplied by what multiplies sigma, so that their
        weights stay, and parts keep their shares. What is assumed after that shares the work on
        the kernel matrix, which is the same: start from ``assuming()`` to ask for several.
        """
        a, evidence = self.assumptions, self.evidence
        if evidence.growing:
            _ = self.engine  # This decides on the shares.
            evidence = evidence.snapshot()
        other = dataclasses.replace(
            a,
            norm_bound=a.norm_bound if norm_bound is None else norm_bound,
            noise_scale=a.noise_scale if noise_scale is None else noise_scale,
        )
        radius = None
        if other.noise_scale == a.noise_scale and math.isfinite(a.noise_scale):
            radius = dataclasses.replace(self.radius, norm_bound=other.norm_bound)
        elif math.isfinite(other.noise_scale):  # else R_t follows from B and the outcomes alone
            made = None if a.mixture.forecasts_need_noise_scale else self.forecasts()
            evidence = evidence.with_ledger(LossLedger(made))
        return dataclasses.replace(
            self,
            evidence=evidence,
            stated=other,
            settings_for=self.chosen_for,
            own_radius=radius,
        )

    def forecasts(self) -> Forecasts:
        """The mixture's forecasts of all outcomes so far; each is made once, and kept.

        There are none where the noise scale is unknown: see ``Evidence.scale_forecasts``.
        """
        a = self.assumptions
        if not a.noise.scale_is_stated:
            return Forecasts(np.empty(0), np.empty(0))
        return self.evidence.ledger.forecasts(
            a.mixture, self.radius_engine, self.reference_ridge, a.noise_scale
        )

    def prior(self, points: Targets) -> Array:
        """k(x,x) at points (m, d), or |r|^2 of functionals <f, r>, rounded up; (m,)."""
        if not isinstance(points, Functionals):
            return kernels.diagonal(self.kernel, points)
        return squared_norms(self.kernel, points, self.engine.data.accuracy_in(points.dim))

    def trivial(self, points: Targets) -> Array:
        """B sqrt(k(x,x)), which bounds |f*(x)|, less its :meth:`level`, by Cauchy-Schwarz; (m,).

        It is rounded up, but where B and the root are so short that nothing is rounded.
        """
        norm_bound, prior = self.assumptions.norm_bound, self.prior(points)
        dim = points.dim if isinstance(points, Functionals) else points.shape[1]
        key = "room", dim, self.equal_shares
        room, has_known_formula = self.evidence.kept(key, lambda: self._room_of_roots(dim))
        if has_known_formula and len(prior) and (prior == prior[0]).all():
            room = 1.0 if _product_is_exact(norm_bound, prior[0]) else room
        return np.asarray(norm_bound * room * np.sqrt(prior))

    def _room_of_roots(self, dim: int) -> tuple[float, bool]:
        """Room for the errors of B sqrt(k(x,x)), and whether the formula of the kernel is known.

        Values are off by 4 accuracies at most, roots by half of that, and then both are rounded.
        """
        known = kernels.evaluation_error(self.kernel, dim) is not None
        return 1 + 4 * self.engine.data.accuracy_in(dim), known

    def predict(self, points: Targets, ridges: Array) -> Predictions:
        """Mean (g, m), variance (g, m), rounded up, and energy (g,), rounded down, at g ridges."""
        return self.engine.predict(points, ridges)

    def energy_below(self, ridge: float) -> float:
        """E_alpha = y' (I + K/alpha)^-1 y, rounded down."""
        return self.engine.energy_below(ridge)

    def energy_above(self, ridge: float) -> float:
        """E_alpha, rounded up."""
        return self.engine.energy_above(ridge)

    def log_det_above(self, ridge: float) -> float:
        """ln det(I + K/alpha), rounded up."""
        return self.engine.log_det_above(ridge)


def _product_is_exact(norm_bound: float, prior: float) -> bool:
    """Whether B sqrt(k(x,x)) is not rounded: of two numbers with few digits, products are exact."""
    root = math.sqrt(prior)
    digits = math.frexp(norm_bound)[0], math.frexp(root)[0]
    return root * root == prior and all(float(np.float32(one)) == one for one in digits)

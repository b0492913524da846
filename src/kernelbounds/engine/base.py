"""The engine: kernel ridge regression on the observations so far, behind one interface.

A bound asks for means, variances and energies, and never meets a factor of the kernel matrix (but
for the cone program of CMM, a check). Two engines implement the interface:
:class:`~.exact.ExactEngine` keeps all observations and the kernel matrix K, and
:class:`~.sparse.SparseEngine` keeps sums of fixed size.

=====================  ===================================  ============================
method                 paper                                rounding
=====================  ===================================  ============================
``predict``, mean      mu_alpha(x), Eq. (2)                 neither way
``predict``, variance  rho_alpha^2(x), Eq. (3)              up
``energy_below``       E_alpha = y' (I + K/alpha)^-1 y      down
``energy_above``       E_alpha                              up
``log_det_above``      l_alpha = ln det(I + K/alpha)        up
=====================  ===================================  ============================

Means, variances and ``energy_below`` are those of a matrix K' that is at least K in the positive
semi-definite order: K itself and room for rounding errors, and with inducing points what those do
not see. Every bound from K' is valid, and only looser (``docs/mathematics/rounding.md``).
``energy_above`` and ``log_det_above`` are those of K itself, for R_t. Means are not rounded to one
side: CMM does without them (``PathQuery.unexplained``), and for DMM and AMM it is measured, not
proved, that the room in variances and energies is enough (``docs/mathematics/claims.md``,
Rounding).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import Array
from kernelbounds.engine.observations import Outcomes
from kernelbounds.engine.path_query import PathQuery, Predictions
from kernelbounds.engine.ridge_path import RidgePath
from kernelbounds.engine.whitening import Whitening
from kernelbounds.functionals.targets import Targets


class DataView(Protocol):
    """The observations so far, as far as an engine knows them.

    The properties ``points``, ``observed``, ``outcomes``, ``weights`` and ``whitening`` are for
    engines that keep the observations; others refuse them in one sentence.
    """

    @property
    def kernel(self) -> Kernel:
        """The kernel k."""

    @property
    def count(self) -> int:
        """The number of observations, t."""

    @property
    def dim(self) -> int | None:
        """The dimension of the points; None before the first one."""

    @property
    def trace(self) -> float:
        """The trace of the kernel matrix."""

    @property
    def squared_weights(self) -> float:
        """|w_t|^2 for the weights w_s = sigma / sigma_s; or as :class:`Whitening` has it."""

    @property
    def scatter(self) -> float:
        """The squared distance of outcomes at equal points from their means, rounded down."""

    @property
    def accuracy(self) -> float:
        """The relative error that is allowed for in the kernel's values: EPS or more."""

    @property
    def first_accuracy(self) -> float:
        """The accuracy that was assumed before any value was seen."""

    def accuracy_in(self, dim: int) -> float:
        """The accuracy for points of this dimension, also before the first one."""

    @property
    def points(self) -> Array:
        """The points x_1 .. x_t, (t, d)."""

    @property
    def observed(self) -> Array:
        """The outcomes as users passed them, (t,)."""

    @property
    def outcomes(self) -> Array:
        """M y: the outcomes less the known level, times their weights or their whitening, (t,)."""

    @property
    def weights(self) -> Array:
        """The weights w_s = sigma / sigma_s, (t,)."""

    @property
    def whitening(self) -> Whitening:
        """The matrix M, which is diag(w) unless noise is correlated."""


@dataclass(frozen=True)
class Approximation:
    """A measure of what the inducing points of a sparse engine do not see.

    Attributes
    ----------
    inducing : int
        The number of inducing points, m.
    floor : float
        (1 + s) rho: every ridge acts like one that is larger by this. Those that matter grow with
        the number of observations, like (R_t / B)^2.
    mean_residual : float
        k(x,x) - |phi(x)|^2, mean over the observations. At points like those, (1 + 1/s) times that
        is added to the variance. Compare with the square of a bound's half-width over B.
    can_grow : bool
        Whether there is room for more inducing points.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.3), norm_bound=3.0, noise_scale=0.1, engine=kb.Sparse())
    >>> seq.update(np.linspace(0, 1, 500)[:, None], np.zeros(500))
    >>> seq.approximation.inducing < 40, seq.approximation.mean_residual < 1e-6
    (True, True)
    """

    inducing: int
    floor: float
    mean_residual: float
    can_grow: bool


class Fits(NamedTuple):
    """E_alpha and ln det(I + K/alpha) at g ridges, (g,) each, and how many outcomes they are of.

    With a sparse engine K is the kernel matrix of the features; with an exact one of more than
    ``exact.FITTED_ROWS`` rows, that of some of the rows.
    """

    energies: Array
    log_dets: Array
    outcomes: float


class Directions(ABC):
    """The leading eigenvectors V of the kernel matrix, which depend on the points alone."""

    path: RidgePath  # whose leading columns are V

    @abstractmethod
    def query(self, path: RidgePath, points: Targets) -> PathQuery:
        """The answers of :meth:`Engine.query` along the directions of a path that V leads."""

    @abstractmethod
    def squared_norms(self, counts: NDArray[np.intp]) -> Array:
        """Upper bounds on the norm of V'V, for as many leading directions V as ``counts`` say."""


class Engine(ABC):
    """Kernel ridge regression on a growing sequence of observations, at any ridge.

    ``data`` is what the engine knows of the observations themselves: all of them (an exact engine
    has :class:`~.observations.Observations`), or sums (a sparse one). Engines know nothing of B,
    delta and R_t.
    """

    data: DataView

    @property
    @abstractmethod
    def dim(self) -> int | None:
        """The dimension of points that the engine takes; None where it takes any."""

    @property
    @abstractmethod
    def landmarks(self) -> Array:
        """Points near which something is known, for a search to start from, (n, d)."""

    @abstractmethod
    def approximation(self) -> Approximation | None:
        """How far K' is from K; None where they differ by rounding errors alone."""

    @property
    @abstractmethod
    def stage(self) -> tuple[int, Array]:
        """A number that changes when the kernel k' does, and sizes that bound its growth.

        Between two times of equal stage, k' between points of the earlier time is multiplied by at
        most the largest ratio of a size to what it was.
        """

    @abstractmethod
    def snapshot(self) -> Self:
        """Another engine on the observations so far, which appends to this one do not change."""

    @abstractmethod
    def append(self, points: Array, outcomes: Outcomes | Array) -> None:
        """Add observations; on an error nothing is added."""

    @abstractmethod
    def whole_blocks(self, count: int) -> int:
        """How many of ``count`` new observations fill whole blocks of the engine.

        Appended up to there, and then the others with those after them, they give the same numbers
        as all in one go.
        """

    @abstractmethod
    def path(self, finest: float = 0.0, finest_per_point: float = 0.0) -> RidgePath:
        """Kernel ridge regression along all ridges at once, with energies rounded down.

        The arguments say which ridges matter; see :class:`~.ridge_path.GrowingPath`.
        """

    @abstractmethod
    def query(
        self, points: Targets, finest: float = 0.0, finest_per_point: float = 0.0
    ) -> PathQuery:
        """A query for means, variances (rounded up) and energies (down) at points."""

    @abstractmethod
    def predict(self, points: Targets, ridges: Array) -> Predictions:
        """Mean (g, m), variance (g, m), rounded up, and energy (g,), rounded down."""

    def energy_below(self, ridge: float) -> float:
        """E_alpha, rounded down."""
        return float(self.path().energy(np.array([ridge]))[0])

    @abstractmethod
    def energy_above(self, ridge: float) -> float:
        """An upper bound on E_alpha of K itself; a sparse engine has |y|^2."""

    @abstractmethod
    def log_det_above(self, ridge: float) -> float:
        """An upper bound on ln det(I + K/alpha); a sparse engine has Hadamard's."""

    @abstractmethod
    def fits(self, ridges: Array) -> Fits:
        """How well the ridge estimates at g ridges fit, to choose a ridge by; not rounded."""

    @abstractmethod
    def ridge_weights(self, ridge: float) -> tuple[Array, Array]:
        """Centres z (n, d) and weights w (n,) of mu_alpha = sum_j w_j k(., z_j), Eq. (2)."""

    @abstractmethod
    def directions(self) -> Directions:
        """The leading eigenvectors, along which bounds for fixed designs are made."""

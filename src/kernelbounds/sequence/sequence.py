"""The confidence sequence: data in, anytime-valid bounds out."""

from __future__ import annotations

import copy
import dataclasses
import math
import threading
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import (
    EPS,
    Array,
    as_flag,
    as_observations,
    as_points,
    as_scalar,
    as_whole,
    brief,
)
from kernelbounds.bounds import CMM, Assumptions, Bound, ConfidenceSet, DualBound
from kernelbounds.bounds.with_facts import least_norm_with_facts
from kernelbounds.confidence.diagnosis import contains, noise_lower_bound, noise_upper_bound
from kernelbounds.display import cards
from kernelbounds.engine import (
    Approximation,
    NoiseBlock,
    with_single_observations,
)
from kernelbounds.errors import InputError
from kernelbounds.facts import Fact, Region
from kernelbounds.facts.fact import checked_facts
from kernelbounds.functionals import Functional
from kernelbounds.functionals.targets import Several
from kernelbounds.io.archive import Packed
from kernelbounds.kernels.rkhs import RKHSFunction
from kernelbounds.mixtures import Hybrid, Mixture, Single
from kernelbounds.noise import Noise
from kernelbounds.sequence import cluster, overview, sparse, storage, streaming
from kernelbounds.sequence.allowed_bounds import Looks, allowed_bound, checked_functionals
from kernelbounds.sequence.before_data import set_before_data, without_data
from kernelbounds.sequence.planning import Fillable, as_design, predicted_width
from kernelbounds.sequence.sensitivity import Sensitivity, conclusion
from kernelbounds.sequence.sparse import Observed, Sparse
from kernelbounds.structure.classes import Classes
from kernelbounds.structure.offset import Offset
from kernelbounds.structure.parts import Parts
from kernelbounds.surface import (
    Clipped,
    Frozen,
    Surface,
    binding_facts,
    estimate_gradients,
    estimate_with_bounds,
    extremes,
    freeze,
)


class ConfidenceSequence:
    """Upper and lower bounds on an unknown function that hold at all times and points at once.

    Assume that f* lies in the function space of ``kernel`` with norm at most B, and that each
    outcome is y = f*(x) + noise, where the noise is sigma-sub-Gaussian given its x and all
    observations that were added before. The points may be chosen adaptively, by any rule that looks
    only at observations that were added before, and outcomes must not be sorted or left out by
    their values. Then, with probability at least 1 - delta, lower(x) <= f*(x) <= upper(x) for every
    x after every number of observations.

    Parameters
    ----------
    kernel : scikit-learn kernel, or :class:`~kernelbounds.Parts`, AnyOf or AllOf
        Its hyperparameters are used as they stand.
    norm_bound : float
        B >= 0; not with Parts, AnyOf and AllOf, which have bounds of their own.
    noise_scale : float or one of :mod:`kernelbounds.noise`
        sigma >= 0; zero is the noiseless setting. ``kb.noise.Gaussian()`` is Gaussian noise of an
        unknown scale, ``Bounded(b)`` noise of at most b, ``Energy(g)`` noise of a limited energy.
    delta : float
        Failure probability in (0, 1]; 0 with Bounded and Energy, where nothing is random.
    mixture_scale : float, optional
        c > 0, short for ``mixture=kernelbounds.mixtures.Single(c)``, the paper's radius;
        :func:`kernelbounds.mixture_scale` gives its choice of c for a planned number of rounds.
    bound : CMM, DMM, AMM, AY or IGP, or a :class:`Bound` of your own
        The default for the methods below. CMM is exact for its confidence set, and so never wider
        than DMM and AMM; :class:`~kernelbounds.FixedDesign` is for points that were fixed before
        the outcomes.
    mixture : mixture, optional
        How the radius R_t is made, see :mod:`kernelbounds.mixtures`; None is ``Hybrid()``, as a
        rule the tightest.
    offset : Offset or float, optional
        What is known of the level of f*, see :class:`~kernelbounds.Offset`.
    misspecification : float, optional
        epsilon >= 0: f* is everywhere within epsilon of a function g in the space with norm at most
        B, see ``docs/how-to/how-wrong.md``; not for AY and IGP.
    facts : list of :mod:`kernelbounds.facts`, optional
        What is known of f* besides: limits, shape, values. They cost nothing in delta; one that is
        false voids the guarantee, unless the data happen to refute it. Only for a DualBound: CMM,
        DMM, AMM, AY and IGP.
    engine : Sparse, optional
        For more observations than fit into a kernel matrix, see :class:`~kernelbounds.Sparse`; with
        FixedDesign, and bounds whose :attr:`~kernelbounds.Bound.uses_only_radius` is True, as CMM.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.0], [1.0]], [0.3, -0.2])
    >>> lower, upper = seq.bounds([[0.5]])
    >>> bool(lower[0] < upper[0])
    True
    """

    def __init__(
        self,
        kernel: Kernel | Parts | Classes,
        norm_bound: float | None = None,
        noise_scale: float | Noise | None = None,
        delta: float = 0.01,
        mixture_scale: float | None = None,
        bound: Bound | None = None,
        *,
        mixture: Mixture | None = None,
        offset: Offset | float | None = None,
        misspecification: float = 0.0,
        facts: Sequence[Fact] | None = None,
        engine: Sparse | None = None,
    ) -> None:
        if mixture is not None and mixture_scale is not None:
            raise InputError("pass either mixture or mixture_scale, not both.")
        if mixture is None:
            mixture = Hybrid() if mixture_scale is None else Single(mixture_scale)
        known = set_before_data(
            kernel, norm_bound, noise_scale, delta, mixture, offset, misspecification, facts, engine
        )
        self._begin(known, CMM() if bound is None else bound)

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_"):
            raise AttributeError(
                f"{name} of a sequence cannot be set: its guarantee is for what was stated before "
                "the data; make another ConfidenceSequence, and update it with the points, "
                "outcomes and noise_scales of this one."
            )
        super().__setattr__(name, value)

    @classmethod
    def _of(cls, known: ConfidenceSet, bound: Bound) -> ConfidenceSequence:
        sequence = cls.__new__(cls)
        sequence._begin(known, bound)
        return sequence

    def _begin(self, known: ConfidenceSet, bound: Bound) -> None:
        self._known, self._bound = known, allowed_bound(bound, known)
        self._looks, self._inflation_watch = Looks(), sparse.InflationWatch()

    def __repr__(self) -> str:
        return overview.summary(self._known, self._bound)

    def _repr_html_(self) -> str:
        return cards.shown(self, lambda: overview.card(self._known, self._bound))

    def __len__(self) -> int:
        """The number of observations, t."""
        return self._known.count

    @property
    def dim(self) -> int | None:
        """The dimension d of the points; None before the first observation.

        It is known before where inducing points of a sparse engine or regions of facts are given.
        """
        known = self._known
        regions = [fact.region for fact in known.stated_facts] + [known.region]
        of_facts = [region.dim for region in regions if region is not None]
        return known.radius_engine.dim or (of_facts[0] if of_facts else None)

    @property
    def kernel(self) -> Kernel:
        """A copy of the kernel.

        Where f* has parts it is the kernel of their sum with equal shares, in which f*, less the
        level of the offset, has norm at most 1.
        """
        return copy.deepcopy(self._known.radius_engine.data.kernel)

    @property
    def parts(self) -> Parts | None:
        """The parts of f*, an unknown level among them; None where there is only one."""
        return self._known.evidence.parts

    @property
    def classes(self) -> Classes | None:
        """The AnyOf or AllOf that f* is in; None where there is one class only."""
        return self._known.evidence.classes

    @property
    def refuted_classes(self) -> list[int]:
        """The numbers, from 0, of the classes of AnyOf or AllOf that the data refute.

        With probability 1 - delta, f* is in none of them.
        """
        with self.lock:
            if self.classes is None:
                return []
            return [
                number
                for number, one in enumerate(self._known.in_classes())
                if least_norm_with_facts(one) > one.assumptions.norm_bound
            ]

    @property
    def offset(self) -> Offset:
        """The level of f*, as far as it is known."""
        return self._known.evidence.offset

    @property
    def facts(self) -> tuple[Fact, ...]:
        """What is known of f* besides the norm bound, see :mod:`kernelbounds.facts`."""
        return self._known.stated_facts

    def use_facts_in(self, region: Any) -> None:
        """Say in which box, or region, to use facts that hold everywhere.

        A policy says so of its domain. Until then it is the box that the observations span. Any
        choice is valid: it is about the places at which facts are used.
        """
        with self.lock:
            chosen = Region.checked(region)
            if chosen is not None:
                checked_facts(self.facts, chosen.dim)
                if self._known.radius_engine.dim not in (None, chosen.dim):
                    raise InputError(
                        f"the region has {chosen.dim} dimensions, but the points have {self.dim}."
                    )
            self._known = dataclasses.replace(self._known, region=chosen)

    @property
    def assumptions(self) -> Assumptions:
        """The values of norm_bound, noise_scale, delta, mixture and misspecification."""
        return self._known.stated

    @property
    def bound(self) -> Bound:
        """The bound that is used where a method is not given another."""
        return self._bound

    @property
    def points(self) -> Array:
        """The points observed so far, (t, d), in order."""
        with self.lock:
            return self._known.points.copy()

    @property
    def lock(self) -> threading.RLock:
        """The lock that each method takes; hold it to make several calls as one."""
        return self._known.evidence.lock

    @property
    def landmarks(self) -> Array:
        """Points near which something is known, (n, d), for a search to start from.

        They are the points observed or, with a sparse engine, the inducing points and the newest.
        """
        with self.lock:
            return self._known.radius_engine.landmarks.copy()

    @property
    def outcomes(self) -> Array:
        """The outcomes observed so far, (t,), in order."""
        with self.lock:
            return self._known.data.observed.copy()

    @property
    def noise_scales(self) -> Array:
        """The noise scale of each observation so far, (t,), in order.

        Where a covariance was given, they are the square roots of its diagonal.
        """
        with self.lock:
            return np.asarray(self.assumptions.noise.unit / self._known.data.whitening.weights)

    def update(
        self,
        X: ArrayLike,
        y: ArrayLike,
        noise_scale: ArrayLike | None = None,
        *,
        covariance: ArrayLike | None = None,
    ) -> None:
        """Add observations in the order they were made.

        Nothing is added when an error is raised, or on an interrupt.

        Parameters
        ----------
        X : array of shape (n, d)
            The points; one may also be given in the shape (d,), with a number as its outcome.
        y : array of shape (n,)
            The outcomes.
        noise_scale : float or array of shape (n,), optional
            The noise scale of these observations, where it is not that of the sequence; it must be
            known before the outcome is. With Energy, and with Gaussian noise of an unknown scale,
            these are ratios; with Bounded they are the limits of these observations, and the mean
            of several outcomes has the same limit as one.
        covariance : array of shape (n, n), optional
            W, where the noise of these observations is correlated, and independent of all before:
            their covariance matrix with ``noise.Gaussian(sigma)``, that matrix divided by the
            unknown sigma^2 with ``noise.Gaussian()``, and the W of eps' W^-1 eps with
            ``noise.Energy``, in the place of the squares' sum. All n points, and W, must be fixed
            before the first of these outcomes is known. Other laws refuse it.

        Examples
        --------
        >>> import kernelbounds as kb
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> seq = ConfidenceSequence(RBF(0.5), 2.0, noise_scale=kb.noise.Gaussian(0.1))
        >>> together = 0.1**2 * np.eye(3) + 0.5**2  # noise of 0.1 each, and one error for all
        >>> seq.update([[0.0], [0.5], [1.0]], [0.7, 0.9, 0.4], covariance=together)
        >>> seq.noise_scales.round(3).tolist()
        [0.51, 0.51, 0.51]
        """
        with self.lock:
            points, outcomes = as_observations(X, y, self.dim)
            if self.facts:
                checked_facts(self.facts, points.shape[1])
            if covariance is None:
                scales, block = (
                    self.assumptions.checked_noise_scales(noise_scale, len(points)),
                    None,
                )
            elif noise_scale is not None:
                raise InputError("pass either noise_scale or covariance, not both.")
            else:
                scales, block = self._checked_covariance(covariance, len(points))
            self.update_checked(points, outcomes, scales, block)

    def update_from(
        self,
        source: Any,
        inputs: Sequence[str],
        output: str,
        *,
        noise_scale: str | None = None,
        transform: Callable[[Array], ArrayLike] | None = None,
        batch: int = 50_000,
        progress: bool | None = None,
        client: Any = None,
    ) -> int:
        """Add the rows of files or of a table, a batch at a time, and return how many.

        With a :class:`~kernelbounds.Sparse` engine, data need not fit in memory. All rows are added
        or, on an error or an interrupt, none; what is not a number is refused with its place.

        Rows are taken in the order of the source. That must be the order in which they were
        observed; or any that does not depend on outcomes, if the points were fixed in advance and
        the noise is independent from row to row. See ``docs/how-to/large-data.md``.

        Parameters
        ----------
        source : path, list of paths, or table
            A CSV or Parquet file, a folder of them, or a list of those; anything with
            ``__arrow_c_stream__`` (pyarrow, Polars, DuckDB, pandas); or a Dask dataframe. All but
            CSV need the extra ``arrow``.
        inputs : list of str
            The columns that are the coordinates of points.
        output : str
            The column of outcomes.
        noise_scale : str, optional
            The column of noise scales, as for :meth:`update`; None: that of the sequence.
        transform : function, optional
            A function from inputs (n, k) to points (n, d), such as ``problem.scaled``.
        batch : int
            How many rows are in memory at a time; it makes no difference to bounds.
        progress : bool, optional
            Whether a bar is shown on standard error; None: on a terminal, after two seconds.
        client : distributed.Client, optional
            A Dask cluster whose workers share the work, with a sparse engine and the extra
            ``dask``. None: this machine, or the current client for a Dask dataframe.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "runs.csv"
        >>> _ = path.write_text("temperature,operator,yield\\n0.5,Ada,0.3\\n0.7,Bob,0.4\\n")
        >>> seq = ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
        >>> seq.update_from(path, inputs=["temperature"], output="yield")
        2
        """
        with self.lock:
            dim = self.dim
        shown = None if progress is None else as_flag(progress, "progress")
        given = streaming.intake(
            source, inputs, output, noise_scale, transform, batch, dim, self.assumptions
        )
        workers = cluster.client_for(client, given.source, self._known.radius_engine)
        if workers is None:
            added = streaming.add(self._known, given, shown)
        else:
            added = cluster.add(self._known, given, workers, shown)
        with self.lock:
            self._inflation_watch.look(self._known, stacklevel=3)
        return added

    def update_checked(
        self,
        points: Array,
        outcomes: Array,
        noise_scales: Array | None = None,
        block: NoiseBlock | None = None,
    ) -> None:
        """Add observations as :meth:`update` does, from arrays that were checked already."""
        known = self._known
        with known.evidence.lock:
            if known.radius_engine.approximation() is None:
                known.evidence.add(points, outcomes, noise_scales, block)
                return
            if len(points) > sparse.ROWS_PER_REPORT:
                sparse.append_with_progress(known, Observed(points, outcomes, noise_scales))
            else:
                known.evidence.add(points, outcomes, noise_scales)
            self._inflation_watch.look(known, stacklevel=4)

    def keep_noise_scale(self) -> None:
        """Take an unknown noise scale to be at most what the outcomes so far say, from now on.

        Where they say nothing yet, it is the one that settings were chosen for: bounds that are
        those without data would not tell one point from another. This is for copies that decide
        where to look next; no bound that is reported rests on it.
        """
        with self.lock:
            known = self._known
            told = math.isfinite(known.assumptions.noise_scale)
            self._known = dataclasses.replace(
                known,
                stated=known.assumptions if told else known.chosen_for,
                settings_for=known.chosen_for,
            )

    def _checked_covariance(self, given: ArrayLike, count: int) -> tuple[Array, NoiseBlock | None]:
        """The noise scales of observations, and their block where they are correlated."""
        scales, correlation = self.assumptions.checked_covariance(given, count)
        if correlation is None:
            return scales, None
        instead = "use a sequence without engine="
        with_single_observations(self._known.radius_engine, "covariance=", instead)
        return scales, NoiseBlock.of(correlation)

    @property
    def known(self) -> ConfidenceSet:
        """What bounds look at: the data, the assumptions and R_t.

        Hold :attr:`lock` while you use it, if other threads may add observations.
        """
        return self._known

    def bounds(self, X: ArrayLike, bound: Bound | None = None) -> tuple[Array, Array]:
        """Lower and upper bounds on f* at points of shape (m, d); two arrays of shape (m,).

        One point may also be given in the shape (d,), here and in the methods below. Raises
        :class:`EmptyConfidenceSetError` when the data refute the assumptions.
        """
        upper, negative_lower = self._extremes(X, bound, (1, -1))
        return -negative_lower, upper

    def estimate(self, X: ArrayLike, bound: Bound | None = None) -> Array:
        """Estimate f* at points of shape (m, d): about this, guaranteed to be within the bounds.

        It is the kernel ridge estimate mu_alpha(x) = k_t(x)' (K + alpha I)^-1 y, plus the level of
        the offset, at the ridge alpha under which the outcomes are likeliest; where that is outside
        of [lower(x), upper(x)], it is the nearer of the two. So it is continuous in x, and obeys
        facts as the bounds do. Before the first outcome it is the level. The guarantee is for the
        bounds: of the estimate itself nothing is promised, but as a rule it is much closer to f*
        than they are (``docs/mathematics/estimate.md``).

        Examples
        --------
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> seq = ConfidenceSequence(RBF(0.5), norm_bound=5.0, noise_scale=0.1)
        >>> grid = np.linspace(0, 1, 20)[:, None]
        >>> seq.update(grid, np.sin(3 * grid[:, 0]))
        >>> bool(abs(seq.estimate([0.5])[0] - np.sin(1.5)) < 0.01)
        True
        """
        with self.lock:
            return estimate_with_bounds(self._known, *self._asked(X, bound))[0]

    def estimate_with_bounds(
        self, X: ArrayLike, bound: Bound | None = None
    ) -> tuple[Array, Array, Array]:
        """:meth:`estimate` and :meth:`bounds` together, in the time of the bounds.

        Returns estimates, lower bounds and upper bounds, three arrays of shape (m,).
        """
        with self.lock:
            return estimate_with_bounds(self._known, *self._asked(X, bound))

    def estimate_gradients(self, X: ArrayLike, bound: Bound | None = None) -> Array:
        """Gradients in x of :meth:`estimate` at points of shape (m, d); (m, d).

        They are exact where the estimate is differentiable. The kernel must be made of
        scikit-learn's, by sums, products and integer powers.
        """
        with self.lock:
            return estimate_gradients(self._known, *self._asked(X, bound))

    def prediction_bounds(
        self,
        X: ArrayLike,
        *,
        count: int | None = None,
        noise_scale: ArrayLike | None = None,
        delta: float | None = None,
        bound: Bound | None = None,
    ) -> tuple[Array, Array]:
        """Bounds on the next outcomes at points of shape (m, d), noise included; two arrays (m,).

        :meth:`bounds` say where f*(x) is, which does not scatter; these say where the next
        measurement will be. All of ``count`` new outcomes are within these with probability at
        least 1 - delta, less the delta of the sequence, which is for its bounds and, where the
        noise scale is unknown, for the bound on that. With noise that is bounded or has a limited
        energy, nothing is lost.

        Parameters
        ----------
        X : array of shape (m, d)
            Where measurements will be made; they may be chosen by looking at all data so far.
        count : int, optional
            For how many measurements in all the statement is to hold; None: one at each point.
        noise_scale : float or array of shape (m,), optional
            The noise scale of these measurements, as for :meth:`update`.
        delta : float, optional
            The failure probability of the noise; None: as large as that of the sequence.
        bound : bound, optional
            None: the one of the sequence.

        Examples
        --------
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> seq = ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
        >>> seq.update([[0.0], [1.0]], [0.3, -0.2])
        >>> lower, upper = seq.bounds([0.5])
        >>> low, high = seq.prediction_bounds([0.5])
        >>> bool(low[0] < lower[0] and upper[0] < high[0])
        True
        """
        with self.lock:
            points = as_points(X, "X", self.dim, one=True)
            number = len(points) if count is None else as_whole(count, "count", least=1)
            scales = self.assumptions.checked_noise_scales(noise_scale, len(points))
            lower, upper = self.bounds(points, bound)
            law, rate = self._known.assumptions.noise, self.assumptions.delta
            if delta is not None:
                rate = as_scalar(delta, "delta", above=0.0, most=1.0)
            ratios = 1.0 if scales is None else scales / law.unit if law.unit else 0.0
            margin = np.asarray(ratios * law.margin(number, rate) if law.scale else 0.0)
            outward = EPS * (np.abs(lower) + np.abs(upper) + margin)
            return lower - margin - outward, upper + margin + outward

    def bounds_of(
        self, functional: Functional | Sequence[Functional], bound: Bound | None = None
    ) -> tuple[Any, Any]:
        """Lower and upper bounds on linear functionals of f*, see :mod:`kernelbounds.functionals`.

        The result is two numbers for one functional, or two arrays for a sequence of them. They
        hold for all functionals, together with all other bounds of this sequence, where those at
        points hold at all x.
        """
        chosen = self._chosen(bound)
        with self.lock:
            asked = checked_functionals(functional, chosen, self.dim)
            self._looks.add(chosen, len(asked), len(self))
            upper, negative_lower = extremes(
                chosen.view_of(self._known), chosen, Several(asked), (1, -1)
            )
        if isinstance(functional, Functional):
            return -float(negative_lower[0]), float(upper[0])
        return -negative_lower, upper

    def binding_facts(self, X: ArrayLike, bound: Bound | None = None) -> list[float]:
        """Tell at which share of points (m, d) each fact makes a bound narrower.

        A fact binds at a point where its multiplier is positive, or where its limit is the bound.
        """
        chosen = self._chosen(bound)
        with self.lock:
            points = as_points(X, "X", self.dim, one=True)
            shares = binding_facts(chosen.view_of(self._known), chosen, points)
            return shares[: len(self.facts)]  # not that outcomes are within the limits of noise

    def upper(self, X: ArrayLike, bound: Bound | None = None) -> Array:
        """Upper bounds on f* at points of shape (m, d); cheaper than both sides."""
        return np.asarray(self._extremes(X, bound, (1,))[0])

    def lower(self, X: ArrayLike, bound: Bound | None = None) -> Array:
        """Lower bounds on f* at points of shape (m, d); cheaper than both sides."""
        return np.asarray(-self._extremes(X, bound, (-1,))[0])

    def gradients(self, X: ArrayLike, bound: Bound | None = None) -> tuple[Array, Array]:
        """Gradients in x of the lower and upper bounds at points of shape (m, d); both (m, d).

        They are exact where the bounds are differentiable. The kernel must be made of
        scikit-learn's, by sums, products and integer powers.
        """
        points = as_points(X, "X", self.dim, one=True)
        with self.lock:
            below, above = Clipped(self.surface(-1, bound)), Clipped(self.surface(1, bound))
            if not above.smooth:
                chosen = above.surface.bound
                why = "" if isinstance(chosen, DualBound) else "; only that of a DualBound is"
                raise InputError(
                    f"the gradient in x of {chosen} with {self.kernel} is not known{why}."
                )
            return -below.values_and_gradients(points)[1], above.values_and_gradients(points)[1]

    def frozen(self, ridges: Any = None, *, near: ArrayLike | None = None) -> Frozen:
        """Return the bounds as a small immutable function, for control loops and autograd.

        It takes arrays of NumPy, PyTorch and JAX, and later updates do not change it. The bounds
        are AMM's, without facts: valid, and as a rule a little wider than :meth:`bounds`.

        Parameters
        ----------
        ridges : float or sequence of float, optional
            The ridges of AMM, any of which are valid; of several, the best bound is taken at each
            point, and time grows with their number. None: one that suits ``near``.
        near : array of shape (n, d), optional
            Points at which bounds should be narrow; None: between those observed.
        """
        with self.lock:
            return freeze(self._known, ridges, near)

    def surface(self, sign: int, bound: Bound | None = None) -> Surface:
        """Upper bounds on f* (sign 1) or on -f* (sign -1) as a function, for maximisers.

        They are not limited to the trivial bounds, B sqrt(k(x,x)).
        """
        if not isinstance(sign, int | np.integer) or abs(sign) != 1:
            raise InputError(f"sign must be 1 or -1, got {brief(sign)}.")
        chosen = self._chosen(bound)
        self._looks.add(chosen, 0, len(self))
        return Surface(chosen.view_of(self._known), chosen, sign)

    def sensitivity(
        self,
        *,
        above: tuple[ArrayLike, float] | None = None,
        below: tuple[ArrayLike, float] | None = None,
        better: tuple[ArrayLike, ArrayLike] | None = None,
        regret_below: tuple[ArrayLike, ArrayLike, float] | None = None,
        bound: Bound | None = None,
    ) -> Sensitivity:
        """Find how large B, and how large sigma, may be while a conclusion holds on these data.

        The conclusion is exactly one of the following, and must hold as things are; what the answer
        means is said at :class:`~kernelbounds.sequence.sensitivity.Sensitivity`. To ask about a
        bound that holds at one time is to look at it.

        Parameters
        ----------
        above, below : (x, value)
            The lower bound on f*(x) is above a value, or the upper bound below it.
        better : (x, x2)
            The lower bound on f*(x) - f*(x2) is above 0; for a :class:`DualBound`.
        regret_below : (x, points, value)
            The largest upper bound on f*(p) - f*(x), over points p of shape (m, d), is below a
            value; for a :class:`DualBound`.
        bound : bound, optional
            None: the one of the sequence.

        Examples
        --------
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> seq = ConfidenceSequence(RBF(0.5), norm_bound=5.0, noise_scale=0.1)
        >>> grid = np.linspace(0, 1, 20)[:, None]
        >>> seq.update(grid, np.sin(3 * grid[:, 0]))
        >>> found = seq.sensitivity(above=([0.5], 0.3))
        >>> found.norm_bound > 5.0 and found.noise_scale > 0.1
        True
        """
        given = {"above": above, "below": below, "better": better, "regret_below": regret_below}
        asked = conclusion(self._chosen(bound), self.dim, given)
        with self.lock:
            self._looks.add(asked.bound, len(asked.targets), len(self))
            return Sensitivity.of(self._known, asked)

    def predicted_width(
        self,
        X: ArrayLike,
        design: ArrayLike | int,
        domain: Fillable | None = None,
        *,
        noise_scale: ArrayLike | None = None,
        bound: Bound | None = None,
    ) -> Array:
        """Bound the widths upper - lower at points X (m, d) after planned observations; (m,).

        They hold for certain, whatever the outcomes of the design, up to rounding errors of the
        size of the outcomes, for CMM, DMM, AMM and FixedDesign. Real widths are smaller.

        Parameters
        ----------
        X : array of shape (m, d)
            Where the bounds will be asked for.
        design : array of shape (n, d), or int
            Where observations are planned, in addition to those there are; or a number of points
            that fill ``domain``, a Box, evenly.
        noise_scale : float or array of shape (n,), optional
            The noise scale of the planned observations, as for :meth:`update`.
        bound : bound, optional
            None: the one of the sequence.

        Examples
        --------
        >>> import kernelbounds as kb
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> seq = ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
        >>> few, many = (seq.predicted_width([0.5], n, kb.Box([0], [1]))[0] for n in (10, 100))
        >>> bool(many < few < 4.0)
        True
        """
        chosen = self._chosen(bound)
        with self.lock:
            points = as_points(X, "X", self.dim, one=True)
            planned = as_design(design, domain, points.shape[1])
            scales = self.assumptions.checked_noise_scales(noise_scale, len(planned))
            return predicted_width(self._known, chosen, points, planned, scales)

    @property
    def radius(self) -> float:
        """R_t: with probability 1 - delta, ||f*_t - y_t|| <= R_t at all times, Eq. (8).

        With misspecification it is enlarged, so that the same holds with g in place of f*.
        """
        with self.lock:
            return math.sqrt(self._known.radius.squared)

    def ridge_radius(self, ridge: float | None = None) -> float:
        """R~_alpha,t, the radius of the ellipsoid around the ridge estimate at alpha.

        None is the paper's alpha = sigma^2/c. The value is nan when the ellipsoid is empty.
        """
        alpha = as_scalar(ridge, "ridge", above=0.0) if ridge is not None else None
        with self.lock:
            alpha = alpha or self._known.reference_ridge
            energy = self._known.energy_below(alpha) if len(self) else 0.0
            squared = float(self._known.radius.around(alpha, energy))
        return math.sqrt(squared) if squared >= 0 else math.nan

    @property
    def norm_lower_bound(self) -> float:
        """B_min: with probability 1 - delta, ||f*|| >= B_min at all times.

        The confidence set is empty, and the assumptions refuted, when it exceeds norm_bound. With
        misspecification it is the norm of g that is bounded.
        """
        with self.lock:
            return least_norm_with_facts(self._known)

    @property
    def noise_lower_bound(self) -> float:
        """The smallest noise scale that these data allow with this norm bound and kernel.

        With probability 1 - delta it is at most the true sigma at all times, if those are right.
        The assumptions are refuted when it exceeds noise_scale. It is known to one percent.
        """
        with self.lock:
            return noise_lower_bound(self._known)

    @property
    def noise_upper_bound(self) -> float:
        """sigma_max: the largest noise scale that these data allow, whatever f* and the kernel are.

        With probability 1 - delta it is at least sigma at all times, for Gaussian noise of one
        scale (see :class:`kernelbounds.noise.Gaussian`); where noise_scale was stated, it is a
        diagnosis: a number below that says that sigma is smaller than it was taken for. It is
        infinite while there are too few outcomes, some 20 to 40.
        """
        with self.lock:
            return noise_upper_bound(self._known)

    def contains(self, function: RKHSFunction) -> bool:
        """Whether a function lies in the confidence set F_t: ||f|| <= B and ||f_t - y_t|| <= R_t.

        The function is in the space of :attr:`kernel`, without the level of the offset.
        """
        with self.lock:
            return contains(self._known, function)

    @property
    def approximation(self) -> Approximation | None:
        """How far a sparse engine is from the kernel matrix; None where all is exact."""
        with self.lock:
            return self._known.radius_engine.approximation()

    def inflation(self, X: ArrayLike, bound: Bound | None = None) -> Array:
        """Bound the ratio of widths to those of an exact engine with the same R_t, at points; (m,).

        It is certified: exact bounds are at least as wide as the range of values of functions in
        the span of the inducing points. It is infinite where none of those functions is in the
        confidence set, and 1 where all is exact. Both widths are without facts.
        """
        chosen = self._chosen(bound)
        with self.lock:
            points = as_points(X, "X", self._known.radius_engine.dim, one=True)
            return sparse.inflation(self._known.without_facts(), chosen, points)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one file, atomically; see :meth:`load`."""
        with self.lock:
            storage.save(path, self._known, self._bound)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        kernel: Kernel | Parts | Classes | None = None,
        bound: Bound | None = None,
        mixture: Mixture | None = None,
        offset: Offset | None = None,
    ) -> ConfidenceSequence:
        """Read a sequence written by :meth:`save`; it gives the same bounds and goes on.

        Objects of your own classes (a kernel, a bound, a mixture such as
        :class:`~kernelbounds.mixtures.Prequential`, an offset with a mean function) are not in the
        file and must be passed again; another object than the one that was saved is refused, by its
        class and its repr. The kernel matrix is computed again and compared. A bound of the
        package's may be replaced by another bound.
        """
        own = storage.UserObjects.checked(kernel, bound, mixture, offset)
        return cls._of(*storage.load(path, own))

    def pack(self) -> Packed:
        """Convert the sequence to data and arrays, to be a part of another file."""
        with self.lock:
            return storage.pack(self._known, self._bound)

    @classmethod
    def unpack(
        cls, path: str | PathLike[str], packed: Packed, own: storage.UserObjects
    ) -> ConfidenceSequence:
        """Make a sequence from what :meth:`pack` returned; ``path`` is where it was found."""
        return cls._of(*storage.unpack(path, *packed, own))

    def without_data(self, delta: float) -> ConfidenceSequence:
        """Return a sequence of the same assumptions at another delta, without observations.

        The new sequence has an exact engine, whatever the engine of this one. The bounds of both
        hold at once with a probability of 1 minus the sum of their deltas.
        """
        return self._of(without_data(self._known, delta), self._bound)

    def _chosen(self, bound: Bound | None) -> Bound:
        """The bound asked for, if it can be had here."""
        return self._bound if bound is None else allowed_bound(bound, self._known)

    def _extremes(self, X: ArrayLike, bound: Bound | None, signs: Sequence[int]) -> Array:
        """Upper bounds on s f* for the signs s, (signs, m)."""
        with self.lock:
            chosen, points = self._asked(X, bound, stacklevel=5)
            return extremes(chosen.view_of(self._known), chosen, points, signs)

    def _asked(self, X: ArrayLike, bound: Bound | None, stacklevel: int = 4) -> tuple[Bound, Array]:
        """Check which bound is asked for, and where, and count that it is looked at."""
        chosen, points = self._chosen(bound), as_points(X, "X", self.dim, one=True)
        different = 0 if chosen.points_at_once is None else len(np.unique(points, axis=0))
        self._looks.add(chosen, different, len(self), stacklevel=stacklevel)
        return chosen, points

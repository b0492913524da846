"""The confidence sequence: data in, anytime-valid bounds out."""

from __future__ import annotations

import contextlib
import copy
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import Array, as_flag, as_observations, as_points, as_scalar, brief
from kernelbounds.assume.offset import Offset, checked_offset
from kernelbounds.assume.parts import Parts, as_parts
from kernelbounds.bounds import CMM, Assumptions, Bound, ConfidenceSet, DualBound, FixedDesign
from kernelbounds.bounds.confidence_set import Evidence
from kernelbounds.display import cards as notebook
from kernelbounds.engine import Approximation, ExactEngine
from kernelbounds.errors import EmptyConfidenceSetError, InputError
from kernelbounds.functionals import Functional
from kernelbounds.functionals.targets import Several
from kernelbounds.kernels.rkhs import RKHSFunction
from kernelbounds.mixtures import Hybrid, Mixture, Single
from kernelbounds.sequence import cluster, overview as at_a_glance, storage, updating as streaming
from kernelbounds.sequence.planning import Fillable, as_design, predicted_width
from kernelbounds.sequence.sensitivity import Sensitivity, conclusion
from kernelbounds.sequence.sparse import Sparse, inflation
from kernelbounds.surface import Clipped, Surface, extremes

WARNED = -1  # in place of a number of observations
# Once bounds with a sparse engine may be so many times as wide as exact ones, at the newest points,
# and inducing points cannot be added, that is said. It is asked at this number of observations, and
# whenever that has doubled.
COSTLY, COSTS_FROM, NEWEST = 1.5, 250, 64


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
    kernel : scikit-learn kernel, or :class:`~kernelbounds.Parts`
        Its hyperparameters are used as they stand.
    norm_bound : float
        B >= 0; not with Parts, which have bounds of their own.
    noise_scale : float
        sigma >= 0; zero is the noiseless setting.
    delta : float
        Failure probability in (0, 1].
    mixture_scale : float, optional
        c > 0, short for ``mixture=kernelbounds.mixtures.Single(c)``, the paper's radius;
        :func:`kernelbounds.mixture_scale` gives its choice of c for a planned number of rounds.
    bound : CMM, DMM, AMM, AY or IGP, or a :class:`Bound` of your own
        The default for the methods below; CMM is exact for its confidence set, and so never wider
        than DMM and AMM. :class:`~kernelbounds.FixedDesign` is for points that were fixed before
        the outcomes.
    mixture : mixture, optional
        How the radius R_t is made, see :mod:`kernelbounds.mixtures`; None is ``Hybrid()``, as a
        rule the tightest, which needs no scale.
    offset : Offset or float, optional
        What is known of the level of f*, beside the kernel; see :class:`~kernelbounds.Offset`.
    misspecification : float, optional
        epsilon >= 0: f* need not be in the space, but within epsilon of a function g in it with
        norm at most B, everywhere. Bounds are wider by more than epsilon, see
        ``docs/how-to/how-wrong.md``; not for AY and IGP.
    engine : Sparse, optional
        For more observations than fit into a kernel matrix, see :class:`~kernelbounds.Sparse`; with
        CMM, DMM, AMM and other bounds whose :attr:`~kernelbounds.Bound.uses_only_radius` is True.
        None: all observations are kept, exactly.

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
        kernel: Kernel | Parts,
        norm_bound: float | None = None,
        noise_scale: float | None = None,
        delta: float = 0.01,
        mixture_scale: float | None = None,
        bound: Bound | None = None,
        *,
        mixture: Mixture | None = None,
        offset: Offset | float | None = None,
        misspecification: float = 0.0,
        engine: Sparse | None = None,
    ) -> None:
        if noise_scale is None:
            raise InputError("noise_scale is missing; 0 means that there is no noise.")
        if mixture is not None and mixture_scale is not None:
            raise InputError("pass either mixture or mixture_scale, not both.")
        if mixture is None:
            mixture = Hybrid() if mixture_scale is None else Single(mixture_scale)
        level = checked_offset(offset)
        parts, whole, norm_of_whole = as_parts(kernel, norm_bound, level.within)
        assumptions = Assumptions(norm_of_whole, noise_scale, delta, mixture, misspecification)
        if engine is not None and not isinstance(engine, Sparse):
            raise InputError(f"engine must be a kernelbounds.Sparse, got {brief(engine)}.")
        chosen = ExactEngine(whole) if engine is None else engine.engine(whole, assumptions)
        self._known = ConfidenceSet(Evidence(chosen, parts, level), assumptions)
        self._bound = self._chosen(CMM() if bound is None else bound)
        # At how many observations a bound for one time was asked for; then, that it was said.
        self._looked_at: int | None = None
        # From how many observations on to ask what a sparse engine costs; then, that it was said.
        self._costs_from = COSTS_FROM

    def __repr__(self) -> str:
        a, parts = self.assumptions, self._known.parts
        more = "" if self.offset == Offset() else f"offset={self.offset}, "
        more += f"misspecification={a.misspecification:g}, " if a.misspecification else ""
        more += "" if a.mixture == Hybrid() else f"mixture={a.mixture}, "
        seen = f"{len(self)} observation{'' if len(self) == 1 else 's'}"
        seen += f" of {self.dim} input{'' if self.dim == 1 else 's'}" if len(self) else ""
        what = f"{self.kernel}, norm_bound={a.norm_bound:g}"
        if parts is not None:  # of which an unknown level is the last
            pairs = parts.pairs[:-1] if self.offset.within > 0 else parts.pairs
            one = pairs[0]
            what = f"{one[0]}, norm_bound={one[1]:g}" if len(pairs) == 1 else f"{Parts(pairs)}"
        return (
            f"ConfidenceSequence({what}, noise_scale={a.noise_scale:g}, delta={a.delta:g}, "
            f"{more}bound={self._bound}) with {seen}"
        )

    def _repr_html_(self) -> str:
        """For notebooks."""
        return notebook.shown(self, lambda: at_a_glance.card(self._known, self._bound))

    def __len__(self) -> int:
        """The number of observations, t."""
        return self._known.count

    @property
    def dim(self) -> int | None:
        """The dimension d of the points; None before the first observation.

        With a sparse engine it is that of the inducing points, where these are given.
        """
        return self._known.radius_engine.dim

    @property
    def kernel(self) -> Kernel:
        """The kernel, with the hyperparameters given; a copy.

        Where f* has parts it is that of their sum with equal shares, in which f*, less the level
        of the offset, has norm at most 1.
        """
        return copy.deepcopy(self._known.radius_engine.data.kernel)

    @property
    def parts(self) -> Parts | None:
        """The parts of f*, an unknown level among them; None where there is one only."""
        return self._known.parts

    @property
    def offset(self) -> Offset:
        """What is known of the level of f*."""
        return self._known.offset

    @property
    def assumptions(self) -> Assumptions:
        """norm_bound, noise_scale, delta, mixture and misspecification."""
        return self._known.assumptions

    @property
    def bound(self) -> Bound:
        """The default bound."""
        return self._bound

    @property
    def points(self) -> Array:
        """The points observed so far, (t, d), in order."""
        with self._known.lock:
            return self._known.points.copy()

    @property
    def landmarks(self) -> Array:
        """Points near which something is known, (n, d), for a search to start from.

        They are the points observed; with a sparse engine, which does not keep those, its inducing
        points and the newest of them.
        """
        with self._known.lock:
            return self._known.radius_engine.landmarks.copy()

    @property
    def outcomes(self) -> Array:
        """The outcomes observed so far, (t,), in order."""
        with self._known.lock:
            return self._known.observed.copy()

    @property
    def noise_scales(self) -> Array:
        """The noise scale of each observation so far, (t,), in order."""
        with self._known.lock:
            return np.asarray(self.assumptions.noise_scale / self._known.weights)

    def update(self, X: ArrayLike, y: ArrayLike, noise_scale: ArrayLike | None = None) -> None:
        """Add observations in the order they were made.

        ``X`` has shape (n, d) and ``y`` shape (n,); one observation may also be given as a point
        of shape (d,) and a number. Nothing is added when an error is raised, or on an interrupt.
        With a sparse engine many rows take long: after two seconds a bar is shown on a terminal.

        ``noise_scale`` is that of these observations, a number or (n,), where it is not that of
        the sequence. It must be known before the outcome is.
        """
        with self._known.lock:
            points, outcomes = as_observations(X, y, self.dim)
            self.update_checked(
                points, outcomes, self.checked_noise_scales(noise_scale, len(points))
            )

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

        Rows are taken in the order of the source. It must be that in which they were observed; or
        any that does not depend on outcomes, if the points were fixed in advance and the noise is
        independent from row to row. Rows must not be sorted or left out by their outcomes.

        Parameters
        ----------
        source : path, list of paths, or table
            A CSV or Parquet file, a folder of them, which are taken by name, or a list of those. Or
            anything with ``__arrow_c_stream__``: of pyarrow, Polars, DuckDB or pandas. Or a Dask
            dataframe, in the order of its partitions. All but CSV need the extra ``arrow``. Files
            are read twice with a sparse engine: first to check.
        inputs : list of str
            The columns that are the coordinates of points.
        output : str
            The column of outcomes.
        noise_scale : str, optional
            The column of noise scales, as for :meth:`update`; None: that of the sequence.
        transform : function, optional
            Of inputs (n, k), to points (n, d), row by row; such as ``problem.scaled``.
        batch : int
            How many rows are in memory at a time. It makes no difference to bounds.
        progress : bool, optional
            Whether a bar is shown on standard error; None: on a terminal, after two seconds.
        client : distributed.Client, optional
            A Dask cluster whose workers share the work, with a sparse engine; the bounds are the
            same up to rounding errors. Needs the extra ``dask``, on the workers as well, and they
            must find Parquet files under the same paths. None: this machine; for a Dask dataframe
            the client that is current, if there is one.

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
        with self._known.lock:
            dim = self._known.radius_engine.dim
        shown = None if progress is None else as_flag(progress, "progress")
        given = streaming.intake(
            source, inputs, output, noise_scale, transform, batch, dim, self.assumptions
        )
        workers = cluster.client_for(client, given.source, self._known.radius_engine)
        if workers is None:
            added = streaming.add(self._known, given, shown)
        else:
            added = cluster.add(self._known, given, workers, shown)
        with self._known.lock:
            self._warn_if_costly()
        return added

    def update_checked(
        self, points: Array, outcomes: Array, noise_scales: Array | None = None
    ) -> None:
        """:meth:`update` with arrays that were checked already."""
        with self._known.lock:
            streaming.add_rows(self._known, streaming.Observed(points, outcomes, noise_scales))
            self._warn_if_costly()

    def checked_noise_scales(self, given: ArrayLike | None, count: int) -> Array | None:
        """Noise scales of so many observations, as :meth:`update` takes them; None: the usual."""
        return self.assumptions.checked_noise_scales(given, count)

    @property
    def known(self) -> ConfidenceSet:
        """What bounds look at: the data, the assumptions and R_t.

        Its ``lock`` is held by every method while it works, so that a sequence may be shared among
        threads; hold it to use several methods as one.
        """
        return self._known

    def bounds(self, X: ArrayLike, bound: Bound | None = None) -> tuple[Array, Array]:
        """Lower and upper bounds on f* at points of shape (m, d); two arrays of shape (m,).

        One point may also be given in the shape (d,), here and in the methods below. Differences,
        averages, derivatives and other functionals of f* are for :meth:`bounds_of`.

        Raises :class:`EmptyConfidenceSetError` when the data refute the assumptions.
        """
        upper, negative_lower = self._extremes(X, bound, (1, -1))
        return -negative_lower, upper

    def bounds_of(
        self, functional: Functional | Sequence[Functional], bound: Bound | None = None
    ) -> tuple[Any, Any]:
        """Lower and upper bounds on linear functionals of f*, see :mod:`kernelbounds.functionals`.

        Two numbers for one functional, or two arrays for a sequence of them. With CMM they are the
        smallest and largest values over the confidence set, as :meth:`bounds` at points. They hold
        for all functionals, together with all other bounds of this sequence, where those at points
        hold at all x.
        """
        given: Any = functional
        several = isinstance(given, Iterable) and not isinstance(given, Functional)
        asked = list(given) if several else [given]
        chosen = self._chosen(bound)
        if not asked or not all(isinstance(one, Functional) for one in asked):
            raise InputError(
                "bounds_of() takes one of kernelbounds.functionals, or a sequence of them, got "
                f"{brief(functional)}."
            )
        if not chosen.bounds_functionals:
            raise InputError(f"{chosen!r} bounds values only; bounds_of() needs a DualBound.")
        with self._known.lock:
            for one in asked:
                if one.dim != (self.dim or asked[0].dim):
                    raise InputError(
                        f"{one} is of functions in {one.dim} dimensions, but the data so far have "
                        f"{self.dim or asked[0].dim}."
                    )
            self._look(chosen, len(asked))
            upper, negative_lower = extremes(
                chosen.view_of(self._known), chosen, Several(asked), (1, -1)
            )
        if isinstance(functional, Functional):
            return -float(negative_lower[0]), float(upper[0])
        return -negative_lower, upper

    def upper(self, X: ArrayLike, bound: Bound | None = None) -> Array:
        """Upper bounds on f* at points of shape (m, d); cheaper than both sides."""
        return np.asarray(self._extremes(X, bound, (1,))[0])

    def lower(self, X: ArrayLike, bound: Bound | None = None) -> Array:
        """Lower bounds on f* at points of shape (m, d); cheaper than both sides."""
        return np.asarray(-self._extremes(X, bound, (-1,))[0])

    def gradients(self, X: ArrayLike, bound: Bound | None = None) -> tuple[Array, Array]:
        """Gradients in x of the lower and upper bounds at points of shape (m, d); both (m, d).

        They are exact where the bounds are differentiable. The kernel must be one of
        scikit-learn's, or a sum, product or integer power of those.
        """
        points = as_points(X, "X", self.dim, one=True)
        with self._known.lock:
            below, above = Clipped(self.surface(-1, bound)), Clipped(self.surface(1, bound))
            if not above.smooth:
                chosen = above.surface.bound
                why = "" if isinstance(chosen, DualBound) else "; only that of a DualBound is"
                raise InputError(
                    f"the gradient in x of {chosen} with {self.kernel} is not known{why}."
                )
            return -below.values_and_gradients(points)[1], above.values_and_gradients(points)[1]

    def surface(self, sign: int, bound: Bound | None = None) -> Surface:
        """Upper bounds on f* (sign 1) or on -f* (sign -1) as a function, for maximisers.

        They are those of the bound itself, not limited to the trivial ones.
        """
        if not isinstance(sign, int | np.integer) or abs(sign) != 1:
            raise InputError(f"sign must be 1 or -1, got {brief(sign)}.")
        chosen = self._chosen(bound)
        self._look(chosen, 0)
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
        """How large B, and how large sigma, may be for a conclusion to hold still on these data.

        The conclusion is one of the following, and must hold as things are. What the answer means
        is said at :class:`~kernelbounds.sequence.sensitivity.Sensitivity`. To ask about a bound
        that holds at one time, such as :class:`~kernelbounds.FixedDesign`, is to look at it.

        Parameters
        ----------
        above : (x, value)
            The lower bound on f*(x) is above a value.
        below : (x, value)
            The upper bound on f*(x) is below a value.
        better : (x, x2)
            The lower bound on f*(x) - f*(x2) is above 0.
        regret_below : (x, points, value)
            The largest upper bound on f*(p) - f*(x), over points p of shape (m, d), is below a
            value.
        bound : bound, optional
            The last two need a :class:`~kernelbounds.bounds.DualBound`.

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
        asked = conclusion(
            self._chosen(bound),
            self.dim,
            above=above,
            below=below,
            better=better,
            regret_below=regret_below,
        )
        with self._known.lock:
            self._look(asked.bound, len(asked.targets))
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
        """How wide bounds at points X (m, d) will at most be after a design; (m,).

        That is, upper - lower after observations at the points of the design, in addition to those
        there are, whatever their outcomes: it needs none, and holds for certain, up to rounding
        errors of the size of the outcomes. Real widths are smaller. They are of CMM, DMM,
        AMM or FixedDesign.

        Parameters
        ----------
        X : array of shape (m, d)
            Where the bounds will be asked for.
        design : array of shape (n, d), or int
            Where observations are planned; or a number of points that fill ``domain`` evenly.
        domain : Box, optional
            Needed where ``design`` is a number.
        noise_scale : float or array of shape (n,), optional
            That of the observations planned, as for :meth:`update`.
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
        with self._known.lock:
            points = as_points(X, "X", self.dim, one=True)
            planned = as_design(design, domain, points.shape[1])
            scales = self.checked_noise_scales(noise_scale, len(planned))
            return predicted_width(self._known, chosen, points, planned, scales)

    @property
    def radius(self) -> float:
        """R_t: with probability 1 - delta, ||f*_t - y_t|| <= R_t at all times, Eq. (radius_def).

        With misspecification it is enlarged, so that the same holds with g in place of f*.
        """
        with self._known.lock:
            return math.sqrt(self._known.radius.squared)

    def ridge_radius(self, ridge: float | None = None) -> float:
        """R~_alpha,t, the radius of the ellipsoid around the ridge estimate at alpha.

        None is the paper's alpha = sigma^2/c. The value is nan when the ellipsoid is empty.
        """
        alpha = as_scalar(ridge, "ridge", above=0.0) if ridge is not None else None
        with self._known.lock:
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
        with self._known.lock:
            return self._known.norm_lower_bound

    @property
    def noise_lower_bound(self) -> float:
        """The smallest noise scale that these data allow with this norm bound and kernel.

        With probability 1 - delta it is at most the true sigma at all times, if those are right.
        The assumptions are refuted when it exceeds noise_scale. Noise scales are tried in steps of
        one percent, and it is the last one below all that the data allow.
        """
        with self._known.lock:
            return self._known.noise_lower_bound

    def contains(self, function: RKHSFunction) -> bool:
        """Whether a function lies in the confidence set F_t: ||f|| <= B and ||f_t - y_t|| <= R_t.

        It is a function in the space of :attr:`kernel`, without the level of the offset.
        Both are compared with a relative tolerance of 1e-9, for rounding.
        """
        if not isinstance(function, RKHSFunction):
            raise InputError(
                f"contains() takes a kernelbounds.RKHSFunction, got {brief(function)}."
            )
        if function.kernel != self.kernel:
            raise InputError(
                f"the function's kernel is {function.kernel}, the sequence's is {self.kernel}."
            )
        if function.norm > self.assumptions.norm_bound * (1 + 1e-9):
            return False
        if not len(self):
            return True
        with self._known.lock:
            outcomes, weights = self._known.outcomes, self._known.weights
            misfit = np.linalg.norm(weights * function(self._known.points) - outcomes)
            scale = np.linalg.norm(outcomes)
            return bool(misfit <= self.radius * (1 + 1e-9) + 1e-9 * scale)

    @property
    def approximation(self) -> Approximation | None:
        """How far a sparse engine is from the kernel matrix; None where all is exact."""
        with self._known.lock:
            return self._known.radius_engine.approximation()

    def inflation(self, X: ArrayLike, bound: Bound | None = None) -> Array:
        """At most how many times as wide bounds are as those of an exact engine, with the same R_t.

        At points of shape (m, d); (m,). It is certified, and not an estimate: exact bounds are at
        least as wide as the range of values of functions in the span of the inducing points. It is
        infinite where none of those is in the confidence set, and 1 where all is exact.
        """
        chosen = self._chosen(bound)
        with self._known.lock:
            points = as_points(X, "X", self._known.radius_engine.dim, one=True)
            if self.approximation is None or not len(self):
                return np.ones(len(points))
            if not chosen.uses_only_radius:
                raise InputError(
                    f"what a sparse engine costs is known of bounds from R_t, such as CMM(), and "
                    f"not of {chosen!r}."
                )
            upper, negative_lower = self._extremes(points, chosen, (1, -1))
            return inflation(self._known, points, upper + negative_lower)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one file, atomically; see :meth:`load`."""
        with self._known.lock:
            storage.save(path, self._known, self._bound)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        kernel: Kernel | Parts | None = None,
        bound: Bound | None = None,
        mixture: Mixture | None = None,
        offset: Offset | None = None,
    ) -> ConfidenceSequence:
        """Read a sequence written by :meth:`save`; it gives the same bounds and goes on.

        Parameters
        ----------
        path : path
            A file that :meth:`save` has written.
        kernel : scikit-learn kernel, optional
            Needed only for a kernel class of your own; it must be the one that was saved.
            Whether or not it is given, the kernel matrix is computed again and compared.
        bound : bound, optional
            Needed only for a bound of your own; it must then be the one that was saved, by the
            name of its class and its repr. It takes the place of one of the package's.
        mixture : mixture, optional
            Needed only for one of your own, such as :class:`~kernelbounds.mixtures.Prequential`;
            it must be the one that was saved.
        offset : Offset, optional
            Needed only for one with a mean function; it must be the one that was saved.
        """
        return cls._of(*storage.load(path, _own(kernel, bound, mixture, offset)))

    def pack(self) -> storage.Packed:
        """What :meth:`save` writes, as data and arrays, to be a part of another file."""
        with self._known.lock:
            return storage.pack(self._known, self._bound)

    @classmethod
    def unpack(
        cls,
        path: str | PathLike[str],
        header: dict[str, Any],
        arrays: dict[str, Array],
        kernel: Kernel | Parts | None = None,
        bound: Bound | None = None,
        mixture: Mixture | None = None,
        offset: Offset | None = None,
    ) -> ConfidenceSequence:
        """The inverse of :meth:`pack`, as :meth:`load`; ``path`` is where they were found."""
        return cls._of(*storage.unpack(path, header, arrays, _own(kernel, bound, mixture, offset)))

    @classmethod
    def _of(cls, known: ConfidenceSet, bound: Bound) -> ConfidenceSequence:
        sequence = cls(known.radius_engine.data.kernel, **vars(known.assumptions), bound=bound)
        sequence._known = known
        return sequence

    def _chosen(self, bound: Bound | None) -> Bound:
        """The bound asked for, if it can be had under these assumptions."""
        if bound is None:
            return self._bound
        checked, most = _checked_bound(bound), self.assumptions.misspecification
        if most and not checked.uses_only_radius:
            raise InputError(
                f"{brief(bound)} is not made from R_t, and so does not allow for a "
                f"misspecification of {most:g}; CMM, DMM and AMM do."
            )
        if self._known.radius_engine.approximation() is not None and not (
            checked.uses_only_radius or isinstance(checked, FixedDesign)
        ):
            raise InputError(
                f"{brief(bound)} is not known with a sparse engine; use CMM(), DMM() or AMM(), or "
                "FixedDesign() where no point was chosen by looking at outcomes. A "
                "bound of your own can be used there if known.radius is all that it knows of the "
                "noise, and its property uses_only_radius returns True."
            )
        return checked

    def _extremes(self, X: ArrayLike, bound: Bound | None, signs: Sequence[int]) -> Array:
        """Bounds on s f* for the signs s, (signs, m)."""
        chosen = self._chosen(bound)
        with self._known.lock:
            points = as_points(X, "X", self.dim, one=True)
            limited = chosen.points_at_once is not None
            self._look(chosen, len(np.unique(points, axis=0)) if limited else 0, stacklevel=4)
            return extremes(chosen.view_of(self._known), chosen, points, signs)

    def _look(self, bound: Bound, count: int, stacklevel: int = 3) -> None:
        """Refuse more different points than a bound allows, and warn of a second time of one."""
        if bound.points_at_once is not None and count > bound.points_at_once:
            raise InputError(
                f"{bound!r} holds at {bound.points_at_once} points together, got {count} different "
                "ones; ask for fewer, or make it for more."
            )
        if bound.guarantee.anytime or not len(self):
            return
        if self._looked_at is None:
            self._looked_at = len(self)
        elif self._looked_at not in (len(self), WARNED):
            warnings.warn(
                f"{bound!r} holds at one number of observations, fixed beforehand: it was asked "
                f"for at {self._looked_at} and now at {len(self)}; to use it at n of them, make "
                "the sequence with delta / n.",
                UserWarning,
                stacklevel=stacklevel,
            )
            self._looked_at = WARNED

    def _warn_if_costly(self) -> None:
        """Say once that the inducing points of a sparse engine are too few."""
        engine, asked_from = self._known.radius_engine, self._costs_from
        if asked_from == WARNED or len(self) < asked_from:
            return
        self._costs_from = 2 * len(self)
        cost_of = engine.approximation()
        newest = engine.newest_points(NEWEST)
        if cost_of is None or cost_of.can_grow or not len(newest):
            return
        with contextlib.suppress(EmptyConfidenceSetError):  # of which bounds will tell
            cost = float(np.mean(self.inflation(newest, CMM())))
            if cost > COSTLY:
                self._costs_from = WARNED
                warnings.warn(
                    f"with {cost_of.inducing} inducing points, bounds at the newest points "
                    f"are up to {cost:.2g} times as wide as without an approximation; use more of "
                    "them, or Sparse(), which chooses them itself.",
                    UserWarning,
                    stacklevel=4,
                )


def _checked_bound(bound: Bound) -> Bound:
    if not isinstance(bound, Bound):
        raise InputError(
            "bound must be one of CMM(), DMM(), AMM(), AY(), IGP(eta), FixedDesign(), or an object "
            f"of a subclass of kernelbounds.Bound, got {brief(bound)}."
        )
    return bound


def _own(
    kernel: Kernel | Parts | None,
    bound: Bound | None,
    mixture: Mixture | None,
    offset: Offset | None,
) -> storage.Own:
    if mixture is not None and not isinstance(mixture, Mixture):
        raise InputError(f"mixture must be one of kernelbounds.mixtures, got {brief(mixture)}.")
    checked = None if bound is None else _checked_bound(bound)
    return storage.Own(kernel, checked, mixture, None if offset is None else checked_offset(offset))

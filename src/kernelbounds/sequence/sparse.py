"""Compute with more observations than fit into a kernel matrix.

:class:`Sparse` is what a user chooses; the rest of this file is what a sequence with a sparse
engine needs besides: rows in the engine's blocks, and a look at how much wider bounds become.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import LARGEST, Array, as_points, as_scalar, as_vector, as_whole
from kernelbounds.bounds import CMM, Assumptions, Bound, ConfidenceSet
from kernelbounds.bounds.bound import TIE
from kernelbounds.confidence.evidence import Evidence
from kernelbounds.confidence.radius import Radius
from kernelbounds.display import late_progress
from kernelbounds.engine import Engine, Growth, SparseEngine
from kernelbounds.engine.sparse import SparseObservations
from kernelbounds.errors import EmptyConfidenceSetError, InputError, KernelBoundsError
from kernelbounds.mixtures import Hybrid, Single
from kernelbounds.mixtures.ledger import RunningLosses
from kernelbounds.surface import extremes

# The largest dictionary that grows by itself: 1500 inducing points take a second to decompose.
LARGEST_DICTIONARY = 1500
# Rows between two reports of progress: with the largest dictionary they take about a second.
ROWS_PER_REPORT = 1000
# Where inducing points cannot be added, a user is warned once bounds at the newest points may be
# this many times as wide as exact ones. That is computed at this number of observations, and
# whenever their number has doubled.
COSTLY_INFLATION, FIRST_COUNT, NEWEST_POINTS = 1.5, 250, 64


class Sparse:
    """Compute from sums over the observations, by way of inducing points.

    Memory and the time of a query do not depend on the number of observations: they are m^2 numbers
    and m^2 products a point, for m inducing points. Bounds are valid as ever, and wider by what the
    inducing points do not see: little for smooth kernels, more for rough ones, see
    :meth:`~kernelbounds.ConfidenceSequence.inflation` and ``docs/how-to/large-data.md``.

    ``Sparse()`` chooses inducing points among the observations as they come: an observation joins
    them when they see too little of it. ``Sparse(points)`` uses the given points alone, and
    :meth:`filling` makes points that fill a box. They must be chosen without a look at the
    outcomes; and where observations join them, which observations are passed to one ``update`` must
    not be decided by their outcomes, either.

    Parameters
    ----------
    inducing : array of shape (m, d), optional
        The inducing points, or the first of them.
    most : int, optional
        The largest number of inducing points; None: as many as are given, or 1500 where none are.
    tolerance : float
        An observation joins when the unseen part of its variance is more than this fraction of what
        is unknown there anyway.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.3), norm_bound=3.0, noise_scale=0.1, engine=kb.Sparse())
    >>> x = np.random.default_rng(0).random((20_000, 1))
    >>> seq.update(x, np.sin(5 * x[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=20_000))
    >>> lower, upper = seq.bounds([[0.5]])
    >>> bool(upper[0] - lower[0] < 0.1)
    True
    >>> seq.approximation.inducing < 30
    True
    """

    def __init__(
        self,
        inducing: ArrayLike | None = None,
        *,
        most: int | None = None,
        tolerance: float = 0.0005,
    ) -> None:
        self.points: Array | None = None
        if inducing is not None:
            points = as_points(inducing, "inducing")
            _, first = np.unique(points, axis=0, return_index=True)
            self.points = points[np.sort(first)]
            self.points.flags.writeable = False
        given = 0 if self.points is None else len(self.points)
        usual = given or LARGEST_DICTIONARY
        self.most = usual if most is None else as_whole(most, "most", least=max(given, 1))
        self.tolerance = as_scalar(tolerance, "tolerance", above=0.0, most=1.0)

    @classmethod
    def filling(cls, lower: ArrayLike, upper: ArrayLike, count: int) -> Sparse:
        """Make ``count`` inducing points that fill a box evenly: a Sobol sequence, always the same.

        Examples
        --------
        >>> Sparse.filling([0, 0], [1, 2], 64)
        Sparse(64 inducing points of dimension 2)
        """
        size = np.size(np.asarray(lower, dtype=object))
        low, high = as_vector(lower, "lower", size), as_vector(upper, "upper", size)
        if np.any(low > high):
            raise InputError("the box is inverted: a number of lower is above that of upper.")
        number = as_whole(count, "count", least=1, most=20_000)
        sobol = qmc.Sobol(size, scramble=True, rng=np.random.default_rng(0))
        unit = sobol.random_base2(max(number - 1, 1).bit_length())
        return cls(low + unit[:number] * (high - low))

    def __repr__(self) -> str:
        if self.points is None:
            return f"Sparse(most={self.most}, tolerance={self.tolerance:g})"
        more = f", up to {self.most}" if self.most > len(self.points) else ""
        count, dim = self.points.shape
        return f"Sparse({count} inducing points of dimension {dim}{more})"

    def engine(self, kernel: Kernel, assumptions: Assumptions) -> SparseEngine:
        """Make the engine for these assumptions, whose forecasts are of the prior N(0, c K)."""
        a = assumptions
        if not a.noise.scale_is_stated:
            raise InputError(
                "a sparse engine does not keep the single observations that an unknown noise scale "
                "is found from; state a noise scale, or use no engine."
            )
        if a.noise_scale == 0:
            raise InputError("a sparse engine is for noisy outcomes; noise_scale is 0.")
        if not isinstance(a.mixture, Hybrid | Single):
            raise InputError(
                f"with a sparse engine the mixture must be Hybrid or Single, got {a.mixture}: "
                "forecasts of your own need the single observations, which are not kept."
            )
        # A norm bound that is nothing beside the noise would make both overflow.
        ratio = min(a.noise_scale / max(a.norm_bound, 1e-100), LARGEST)
        ridge = min(a.noise_scale**2 / max(a.mixture_scale, 1e-300), LARGEST**2)
        losses = RunningLosses(a.mixture, ridge, a.noise_scale)
        growth = Growth(self.tolerance, self.most)
        data = SparseObservations(kernel, self.points, ridge, ratio**2, losses, growth)
        return SparseEngine(data)


class Observed(NamedTuple):
    """New observations: points (n, d), outcomes (n,), and their noise scales (n,) or None."""

    points: Array
    outcomes: Array
    noise_scales: Array | None

    @classmethod
    def joined(cls, several: Sequence[Observed]) -> Observed:
        """Several, one after the other; either all of them have noise scales or none."""
        points, outcomes, scales = zip(*several, strict=True)
        together = None if scales[0] is None else np.concatenate(scales)
        return cls(np.concatenate(points), np.concatenate(outcomes), together)

    def rows(self, start: int, stop: int | None = None) -> Observed:
        """The observations from number ``start`` to ``stop``."""
        some, scales = slice(start, stop), self.noise_scales
        chosen = None if scales is None else scales[some]
        return Observed(self.points[some], self.outcomes[some], chosen)


def append_with_progress(known: ConfidenceSet, new: Observed) -> None:
    """Add many observations to a sparse engine; on an error or an interrupt none are added."""
    total = len(new.outcomes)
    with known.evidence.lock, late_progress("adding", total) as report:

        def reported() -> Iterator[Observed]:
            for start in range(0, total, ROWS_PER_REPORT):
                stop = min(start + ROWS_PER_REPORT, total)
                yield new.rows(start, stop)
                report(f"{stop:,} of {total:,} rows", stop)

        grown = known.radius_engine.snapshot()
        append_in_blocks(known, grown, reported())
        known.evidence.radius_engine = grown


def append_in_blocks(known: ConfidenceSet, grown: Engine, batches: Iterable[Observed]) -> None:
    """Append batches to an engine, in the blocks in which it would take all in one go."""
    waiting: list[Observed] = []

    def append(rows: Observed) -> None:
        grown.append(rows.points, known.evidence.for_engine(*rows))

    for some in batches:
        together = Observed.joined([*waiting, some])
        complete = grown.whole_blocks(len(together.outcomes))
        if complete:
            append(together.rows(0, complete))
        waiting = [together.rows(complete)]
    if waiting and len(waiting[0].outcomes):
        append(waiting[0])


def sparse_engine(known: ConfidenceSet) -> SparseEngine:
    """The engine of a sequence that is known to have a sparse one."""
    assert isinstance(known.radius_engine, SparseEngine)
    return known.radius_engine


def inflation(known: ConfidenceSet, bound: Bound, points: Array) -> Array:
    """Bound the ratio of widths at points (m, d) to exact ones with the same R_t; (m,)."""
    if known.radius_engine.approximation() is None or not known.count:
        return np.ones(len(points))
    if not bound.uses_only_radius:
        raise InputError(
            "what a sparse engine costs is known of bounds from R_t, such as CMM(), and not of "
            f"{bound!r}."
        )
    upper, negative_lower = extremes(bound.view_of(known), bound, points, (1, -1))
    widths = upper + negative_lower
    least = np.zeros(len(points))
    for within in _within_spans(known):
        # None of the functions in the span fits the data; or, where bounds cross, hardly one.
        with contextlib.suppress(KernelBoundsError):
            upper, negative_lower = extremes(within, CMM(), points, (1, -1))
            least = np.maximum(least, upper + negative_lower)
    # The search for the best ridge is this far from it, at both ends.
    least -= 2 * TIE * known.trivial(points)
    unknown = np.where(widths > 0, np.inf, 1.0)
    return np.where(least > 0, widths / np.maximum(least, 1e-300), unknown)


def _within_spans(known: ConfidenceSet) -> Iterator[ConfidenceSet]:
    """The functions of the set in the span of a sparse engine's inducing points alone.

    Each of them is in the confidence set of an exact engine with this R_t.
    """
    for engine, away in sparse_engine(known).within_spans():
        radius = math.sqrt(known.radius.squared) - known.assumptions.norm_bound * away
        if radius > 0:
            yield ConfidenceSet(
                Evidence(engine, known.evidence.noise_unit, offset=known.evidence.offset),
                known.assumptions,
                known.chosen_for,
                own_radius=Radius(0.0, radius**2, known.assumptions.norm_bound),
            )


class InflationWatch:
    """A look, now and then, at whether the inducing points of a sparse engine are too few."""

    def __init__(self) -> None:
        self._next_count: float = FIRST_COUNT

    def look(self, known: ConfidenceSet, stacklevel: int) -> None:
        """Warn once that bounds at the newest points are much wider than exact ones."""
        if known.count < self._next_count:
            return
        self._next_count = 2 * known.count
        approximation = known.radius_engine.approximation()
        if approximation is None or approximation.can_grow:
            return
        newest = sparse_engine(known).newest_points(NEWEST_POINTS)
        if not len(newest):
            return
        with contextlib.suppress(EmptyConfidenceSetError):  # The next bounds will raise it.
            cost = float(np.mean(inflation(known, CMM(), newest)))
            if cost > COSTLY_INFLATION:
                self._next_count = math.inf
                warnings.warn(
                    f"with {approximation.inducing} inducing points, bounds at the newest points "
                    f"are up to {cost:.2g} times as wide as without an approximation; use more of "
                    "them, or Sparse(), which chooses them itself.",
                    UserWarning,
                    stacklevel=stacklevel,
                )

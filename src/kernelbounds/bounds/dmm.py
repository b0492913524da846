"""DMM: the dual martingale-mixture bound on a grid of ridges (Sec. 5.4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import Array, as_scalar, brief, set_checked
from kernelbounds.bounds.ellipsoids import EllipsoidBound, Ellipsoids
from kernelbounds.confidence.confidence_set import ConfidenceSet
from kernelbounds.engine import Largest, largest_by_ceilings
from kernelbounds.errors import InputError
from kernelbounds.functionals.targets import Targets

PAPERS_GRID = (0.1, 0.3, 1.0, 3.0, 10.0)  # times sigma^2/c, Sec. 7
# Small ridges are left out where larger ones, and a witness a little below those, rule them out.
# How small is small, relative to (R_t / B)^2, and how far below the witness is, changes only how
# often that succeeds; measured with ``python -m benchmarks loop``.
SMALL_RIDGE, WITNESS_RIDGE = 0.25, 0.9


@dataclass(frozen=True, repr=False)
class DMM(EllipsoidBound):
    """The best of the AMM bounds over a finite grid A of ridges, for each point and side,

        min over alpha in A of mu_alpha(x) + R~_alpha rho_alpha(x) / sqrt(alpha).

    The function of alpha is quasiconvex. Where it rises between a ridge and one a little less, no
    smaller ridge is better, and small ridges are the expensive ones.

    Parameters
    ----------
    ridges : sequence of float, optional
        The grid A; None is the paper's sigma^2/c times {0.1, 0.3, 1, 3, 10}.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.1], [0.9]], [0.3, -0.2])
    >>> lower, upper = seq.bounds([[0.5]], bound=kb.DMM(ridges=[0.01, 0.1, 1.0]))
    >>> one = seq.bounds([[0.5]], bound=kb.AMM(ridge=0.1))
    >>> bool(one[0][0] <= lower[0] and upper[0] <= one[1][0])
    True
    """

    ridges: tuple[float, ...] | None = None

    uses_only_radius = True  # The intervals are made from R_t.

    def __post_init__(self) -> None:
        if self.ridges is None:
            return
        given: object = self.ridges
        if not isinstance(given, Iterable) or isinstance(given, str | bytes):
            raise InputError(f"ridges must be a sequence of positive numbers, got {brief(given)}.")
        ridges = tuple(as_scalar(ridge, "each of ridges", above=0.0) for ridge in given)
        if not ridges:
            raise InputError("ridges is empty; pass at least one positive number.")
        set_checked(self, ridges=ridges)

    def grid(self, reference_ridge: float) -> tuple[float, ...]:
        """The ridges, given sigma^2/c."""
        return self.ridges or tuple(factor * reference_ridge for factor in PAPERS_GRID)

    def below_amm_at(self, reference_ridge: float) -> tuple[float, ...] | None:
        """The grid, over which the bound is the least AMM."""
        return self.grid(reference_ridge)

    def ellipsoids(self, known: ConfidenceSet, points: Targets) -> Ellipsoids:
        """See :class:`~kernelbounds.bounds.ellipsoids.EllipsoidBound`."""
        large, witness = self._without_small(known)
        tried = np.append(large, witness)
        found = Ellipsoids.of_radius(known, tried, known.predict(points, tried))
        if not len(witness):
            return found
        if _rises_towards_last(found.ends((1, -1))):
            return Ellipsoids(*(part[:-1] for part in found))
        grid = np.array(self.grid(known.reference_ridge))
        return Ellipsoids.of_radius(known, grid, known.predict(points, grid))

    def largest(self, known: ConfidenceSet, points: Targets, sign: int, tie: float) -> Largest:
        """See :class:`~kernelbounds.bounds.Bound`.

        Bounds without the newest observations, with the present radius, are cheap and larger. Only
        where those are high are the bounds themselves computed.
        """
        large, witness = self._without_small(known)
        tried = np.append(large, witness)
        if len(tried) == 1:
            return super().largest(known, points, sign, tie)
        query = known.engine.query(points, finest=float(tried.min()))
        opposite = np.empty(len(points))

        def evaluate(chosen: NDArray[np.intp]) -> Array | None:
            found = Ellipsoids.of_radius(known, tried, query.take(chosen).predict(tried))
            ends = found.ends((sign, -sign))
            if len(witness) and not _rises_towards_last(ends):
                return None
            values, opposite[chosen] = ends[:, : len(large)].min(axis=1)
            return np.asarray(values)

        before = Ellipsoids.of_radius(known, large, query.predict_without_border(large))
        found = largest_by_ceilings(before.ends((sign,))[0].min(axis=0), tie, evaluate)
        if found is None:
            return super().largest(known, points, sign, tie)
        value, tied = found
        return Largest.widest(value, tied, opposite[tied], tie)

    def _without_small(self, known: ConfidenceSet) -> tuple[Array, Array]:
        """The larger ridges of the grid, which probably suffice, and one below them, as a test."""
        grid = np.array(self.grid(known.reference_ridge))
        small = grid * known.assumptions.norm_bound**2 <= SMALL_RIDGE * known.radius.squared
        large = grid[grid >= grid[small].max(initial=grid.min())]
        return large, WITNESS_RIDGE * large.min(keepdims=True)[: len(grid) - len(large)]


def _rises_towards_last(ends: Array) -> bool:
    """Whether the last ridge, the smallest, is worse than the others at all points and sides."""
    return bool(np.all(ends[:, -1] > ends[:, :-1].min(axis=1)))

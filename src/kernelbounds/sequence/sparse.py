"""How to compute with more observations than fit into a kernel matrix."""

from __future__ import annotations

import contextlib

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import LARGEST, Array, as_points, as_scalar, as_vector, as_whole
from kernelbounds.bounds import CMM, Assumptions, ConfidenceSet
from kernelbounds.bounds.bound import TIE
from kernelbounds.engine import Growth, SparseEngine
from kernelbounds.errors import InputError, KernelBoundsError
from kernelbounds.mixtures import Hybrid, Single
from kernelbounds.mixtures.ledger import RunningLosses
from kernelbounds.surface import extremes

# The largest dictionary that grows by itself: 1500 inducing points take a second to decompose.
MOST = 1500
TOLERANCE = 0.0005


class Sparse:
    """Compute from sums over the observations, by way of inducing points.

    Memory and the time of a query do not depend on the number of observations: they are m^2 numbers
    and m^2 products a point, for m inducing points. Bounds are valid as ever, and wider by what the
    inducing points do not see: little for smooth kernels, more for rough ones, see
    :meth:`~kernelbounds.ConfidenceSequence.inflation` and ``docs/how-to/large-data.md``.

    ``Sparse()`` chooses inducing points among the observations as they come: one joins when those
    before see too little of it. ``Sparse(points)`` has these alone, and :meth:`filling` some that
    fill a box. They must be chosen without a look at the outcomes. Where observations join them,
    which ones are passed to one ``update`` must not be decided by their outcomes, either.

    Parameters
    ----------
    inducing : array of shape (m, d), optional
        The inducing points, or the first of them.
    most : int, optional
        Up to how many there may be; None: no more than given, or 1500 where none are.
    tolerance : float
        An observation joins when what is not seen of it is more than this part of what is unknown
        there anyway.

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
        tolerance: float = TOLERANCE,
    ) -> None:
        self.points: Array | None = None
        if inducing is not None:
            points = as_points(inducing, "inducing")
            _, first = np.unique(points, axis=0, return_index=True)
            self.points = points[np.sort(first)]
            self.points.flags.writeable = False
        given = 0 if self.points is None else len(self.points)
        usual = given or MOST
        self.most = usual if most is None else as_whole(most, "most", least=max(given, 1))
        self.tolerance = as_scalar(tolerance, "tolerance", above=0.0, most=1.0)

    @classmethod
    def filling(cls, lower: ArrayLike, upper: ArrayLike, count: int) -> Sparse:
        """With so many inducing points that fill a box evenly: a Sobol sequence, always the same.

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
        """One for these assumptions; forecasts are those of the paper's prior, N(0, c K)."""
        a = assumptions
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
        return SparseEngine(kernel, self.points, ridge, ratio**2, losses, growth)


def inflation(known: ConfidenceSet, points: Array, widths: Array) -> Array:
    """Widths at points (m, d) over what exact ones with the same R_t are at least; (m,)."""
    least = np.zeros(len(points))
    for within in known.within_spans():
        # None of its functions fits the data; or, where bounds cross, hardly one.
        with contextlib.suppress(KernelBoundsError):
            upper, negative_lower = extremes(within, CMM(), points, (1, -1))
            least = np.maximum(least, upper + negative_lower)
    # What the search for the best ridge leaves, at both ends.
    least -= 2 * TIE * known.trivial(points)
    unknown = np.where(widths > 0, np.inf, 1.0)
    return np.where(least > 0, widths / np.maximum(least, 1e-300), unknown)

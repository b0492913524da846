"""How to compute with more observations than fit into a kernel matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kernelbounds.arrays import Array, as_points, as_whole
from kernelbounds.planning import Fillable


class Sparse:
    """Compute from sums over the observations, by way of inducing points.

    Memory and the time of a query do not depend on the number of observations: they are m^2 numbers
    and m^2 products a point, for m inducing points. Bounds are valid as ever, and wider by what the
    inducing points do not see: little for smooth kernels, more for rough ones, see
    :attr:`~kernelbounds.ConfidenceSequence.approximation` and ``docs/how-to/large-data.md``.

    Inducing points must be chosen without a look at the outcomes.

    Parameters
    ----------
    inducing : array of shape (m, d), or Box
        The points, or a box that is filled with them evenly.
    count : int
        How many, for a box.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> engine = Sparse(kb.Box([0.0], [1.0]), 30)
    >>> seq = kb.ConfidenceSequence(RBF(0.3), norm_bound=3.0, noise_scale=0.1, engine=engine)
    >>> x = np.random.default_rng(0).random((20_000, 1))
    >>> seq.update(x, np.sin(5 * x[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=20_000))
    >>> lower, upper = seq.bounds([[0.5]])
    >>> bool(upper[0] - lower[0] < 0.1)
    True
    """

    def __init__(self, inducing: ArrayLike | Fillable, count: int = 512) -> None:
        filled: Any = inducing
        if hasattr(inducing, "filling"):
            filled = inducing.filling(as_whole(count, "count", least=1, most=20_000))
        points = as_points(filled, "inducing")
        _, first = np.unique(points, axis=0, return_index=True)
        self.points: Array = points[np.sort(first)]
        self.points.flags.writeable = False

    def __repr__(self) -> str:
        return f"Sparse({len(self.points)} inducing points of dimension {self.points.shape[1]})"

"""Linear functionals of f* that users ask for: differences, sums, averages and derivatives.

:meth:`kernelbounds.ConfidenceSequence.bounds_of` bounds them, and is exact where bounds on values
are. Their common interface is in ``targets.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import Array, as_floats, as_points, as_vector, as_whole, brief
from kernelbounds.errors import InputError
from kernelbounds.functionals.targets import Functionals, WeightedSums
from kernelbounds.structure.offset import Level, Offset

COVERED_KERNEL_ERROR = 4.0  # the error of values that bounds allow for, in units of EPS


class Functional(Functionals):
    """One linear functional L of f*, to be bounded by :meth:`ConfidenceSequence.bounds_of`.

    Differences, sums, averages and derivatives are functionals. Several may be bounded together.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from kernelbounds.functionals import Derivative, Difference, Functional
    >>> asked = [Difference([0.0], [0.1]), Derivative([0.5], axis=0)]
    >>> all(isinstance(one, Functional) for one in asked)
    True
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.0], [1.0]], [0.3, -0.2])
    >>> lower, upper = seq.bounds_of(asked)
    >>> bool((lower < upper).all())
    True
    """

    def __len__(self) -> int:
        """Return 1: this is one functional."""
        return 1

    def __getitem__(self, which: Any) -> Functionals:
        """Return the functional itself, which has no parts to choose from."""
        return self


class Sum(Functional, WeightedSums):
    """sum_i w_i f(z_i), with the representer sum_i w_i k(., z_i).

    Parameters
    ----------
    points : array of shape (n, d)
        The z_i, a row for each.
    weights : array of shape (n,)
        The w_i, of any sign.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.0], [1.0]], [0.3, -0.2])
    >>> lower, upper = seq.bounds_of(Sum([[0.0], [0.5], [1.0]], [1, -2, 1]))  # how bent is it?
    >>> lower < upper
    True
    """

    def __init__(self, points: ArrayLike, weights: ArrayLike) -> None:
        centres = as_points(points, "points")
        WeightedSums.__init__(self, centres, as_vector(weights, "weights", len(centres)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.points)} points in {self.dim} dimensions)"

    @property
    def points(self) -> Array:
        """The points z_i, (n, d)."""
        return self.centres


class Difference(Sum):
    """f(x) - f(x2): is x better than x2?

    Parameters
    ----------
    x, x2 : arrays of shape (d,) or (1, d)
        The two points.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.05)
    >>> seq.update([[0.0], [0.1]] * 20, [0.3, -0.2] * 20)
    >>> lower, upper = seq.bounds_of(Difference([0.0], [0.1]))
    >>> apart = seq.upper([0.0])[0] - seq.lower([0.1])[0]
    >>> bool(upper < apart)  # both ends cannot be bad at once
    True
    """

    def __init__(self, x: ArrayLike, x2: ArrayLike) -> None:
        one, other = _point(x, "x"), _point(x2, "x2")
        if len(one) != len(other):
            raise InputError(f"x has {len(one)} coordinates, and x2 has {len(other)}.")
        super().__init__([one, other], [1.0, -1.0])


class Average(Sum):
    """sum_i w_i f(z_i) / sum_i w_i: the mean of f over a set, or an integral by quadrature.

    Parameters
    ----------
    points : array of shape (n, d)
        The z_i, a row for each.
    weights : array of shape (n,), optional
        At least zero, and not all zero. None: all the same.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> grid = np.linspace(0, 1, 50)[:, None]
    >>> seq.update(grid, np.sin(grid[:, 0]))
    >>> lower, upper = seq.bounds_of(Average(grid))
    >>> bool(lower < 1 - np.cos(1) < upper)
    True
    """

    def __init__(self, points: ArrayLike, weights: ArrayLike | None = None) -> None:
        z = as_points(points, "points")
        w = np.ones(len(z)) if weights is None else as_vector(weights, "weights", len(z))
        if np.any(w < 0) or not np.any(w > 0):
            raise InputError(
                "weights of an average must be at least 0, and not all 0, got "
                f"{brief(weights)}; functionals.Sum takes any."
            )
        w = w / w.max()
        super().__init__(z, w / w.sum())


class Derivative(Functional):
    """The partial derivative of f at x in one coordinate, with the representer d k(., x) / d x_a.

    It exists where the kernel is differentiable twice: for RBF, and for Matern with nu above 1.

    Parameters
    ----------
    x : array of shape (d,) or (1, d)
        Where the slope is asked for.
    axis : int
        The coordinate, counted from 0.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.01)
    >>> grid = np.linspace(0, 1, 50)[:, None]
    >>> seq.update(grid, np.sin(grid[:, 0]))
    >>> lower, upper = seq.bounds_of(Derivative([0.5], axis=0))
    >>> bool(0 < lower < np.cos(0.5) < upper)  # it rises there
    True
    """

    def __init__(self, x: ArrayLike, axis: int) -> None:
        self.point = _point(x, "x")
        self.axis = as_whole(axis, "axis", least=0)
        if self.axis >= self.dim:
            raise InputError(
                f"axis must be below {self.dim}, the number of coordinates, got {axis}."
            )

    def __repr__(self) -> str:
        return f"Derivative({self.point.tolist()}, axis={self.axis})"

    @property
    def dim(self) -> int:
        """The number of coordinates, d."""
        return len(self.point)

    def of_mean(self, offset: Offset) -> Level:
        """Zero, the derivative of a constant level."""
        if offset.constant is None:
            raise InputError(
                "the derivative of the offset's mean function is not known; model the trend by a "
                "part with a kernel of its own."
            )
        return Level(np.zeros(1), np.zeros(1))

    def amplification(self) -> Array:
        """Refuse: a small function may be steep, so that no number bounds its derivative."""
        raise InputError(
            "with misspecification derivatives of f* cannot be bounded: what is added to the "
            "function of the kernel is small, but may be steep."
        )

    def squared_norms(self, kernel: Kernel) -> Array:
        """d^2 k(x, x') / (d x_a d x'_a) at x' = x."""
        return kernels.derivative_diagonal(kernel, self.point[None], np.array([self.axis]))

    def magnitudes(self, kernel: Kernel) -> Array:
        """The squared norm, enlarged where derivatives are less precise than values."""
        error = kernels.derivative_error(kernel, self.dim)
        return self.squared_norms(kernel) * max(1.0, error / COVERED_KERNEL_ERROR) ** 2

    def vectors(self, kernel: Kernel, points: Array) -> Array:
        """d k(x, x_s) / d x_a."""
        return kernels.derivative_cross(kernel, self.point[None], np.array([self.axis]), points)


def _point(values: ArrayLike, name: str) -> Array:
    point = np.atleast_1d(as_floats(values, name))
    if point.ndim == 2 and len(point) == 1:
        point = point[0]
    if point.ndim != 1 or not point.size:
        raise InputError(f"{name} must be one point of shape (d,) or (1, d), got {brief(values)}.")
    return point

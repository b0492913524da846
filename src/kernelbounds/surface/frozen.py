"""Bounds as a small function of arrays, for control loops and for programs that learn.

At a fixed ridge alpha, with c = A'A k_t(x) for any matrix A and any weights w, the bounds

    w' k_t(x)  +-  F sqrt(V(x)),   V(x) = prior k(x,x) - explained |A k_t(x)|^2

are valid if F, ``prior`` and ``explained`` allow for how far A is from the inverse factor of
K + alpha I, and w from the weights of AMM (``docs/mathematics/rounding.md``, *Frozen bounds*). So
a query is two matrix products, in any array library, and nothing rests on how a matrix was
factorised. ``freezing.py`` makes these parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import EPS, Array, as_points
from kernelbounds.errors import InputError
from kernelbounds.io import archive
from kernelbounds.kernels import portable

FORMAT, VERSION = "kernelbounds.Frozen", 1
NUMBERS = ("norm_bound", "delta", "level", "beyond")
# The arrays of a file that have something of each ridge, in the order of :class:`AtRidge`.
OF_EACH_RIDGE = (
    "ridges", "weights", "inverse", "factors", "prior", "explained", "mean_errors",
)  # fmt: skip
ARRAYS = ("points", *OF_EACH_RIDGE)


class AtRidge(NamedTuple):
    """The bounds of one ridge around the level: w' k_t(x) -+ (F sqrt(V(x)) + e sqrt(k(x,x)))."""

    ridge: float
    weights: Array  # w, (t,)
    inverse: Array  # A, (t, t)
    factor: float  # F
    prior: float
    explained: float
    mean_error: float  # e, above the error of w' k_t(x) / sqrt(k(x,x))

    def interval(self, xp: Any, vectors: Any, prior: Any, root: Any) -> Interval:
        """The interval at m points, given k_t(x) (m, t), k(x,x) and its root (m,)."""
        w, A = (portable.as_array(xp, one, vectors) for one in (self.weights, self.inverse))
        explained = vectors @ A.T
        squares = xp.sum(explained * explained, axis=1)
        deviation = portable.safe_root(xp, self.prior * prior - self.explained * squares)
        half = self.factor * deviation + self.mean_error * root
        return Interval(vectors @ w, half, deviation, explained)

    def gradients(
        self, xp: Any, at: Interval, parts: list[Any], of_prior: Any, of_root: Any
    ) -> tuple[Any, Any]:
        """Gradients of the ends of an interval, (m, d), given those of what it is made of.

        ``parts`` are the derivatives of k_t(x) by each coordinate, (m, t).
        """
        w, A = (portable.as_array(xp, one, at.mean) for one in (self.weights, self.inverse))
        solved = at.explained @ A
        of_mean = xp.stack([part @ w for part in parts], axis=1)
        of_squares = 2.0 * xp.stack([xp.sum(solved * part, axis=1) for part in parts], axis=1)
        of_variance = self.prior * of_prior - self.explained * of_squares
        of_half = self.factor * of_variance / _divisor(xp, 2.0 * at.deviation)
        of_half = of_half + self.mean_error * of_root
        return of_mean - of_half, of_mean + of_half


class Interval(NamedTuple):
    """An interval at each of m points, and what its gradients need."""

    mean: Any
    half: Any  # of its width
    deviation: Any  # sqrt(V(x))
    explained: Any  # A k_t(x), (m, t)


@dataclass(frozen=True, eq=False, repr=False)
class Frozen:
    """Lower and upper bounds on f* as an immutable function of arrays.

    It is made by :meth:`ConfidenceSequence.frozen <kernelbounds.ConfidenceSequence.frozen>`, and
    later observations do not change it. Its bounds are those of AMM at one ridge, or the best of
    several, widened by all rounding errors. They hold at all x at once, with probability at least
    1 - delta, together with all other bounds of the sequence.

    Points may be arrays of NumPy, PyTorch, JAX or another library with the Python array API, in
    double precision, and the results are arrays of the same library, which may compile,
    differentiate and map the function.

    All arrays are read-only. A point with a coordinate that is not finite is refused by NumPy's
    checks and has bounds nan in other libraries, as compiled code cannot raise.

    Attributes
    ----------
    kernel : Kernel
        A copy of the kernel.
    norm_bound, delta : float
        B, and the probability that some bound is wrong.
    level, beyond : float
        The level of the offset, and the misspecification.
    points : array of shape (t, d)
        Where observations were made; equal points are one.
    at_ridges : tuple
        What the bounds of each ridge are made of.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.0], [0.5], [1.0]], [0.3, 0.1, -0.2])
    >>> frozen = seq.frozen()
    >>> lower, upper = frozen.bounds(np.array([[0.2], [0.7]]))
    >>> bool((lower <= seq.lower([[0.2], [0.7]])).all())
    True
    """

    kernel: Kernel
    norm_bound: float
    delta: float
    level: float
    beyond: float
    points: Array
    at_ridges: tuple[AtRidge, ...]

    def __post_init__(self) -> None:
        for one in (self.points, *(of for at in self.at_ridges for of in (at.weights, at.inverse))):
            one.setflags(write=False)

    def __repr__(self) -> str:
        count, dim = self.points.shape
        return f"Frozen(kernel={self.kernel}) of {count} points in {dim} dimensions"

    @property
    def dim(self) -> int:
        """The dimension of points."""
        return int(self.points.shape[1])

    @property
    def ridges(self) -> Array:
        """The ridges alpha, (g,)."""
        return np.array([at.ridge for at in self.at_ridges])

    def bounds(self, X: Any) -> tuple[Any, Any]:
        """Lower and upper bounds on f* at points of shape (m, d); two arrays of shape (m,).

        One point may also be given in the shape (d,).
        """
        xp, X = self._asked(X)
        return self._best(xp, *self._intervals(xp, X))

    def gradients(self, X: Any) -> tuple[Any, Any]:
        """Gradients in x of the lower and upper bounds at points (m, d); both (m, d).

        Where a bound is not differentiable, at an observation with Matern(nu=0.5) or where it meets
        another of which it is the best, they are gradients of one side, or between those.
        """
        _, gradients = self.bounds_and_gradients(X)
        return gradients

    def bounds_and_gradients(self, X: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        """Both :meth:`bounds` and :meth:`gradients` at points (m, d), in the time of the latter."""
        xp, X = self._asked(X)
        root, intervals = self._intervals(xp, X)
        parts = portable.partials(xp, self.kernel, X, portable.as_array(xp, self.points, X))
        of_prior = xp.stack(portable.diagonal_partials(xp, self.kernel, X), axis=1)
        of_root = of_prior / _divisor(xp, 2.0 * root)
        most, of_most = self._most * root, self._most * of_root
        upper, lower, of_upper, of_lower = most, -most, of_most, -of_most
        for at, one in zip(self.at_ridges, intervals, strict=True):
            low, high = one.mean - one.half, one.mean + one.half
            of_low, of_high = at.gradients(xp, one, parts, of_prior, of_root)
            of_high = xp.where((high < -most)[:, None], -of_most, of_high)
            of_low = xp.where((low > most)[:, None], of_most, of_low)
            of_upper = xp.where((high < upper)[:, None], of_high, of_upper)
            of_lower = xp.where((low > lower)[:, None], of_low, of_lower)
            upper, lower = xp.minimum(upper, high), xp.maximum(lower, low)
        return self._best(xp, root, intervals), (of_lower, of_upper)

    def bounds_in_boxes(self, lower: ArrayLike, upper: ArrayLike) -> tuple[Array, Array]:
        """Bounds on f* throughout boxes with corners ``lower`` and ``upper``, (m, d); (m,) each.

        They are those at the centre c, widened by B max |k(., x) - k(., c)| over the box, as
        |g(x) - g(c)| is at most that for a function g of norm B, and no wider than
        B max sqrt(k(x, x)). Cut a large box into smaller ones and take the extremes. The result is
        of NumPy.
        """
        low, high = as_points(lower, "lower", self.dim), as_points(upper, "upper", self.dim)
        if low.shape != high.shape or not np.all(low <= high):
            raise InputError(
                "lower and upper must be the corners of the same boxes, lower nowhere above upper; "
                f"got shapes {low.shape} and {high.shape}."
            )
        centres = 0.5 * low + 0.5 * high
        half_widths = np.maximum(high - centres, centres - low) * (1 + 4 * EPS)
        found = kernels.features_in_boxes(self.kernel, centres, half_widths)
        more = self.norm_bound * found.moved * (1 + 8 * EPS)
        trivial = self._most * found.size * (1 + 8 * EPS) + self.beyond
        least, most = self.bounds(centres)
        least = np.maximum(least - more, self.level - trivial)
        most = np.minimum(most + more, self.level + trivial)
        rounded = self._last(np.maximum(np.abs(least), np.abs(most)) + more)
        return least - rounded, most + rounded

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one npz file, without pickle; see :meth:`load`."""
        header, arrays = self._packed()
        archive.write(path, {"format": FORMAT, "version": VERSION, **header}, arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Frozen:
        """Read what :meth:`save` wrote; it gives the same bounds."""
        packed = archive.read(path, FORMAT, VERSION, "a saved frozen bound", ARRAYS)
        with archive.damage_reported(path):
            return cls._unpacked(*packed)

    def _packed(self) -> archive.Packed:
        """Return all numbers as JSON-ready data, and all arrays by name; see :meth:`_unpacked`."""
        header = {"kernel": kernels.to_data(self.kernel)}
        header |= {name: getattr(self, name) for name in NUMBERS}
        of_ridges = map(np.array, zip(*self.at_ridges, strict=True))
        return header, {"points": self.points, **dict(zip(OF_EACH_RIDGE, of_ridges, strict=True))}

    @classmethod
    def _unpacked(cls, header: dict[str, Any], arrays: dict[str, Array]) -> Frozen:
        """Make a frozen bound from what :meth:`_packed` returned."""
        (g, t), dim = arrays["weights"].shape, arrays["points"].shape[1]
        shapes = {"points": (t, dim), "inverse": (g, t, t), "weights": (g, t)}
        for name in ARRAYS:
            if arrays[name].shape != shapes.get(name, (g,)):
                raise ValueError(f"{name} has the shape {arrays[name].shape}")
            if arrays[name].dtype.str[1:] != "f8" or not np.all(np.isfinite(arrays[name])):
                raise ValueError(f"{name} is not of finite floats")
        kernel = kernels.checked_kernel(kernels.from_data(header["kernel"]))
        portable.portable_error(kernel, dim)
        # Numbers of NumPy would turn products with other libraries' arrays into arrays of NumPy.
        of_ridges = (arrays[name] for name in OF_EACH_RIDGE)
        columns = [list(one) if one.ndim > 1 else one.tolist() for one in of_ridges]
        at_ridges = tuple(AtRidge(*row) for row in zip(*columns, strict=True))
        numbers: dict[str, Any] = {name: float(header[name]) for name in NUMBERS}
        return cls(kernel, **numbers, points=arrays["points"], at_ridges=at_ridges)

    @property
    def _most(self) -> float:
        """B, rounded up by the errors of B sqrt(k(x,x))."""
        return self.norm_bound * (1 + EPS * (4 + portable.portable_error(self.kernel, self.dim)))

    def _last(self, sizes: Any) -> Any:
        """Above the rounding errors of adding the level, and what is beyond it."""
        return 4 * EPS * (sizes + (2 * abs(self.level) + self.beyond))

    def _intervals(self, xp: Any, X: Any) -> tuple[Any, list[Interval]]:
        """The root of k(x,x), and the interval of each ridge."""
        vectors = portable.values(xp, self.kernel, X, portable.as_array(xp, self.points, X))
        prior = portable.diagonal(xp, self.kernel, X)
        root = portable.safe_root(xp, prior)
        return root, [at.interval(xp, vectors, prior, root) for at in self.at_ridges]

    def _best(self, xp: Any, root: Any, intervals: list[Interval]) -> tuple[Any, Any]:
        """The bounds: the best of all intervals and of +-B sqrt(k(x,x)), around the level."""
        most = self._most * root
        upper, lower = most, -most
        for one in intervals:
            upper = xp.minimum(upper, xp.maximum(one.mean + one.half, -most))
            lower = xp.maximum(lower, xp.minimum(one.mean - one.half, most))
        upper, lower = upper + self.level, lower + self.level
        return (
            lower - (self.beyond + self._last(xp.abs(lower))),
            upper + (self.beyond + self._last(xp.abs(upper))),
        )

    def _asked(self, X: Any) -> tuple[Any, Any]:
        """The namespace of the points, and the points, which are (m, d)."""
        xp = portable.namespace(X)
        if xp is np:
            return np, as_points(X, "X", self.dim, one=True)
        if X.dtype != xp.float64:
            raise InputError(
                f"frozen bounds need points in double precision, got {X.dtype}: in single "
                "precision rounding errors could make them wrong; convert the points to float64 "
                "(in JAX, set jax_enable_x64 first)."
            )
        if X.ndim == 1:
            X = xp.reshape(X, (1, -1))
        if X.ndim != 2 or X.shape[1] != self.dim:
            raise InputError(
                f"X must have the shape (m, {self.dim}), one row for each point, got "
                f"{tuple(X.shape)}."
            )
        return xp, X


def _divisor(xp: Any, values: Any) -> Any:
    """A column to divide by, with 1 where a value is zero and what is divided is zero too."""
    return xp.where(values > 0, values, 0.0 * values + 1.0)[:, None]

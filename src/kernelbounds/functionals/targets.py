"""The interface of all that is bounded: values of f at points, and other linear functionals of f.

=================  ==============  ===========================================================
code               symbol          meaning
=================  ==============  ===========================================================
``representers``   r               L f = <f, r>; for the value at x it is phi(x) = k(., x)
``squared_norms``  |r|^2           for the value at x it is k(x,x)
``vectors``        L k(., x_s)     for the value at x it is k_t(x)
=================  ==============  ===========================================================

The dual of a bound on f(x) depends on x through k(x,x) and k_t(x) alone. With |r|^2 and L k(., x_s)
in their place the same formulas bound L f, and they are as exact as for f(x).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import EPS, Array, brief
from kernelbounds.errors import InputError
from kernelbounds.structure.offset import Level, Offset


class Functionals(ABC):
    """m linear functionals of f, described by their representers.

    Representers are sums, and their terms may cancel. Rounding errors are relative to the terms:
    those of ``vectors`` at x_s are at most a few EPS sqrt(``magnitudes`` k(x_s, x_s)), and those
    of ``squared_norms`` a few EPS ``magnitudes``, as long as the kernel's values are precise to a
    few EPS.
    """

    # Functionals are indexed by slices and arrays only, and are no sequence. Without this, Python
    # and NumPy would ask for the items 0, 1, 2 and so on, and a single functional has no last one.
    __iter__: None = None

    def __array__(self, *_args: Any, **_settings: Any) -> NoReturn:
        """Refuse functionals, alone and in lists, wherever points or outcomes are expected."""
        raise InputError(
            f"{brief(self)} is a functional of f*, where numbers are expected; its bounds are "
            "those of bounds_of(...), not of bounds(...)."
        )

    @abstractmethod
    def __len__(self) -> int:
        """The number of functionals, m."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """The dimension of the points of which f is a function."""

    @abstractmethod
    def __getitem__(self, which: Any) -> Functionals:
        """Select functionals by a slice or an array of indices."""

    @abstractmethod
    def squared_norms(self, kernel: Kernel) -> Array:
        """|r|^2, (m,), not rounded in any direction."""

    @abstractmethod
    def magnitudes(self, kernel: Kernel) -> Array:
        """(sum of the norms of the terms)^2, (m,); at least ``squared_norms``."""

    @abstractmethod
    def vectors(self, kernel: Kernel, points: Array) -> Array:
        """L k(., x_s) for points x_s (t, d); (m, t)."""

    @abstractmethod
    def of_mean(self, offset: Offset) -> Level:
        """L applied to the known level of f."""

    @abstractmethod
    def amplification(self) -> Array:
        """The least number a with |L h| <= a sup |h| for all functions h, rounded up; (m,)."""


Targets = Array | Functionals  # an array (m, d) stands for the values at m points


class Values(Functionals):
    """The values f(x_i) at points x_i (m, d)."""

    def __init__(self, points: Array) -> None:
        self.points = points

    def __len__(self) -> int:
        """The number of points."""
        return len(self.points)

    @property
    def dim(self) -> int:
        """The number of coordinates, d."""
        return int(self.points.shape[1])

    def __getitem__(self, which: Any) -> Functionals:
        """Select points by a slice or an array of indices."""
        return Values(self.points[which])

    def squared_norms(self, kernel: Kernel) -> Array:
        """k(x,x)."""
        return kernels.diagonal(kernel, self.points)

    def magnitudes(self, kernel: Kernel) -> Array:
        """k(x,x): there is one term."""
        return kernels.diagonal(kernel, self.points)

    def vectors(self, kernel: Kernel, points: Array) -> Array:
        """k(x, x_s)."""
        return kernels.vectors(kernel, self.points, points)

    def of_mean(self, offset: Offset) -> Level:
        """m(x)."""
        return Level(offset.at(self.points), np.zeros(len(self)))

    def amplification(self) -> Array:
        """1 for each point."""
        return np.ones(len(self))


def as_functionals(targets: Targets) -> Functionals:
    """The targets as functionals: those that were given, or the values at an array of points."""
    return targets if isinstance(targets, Functionals) else Values(targets)


# The errors of squared norms, in units of the kernel's accuracy: each is a sum of at most three
# terms for each pair, and each term has the error of the kernel's values, 4 units.
SQUARED_NORM_ERROR = 16.0


def squared_norms(kernel: Kernel, targets: Targets, accuracy: float = EPS) -> Array:
    """Return |r|^2, rounded up where terms may cancel; (m,)."""
    if not isinstance(targets, Functionals):
        return kernels.diagonal(kernel, targets)
    error = SQUARED_NORM_ERROR * accuracy * targets.magnitudes(kernel)
    return np.maximum(targets.squared_norms(kernel), 0.0) + error


# Wherever values of a kernel are used, errors of 4 EPS are covered. A sum of n terms adds n / 2
# rounding errors to them, and a double sum n, that is n / 8 and n / 4 of what is covered. They are
# covered too when the magnitude of the sum is enlarged accordingly.
TERMS_PER_MAGNITUDE = 8.0


class WeightedSums(Functionals):
    """sum_j w_ij f(z_j) for shared centres z_j (n, d) and weights (m, n).

    A single sum may have weights (n,). The weights of centres that a sum does not use are zero, and
    these are not counted as terms.
    """

    def __init__(self, centres: Array, weights: Array) -> None:
        self.centres, self.weights = centres, weights

    @property
    def rows(self) -> Array:
        """The weights as a matrix, (m, n)."""
        return np.atleast_2d(self.weights)

    def __len__(self) -> int:
        """The number of sums."""
        return len(self.rows)

    @property
    def dim(self) -> int:
        """The number of coordinates, d."""
        return int(self.centres.shape[1])

    def __getitem__(self, which: Any) -> Functionals:
        """Select sums by a slice or an array of indices."""
        return WeightedSums(self.centres, self.rows[which])

    def squared_norms(self, kernel: Kernel) -> Array:
        """w' K w."""
        gram = kernels.cross(kernel, self.centres, self.centres)
        return np.asarray(np.vecdot(self.rows @ gram, self.rows))

    def magnitudes(self, kernel: Kernel) -> Array:
        """(sum_j |w_j| sqrt(k(z_j, z_j)))^2, enlarged where there are many terms."""
        norms = np.abs(self.rows) @ np.sqrt(kernels.diagonal(kernel, self.centres))
        return np.asarray(((1 + self.terms() / TERMS_PER_MAGNITUDE) * norms) ** 2)

    def vectors(self, kernel: Kernel, points: Array) -> Array:
        """sum_j w_j k(z_j, x_s)."""
        return np.asarray(self.rows @ kernels.cross(kernel, self.centres, points))

    def of_mean(self, offset: Offset) -> Level:
        """sum_j w_j m(z_j)."""
        terms = self.rows * offset.at(self.centres)
        return Level(terms.sum(axis=1), EPS * self.terms() * np.abs(terms).sum(axis=1))

    def amplification(self) -> Array:
        """sum_j |w_j|."""
        return np.asarray(np.abs(self.rows).sum(axis=1) * (1 + EPS * self.terms()))

    def terms(self) -> NDArray[np.intp]:
        """The number of terms of each sum, (m,)."""
        return np.asarray(np.count_nonzero(self.rows, axis=1))


class Shifted(Functionals):
    """L_i f + sum_j w_ij f(z_j), for targets L_i, shared centres z_j (n, d) and weights (m, n).

    Where the targets are values at points x_i, a term at x_i itself is joined with f(x_i), so that
    f(x) - f(x) is exactly zero.
    """

    def __init__(self, base: Targets, centres: Array, weights: Array) -> None:
        self.base, self.shift = base, WeightedSums(centres, weights)
        self._base = as_functionals(base)

    def __len__(self) -> int:
        """The number of functionals."""
        return len(self.base)

    @property
    def dim(self) -> int:
        """The number of coordinates, d."""
        return self.shift.dim

    def __getitem__(self, which: Any) -> Shifted:
        """Select functionals by a slice or an array of indices."""
        return Shifted(self.base[which], self.shift.centres, self.shift.weights[which])

    @property
    def is_difference(self) -> bool:
        """Whether the functionals are L_i f - f(z) for one centre z."""
        return self.shift.weights.shape[1] == 1 and bool(np.all(self.shift.weights == -1.0))

    def _joined(self) -> tuple[Array, WeightedSums]:
        """The weight of each target itself, (m,), and of all other terms."""
        centres, weights = self.shift.centres, self.shift.weights
        if isinstance(self.base, Functionals):
            return np.ones(len(weights)), self.shift
        same = np.ones(weights.shape, dtype=bool)
        for own, other in zip(self.base.T, centres.T, strict=True):
            same &= own[:, None] == other
        own = 1 + np.where(same, weights, 0.0).sum(axis=1)
        return own, WeightedSums(centres, np.where(same, 0.0, weights))

    def squared_norms(self, kernel: Kernel) -> Array:
        """|r_i|^2 + 2 sum_j w_ij r_i(z_j) + w_i' K w_i."""
        own, rest = self._joined()
        if isinstance(self.base, Functionals):
            vectors = self.base.vectors(kernel, rest.centres)
        else:  # Not by a matrix product: the terms may cancel, and its errors are larger.
            vectors = kernels.cross(kernel, self.base, rest.centres)
        found = own**2 * self._base.squared_norms(kernel)
        found += 2 * own * np.vecdot(rest.weights, vectors)
        return np.asarray(found + rest.squared_norms(kernel))

    def magnitudes(self, kernel: Kernel) -> Array:
        """(|r_i| + sum_j |w_ij| sqrt(k(z_j, z_j)))^2, enlarged where there are many terms."""
        own, others = self._base.magnitudes(kernel), self.shift.magnitudes(kernel)
        return (np.sqrt(own) + np.sqrt(others)) ** 2

    def vectors(self, kernel: Kernel, points: Array) -> Array:
        """L_i k(., x_s) + sum_j w_ij k(z_j, x_s)."""
        own, rest = self._joined()
        found = own[:, None] * self._base.vectors(kernel, points)
        return np.asarray(found + rest.vectors(kernel, points))

    def of_mean(self, offset: Offset) -> Level:
        """L_i m + sum_j w_ij m(z_j)."""
        own, shift = self._base.of_mean(offset), self.shift.of_mean(offset)
        total = own.values + shift.values
        return Level(total, own.errors + shift.errors + EPS * np.abs(total))

    def amplification(self) -> Array:
        """1 and the sum of all |w_ij|; also at a centre itself, which stands for points near it."""
        return np.asarray(self._base.amplification() + self.shift.amplification())


def differences(points: Array, reference: Array) -> Shifted:
    """f(x) - f(z) for points x (m, d) and one point z (d,)."""
    return Shifted(points, reference[None], np.full((len(points), 1), -1.0))


class Several(Functionals):
    """A stack of single functionals."""

    def __init__(self, parts: Sequence[Functionals]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        """The number of functionals."""
        return len(self._parts)

    @property
    def dim(self) -> int:
        """The number of coordinates, d."""
        return self._parts[0].dim

    def __getitem__(self, which: Any) -> Functionals:
        """Select functionals by a slice or an array of indices."""
        return Several([self._parts[at] for at in np.arange(len(self))[which]])

    def squared_norms(self, kernel: Kernel) -> Array:
        """|r|^2 of each functional, (m,)."""
        return np.concatenate([part.squared_norms(kernel) for part in self._parts])

    def magnitudes(self, kernel: Kernel) -> Array:
        """The magnitude of each functional, (m,)."""
        return np.concatenate([part.magnitudes(kernel) for part in self._parts])

    def vectors(self, kernel: Kernel, points: Array) -> Array:
        """L k(., x_s) of each functional, (m, t)."""
        return np.concatenate([part.vectors(kernel, points) for part in self._parts])

    def of_mean(self, offset: Offset) -> Level:
        """Each functional applied to the known level."""
        values, errors = zip(*(part.of_mean(offset) for part in self._parts), strict=True)
        return Level(np.concatenate(values), np.concatenate(errors))

    def amplification(self) -> Array:
        """The amplification of each functional, (m,)."""
        return np.concatenate([part.amplification() for part in self._parts])

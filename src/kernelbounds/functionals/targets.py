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
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import EPS, Array, brief
from kernelbounds.assume.offset import Level, Offset
from kernelbounds.errors import InputError


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

# The errors of squared norms, in units of the kernel's accuracy: each is a sum of at most three
# terms for each pair, and each term has the error of the kernel's values, 4 units.
SQUARED_NORM_ERROR = 16.0


def squared_norms(kernel: Kernel, targets: Targets, accuracy: float = EPS) -> Array:
    """Return |r|^2, rounded up where terms may cancel; (m,)."""
    if not isinstance(targets, Functionals):
        return kernels.diagonal(kernel, targets)
    error = SQUARED_NORM_ERROR * accuracy * targets.magnitudes(kernel)
    return np.maximum(targets.squared_norms(kernel), 0.0) + error


class Differences(Functionals):
    """f(x) - f(z) for points x (m, d) and one point z (d,)."""

    def __init__(self, points: Array, reference: Array) -> None:
        self.points, self.reference = points, reference

    def __len__(self) -> int:
        """The number of points x."""
        return len(self.points)

    @property
    def dim(self) -> int:
        """The number of coordinates, d."""
        return len(self.reference)

    def __getitem__(self, which: Any) -> Differences:
        """Select differences by a slice or an array of indices."""
        return Differences(self.points[which], self.reference)

    def squared_norms(self, kernel: Kernel) -> Array:
        """k(x,x) + k(z,z) - 2 k(x,z)."""
        own = kernels.diagonal(kernel, self.points)
        other = kernels.diagonal(kernel, self.reference[None])[0]
        squared = own + other - 2 * kernels.cross(kernel, self.points, self.reference[None])[:, 0]
        squared[(self.points == self.reference).all(axis=1)] = 0.0
        return np.asarray(squared)

    def magnitudes(self, kernel: Kernel) -> Array:
        """(sqrt(k(x,x)) + sqrt(k(z,z)))^2."""
        own = np.sqrt(kernels.diagonal(kernel, self.points))
        return np.asarray((own + np.sqrt(kernels.diagonal(kernel, self.reference[None]))) ** 2)

    def vectors(self, kernel: Kernel, points: Array) -> Array:
        """k(x, x_s) - k(z, x_s)."""
        # Both sets of points are evaluated together, so that equal points have equal vectors.
        both = np.concatenate([self.points, self.reference[None]])
        found = kernels.vectors(kernel, both, points)
        return np.asarray(found[:-1] - found[-1])

    def of_mean(self, offset: Offset) -> Level:
        """m(x) - m(z)."""
        values = offset.at(self.points) - offset.at(self.reference[None])
        return Level(values, EPS * np.abs(values))

    def amplification(self) -> Array:
        """Return 2 for all points, also for z itself, which stands for the points near it."""
        return np.full(len(self), 2.0)


class Several(Functionals):
    """Single functionals, stacked."""

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

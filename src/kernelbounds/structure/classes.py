"""Several function classes: f* is in any of several balls, or in all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import Array, brief
from kernelbounds.errors import InputError
from kernelbounds.structure.parts import Parts, as_parts

Member = Parts | tuple[Kernel, float]


class Classes(ABC):
    """Balls (kernel, bound) in function spaces, or Parts; the base of AnyOf and AllOf."""

    def __init__(self, members: Sequence[Member]) -> None:
        given: object = members
        name = type(self).__name__
        if not isinstance(given, Iterable) or isinstance(given, str | bytes):
            raise InputError(f"{name} takes a list of (kernel, bound), got {brief(members)}.")
        self.members = tuple(
            one if isinstance(one, Parts) else Parts([one]).pairs[0] for one in given
        )
        if not self.members:
            raise InputError(f"{name} needs at least one (kernel, bound).")

    def __repr__(self) -> str:
        members = (
            str(one) if isinstance(one, Parts) else f"({one[0]}, {one[1]:g})"
            for one in self.members
        )
        return f"{type(self).__name__}([{', '.join(members)}])"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    @abstractmethod
    def joined(self, bounds: Sequence[Array]) -> Array:
        """The upper bound that follows from those in each class."""


class AnyOf(Classes):
    """f* is in at least one of several balls: "one of these length scales is right".

    The radius R_t bounds the noise, whatever the class, so that this costs nothing in delta. The
    upper bound is the largest of the classes' upper bounds, and classes that the data refute drop
    out. (Flynn and Reeb leave the choice of the kernel open.)

    Parameters
    ----------
    members : sequence of (kernel, bound), or of Parts
        A kernel and a norm bound for each class.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> classes = kb.AnyOf([(RBF(0.1), 9.0), (RBF(0.2), 9.0), (RBF(1.0), 9.0)])
    >>> seq = kb.ConfidenceSequence(classes, noise_scale=0.1)
    >>> grid = np.linspace(0, 1, 30)[:, None]
    >>> seq.update(grid, 2 * np.sin(12 * grid[:, 0]))
    >>> seq.refuted_classes  # the longest length scale cannot follow these data
    [2]
    >>> lower, upper = seq.bounds([[0.5]])
    >>> bool(lower[0] < 2 * np.sin(6) < upper[0])
    True
    """

    def joined(self, bounds: Sequence[Array]) -> Array:
        """The largest of the bounds."""
        return np.asarray(np.max(bounds, axis=0))


class AllOf(Classes):
    """f* is in all of several balls, so that its upper bound is the smallest of theirs.

    Parameters
    ----------
    members : sequence of (kernel, bound), or of Parts
        A kernel and a norm bound for each class.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF, Matern
    >>> both = kb.AllOf([(Matern(0.3, nu=1.5), 3.0), (RBF(0.3), 30.0)])
    >>> seq = kb.ConfidenceSequence(both, noise_scale=0.1)
    >>> seq.update([[0.2], [0.8]], [0.1, 0.9])
    >>> one = kb.ConfidenceSequence(RBF(0.3), norm_bound=30.0, noise_scale=0.1)
    >>> one.update([[0.2], [0.8]], [0.1, 0.9])
    >>> bool(seq.upper([[0.5]])[0] < one.upper([[0.5]])[0])
    True
    """

    def joined(self, bounds: Sequence[Array]) -> Array:
        """The smallest of the bounds."""
        return np.asarray(np.min(bounds, axis=0))


class Ball(NamedTuple):
    """A ball in a function space, and the parts of its functions, if they have several."""

    parts: Parts | None
    kernel: Kernel
    norm_bound: float


def balls_of(classes: Classes, within: float) -> tuple[Ball, ...]:
    """The balls of all classes, with an unknown level of up to ``within`` added to each."""
    return tuple(
        Ball(*(as_parts(one, None, within) if isinstance(one, Parts) else as_parts(*one, within)))
        for one in classes.members
    )


def sum_of(classes: Classes) -> Parts:
    """The parts of all classes together, so that every function of a class is a sum of these."""
    pairs: list[Any] = []
    for one in classes.members:
        pairs += one.pairs if isinstance(one, Parts) else [one]
    return Parts(pairs)

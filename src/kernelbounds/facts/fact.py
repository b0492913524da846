"""The interface of facts, and the linear inequalities that a fact stands for.

===========  ==========  =====================================================================
code         symbol      meaning
===========  ==========  =====================================================================
``centres``  z_1 .. z_n  places, (n, d)
``rows``     A           weights of the values at these places, (J, n)
``least``    b           A f*(z) >= b, (J,)
===========  ==========  =====================================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import Array, brief
from kernelbounds.errors import InputError
from kernelbounds.facts.region import Region


@dataclass(frozen=True)
class Constraints:
    """Linear inequalities A f*(z) >= b, and the number of the fact that each belongs to.

    Attributes
    ----------
    centres : array of shape (n, d)
        The places z.
    rows : array of shape (J, n)
        A.
    least : array of shape (J,)
        b.
    owners : array of shape (J,)
        The number of each inequality's fact.

    Examples
    --------
    >>> from kernelbounds.facts import Between, Region
    >>> found = Between(0, 60).constraints(Region((0.0,), (1.0,)))
    >>> found.rows.shape, sorted(set(found.least.tolist()))
    ((66, 33), [-60.0, 0.0])
    """

    centres: Array
    rows: Array
    least: Array
    owners: NDArray[np.intp]

    @classmethod
    def of_one(cls, centres: Array, rows: Array, least: Array) -> Constraints:
        """Inequalities that all belong to one fact."""
        return cls(centres, rows, least, np.zeros(len(least), dtype=np.intp))

    def take(self, which: NDArray[Any]) -> Constraints:
        """Select some of the inequalities, by their numbers or a mask."""
        return Constraints(self.centres, self.rows[which], self.least[which], self.owners[which])

    @classmethod
    def joined(cls, parts: Sequence[Constraints]) -> Constraints:
        """Join the inequalities of several facts; a place that two of them use occurs once."""
        every = np.concatenate([part.centres for part in parts])
        centres, at = np.unique(every, axis=0, return_inverse=True)
        rows = np.zeros((sum(len(part.rows) for part in parts), len(centres)))
        row = column = 0
        for part in parts:
            below, right = row + len(part.rows), column + len(part.centres)
            np.add.at(rows[row:below].T, at.reshape(-1)[column:right], part.rows.T)
            row, column = below, right
        least = np.concatenate([part.least for part in parts])
        owners = np.repeat(np.arange(len(parts)), [len(part.least) for part in parts])
        return cls(centres, rows, least, owners)


class Fact(ABC):
    """Something that is known of f* itself, whatever the data.

    A fact of one's own is a frozen dataclass that implements :meth:`constraints`.

    Attributes
    ----------
    region : Region or None
        Where the fact holds; None: everywhere. It is then used at places in the box that the
        observations span, or in the domain of a policy.

    Examples
    --------
    >>> from kernelbounds.facts import Between, Fact, Increasing
    >>> facts = [Between(0, 60), Increasing(0)]
    >>> all(isinstance(fact, Fact) for fact in facts)
    True
    """

    region: Region | None

    @abstractmethod
    def constraints(self, region: Region) -> Constraints:
        """The inequalities that follow from the fact at places in a region."""

    @property
    def depends_on_norm(self) -> bool:
        """Whether the inequalities depend on the norm bound, see :meth:`constraints_in`."""
        return False

    def constraints_in(self, kernel: Kernel, norm_bound: float, region: Region) -> Constraints:
        """The inequalities for functions of norm at most B in the space of a kernel.

        Only a fact that is not about values depends on these.
        """
        return self.constraints(region)

    def limits(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """What the fact alone says of f* throughout m boxes with these ends, (m, d) each.

        The result is lower and upper limits, (m,) each, infinite where nothing is said. A point is
        a box with equal ends.
        """
        return np.full(len(lower), -np.inf), np.full(len(lower), np.inf)

    def axes(self) -> Iterable[int]:
        """The coordinates that the fact speaks of."""
        return ()

    def __str__(self) -> str:
        known: Any = self
        if not is_dataclass(known):
            return repr(self)
        settings = [
            f"{value:g}" if isinstance(value, float) else str(value)
            for one in fields(known)
            if one.name != "region" and (value := getattr(self, one.name)) is not None
        ]
        return f"{type(self).__name__}({', '.join(settings)})"


def checked_facts(given: Any, dim: int | None = None) -> tuple[Fact, ...]:
    """Check the facts that a user passed: that they are facts, and of the same dimension."""
    if given is None:
        return ()
    if isinstance(given, Fact):
        given = [given]
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise InputError(f"facts must be a list of kernelbounds.facts, got {brief(given)}.")
    facts = tuple(given)
    for fact in facts:
        if not isinstance(fact, Fact):
            raise InputError(
                f"facts must be a list of kernelbounds.facts, such as Between(0, 60), and has "
                f"{brief(fact)}."
            )
        try:
            hash(fact)
        except TypeError:
            raise InputError(
                f"a fact must be hashable, as a frozen dataclass is: {fact}."
            ) from None
    sizes = [None if fact.region is None else fact.region.dim for fact in facts]
    if dim is None:  # the first region says it
        dim = next((size for size in sizes if size is not None), None)
    for fact, size in zip(facts, sizes, strict=True):
        if size not in (None, dim):
            raise InputError(f"{fact} is about {size} inputs, but there are {dim}.")
        if missing := [axis for axis in fact.axes() if dim is not None and axis >= dim]:
            raise InputError(
                f"{fact} speaks of input {missing[0]}, but there are {dim}, counted from 0."
            )
    return facts

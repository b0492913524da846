"""Data with a known truth, and what a bound says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from kernelbounds.arrays import Array
from kernelbounds.bounds import Bound, Knowledge
from kernelbounds.bounds.bound import TIE, fault_of
from kernelbounds.rkhs import RKHSFunction
from kernelbounds.sequence import ConfidenceSequence

KERNEL = Matern(length_scale=0.3, nu=1.5)
NORM, NOISE = 3.0, 0.2
SURE = 1e-6  # delta in the clauses on fixed data, where a valid bound fails with this probability
BOTH = (1, -1)

# Bounds that should agree may differ by this, relative to the trivial bound: ten times what CMM's
# search leaves between points that are computed together and apart.
AGREEMENT = 10 * TIE


class BrokenError(Exception):
    """What is wrong, as the end of a sentence that begins with the bound."""


@dataclass(frozen=True)
class Case:
    """Data with a known truth, and points to ask about."""

    known: Knowledge
    truth: RKHSFunction
    points: Array

    @property
    def scale(self) -> Array:
        """What bounds are compared relative to, (m,)."""
        return self.known.trivial(self.points)


def make_case(
    count: int, dim: int = 2, noise: float = NOISE, seed: int = 0, spread: float = 1.0
) -> Case:
    """Asked about are random points, points of the data, twice the same, and one far away.

    Noise scales of the observations are ``noise`` divided and multiplied by ``spread``, in turn.
    """
    rng = np.random.default_rng([seed, count, dim])
    truth = random_truth(rng, dim)
    data = rng.random((count, dim))
    data[count // 2 :: 7] = data[0]  # some are repeated
    sequence = ConfidenceSequence(KERNEL, NORM, noise, SURE)
    scales = noise * spread ** np.resize([-1.0, 1.0], count)
    outcomes = truth(data) + scales * rng.standard_normal(count)
    sequence.update(data, outcomes, None if spread == 1 else scales)
    asked = np.concatenate([rng.random((12, dim)), data[:3], data[:1], np.full((1, dim), 30.0)])
    return Case(sequence.known, truth, asked)


def random_truth(rng: np.random.Generator, dim: int) -> RKHSFunction:
    """A function of norm B."""
    return RKHSFunction(KERNEL, rng.random((6, dim)), rng.standard_normal(6)).rescaled(NORM)


def ask(bound: Bound, known: Knowledge, points: Array, signs: Sequence[int] = BOTH) -> Array:
    """The bounds, as many at once as it takes, refused where they are none."""
    found = []
    for some in few_at_once(bound, points):
        with np.errstate(all="ignore"):
            part = bound.extremes(known, some, signs)
        found.append(as_numbers(part, (len(signs), len(some)), "extremes"))
    return np.concatenate(found, axis=1)


def few_at_once(bound: Bound, points: Array) -> list[Array]:
    """The points, no more at a time than a bound takes."""
    most = bound.points_at_once or len(points)
    return [points[start : start + most] for start in range(0, len(points), most)]


def as_numbers(found: object, wanted: tuple[int, int], what: str) -> Array:
    """What a method returned, refused where it is not upper bounds."""
    if fault := fault_of(found, wanted):
        raise BrokenError(f"{fault}; this was from {what}()")
    return np.asarray(found, dtype=np.float64)


def equal(case: Case, one: Array, other: Array, difference: str) -> None:
    """Refuse bounds that differ; infinite ones are equal."""
    with np.errstate(invalid="ignore"):
        off = np.where(one == other, 0.0, np.abs(one - other)) / case.scale
    if not off.max() <= AGREEMENT:
        raise BrokenError(
            f"gives other bounds {difference}; they differ by up to {off.max():.2g} times the "
            "trivial bound"
        )

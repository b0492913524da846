"""Witnesses of the two engines: from all observations, and from inducing points."""

from __future__ import annotations

from typing import cast

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bounds import Attained, Knowledge
from kernelbounds.engine import WITHOUT_ROUNDING, Attaining, SparseEngine, rounding
from kernelbounds.surface.witness import Witness

# A gradient is not as forgiving of errors of the weights as a value. Each refinement multiplies
# them by the condition number times the rounding error; two leave the digits of the data.
REFINEMENTS = 2


def witness_of(
    known: Knowledge, sign: int, points: Array, found: Attained, reference: Array | None
) -> Witness:
    """What attains bounds at points, as the engine knows it."""
    kind = OfObservations if known.engine.keeps_observations else OfInducingPoints
    return kind(known, sign, points, found, reference)


class OfObservations(Witness):
    """w = (K + alpha I)^-1 (k_t(x) - s scale y_t), solved for once for all scales."""

    def __init__(
        self, known: Knowledge, sign: int, points: Array, found: Attained, reference: Array | None
    ) -> None:
        data = known.engine.rows
        super().__init__(data.kernel, data.points, points, found, reference)
        self._data, self._sign = data, sign
        self.error = rounding(data.count, data.accuracy)
        self._prior, self._vectors, magnitudes = data.representers(self.targets)
        self.magnitudes = self._prior if magnitudes is None else magnitudes
        right = np.concatenate([self._vectors, np.tile(data.outcomes, (len(points), 1)).T], axis=1)
        ridges = np.tile(found.ridges, 2)
        solve = known.engine.solve if found.path is None else found.path.solve
        solved, gram = solve(right, ridges), data.gram
        for _ in range(REFINEMENTS):
            solved += solve(right - gram @ solved - ridges * solved, ridges)
        self._of_vectors, self._of_outcomes = np.split(solved, 2, axis=1)
        self.variance = self._prior - _dots(self._vectors, self._of_vectors)

    def pulls(self, scales: Array) -> tuple[float, Array]:
        """See :class:`Witness`."""
        return 1.0, self._weights(scales).T * self._data.weights

    def attaining(self, scales: Array, moved: Array) -> Attaining:
        """See :class:`Witness`."""
        data, alpha, error = self._data, self._found.ridges, self.error
        weights = self._weights(scales)
        p = self._vectors - self._sign * np.multiply.outer(data.outcomes, scales)
        explained, size = _dots(weights, p), np.sqrt(_dots(weights, weights))
        length = np.sqrt(_dots(p, p))
        if len(self._reference):  # a difference has the errors of its terms
            length += np.sqrt(self.magnitudes * data.trace)
        # Errors of inner products, and of the weights, which count by their square.
        lost = 2 * error * (size * length + self.magnitudes) + (error * length) ** 2 / alpha
        lost += 4 * error * size**2 * (data.trace + alpha)
        # Of y, p has the scatter as one more direction, in which K is 0.
        of_scatter = WITHOUT_ROUNDING * data.scatter.least * scales**2 / alpha
        unexplained = self._prior - explained - of_scatter + lost
        # |phi(c) - sum_j w_j phi(x_j)|^2, where K w = p - alpha w
        squared = self._prior - 2 * _dots(weights, self._vectors) + explained - alpha * size**2
        squared = np.maximum(squared, 0.0) + 3 * lost
        largest = np.sqrt(np.max(np.diagonal(data.lower)))
        terms = np.abs(weights).sum(axis=0) * largest
        terms += len(self._reference) * np.sqrt(self.magnitudes)
        pulls = weights.T * data.weights
        return Attaining(unexplained, squared, 1.0, pulls, 1.0, error * terms)

    def _weights(self, scales: Array) -> Array:
        return self._of_vectors - self._sign * scales * self._of_outcomes


class OfInducingPoints(Witness):
    """Of the kernel k' of a sparse engine, which has the features of inducing points."""

    def __init__(
        self, known: Knowledge, sign: int, points: Array, found: Attained, reference: Array | None
    ) -> None:
        engine = cast(SparseEngine, known.engine)
        centres = engine.dictionary.inducing
        super().__init__(engine.data.kernel, centres, points, found, reference)
        self._dual, self._sign = engine.dual(self.targets), sign
        self.magnitudes = self._dual.magnitudes
        self.variance = self._dual.variance(found.ridges)
        self.error = self._dual.dictionary.least_residual

    def pulls(self, scales: Array) -> tuple[float, Array]:
        """See :class:`Witness`."""
        here = self.attaining(scales, np.zeros(len(scales)))
        return here.own, here.pulls

    def attaining(self, scales: Array, moved: Array) -> Attaining:
        """See :class:`Witness`."""
        here = self._dual.at(self._found.ridges, self._sign * scales, moved)
        of_reference = len(self._reference) * here.own * np.sqrt(self.magnitudes)
        lost = here.pulls_error + self._dual.error * of_reference
        return here._replace(pulls_error=lost)


def _dots(left: Array, right: Array) -> Array:
    return np.asarray(np.einsum("im,im->m", left, right))

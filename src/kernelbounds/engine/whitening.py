"""The matrix that gives the noise of all observations one scale and no correlation.

==================  ====================  =====================================================
code                symbol                meaning
==================  ====================  =====================================================
``weights``         w_s = sigma/sigma_s   of each observation, (t,)
``blocks``                                consecutive observations whose noise is correlated
``factor``          A = L^-1              of a block with the correlation matrix C = L L', (n, n)
``enlarging``       | |A| |^2             by how much products with A can enlarge squared errors
``condition``       kappa                 at least the condition number of C
``error``           e                     above the rounding errors of A: |A C A' - I| <= e
==================  ====================  =====================================================

Together they are the matrix M = A diag(w), where A is the identity but for the blocks. M y observes
M f_t with noise M eps that has the scale sigma in each row and is uncorrelated: M K M' and M k_t(x)
take the places of K and k_t(x) (``docs/mathematics/noise.md``). A is lower triangular, so that row
s is made of outcome s and those before it.

All factors are multiplied by 1 - e, so that |M eps| is never larger than it should be. From there
on M is what it is, rounded as it may be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from kernelbounds.arrays import EPS, Array

# The error of a factor in units of kappa EPS: this, and so much for each of its rows. Measured, it
# is below a fifth of that (``tests/test_correlated_noise.py``). The errors of products of a vector
# with the factor, (8 + n/4) sqrt(kappa) EPS, are at most four times as large.
FACTOR_ERRORS, FACTOR_ERRORS_PER_ROW = 4.0, 1 / 16


class NoiseBlock(NamedTuple):
    """Consecutive observations with correlated noise, from number ``start`` on."""

    start: int
    factor: Array  # A
    enlarging: float  # the square of the spectral norm of A with all entries made positive
    condition: float  # kappa

    @classmethod
    def of(cls, correlation: Array) -> NoiseBlock:
        """The block of all observations whose noise has a correlation matrix."""
        lower, failed = lapack.dpotrf(correlation, lower=1, clean=1)
        if failed:
            raise np.linalg.LinAlgError("the correlation matrix is not positive definite")
        factor = lapack.dtrtri(lower, lower=1)[0]
        return cls.restored(0, np.ascontiguousarray(factor * (1 - cls.restored(0, factor).error)))

    @classmethod
    def restored(cls, start: int, factor: Array) -> NoiseBlock:
        """The block with a known factor; 1 over its least singular value, squared, is |C|."""
        enlarging = float(np.linalg.norm(np.abs(factor), 2)) ** 2
        least = float(np.linalg.svd(factor, compute_uv=False)[-1])
        return cls(start, factor, enlarging, enlarging / least**2)

    @property
    def rows(self) -> slice:
        """The observations of the block."""
        return slice(self.start, self.start + len(self.factor))

    @property
    def error(self) -> float:
        """The error e of the factor."""
        per_row = FACTOR_ERRORS_PER_ROW * len(self.factor)
        return (FACTOR_ERRORS + per_row) * EPS * self.condition

    def at(self, start: int) -> NoiseBlock:
        """The same block, starting at another number."""
        return self._replace(start=start)

    def leading(self, count: int) -> NoiseBlock:
        """The first observations of the block, up to ``count`` of them."""
        return self._replace(factor=self.factor[:count, :count])


@dataclass(frozen=True)
class Whitening:
    """M = A diag(w), for t observations."""

    weights: Array
    blocks: tuple[NoiseBlock, ...] = ()

    @classmethod
    def none(cls) -> Whitening:
        """The whitening of no observations."""
        return cls(np.empty(0))

    @property
    def is_identity(self) -> bool:
        """Whether M = I."""
        return not self.blocks and bool(np.all(self.weights == 1))

    @property
    def error(self) -> float:
        """The largest e of the blocks; 0 where there are none."""
        return max((one.error for one in self.blocks), default=0.0)

    def then(self, other: Whitening) -> Whitening:
        """The whitening of these observations and of others after them."""
        count = len(self.weights)
        moved = (one.at(count + one.start) for one in other.blocks)
        return Whitening(np.append(self.weights, other.weights), (*self.blocks, *moved))

    def part(self, start: int, stop: int) -> Whitening:
        """The whitening of some of the observations; ``start`` is not inside a block."""
        assert not any(one.start < start < one.rows.stop for one in self.blocks)
        blocks = (
            one.leading(stop - one.start).at(one.start - start)
            for one in self.blocks
            if start <= one.start < stop
        )
        return Whitening(self.weights[start:stop], tuple(blocks))

    def times(self, vectors: Array) -> Array:
        """M v for vectors v along the last axis, (.., t)."""
        result = vectors * self.weights
        for one in self.blocks:
            result[..., one.rows] = result[..., one.rows] @ one.factor.T
        return np.asarray(result)

    def transposed_times(self, vectors: Array) -> Array:
        """M' v for vectors v along the last axis, (.., t)."""
        result = vectors.copy()
        for one in self.blocks:
            result[..., one.rows] = result[..., one.rows] @ one.factor
        return np.asarray(result * self.weights)

    def between(self, values: Array, other: Whitening) -> Array:
        """M G N' for the kernel's values G between these observations and others, (t, n)."""
        result = values * np.multiply.outer(self.weights, other.weights)
        for one in self.blocks:
            result[one.rows] = one.factor @ result[one.rows]
        for one in other.blocks:
            result[:, one.rows] = result[:, one.rows] @ one.factor.T
        return np.asarray(result)

    def of_matrix(self, values: Array) -> Array:
        """M G M' for the kernel matrix G of these observations, symmetric to the bit."""
        result = self.between(values, self)
        return (result + result.T) / 2 if self.blocks else result

    def errors(self, found: Array) -> Array:
        """Bounds on the errors of a computed M v, ``found``, beyond its last digits; (t,)."""
        errors = np.zeros(len(found))
        for one in self.blocks:
            # Twice that of A, which was multiplied by 1 - e, and at most 4 e for the products.
            errors[one.rows] = 6 * one.error * float(np.linalg.norm(found[one.rows]))
        return errors

    def sizes(self, deviations: Array) -> Array:
        """|M| d: the sum of the sizes of the terms in each row, for terms of sizes d; (t,)."""
        result = deviations * self.weights
        for one in self.blocks:
            result[one.rows] = np.abs(one.factor) @ result[one.rows]
        return np.asarray(result)

    @property
    def squared_weights(self) -> float:
        """At least |M v|^2 for every v with no |v_s| above 1; |w|^2 without blocks."""
        plain = self.weights.copy()
        total = 0.0
        for one in self.blocks:
            w, plain[one.rows] = self.weights[one.rows], 0.0
            sizes = np.abs(one.factor)
            error = (8 + len(w)) * EPS * (sizes.T @ sizes)
            total += float(w @ (np.abs(one.factor.T @ one.factor) + error) @ w)
        return total + float(plain @ plain)

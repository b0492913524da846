"""What is known of observations that are not kept."""

from __future__ import annotations

import copy

from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import EPS, Array
from kernelbounds.engine.sparse.statistics import Statistics
from kernelbounds.errors import InputError

# What an engine that keeps its observations has, in words.
KEPT_ELSEWHERE = {
    "points": "points",
    "outcomes": "outcomes",
    "observed": "outcomes",
    "weights": "noise scales",
    "lower": "kernel matrix",
    "gram": "kernel matrix",
}


class Summary:
    """What a sparse engine knows of its observations one by one: nothing but their number."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.count, self.trace = kernel, 0, 0.0
        self.accuracy = self.first_accuracy = EPS
        self.dim: int | None = None
        self.squared_weights = 0.0
        self.scatter = 0.0  # of outcomes at equal points, at least

    def accuracy_in(self, dim: int) -> float:
        """How precise the kernel's values are."""
        error = kernels.evaluation_error(self.kernel, dim)
        if error is None:
            raise InputError(
                f"a sparse engine needs a kernel of scikit-learn's, whose precision is known, got "
                f"{self.kernel}."
            )
        return EPS * max(1.0, error)

    def of(self, total: Statistics, dim: int) -> Summary:
        """The same of more observations."""
        other = copy.copy(self)
        other.count, other.trace, other.dim = total.count, total.trace, dim
        other.squared_weights = total.squared_weights
        return other

    def __getattr__(self, name: str) -> Array:
        if name in KEPT_ELSEWHERE:
            what = KEPT_ELSEWHERE[name]
            raise InputError(f"a sparse engine does not keep the {what} of its observations.")
        raise AttributeError(name)

"""The paper's synthetic kernel bandit problems (Sec. 7)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import Array, as_generator, as_scalar, as_whole, brief
from kernelbounds.bounds import Bound
from kernelbounds.errors import InputError
from kernelbounds.kernels import checked_kernel, mixture_scale
from kernelbounds.rkhs import RKHSFunction
from kernelbounds.sequence import ConfidenceSequence


@dataclass(frozen=True)
class SyntheticProblem:
    """Maximise f* over a fresh set of random actions in [0, 1]^d each round.

    Attributes
    ----------
    function : RKHSFunction
        f*.
    noise_scale : float
        Standard deviation of the Gaussian noise.
    actions_per_round : int
        How many actions there are to choose from.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> problem = kb.SyntheticProblem.draw(RBF(0.5), dim=2, rng=np.random.default_rng(0), norm=5.0)
    >>> round(problem.function.norm, 6)
    5.0
    """

    function: RKHSFunction
    noise_scale: float = 0.1
    actions_per_round: int = 100

    def __post_init__(self) -> None:
        if not isinstance(self.function, RKHSFunction):
            raise InputError(
                f"function must be a kernelbounds.RKHSFunction, got {brief(self.function)}."
            )
        noise_scale = as_scalar(self.noise_scale, "noise_scale", least=0.0)
        count = as_whole(self.actions_per_round, "actions_per_round", least=1)
        object.__setattr__(self, "noise_scale", noise_scale)
        object.__setattr__(self, "actions_per_round", count)

    @classmethod
    def draw(
        cls,
        kernel: Kernel,
        dim: int,
        rng: np.random.Generator,
        *,
        norm: float = 10.0,
        noise_scale: float = 0.1,
        centres: int = 20,
        actions_per_round: int = 100,
    ) -> SyntheticProblem:
        """A random problem: f* has random centres in [0, 1]^d, normal weights, and this norm."""
        as_generator(rng, "rng")
        d, n = as_whole(dim, "dim", least=1), as_whole(centres, "centres", least=1)
        function = RKHSFunction(checked_kernel(kernel), rng.random((n, d)), rng.standard_normal(n))
        return cls(function.rescaled(norm), noise_scale, actions_per_round)

    def actions(self, rng: np.random.Generator) -> Array:
        """The actions of one round, (n, d)."""
        return as_generator(rng, "rng").random(
            (self.actions_per_round, self.function.centres.shape[1])
        )

    def noise(self, rng: np.random.Generator) -> float:
        """The noise of one outcome."""
        return float(self.noise_scale * as_generator(rng, "rng").standard_normal())

    def values(self, points: Array) -> Array:
        """f* at points (m, d)."""
        return self.function(points)

    def sequence(
        self,
        bound: Bound | None = None,
        *,
        rounds: int = 1000,
        delta: float = 0.01,
        norm_bound: float | None = None,
        noise_scale: float | None = None,
    ) -> ConfidenceSequence:
        """A confidence sequence with the paper's settings: the true B and sigma, and its c."""
        kernel, dim = self.function.kernel, self.function.centres.shape[1]
        return ConfidenceSequence(
            kernel,
            self.function.norm * (1 + 1e-12) if norm_bound is None else norm_bound,
            self.noise_scale if noise_scale is None else noise_scale,
            delta,
            mixture_scale(kernel, dim, rounds),
            bound,
        )

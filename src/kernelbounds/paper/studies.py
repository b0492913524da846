"""Bounds on data that were simply collected, and on data that were not, as plain data.

A :class:`Study` is some runs of one way of collecting, a unit of work like a ``Cell`` of the
paper's experiments, and it is run and stored like one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the help of the command line has to be quick
    from sklearn.gaussian_process.kernels import Kernel


DELTA = 0.1
LENGTH_SCALE = 0.5
KERNELS = {"matern-5/2": 3, "rbf": 3, "matern-3/2": 1}  # with the dimension
# All with standard deviation sigma, and sub-Gaussian with scale sigma: +-sigma, and uniform on
# +-sqrt(3) sigma, for which E exp(s e/sigma) = sum 3^k s^2k/(2k+1)! and (2k+1)! >= 3^k 2^k k!.
LAWS = ("Gaussian", "Rademacher", "uniform")

# How the points come about, with the runs in a repetition; ``collecting.py`` has the rules. Only
# with the first of them are they fixed before the outcomes.
DESIGNS = {"fixed": 20, "policy": 10, "looks": 20, "hoped": 20, "striking": 20}

TIMES, LATE = (30, 100, 300), 1000  # observations; after so many, widths of a single run
POLICY_ROUNDS, LOOKS, SITES = 100, 300, 80  # at most
FULL = 1000  # rounds of the version with all of the runs


@dataclass(frozen=True)
class Study:
    """Some runs; functions depend on the kernel, the seed, the repetition and the run alone."""

    kernel: str
    design: str
    law: str
    repetition: int
    rounds: int = FULL
    seed: int = 0

    @property
    def name(self) -> str:
        """Unique among studies, and fit for a file."""
        kernel = self.kernel.replace("/", "_")
        run = f"T{self.rounds}-seed{self.seed}-{self.repetition}"
        return f"design-{self.design}-{kernel}-{self.law}-{run}"

    @property
    def method(self) -> str:
        """What its cost depends on."""
        return self.design

    @property
    def timed(self) -> bool:
        """Others may be run beside it."""
        return False

    @property
    def dim(self) -> int:
        """Of the inputs, which are in the unit cube."""
        return KERNELS[self.kernel]

    @property
    def runs(self) -> int:
        """In proportion to the rounds, so that a small version is small."""
        return max(2, DESIGNS[self.design] * min(self.rounds, FULL) // FULL)

    @property
    def times(self) -> list[int]:
        """After how many observations bounds are computed, where that is fixed beforehand."""
        most = min(self.rounds, POLICY_ROUNDS if self.design == "policy" else max(TIMES))
        return [t for t in TIMES if t <= most] or [most]

    def make_kernel(self) -> Kernel:
        """The scikit-learn kernel."""
        from sklearn.gaussian_process.kernels import RBF, Matern

        if self.kernel == "rbf":
            return RBF(LENGTH_SCALE)
        return Matern(LENGTH_SCALE, nu={"matern-5/2": 2.5, "matern-3/2": 1.5}[self.kernel])

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def studies(rounds: int, repetitions: int, seed: int) -> list[Study]:
    """All of them. Rules that look at outcomes meet all laws of noise with the first kernel only.

    Looking again at a single point has nothing to do with the kernel.
    """
    first = next(iter(KERNELS))
    return [
        Study(kernel, design, law, repetition, rounds, seed)
        for design in DESIGNS
        for kernel in KERNELS
        for law in LAWS
        if design == "fixed" or kernel == first or (law == "Gaussian" and design != "looks")
        for repetition in range(repetitions)
    ]

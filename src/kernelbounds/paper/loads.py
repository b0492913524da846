"""How much data an engine can bear, as plain data.

A :class:`Load` is one engine with so many observations, a unit of work like a ``Cell`` of the
paper's experiments, and it is run and stored like one; in a process of its own, so that its memory
is its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the help of the command line has to be quick
    from sklearn.gaussian_process.kernels import Kernel


NORM, NOISE, DELTA = 10.0, 0.1, 0.01
LENGTH_SCALE, DIM = 0.5, 3
CENTRES = 20
QUERIES = 1000  # points at which bounds are computed
SITES = 200  # different points, where observations are repeated

COUNTS = (250, 1000, 4000, 16_000, 64_000, 250_000, 1_000_000, 4_000_000, 10_000_000)
# With the inducing points that are given: so many that the bounds are at most a few percent wider.
KERNELS = {"rbf": 512, "matern-5/2": 1024}
ENGINES = ("exact", "sparse", "grown", "merged")
EXACT = 4000  # most observations: the kernel matrix has the square of this many entries
# Of the largest number of observations, this part for each kernel: rough kernels take ten times the
# time, for more inducing points and for what those do not see.
PART = {"rbf": 1.0, "matern-5/2": 1 / 15}


@dataclass(frozen=True)
class Load:
    """So many observations of one function, of which there is one for each kernel and seed."""

    kernel: str
    engine: str
    count: int
    seed: int = 0
    repetition: int = 0

    @property
    def name(self) -> str:
        """Unique among loads, and fit for a file."""
        kernel = self.kernel.replace("/", "_")
        return f"scale-{kernel}-{self.engine}-n{self.count}-seed{self.seed}-{self.repetition}"

    @property
    def method(self) -> str:
        """What its cost depends on."""
        return self.engine

    @property
    def timed(self) -> bool:
        """It is run with nothing beside it."""
        return True

    @property
    def inducing(self) -> int:
        """How many inducing points are given."""
        return KERNELS[self.kernel]

    def make_kernel(self) -> Kernel:
        """The scikit-learn kernel."""
        from sklearn.gaussian_process.kernels import RBF, Matern

        return RBF(LENGTH_SCALE) if self.kernel == "rbf" else Matern(LENGTH_SCALE, nu=2.5)

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def loads(rounds: int, kernels: Sequence[str], seed: int) -> list[Load]:
    """All of them, with up to the square of ``rounds`` observations: 1000 for a million."""
    return [
        Load(kernel, engine, count, seed)
        for kernel in KERNELS
        if kernel in kernels
        for engine in ENGINES
        for count in COUNTS
        if count <= max(rounds**2 * PART[kernel], COUNTS[0])
        and (engine != "exact" or count <= EXACT)
        and (engine == "sparse" or count <= 1_000_000)
    ]

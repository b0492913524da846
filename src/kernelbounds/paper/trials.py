"""How many rounds a certificate takes, as plain data.

A :class:`Trial` is one policy on one known function, a unit of work like a ``Cell`` of the paper's
experiments, and it is run and stored like one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the help of the command line has to be quick
    from sklearn.gaussian_process.kernels import Kernel


ROUNDS, REPETITIONS = 400, 3
NOISE, DELTA = 0.01, 0.05  # sigma is relative to the range of the function
SLACK = 1.5  # B over the function's norm
LEVELS = (0.2, 0.1, 0.05)  # of the range, to which the regret is certified

BOUNDS = ("CMM", "DMM")
MIXTURES = ("default", "paper")
# Of each function, nu and the length scale; inputs are in the unit cube.
KERNELS = {
    "wiggly": ((2.5, 0.25), (3.5, 0.5)),
    "branin": ((2.5, 0.5), (3.5, 1.0)),
    "reactor": ((2.5, 1.0), (3.5, 1.0)),
    "hartmann": ((2.5, 0.5), (3.5, 1.0)),
}


@dataclass(frozen=True)
class Trial:
    """KernelUCB on one function; the noise depends on the seed and the repetition alone."""

    function: str
    nu: float
    length_scale: float
    bound: str
    mixture: str
    repetition: int
    rounds: int = ROUNDS
    seed: int = 0

    @property
    def name(self) -> str:
        """Unique among trials, and fit for a file."""
        kernel = f"nu{self.nu:g}-l{self.length_scale:g}"
        run = f"T{self.rounds}-seed{self.seed}-{self.repetition}"
        return f"certificate-{self.function}-{kernel}-{self.bound}-{self.mixture}-{run}"

    @property
    def method(self) -> str:
        """What its cost depends on."""
        return self.bound

    @property
    def timed(self) -> bool:
        """Others may be run beside it."""
        return False

    def make_kernel(self) -> Kernel:
        """The scikit-learn kernel."""
        from sklearn.gaussian_process.kernels import Matern

        return Matern(length_scale=self.length_scale, nu=self.nu)

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def trials(rounds: int, repetitions: int, seed: int) -> list[Trial]:
    """All of them, with at most so many rounds and repetitions."""
    return [
        Trial(function, *kernel, bound, mixture, repetition, min(rounds, ROUNDS), seed)
        for function, kernels in KERNELS.items()
        for kernel in kernels
        for bound in BOUNDS
        for mixture in MIXTURES
        for repetition in range(min(repetitions, REPETITIONS))
    ]

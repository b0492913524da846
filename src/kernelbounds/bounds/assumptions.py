"""What is assumed of the unknown function and of the noise."""

from __future__ import annotations

from dataclasses import dataclass

from kernelbounds.arrays import as_scalar
from kernelbounds.errors import InputError

SMALLEST_NOISE = 1e-100  # its square must not vanish


@dataclass(frozen=True)
class Assumptions:
    """The constants of a confidence sequence.

    ================  ========  =====================================================
    name              paper     meaning
    ================  ========  =====================================================
    ``norm_bound``    B         ||f*|| <= B in the kernel's function space
    ``noise_scale``   sigma     the noise is sigma-sub-Gaussian; 0: there is none
    ``delta``         delta     all bounds hold at once with probability >= 1 - delta
    ``mixture_scale`` c         the mixture over guesses is N(0, c K_t)
    ================  ========  =====================================================
    """

    norm_bound: float
    noise_scale: float
    delta: float = 0.01
    mixture_scale: float = 1.0

    def __post_init__(self) -> None:
        limits = {
            "norm_bound": {"least": 0.0, "most": 1e100},
            "noise_scale": {"least": 0.0, "most": 1e100},
            "delta": {"above": 0.0, "most": 1.0},
            "mixture_scale": {"above": 0.0},
        }
        for name, limit in limits.items():
            object.__setattr__(self, name, as_scalar(getattr(self, name), name, **limit))
        if 0 < self.noise_scale < SMALLEST_NOISE:
            raise InputError(
                f"noise_scale must be 0 or at least {SMALLEST_NOISE:g}, got {self.noise_scale:g}."
            )

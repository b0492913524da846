"""What the guarantee of a bound covers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelbounds.errors import InputError

if TYPE_CHECKING:
    from kernelbounds.bounds.bound import Bound


@dataclass(frozen=True)
class Guarantee:
    """What holds with probability at least 1 - delta, and for which points and noise.

    Attributes
    ----------
    anytime : bool
        Whether the bounds hold after all numbers of observations together, so that one may look
        after each of them; else at one number, fixed beforehand.
    uniform : bool
        Whether they hold at all x together; else at each x on its own.
    adaptive : bool
        Whether the points of the data may have been chosen by looking at earlier outcomes. The
        noise is then what it is given all that was added before; else given all points.
    noise : str
        "sub-Gaussian", or "Gaussian" where it must be that, and independent.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> kb.CMM().guarantee
    Guarantee(anytime=True, uniform=True, adaptive=True, noise='sub-Gaussian')
    >>> print(kb.FixedDesign(noise="Gaussian").guarantee)
    one time, all x, fixed points, Gaussian noise
    """

    anytime: bool = True
    uniform: bool = True
    adaptive: bool = True
    noise: str = "sub-Gaussian"

    def __str__(self) -> str:
        return ", ".join(
            (
                "all times" if self.anytime else "one time",
                "all x" if self.uniform else "one x",
                "adaptive points" if self.adaptive else "fixed points",
                f"{self.noise} noise",
            )
        )

    @property
    def sequential(self) -> bool:
        """Whether one may choose where to observe next by the bounds, as policies do."""
        return self.anytime and self.uniform and self.adaptive


def require_sequential(bound: Bound) -> None:
    """Refuse a bound by which no points may be chosen."""
    if not bound.guarantee.sequential:
        raise InputError(
            "a policy looks at its bounds after every outcome, at all actions, and chooses by them "
            f"where to observe next, for which {bound!r} is not valid; use CMM()."
        )

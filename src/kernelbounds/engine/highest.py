"""The largest of many bounds, from ceilings that are cheap and few bounds that are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import Array

# Points that are evaluated at first where the highest is sought. In the paper's problems the
# highest is among the six highest ceilings in most rounds (``python -m benchmarks bandits``).
FEW = 6


class Largest(NamedTuple):
    """The largest of upper bounds on s f, at which of the points it is, and the bound on -s f
    there.
    """

    value: float
    at: int
    opposite: float

    @classmethod
    def of(cls, values: Array, opposite: Array, tie: float) -> Largest:
        """From both bounds at all points; places within ``tie`` of the largest tie for it."""
        value = float(values.max())
        tied = (values >= value - tie).nonzero()[0]
        return cls.widest(value, tied, opposite[tied], tie)

    @classmethod
    def widest(cls, value: float, tied: NDArray[np.intp], opposite: Array, tie: float) -> Largest:
        """Among points that tie for the largest, the first with the widest interval."""
        at = int((opposite >= opposite.max() - tie).argmax())
        return cls(value, int(tied[at]), float(opposite[at]))


def highest(
    ceilings: Array, tie: float, evaluate: Callable[[NDArray[np.intp]], Array | None]
) -> tuple[float, NDArray[np.intp]] | None:
    """The largest of m values, and the indices of all within ``tie`` of it, from few values.

    Values are at most their ceilings (m,), give or take a tie, and are evaluated where the
    ceilings are highest. None when an evaluation fails.
    """
    points = np.arange(len(ceilings))
    if len(ceilings) > FEW:
        points = np.sort(np.argpartition(-ceilings, FEW)[:FEW])
    while (values := evaluate(points)) is not None:
        best = float(values.max())
        open_ = ~(ceilings < best - 2 * tie)
        open_[points] = True
        if np.count_nonzero(open_) == len(points):
            return best, points[values >= best - tie]
        points = np.flatnonzero(open_)
    return None

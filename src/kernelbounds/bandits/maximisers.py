"""Maximise a bound over a box: what all maximisers have in common, and :class:`Ascent`.

:class:`Ascent` is fast and certifies nothing. Those that certify are in ``branch_and_bound.py``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from kernelbounds.arrays import Array, as_whole
from kernelbounds.bandits.domains import Box
from kernelbounds.surface import POINTS_AT_ONCE, Clipped, Surface

# Points that are looked at with facts, of those with the highest bounds without them, and as many
# from all over the box: a look with facts of three inputs takes milliseconds.
LOOKS_WITH_FACTS = 64
# Points that are looked at first where there is a deadline: how long they take says how many more
# there is time for. Consecutive ones in the order of a golden section are spread over the set.
FIRST_LOOK = 16
GOLDEN_SECTION = (math.sqrt(5) - 1) / 2


class Maximum(NamedTuple):
    """The result of a maximiser, which one of your own returns too.

    Attributes
    ----------
    x : array of shape (d,)
        The best point found.
    value : float
        The value there.
    ceiling : float
        An upper bound over the whole box; infinite where none is known.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.2], [0.8]], [0.1, 0.9])
    >>> box = kb.Box([0.0], [1.0])
    >>> found = kb.Grid(cells=50).maximise(seq.surface(1), box, starts=np.empty((0, 1)))
    >>> found.x.shape, found.value <= found.ceiling
    ((1,), True)
    """

    x: Array
    value: float
    ceiling: float = math.inf


class Maximiser(Protocol):
    """A way to maximise a surface over a box."""

    def maximise(self, surface: Surface | Clipped, box: Box, starts: Array) -> Maximum:
        """Find the maximum; ``starts`` (m, d) are points of the box worth a look, possibly none.

        Along a category there are levels only: ``box.faces()`` has a box for each combination.
        """


class Function(Protocol):
    """A function of x that :class:`Ascent` can maximise."""

    def values(self, points: Array) -> Array:
        """The values at points (m, d)."""


@runtime_checkable
class SmoothFunction(Function, Protocol):
    """A function that may have gradients, along which :class:`Ascent` then climbs."""

    @property
    def smooth(self) -> bool:
        """Whether the gradients are known."""

    def values_and_gradients(self, points: Array) -> tuple[Array, Array]:
        """The values (m,) and gradients (m, d), where the function is ``smooth``."""


class LowerBound:
    """The lower bound on s f*, to be maximised: minus the surface that bounds -s f* from above."""

    def __init__(self, opposite: Surface) -> None:
        self._opposite = Clipped(opposite)
        self.smooth = opposite.smooth

    def values(self, points: Array) -> Array:
        """See :class:`Function`."""
        return -self._opposite.values(points)

    def values_and_gradients(self, points: Array) -> tuple[Array, Array]:
        """See :class:`SmoothFunction`."""
        values, gradients = self._opposite.values_and_gradients(points)
        return -values, -gradients


@dataclass(frozen=True)
class Ascent:
    """A quasi-random scan of the box, and gradient ascent from the best points of it.

    Where the gradient in x is not known, a simplex method (Nelder-Mead) takes its place. No
    guarantee comes with either. Where there are categories, each combination of levels has a scan
    and ascents of its own.

    Parameters
    ----------
    scan : int
        The number of points of the scan.
    starts : int
        The number of ascents.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> ucb = kb.KernelUCB(seq, kb.Box([0.0], [1.0]), maximiser=kb.Ascent(scan=64, starts=2))
    >>> ucb.ask().x.shape
    (1,)
    """

    scan: int = 1024
    starts: int = 6

    def __post_init__(self) -> None:
        object.__setattr__(self, "scan", as_whole(self.scan, "scan", least=1))
        object.__setattr__(self, "starts", as_whole(self.starts, "starts", least=1))

    def maximise(
        self, surface: Function, box: Box, starts: Array, deadline: float = math.inf
    ) -> Maximum:
        """Find the best point of a surface, or another function, by a deadline.

        The deadline is a time as of ``time.monotonic``. Some points are looked at in any case.
        """
        faces = box.faces()
        if len(faces) > 1:
            return self._best_of_faces(surface, faces, starts, deadline)
        free = np.flatnonzero(box.upper > box.lower)
        points = np.concatenate([starts, box.filling(self.scan)])
        if isinstance(surface, Surface | Clipped) and surface.known.facts:
            points = _highest_without_facts(surface, points, deadline)
        seen = [(points[part], surface.values(points[part])) for part in in_time(points, deadline)]
        points, values = (np.concatenate(parts) for parts in zip(*seen, strict=True))
        at = int(values.argmax())
        best = Maximum(points[at], float(values[at]))
        if not len(free):
            return best._replace(ceiling=best.value)
        if best.value == math.inf:  # with few data, a bound may be infinite
            return best
        for start in spread(points, values, self.starts, box.lower, box.upper):
            if time.monotonic() >= deadline:
                break
            found = self._from(surface, box, points[start], free, deadline)
            if found.value > best.value:
                best = found
        return best

    def _best_of_faces(
        self, surface: Function, faces: list[Box], starts: Array, deadline: float
    ) -> Maximum:
        """Find the best point of several boxes, each with its share of the time that is left."""
        best = Maximum(faces[0].lower, -math.inf)
        for number, face in enumerate(faces):
            levels = list(face.categories)
            there = starts[(starts[:, levels] == face.lower[levels]).all(axis=1)]
            now = time.monotonic()
            found = self.maximise(
                surface, face, there, now + (deadline - now) / (len(faces) - number)
            )
            best = max(best, found, key=lambda one: one.value)
        # The ceiling of a box that is a point is the value there, if all of them are points.
        pointwise = np.array_equal(faces[0].lower, faces[0].upper)
        return best._replace(ceiling=best.value if pointwise else math.inf)

    def _from(
        self, function: Function, box: Box, start: Array, free: NDArray[np.intp], deadline: float
    ) -> Maximum:
        """Ascend from one point, in coordinates where the box is the unit cube."""
        low, width = box.lower[free], (box.upper - box.lower)[free]
        best = Maximum(start, -math.inf)
        climber = function if isinstance(function, SmoothFunction) and function.smooth else None

        def loss(unit: Array) -> float | tuple[float, Array]:
            """Minus the function, with its gradient if there is one; also keep the best point."""
            nonlocal best
            x = start.copy()
            x[free] = np.clip(low + unit * width, low, box.upper[free])
            if climber is None:
                values, gradients = function.values(x[None]), None
            else:
                values, gradients = climber.values_and_gradients(x[None])
            if values[0] > best.value:
                best = Maximum(x, float(values[0]))
            # SciPy's own callback comes once in an iteration, which takes many evaluations.
            if time.monotonic() >= deadline:
                raise _OutOfTimeError
            loss = -float(values[0])
            return loss if gradients is None else (loss, -gradients[0, free] * width)

        by_simplex = {"maxfev": 100 * len(free), "xatol": 1e-6, "fatol": 1e-9}
        with suppress(_OutOfTimeError):
            minimize(
                loss,
                (start[free] - low) / width,
                jac=climber is not None,
                method="Nelder-Mead" if climber is None else "L-BFGS-B",
                bounds=[(0.0, 1.0)] * len(free),
                options=by_simplex if climber is None else {"maxiter": 60},
            )
        return best


class _OutOfTimeError(Exception):
    """The deadline has passed."""


def in_time(points: Array, deadline: float) -> Iterator[NDArray[np.intp]]:
    """Choose points in parts, by their positions: one part, and more while there is time.

    A part takes at most half of the time left, if its points take as long as those before them.
    Each has points from all over the set, so that the parts before the deadline are not a corner
    of it.
    """
    if deadline == math.inf:
        yield np.arange(len(points))
        return
    order = np.argsort(np.arange(1, len(points) + 1) * GOLDEN_SECTION % 1.0, kind="stable")
    start, size = 0, FIRST_LOOK
    began = now = time.monotonic()
    while start < len(order) and (start == 0 or now < deadline):
        yield order[start : start + size]
        start, began, now = start + size, now, time.monotonic()
        affordable = (deadline - now) / max(2 * (now - began) / size, 1e-9)
        size = int(min(max(affordable, 1), POINTS_AT_ONCE))


def _highest_without_facts(surface: Surface | Clipped, points: Array, deadline: float) -> Array:
    """Choose the points worth a look with facts, which takes much longer than a look without.

    Facts only lower the bounds. So the points are those with the highest bounds without facts, and
    some from all over the box, since limits make the highest bounds equal.
    """
    if len(points) <= 2 * LOOKS_WITH_FACTS:
        return points
    rough, values = surface.without_facts(), np.full(len(points), -np.inf)
    for part in in_time(points, deadline):
        values[part] = rough.values(points[part])
    highest = np.argsort(-values, kind="stable")[:LOOKS_WITH_FACTS]
    spread = np.arange(0, len(points), -(-len(points) // LOOKS_WITH_FACTS))
    return points[np.union1d(highest, spread)]


def spread(points: Array, values: Array, count: int, lower: Array, upper: Array) -> list[int]:
    """Choose the best points of a box that are not too near to better ones, best first."""
    width = np.where(upper > lower, upper - lower, 1.0)
    chosen: list[int] = []
    for at in np.argsort(-values, kind="stable"):
        near = np.abs(points[chosen] - points[at]) / width
        if not chosen or near.max(axis=1).min() > 0.05:
            chosen.append(int(at))
        if len(chosen) == count:
            break
    return chosen

"""The evidence: the observations of a sequence, and what is carried along from one to the next."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np

from kernelbounds.arrays import EPS, Array
from kernelbounds.copies import CopiedWhole
from kernelbounds.engine import (
    Engine,
    ExactEngine,
    Forecasts,
    NoiseBlock,
    Outcomes,
    Whitening,
    with_single_observations,
)
from kernelbounds.functionals.targets import Functionals, Targets
from kernelbounds.mixtures.ledger import LossLedger
from kernelbounds.noise.unknown import ScaleForecasts
from kernelbounds.structure.classes import Classes, balls_of
from kernelbounds.structure.offset import Level, Offset
from kernelbounds.structure.parts import Parts, count_for_shares

# Without noise the reference ridge is this times the trace of the kernel matrix: twice the slack
# by which the engine raises eigenvalues, below which a ridge has no effect.
LEAST_RIDGE = 64 * EPS

T = TypeVar("T")


class Evidence(CopiedWhole):
    """The observations of a sequence, and what is carried along from one to the next.

    This is what changes as observations are added: the engines, the forecasts and their losses,
    and the shares of the parts. A :class:`ConfidenceSet` looks at it under certain assumptions.

    Where f* has parts, R_t comes from the kernel with equal shares (``radius_engine``), and all
    else from one with shares that suit the points (:meth:`engine`). Any kernel that is fixed in
    advance gives a valid R_t, and equal shares are.

    ``lock`` is held while a bound looks, while observations are added and while a copy is made, so
    that sequences may be used from several threads.
    """

    def __init__(
        self,
        engine: Engine,
        noise_unit: float,
        parts: Parts | None = None,
        offset: Offset | None = None,
        forecasts: Forecasts | None = None,
        classes: Classes | None = None,
    ) -> None:
        self.radius_engine = engine
        self.noise_unit = noise_unit  # the noise scale of an observation of weight 1
        self.classes = classes
        self._balls = () if classes is None else balls_of(classes, (offset or Offset()).within)
        self._of_balls = tuple(
            Evidence(ExactEngine(ball.kernel), noise_unit, ball.parts, offset)
            for ball in self._balls
        )
        self.parts, self.offset = parts, offset or Offset()
        self.ledger = LossLedger(forecasts)
        self._scale_forecasts = ScaleForecasts()
        self.growing = True  # False for a snapshot, which is only read
        self._lock = threading.RLock()
        self._shares: tuple[float, ...] = ()  # the shares of the parts in ``_shared``
        self._shared, self._decided_by = engine, 0  # the engine, and how many points chose
        self._keeps_shares = False  # see :meth:`keep_shares`
        self._kept: tuple[int, dict[Hashable, Any]] = 0, {}  # a count, and results at that count

    @property
    def lock(self) -> threading.RLock:
        """The lock of this object; copies have their own."""
        return self._lock

    def __setstate__(self, parts: dict[str, Any]) -> None:
        vars(self).update(parts)
        self._lock = threading.RLock()

    def _parts(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def snapshot(self) -> Evidence:
        """The observations so far, to be read only; its fits do not crowd out those of this one."""
        other = Evidence.__new__(Evidence)
        other.__setstate__(self._parts())
        shared, engine = self._shared, self.radius_engine.snapshot()
        other.radius_engine, other.ledger = engine, copy.copy(self.ledger)
        other._scale_forecasts = copy.copy(self._scale_forecasts)
        other._shared = engine if shared is self.radius_engine else shared.snapshot()
        other._of_balls = tuple(one.snapshot() for one, _ in self.in_balls())
        other.growing, other._kept = False, (self._kept[0], dict(self._kept[1]))
        return other

    def with_ledger(self, ledger: LossLedger) -> Evidence:
        """The same observations and engines, with the losses of another noise scale."""
        other = copy.copy(self)
        other.ledger = ledger
        return other

    @property
    def scale_forecasts(self) -> ScaleForecasts:
        """Forecasts of all outcomes so far, which bound the noise scale from above.

        They need the single observations, which a sparse engine does not keep.
        """
        engine = with_single_observations(
            self.radius_engine,
            "an upper bound on the noise scale",
            "state a noise scale, and ask a sequence without engine=",
        )
        self._scale_forecasts.extend(engine)
        return self._scale_forecasts

    @property
    def count(self) -> int:
        """The number of observations, t."""
        return self.radius_engine.data.count

    def known_level(self, points: Targets) -> Level | None:
        """The known level at points, or of functionals; None where it is 0."""
        if self.offset.constant == 0:
            return None
        if isinstance(points, Functionals):
            return points.of_mean(self.offset)
        return Level(self.offset.at(points))

    def add(
        self,
        points: Array,
        outcomes: Array,
        noise_scales: Array | None = None,
        block: NoiseBlock | None = None,
    ) -> None:
        """Add observations, with noise scales of their own (n,) or the usual one.

        ``block`` is of all of them, where their noise is correlated.
        """
        with self.lock:
            new = self.for_engine(points, outcomes, noise_scales, block)
            self.radius_engine.append(points, new)

    def for_engine(
        self,
        points: Array,
        outcomes: Array,
        noise_scales: Array | None,
        block: NoiseBlock | None = None,
    ) -> Outcomes:
        """Outcomes as an engine takes them; ``noise_scales`` are their own, None: the usual one."""
        if noise_scales is None:
            return self.with_whitening(points, outcomes, Whitening(np.ones(len(points))))
        blocks = () if block is None else (block,)
        whitening = Whitening(self.noise_unit / noise_scales, blocks)
        return self.with_whitening(points, outcomes, whitening)

    def with_whitening(self, points: Array, outcomes: Array, whitening: Whitening) -> Outcomes:
        """Outcomes as an engine takes them: less the known level, and with M, which it applies."""
        level = self.known_level(points)
        centred = outcomes if level is None else outcomes - level.values
        return Outcomes(outcomes, centred, whitening.weights, whitening.blocks)

    def engine(self, misfit: float) -> Engine:
        """Kernel ridge regression with shares of the parts that suit the points.

        ``misfit`` is how far a typical outcome may be from a function of norm at most B.
        """
        engine, parts = self.radius_engine, self.parts
        if parts is None or not isinstance(engine, ExactEngine):  # Others cannot be read again.
            return engine
        data = engine.data
        n = self._decided_by if self._keeps_shares else count_for_shares(data.count)
        if n != self._decided_by or not self._shares:
            self._shares, self._decided_by = parts.equal_shares, n
            self._shared = engine
            if n:
                # These points alone decide, whenever the shares are asked for.
                trace = float(data.prior[:n].sum())
                ridge = n * misfit**2 + LEAST_RIDGE * max(trace, 1e-100)
                whitening = data.whitening.part(0, n)
                self._shares = parts.shares(
                    data.points[:n], whitening.of_matrix, ridge, LEAST_RIDGE
                )
                self._shared = ExactEngine(parts.kernel(self._shares))
        self._bring_up_to_date(self._shared)
        return self._shared

    def _bring_up_to_date(self, engine: Engine) -> None:
        """Give another engine the observations that it does not have yet."""
        data = self.radius_engine.data
        blocks = data.whitening.blocks
        # A block of correlated noise is appended by itself, as it was.
        ends = {end for one in blocks for end in (one.rows.start, one.rows.stop)}
        start = engine.data.count
        for stop in sorted({end for end in ends if end > start} | {data.count}):
            if stop > start:
                points, M = data.points[start:stop], data.whitening.part(start, stop)
                engine.append(points, self.with_whitening(points, data.observed[start:stop], M))
            start = stop

    def in_balls(self) -> list[tuple[Evidence, float]]:
        """The same observations for each of several classes, with the norm bound of the class."""
        for one in self._of_balls:
            self._bring_up_to_date(one.radius_engine)
        norms = [ball.norm_bound for ball in self._balls]
        return list(zip(self._of_balls, norms, strict=True))

    def shares(self, misfit: float) -> tuple[float, ...]:
        """The shares of the parts in :meth:`engine`; empty where they are always equal."""
        return self._shares if self.engine(misfit) is self._shared else ()

    def keep_shares(self, misfit: float) -> None:
        """Keep the shares of the parts that the observations so far decide on.

        So the space in which f* has norm at most 1 stays the same, whatever is added.
        """
        self.engine(misfit)  # This decides on the shares.
        self._keeps_shares = True

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` returns, computed once for each key and number of observations."""
        if self._kept[0] != self.count:
            self._kept = self.count, {}
        kept = self._kept[1]
        if key not in kept:
            kept[key] = make()
        found: T = kept[key]
        return found

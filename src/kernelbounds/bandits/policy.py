"""What all policies do: take outcomes, keep records, certify, save and resume.

Inside, everything is a maximisation of s f*, with the sign s = -1 when minimising:
``surface(s)`` is the optimistic bound on s f* and minus ``surface(-s)`` the pessimistic one.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import (
    Array,
    as_flag,
    as_observations,
    as_outcome,
    as_points,
    as_rows,
    as_scalar,
    as_whole,
    brief,
)
from kernelbounds.bandits import saving
from kernelbounds.bandits.branch_and_bound import BranchAndBound
from kernelbounds.bandits.certificates import certify_box, certify_finite
from kernelbounds.bandits.domains import Box, Domain, Finite, checked_domain
from kernelbounds.bandits.progress import late_progress
from kernelbounds.bandits.records import Certificate, History, Suggestion
from kernelbounds.bandits.tracker import Tracker
from kernelbounds.bounds import CMM, Bound
from kernelbounds.errors import EmptyConfidenceSetError, InputError
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.surface import Surface

Points = ArrayLike | Mapping[str, float] | Suggestion | Sequence[Suggestion]
OUTCOME = "the outcome of an experiment"


class Policy(ABC):
    """Chooses actions, learns from outcomes, and knows how good its best action provably is.

    Parameters
    ----------
    sequence : ConfidenceSequence
        It is used as it is and updated by :meth:`tell`. It may hold observations already.
    domain : Box or Finite, optional
        None: each :meth:`ask` brings its own actions.
    minimise : bool
        Whether small values of f* are wanted.
    """

    def __init__(
        self, sequence: ConfidenceSequence, domain: Domain | None = None, *, minimise: bool = False
    ) -> None:
        if not isinstance(sequence, ConfidenceSequence):
            raise InputError(f"sequence must be a ConfidenceSequence, got {brief(sequence)}.")
        self.sequence = sequence
        self.domain = checked_domain(domain, sequence.dim)
        if self.domain is not None:  # does the kernel take such points?
            kernels.diagonal(sequence.kernel, self.domain.example)
            kernels.cross(sequence.kernel, self.domain.example, self.domain.example)
        self.minimise = as_flag(minimise, "minimise")
        self._sign = -1 if minimise else 1
        self._tracker = Tracker(domain.points) if isinstance(domain, Finite) else None
        self._pending: list[Array] = []
        self._asked: dict[bytes, tuple[float, float, float]] = {}  # lower, upper, limit
        self._records: list[tuple[float, float, float]] = []

    def __repr__(self) -> str:
        aim = ", minimise=True" if self.minimise else ""
        return f"{type(self).__name__}({self.sequence!r}, {self.domain!r}{aim})"

    # --- choosing

    @overload
    def ask(
        self, actions: ArrayLike | None = ..., *, fixed: Mapping[Any, float] | None = ...
    ) -> Suggestion: ...
    @overload
    def ask(
        self, actions: ArrayLike | None = ..., *, fixed: Mapping[Any, float] | None = ..., n: int
    ) -> list[Suggestion]: ...
    def ask(
        self,
        actions: ArrayLike | None = None,
        *,
        fixed: Mapping[Any, float] | None = None,
        n: int | None = None,
    ) -> Suggestion | list[Suggestion]:
        """The action to try next. Asking changes nothing: ask again, and the answer is the same.

        Parameters
        ----------
        actions : array of shape (m, d), optional
            The actions there are in this round, in place of the domain.
        fixed : dict, optional
            Coordinates of the box, by name or position, that are given in this round.
        n : int, optional
            Ask for a list of so many, to be tried in parallel. Each is chosen as if the ones
            before it, and the pending ones, had had an outcome in the middle of its bounds; the
            bounds reported come from real outcomes only.
        """
        space = self._space(actions, fixed)
        found = self._choose(space, 1 if n is None else as_whole(n, "n", least=1))
        for one in found:
            self._remember(one)
        return found[0] if n is None else found

    def _remember(self, one: Suggestion) -> None:
        """What is known of an action, for when its outcome is told.

        Asked for in several rounds before that, it may be told for any of them: the loosest holds.
        """
        worst = max if self._sign == 1 else min
        new = one.lower, one.upper, one.limit
        old = self._asked.get(key_of(one.x), new)
        self._asked[key_of(one.x)] = (
            min(old[0], new[0]), max(old[1], new[1]), worst(old[2], new[2])
        )  # fmt: skip

    @abstractmethod
    def _choose(self, space: Domain, count: int) -> list[Suggestion]:
        """So many actions of a finite set or a box, without a change of state."""

    def begin(self, X: Points) -> None:
        """Say that trials of these actions are under way, so that others are asked for next.

        Actions are given as for :meth:`tell`.

        An action is pending until its outcome is told.
        """
        self._pending += list(self._as_actions(X))

    @property
    def pending(self) -> Array:
        """The actions under way, (n, d), in the order of :meth:`begin`."""
        return np.array(self._pending).reshape(len(self._pending), self._dim or 0)

    # --- learning

    def tell(self, X: Points, y: ArrayLike) -> None:
        """Add outcomes, of actions that were asked for or others, one or many, in any order.

        As :meth:`ConfidenceSequence.update`, and suggestions or, for a box with names, dicts may
        take the place of points. When an error is raised nothing has changed.
        """
        points, outcomes = as_observations(self._by_name(X), y, self._dim)
        records = self._records_of(points)
        self.sequence.update_checked(points, outcomes)
        self._records += records
        for point in points:
            waiting = [at for at, one in enumerate(self._pending) if np.array_equal(one, point)]
            if waiting:
                del self._pending[waiting[0]]
            if len(waiting) < 2:
                self._asked.pop(key_of(point), None)
        self._told()

    def _told(self) -> None:
        """For policies that change state with every call of :meth:`tell`."""
        return

    def _records_of(self, points: Array) -> list[tuple[float, float, float]]:
        """Lower and upper bound and limit of each point, from before its outcome."""
        found = [self._asked.get(key_of(point)) for point in points]
        if None in found:
            try:
                lower, upper = self.sequence.bounds(points)
                limit = self._sign * math.inf  # among which actions it was chosen is not known
            except EmptyConfidenceSetError:
                # The next ask will say so; outcomes are taken all the same.
                lower = upper = np.full(len(points), math.nan)
                limit = math.nan
            fresh = [(float(a), float(b), limit) for a, b in zip(lower, upper, strict=True)]
            return [old or new for old, new in zip(found, fresh, strict=True)]
        return [entry for entry in found if entry is not None]

    @property
    def history(self) -> History:
        """What was known of each action told, before its outcome."""
        lower, upper, limit = np.array(self._records).reshape(-1, 3).T
        return History(lower, upper, limit, self.minimise)

    # --- certifying

    def certificate(
        self,
        actions: ArrayLike | None = None,
        *,
        fixed: Mapping[Any, float] | None = None,
        tolerance: float | None = None,
        seconds: float = 10.0,
    ) -> Certificate:
        """The best action known, and how far from optimal it can be at most.

        Over a box the maximum is certified by :class:`BranchAndBound` with this tolerance and
        time limit; when time runs out first, the certificate is looser and as true.
        """
        maximiser = BranchAndBound(tolerance, seconds)
        return self._certify(self._space(actions, fixed), maximiser, math.inf)

    def _certify(self, space: Domain, maximiser: BranchAndBound, enough: float) -> Certificate:
        """A certificate; only good enough to tell whether the regret is below ``enough``."""
        optimistic, pessimistic = self._surface(self._sign), self._surface(-self._sign)
        if isinstance(space, Finite):
            limit = self._highest(space)[0]
            return certify_finite(optimistic, pessimistic, space.points, limit)
        played = np.clip(self.sequence.points.reshape(-1, space.dim), space.lower, space.upper)
        return certify_box(optimistic, pessimistic, space, played, maximiser, enough)

    # --- running

    def run(
        self,
        experiment: Callable[[Array], float],
        rounds: int,
        *,
        batch: int = 1,
        stop_when_regret_below: float | None = None,
        save_to: str | PathLike[str] | None = None,
    ) -> History:
        """Ask, try and tell, for a number of rounds or until the best action is good enough.

        Parameters
        ----------
        experiment : function of an action (d,) that returns its outcome
        rounds : int
            Stop after so many at the latest.
        batch : int
            Actions to ask for at a time; each counts as a round.
        stop_when_regret_below : float, optional
            Stop as soon as :meth:`certificate` has a smaller regret than this.
        save_to : path, optional
            Save the policy there after every :meth:`tell`.
        """
        total = as_whole(rounds, "rounds", least=1)
        size = as_whole(batch, "batch", least=1)
        if not callable(experiment):
            raise InputError(
                f"experiment must be a function of an action, got {brief(experiment)}."
            )
        if save_to is not None:
            saving.check(self, save_to)
        enough = stop_when_regret_below
        if enough is not None:
            enough = as_scalar(enough, "stop_when_regret_below", above=0.0)
        if enough is not None and len(self.sequence) and self._good_enough(enough):
            return self.history
        done = 0
        with late_progress("running", total) as report:
            while done < total:
                found = self.ask(n=min(size, total - done))
                outcomes = [as_outcome(experiment(one.x.copy()), OUTCOME) for one in found]
                self.tell(np.array([one.x for one in found]), outcomes)
                done += len(found)
                if save_to is not None:
                    self.save(save_to)
                report(f"round {done} of {total}", done)
                if enough is not None and self._good_enough(enough):
                    break
        return self.history

    def _good_enough(self, enough: float) -> bool:
        maximiser = BranchAndBound(tolerance=enough / 4)
        return self._certify(self._space(None, None), maximiser, enough).regret < enough

    # --- saving

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one file, atomically; see :meth:`load`."""
        saving.save(self, path)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        kernel: Kernel | None = None,
        bound: Bound | None = None,
    ) -> Self:
        """Read a policy written by :meth:`save`; it goes on as if never interrupted.

        ``kernel`` and ``bound`` as for :meth:`ConfidenceSequence.load`: needed only for those of
        your own.
        """
        return saving.load(cls, path, kernel, bound)

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """What a subclass has to save, JSON-ready."""

    @abstractmethod
    def _restore(self, settings: dict[str, Any]) -> None:
        """The inverse of :meth:`_settings`."""

    # --- helpers

    @property
    def _dim(self) -> int | None:
        if self.domain is not None:
            return self.domain.dim
        return len(self._pending[0]) if self._pending else self.sequence.dim

    def _surface(self, sign: int) -> Surface:
        return self.sequence.surface(sign)

    def _space(self, actions: ArrayLike | None, fixed: Mapping[Any, float] | None) -> Domain:
        """The set to choose from in this round."""
        if actions is not None:
            if fixed is not None:
                raise InputError("pass either actions or fixed, not both.")
            return Finite.of_checked(as_points(actions, "actions", self._dim))
        if self.domain is None:
            raise InputError(
                "there is nothing to choose from: pass actions=, or a domain (kernelbounds.Box or "
                "Finite) when the policy is made."
            )
        if fixed is None:
            return self.domain
        if not isinstance(self.domain, Box):
            raise InputError("fixed needs a Box as domain.")
        return self.domain.fixed(fixed)

    def _highest(self, space: Finite) -> tuple[float, int]:
        """The largest optimistic bound on s f* over a finite set, and where."""
        surface = self._surface(self._sign)
        if space is self.domain and self._tracker is not None:
            return self._tracker.maximum(surface, np.ones(len(space.points), dtype=bool))
        values = surface.values(space.points)
        return float(values.max()), int(values.argmax())

    def _available(self, space: Finite, taken: list[Array]) -> NDArray[np.bool_]:
        """Which points of a finite set may be asked for, when some are taken in this batch."""
        free = np.ones(len(space.points), dtype=bool)
        if space.once:
            used = {key_of(point) for point in (*self.sequence.points, *self._pending, *taken)}
            free = np.array([key_of(point) not in used for point in space.points])
            if not free.any():
                here = f" or are in this batch of more than {len(taken)}" if taken else ""
                raise InputError(
                    f"all {len(free)} actions of the domain have been tried or are pending{here}, "
                    "and once=True allows each of them one trial."
                )
        return free

    def _believing(self, points: list[Array]) -> ConfidenceSequence:
        """The sequence as if each point had had an outcome in the middle of its bounds."""
        believed = copy.deepcopy(self.sequence)
        for point in points:
            believe(believed, point)
        return believed

    def _suggestion(self, space: Domain, x: Array, limit: float, index: int | None) -> Suggestion:
        lower, upper = (float(part[0]) for part in self.sequence.bounds(x[None]))
        named = space.named_values(x) if isinstance(space, Box) else {}
        return Suggestion(x.copy(), lower, upper, self._sign * limit, index, named)

    def _by_name(self, X: Any) -> Any:
        """Points, where they are dicts, as numbers."""
        if isinstance(X, Suggestion):
            return X.x
        if isinstance(X, Mapping):
            if not isinstance(self.domain, Box):
                raise InputError("a point can be a dict only for a Box with names.")
            return self.domain.point(X)
        if isinstance(X, list | tuple) and X and isinstance(X[0], Mapping | Suggestion):
            return [self._by_name(one) for one in X]
        return X

    def _as_actions(self, X: Points) -> Array:
        return as_points(as_rows(self._by_name(X), "X"), "X", self._dim)


def key_of(point: Array) -> bytes:
    """Equal for equal points, and for minus zero and zero."""
    return (point + 0.0).tobytes()


def believe(sequence: ConfidenceSequence, point: Array) -> None:
    """Add an outcome in the middle of the exact bounds.

    Some function in the confidence set has that value there, and stays in the set as the radius
    grows: what is believed refutes nothing.
    """
    try:
        lower, upper = sequence.bounds(point[None], bound=CMM())
    except EmptyConfidenceSetError:  # which the sequence's own bound has not noticed
        lower, upper = sequence.bounds(point[None])
    sequence.update(point[None], (lower + upper) / 2)

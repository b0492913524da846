"""What all policies do: take outcomes, keep records, certify, save and resume.

Inside, everything is a maximisation of s f*, with the sign s = -1 when minimising:
``surface(s)`` is the optimistic bound on s f* and minus ``surface(-s)`` the pessimistic one.

What a policy remembers of its actions: which are pending, and what was known of each.

Actions as users give them: arrays, suggestions, or dicts of named coordinates.
"""

from __future__ import annotations

import math
import threading
import warnings
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import Array, as_flag, as_observations, as_points, as_rows, as_whole, brief
from kernelbounds.assume.offset import Offset
from kernelbounds.assume.parts import Parts
from kernelbounds.bandits import saving, saving as running
from kernelbounds.bandits.certificates import (
    Certificate,
    History,
    Suggestion,
    certify_box,
    certify_finite,
)
from kernelbounds.bandits.domains import Box, Domain, Finite, checked_domain
from kernelbounds.bandits.maximisers import BranchAndBound
from kernelbounds.bandits.tracker import Tracker, limited_values
from kernelbounds.bounds import Bound
from kernelbounds.bounds.bound import require_sequential
from kernelbounds.copies import CopiedWhole
from kernelbounds.errors import EmptyConfidenceSetError, InputError, KernelBoundsError
from kernelbounds.mixtures import Mixture
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.surface import Surface

Entry = tuple[float, float, float]  # lower and upper bound, and limit, before the outcome


class Ledger:
    """Actions asked for, under way, and told."""

    def __init__(self, minimise: bool) -> None:
        self._minimise = minimise
        self.pending: list[Array] = []
        self.asked: dict[bytes, Entry] = {}
        self._told = array("d")  # entries one after the other: 24 bytes a round, however many

    def ask(self, one: Suggestion) -> None:
        """Keep what is known of an action until its outcome is told.

        Asked for in several rounds before that, it may be told for any of them: the loosest holds.
        """
        key, worst = key_of(one.x), min if self._minimise else max
        lower, upper, limit = self.asked.get(key, (one.lower, one.upper, one.limit))
        self.asked[key] = min(lower, one.lower), max(upper, one.upper), worst(limit, one.limit)

    def was_asked(self, point: Array) -> bool:
        """Whether an action was asked for and not told since."""
        return key_of(point) in self.asked

    def entries(self, points: Array, others: Callable[[Array], list[Entry]]) -> list[Entry]:
        """What was known of actions; of those that were not asked for, what ``others`` says."""
        found = [self.asked.get(key_of(point)) for point in points]
        if None in found:
            return [old or new for old, new in zip(found, others(points), strict=True)]
        return [entry for entry in found if entry is not None]

    def tell(self, points: Array, entries: list[Entry]) -> None:
        """Outcomes of these actions are known."""
        self.record(entries)
        for point in points:
            waiting = [at for at, one in enumerate(self.pending) if np.array_equal(one, point)]
            if waiting:
                del self.pending[waiting[0]]
            if len(waiting) < 2:
                self.asked.pop(key_of(point), None)

    def record(self, entries: Iterable[Entry]) -> None:
        """Add what was known of actions that are told."""
        for entry in entries:
            self._told.extend(entry)

    @property
    def told(self) -> Array:
        """What was known of the actions told, (n, 3); a copy."""
        return np.array(self._told).reshape(-1, 3)

    @property
    def history(self) -> History:
        """What was known of each action told, before its outcome."""
        lower, upper, limit = self.told.T
        return History(lower, upper, limit, self._minimise)


def key_of(point: Array) -> bytes:
    """Equal for equal points, and for minus zero and zero."""
    return (point + 0.0).tobytes()


Points = ArrayLike | Mapping[str, float] | Suggestion | Sequence[Suggestion]


def by_position(X: Any, domain: Domain | None) -> Any:
    """Points, where they are suggestions or dicts, as numbers."""
    if isinstance(X, Suggestion):
        return X.x
    if isinstance(X, Mapping):
        if not isinstance(domain, Box):
            raise InputError("a point can be a dict only for a Box with names.")
        return domain.point(X)
    if isinstance(X, list | tuple) and X and isinstance(X[0], Mapping | Suggestion):
        return [by_position(one, domain) for one in X]
    return X


def as_actions(X: Points, domain: Domain | None, dim: int | None) -> Array:
    """One action or several, (n, d)."""
    return as_points(as_rows(by_position(X, domain), "X"), "X", dim)


def space_of(
    domain: Domain | None,
    dim: int | None,
    actions: ArrayLike | None,
    fixed: Mapping[Any, float] | None,
) -> Domain:
    """The set to choose from in a round."""
    if actions is not None:
        if fixed is not None:
            raise InputError("pass either actions or fixed, not both.")
        return Finite.of_checked(as_points(actions, "actions", dim))
    if domain is None:
        raise InputError(
            "there is nothing to choose from: pass actions=, or a domain (kernelbounds.Box or "
            "Finite) when the policy is made."
        )
    if fixed is None:
        return domain
    if not isinstance(domain, Box):
        raise InputError("fixed needs a Box as domain.")
    return domain.fixed(fixed)


def warn_if_outside(box: Box, points: Array, stacklevel: int) -> None:
    """Outcomes elsewhere are data as good as others, but perhaps the units are wrong."""
    outside = (points < box.lower) | (points > box.upper)
    if outside.any():
        row, at = np.argwhere(outside)[0]
        warnings.warn(
            f"{int(outside.any(axis=1).sum())} of {len(points)} points told are outside of the "
            f"box, the first with {points[row, at]:g} in coordinate {box.label(at)}, which is "
            f"between {box.lower[at]:g} and {box.upper[at]:g}; the outcomes are used as data.",
            stacklevel=stacklevel + 1,
        )


class Policy(CopiedWhole, ABC):
    """Chooses actions, learns from outcomes, and knows how good its best action provably is.

    A policy of one's own implements :meth:`choose`, and :meth:`settings` and :meth:`restore` if it
    has something of its own to save. It may use ``sequence``, ``sign``, ``pending``,
    :meth:`surface`, :meth:`limit`, :meth:`available` and :meth:`suggestion`. To be loaded from a
    file it must be possible to make it from the arguments below alone.

    Parameters
    ----------
    sequence : ConfidenceSequence
        It is used as it is and updated by :meth:`tell`. It may hold observations already.
    domain : Box or Finite, optional
        None: each :meth:`ask` brings its own actions.
    minimise : bool
        Whether small values of f* are wanted.

    Examples
    --------
    The policy that tries the action of which the least is known, on finite sets:

    >>> import kernelbounds as kb
    >>> class MostUncertain(Policy):
    ...     def choose(self, space, count):
    ...         lower, upper = self.sequence.bounds(space.points)
    ...         widest = np.argsort(lower - upper, kind="stable")[:count]
    ...         limit = self.limit(space)
    ...         return [self.suggestion(space, space.points[i], limit, int(i)) for i in widest]
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> policy = MostUncertain(seq, kb.Finite([[0.0], [0.1], [1.0]]))
    >>> policy.tell([0.0], 0.3)
    >>> policy.ask().index
    2
    """

    def __init__(
        self, sequence: ConfidenceSequence, domain: Domain | None = None, *, minimise: bool = False
    ) -> None:
        if not isinstance(sequence, ConfidenceSequence):
            raise InputError(f"sequence must be a ConfidenceSequence, got {brief(sequence)}.")
        require_sequential(sequence.bound)
        self.sequence = sequence
        self.domain = checked_domain(domain, sequence.dim)
        if self.domain is not None:  # does the kernel take such points?
            kernels.diagonal(sequence.kernel, self.domain.example)
            kernels.cross(sequence.kernel, self.domain.example, self.domain.example)
        self.minimise = as_flag(minimise, "minimise")
        self.sign = -1 if minimise else 1
        self.tracker = Tracker(domain.points) if isinstance(domain, Finite) else None
        self.ledger = Ledger(self.minimise)

    def __repr__(self) -> str:
        aim = ", minimise=True" if self.minimise else ""
        return f"{type(self).__name__}({self.sequence!r}, {self.domain!r}{aim})"

    @property
    def lock(self) -> threading.RLock:
        """That of the sequence, which every method holds while it works."""
        return self.sequence.known.lock

    @property
    def dim(self) -> int | None:
        """The dimension of actions; None while it is not known."""
        if self.domain is not None:
            return self.domain.dim
        return len(self.ledger.pending[0]) if self.ledger.pending else self.sequence.dim

    # --- what a policy of one's own implements

    @abstractmethod
    def choose(self, space: Domain, count: int) -> list[Suggestion]:
        """So many actions of a finite set or a box, without a change of state."""

    def told(self) -> None:
        """Called at the end of every :meth:`tell`, for policies whose state then changes."""
        return

    def settings(self) -> dict[str, Any]:
        """What a subclass has to save, JSON-ready."""
        return {}

    def restore(self, settings: dict[str, Any]) -> None:
        """The inverse of :meth:`settings`, called when a file is loaded."""
        return

    # --- choosing and learning

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
        with self.lock:
            space = space_of(self.domain, self.dim, actions, fixed)
            count = 1 if n is None else as_whole(n, "n", least=1)
            found = self.choose(space, count)
            if len(found) != count or not all(isinstance(one, Suggestion) for one in found):
                raise KernelBoundsError(
                    f"{type(self).__name__}.choose() must return a list of {count} Suggestion(s), "
                    f"got {brief(found)}."
                )
            for one in found:
                self.ledger.ask(one)
        return found[0] if n is None else found

    def begin(self, X: Points) -> None:
        """Say that trials of these actions are under way, so that others are asked for next.

        Actions are given as for :meth:`tell`. An action is pending until its outcome is told.
        """
        with self.lock:
            self.ledger.pending += list(as_actions(X, self.domain, self.dim))

    @property
    def pending(self) -> Array:
        """The actions under way, (n, d), in the order of :meth:`begin`."""
        with self.lock:
            waiting = self.ledger.pending
            return np.array(waiting).reshape(len(waiting), self.dim or 0)

    def tell(self, X: Points, y: ArrayLike, noise_scale: ArrayLike | None = None) -> None:
        """Add outcomes, of actions that were asked for or others, one or many.

        They may come in another order than that of :meth:`ask`, if neither it nor the actions told
        before depend on outcomes that are not told yet: each must have sub-Gaussian noise given all
        that was told before, and given that it is the next to be told. If bad runs take longer, or
        fail, tell all of them in the order in which they were begun. An outcome by which somebody
        has chosen an action is told before that action's; see ``docs/how-to/bandits.md``.

        As :meth:`ConfidenceSequence.update`, and suggestions or, for a box with names, dicts may
        take the place of points. When an error is raised nothing has changed. Points outside of
        the box that were not asked for are taken with a warning.
        """
        with self.lock:
            points, outcomes = as_observations(by_position(X, self.domain), y, self.dim)
            if isinstance(self.domain, Box):
                own = np.array([not self.ledger.was_asked(point) for point in points])
                warn_if_outside(self.domain, points[own], stacklevel=2)
            entries = self.ledger.entries(points, self._now_known)
            scales = self.sequence.checked_noise_scales(noise_scale, len(points))
            self.sequence.update_checked(points, outcomes, scales)
            self.ledger.tell(points, entries)
            self.told()

    def _now_known(self, points: Array) -> list[Entry]:
        """Bounds on actions that were not asked for; among which others is not known."""
        try:
            lower, upper = self.sequence.bounds(points)
            limit = self.sign * math.inf
        except EmptyConfidenceSetError:
            # The next ask will say so; outcomes are taken all the same.
            lower = upper = np.full(len(points), math.nan)
            limit = math.nan
        return [(float(a), float(b), limit) for a, b in zip(lower, upper, strict=True)]

    @property
    def history(self) -> History:
        """What was known of each action told, before its outcome."""
        with self.lock:
            return self.ledger.history

    def bounds(self, X: Points, bound: Bound | None = None) -> tuple[Array, Array]:
        """:meth:`ConfidenceSequence.bounds`, of points that may be given as for :meth:`tell`."""
        if isinstance(bound, Bound):
            require_sequential(bound)
        return self.sequence.bounds(as_actions(X, self.domain, self.dim), bound)

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

        Over a box the maximum is certified by :class:`BranchAndBound` with this tolerance.

        When ``seconds`` are over the certificate is looser, and as true: what was not looked at
        counts by its trivial bound, B sqrt(k(x,x)). More than ``seconds`` are taken only where
        they are less than the minimum: the first look after new outcomes, which is that of
        :meth:`bounds`, and looks at about a thousand points.
        """
        maximiser = BranchAndBound(tolerance, seconds)
        with self.lock:
            space = space_of(self.domain, self.dim, actions, fixed)
            return self._certify(space, maximiser, math.inf, maximiser.seconds)

    def is_good_enough(self, regret: float) -> bool:
        """Whether the best action known is certified to have a smaller regret than this."""
        # A maximum this close to the limit is left undecided, and the answer is no.
        maximiser = BranchAndBound(tolerance=regret / 16)
        with self.lock:
            space = space_of(self.domain, self.dim, None, None)
            return self._certify(space, maximiser, regret, math.inf).regret < regret

    def _certify(
        self, space: Domain, maximiser: BranchAndBound, enough: float, seconds: float
    ) -> Certificate:
        """A certificate; only good enough to tell whether the regret is below ``enough``.

        ``seconds`` are for a finite set; over a box the maximiser has its own.
        """
        optimistic, pessimistic = self.surface(self.sign), self.surface(-self.sign)
        if isinstance(space, Finite):
            return certify_finite(
                optimistic, pessimistic, space.points, partial(self.limit, space), seconds
            )
        played = space.clipped(self.sequence.landmarks)
        return certify_box(optimistic, pessimistic, space, played, maximiser, enough)

    # --- running and saving

    def run(
        self,
        experiment: Callable[[Any], float],
        rounds: int,
        *,
        batch: int = 1,
        named: bool = False,
        stop_when_regret_below: float | None = None,
        save_to: str | PathLike[str] | None = None,
    ) -> History:
        """Ask, try and tell, for a number of rounds or until the best action is good enough.

        Parameters
        ----------
        experiment : function of an action (d,) that returns its outcome
            It is called once for each action.
        rounds : int
            Stop after so many at the latest.
        batch : int
            Actions to ask for at a time; each counts as a round.
        named : bool
            Whether the experiment takes a dict of coordinates by name, for a box with names.
        stop_when_regret_below : float, optional
            Stop as soon as :meth:`certificate` has a smaller regret than this.
        save_to : path, optional
            Save the policy there after every :meth:`tell`.
        """
        running.run(
            self, experiment, rounds, batch=batch, named=named, save_to=save_to,
            stop_when_regret_below=stop_when_regret_below,
        )  # fmt: skip
        return self.history

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one file, atomically; see :meth:`load`."""
        with self.lock:
            saving.save(self, path)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        kernel: Kernel | Parts | None = None,
        bound: Bound | None = None,
        mixture: Mixture | None = None,
        offset: Offset | None = None,
    ) -> Self:
        """Read a policy written by :meth:`save`; it goes on as if never interrupted.

        ``kernel``, ``bound``, ``mixture`` and ``offset`` as for :meth:`ConfidenceSequence.load`:
        needed only for those of your own.
        """
        return saving.load(cls, path, kernel, bound, mixture, offset)

    # --- for policies of one's own

    def surface(self, sign: int) -> Surface:
        """Upper bounds on s f* as a function, before clipping."""
        return self.sequence.surface(sign)

    def limit(self, space: Finite, deadline: float = math.inf) -> float:
        """What s f* does not exceed on a finite set: the largest of the clipped bounds.

        After the deadline, a time as of ``time.monotonic``, it is no less than that.
        """
        surface = self.surface(self.sign)
        if space is self.domain and self.tracker is not None:
            return self.tracker.largest_clipped(surface, deadline)
        most = surface.most(space.points, surface.trivial(space.points))
        return float(limited_values(surface, space.points, most, deadline).max())

    def available(self, space: Finite, taken: list[Array]) -> NDArray[np.bool_]:
        """Which points of a finite set may be asked for, when some are taken in this batch."""
        free = np.ones(len(space.points), dtype=bool)
        if space.once:
            tried = (*self.sequence.points, *self.ledger.pending, *taken)
            used = {key_of(point) for point in tried}
            free = np.array([key_of(point) not in used for point in space.points])
            if not free.any():
                here = f" or are in this batch of more than {len(taken)}" if taken else ""
                raise InputError(
                    f"all {len(free)} actions of the domain have been tried or are pending{here}, "
                    "and once=True allows each of them one trial."
                )
        return free

    def suggestion(
        self, space: Domain, x: Array, limit: float, index: int | None = None
    ) -> Suggestion:
        """An action with its bounds; ``limit`` is an upper bound on s f* over the space."""
        lower, upper = (float(part[0]) for part in self.sequence.bounds(x[None]))
        named = space.named_values(x) if isinstance(space, Box) else {}
        return Suggestion(x.copy(), lower, upper, self.sign * limit, index, named)

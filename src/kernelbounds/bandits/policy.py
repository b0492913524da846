"""The base of all policies, which take outcomes, keep records, certify, save and resume.

Inside, everything is a maximisation of s f*, with the sign s = -1 when minimising:
``surface(s)`` is the optimistic bound on s f* and minus ``surface(-s)`` the pessimistic one.
"""

from __future__ import annotations

import math
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
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
    as_scalar,
    as_whole,
    brief,
)
from kernelbounds.bandits import saving
from kernelbounds.bandits.answers import Certificate, Suggestion
from kernelbounds.bandits.branch_and_bound import BranchAndBound
from kernelbounds.bandits.certify import certify_box, certify_finite
from kernelbounds.bandits.domains import Box, Domain, Finite, among
from kernelbounds.bandits.records import Entry, History, Ledger
from kernelbounds.bandits.tracker import Tracker, limited_values
from kernelbounds.bounds import Bound
from kernelbounds.bounds.bound import require_sequential
from kernelbounds.copies import CopiedWhole
from kernelbounds.display import late_progress
from kernelbounds.engine import ExactEngine
from kernelbounds.errors import EmptyConfidenceSetError, InputError, KernelBoundsError
from kernelbounds.io import archive
from kernelbounds.mixtures import Mixture
from kernelbounds.sequence import ConfidenceSequence, storage
from kernelbounds.structure.offset import Offset
from kernelbounds.structure.parts import Parts
from kernelbounds.surface import Surface

Points = ArrayLike | Mapping[str, Any] | Suggestion | Sequence[Suggestion]
# From this many different points on, an ask warns that it is slow: the first bounds after new
# outcomes take about ten seconds on one core, and twenty at 4,000.
MANY_POINTS = 3000


def check_sequence(sequence: Any, name: str, domain: Domain | None) -> None:
    """Refuse a sequence that a policy on a domain cannot use, by the name of its argument."""
    if not isinstance(sequence, ConfidenceSequence):
        raise InputError(f"{name} must be a ConfidenceSequence, got {brief(sequence)}.")
    require_sequential(sequence.bound)
    if domain is None:
        return
    if not isinstance(domain, Finite | Box):
        raise InputError(f"domain must be a kernelbounds.Box or Finite, got {brief(domain)}.")
    if sequence.dim not in (None, domain.dim):
        raise InputError(
            f"the domain has {domain.dim} dimensions, but the points of the sequence have "
            f"{sequence.dim}."
        )
    # The kernel may not take such points, and then says so.
    example = domain.points[:1] if isinstance(domain, Finite) else domain.lower[None]
    kernels.diagonal(sequence.kernel, example)
    kernels.cross(sequence.kernel, example, example)
    if sequence.facts:
        sequence.use_facts_in(domain)


class Policy(CopiedWhole, ABC):
    """A policy chooses actions, learns from outcomes, and certifies its best action.

    A policy of one's own implements :meth:`choose`, and :meth:`settings` and :meth:`restore` if it
    has something of its own to save. It may use ``sequence``, ``sign``, ``pending``,
    :meth:`surface`, :meth:`limit`, :meth:`available` and :meth:`suggestion`. To be loaded from a
    file, it must be possible to make the policy from the arguments below alone.

    Parameters
    ----------
    sequence : ConfidenceSequence
        The sequence is not copied, and :meth:`tell` updates it. It may hold observations already.
    domain : Box or Finite, optional
        The actions to choose from; None if each :meth:`ask` brings its own.
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
        check_sequence(sequence, "sequence", domain)
        if isinstance(domain, Finite) and domain.once and sequence.approximation is not None:
            raise InputError(
                "Finite(..., once=True) needs the points that were tried, which a sparse engine "
                "does not keep; use a sequence without engine=, or a domain without once=True."
            )
        self.sequence = sequence
        self.domain = domain
        self.minimise = as_flag(minimise, "minimise")
        self.sign = -1 if minimise else 1
        self._tracker = Tracker(domain.points) if isinstance(domain, Finite) else None
        self._ledger = Ledger(self.minimise)

    def __repr__(self) -> str:
        aim = ", minimise=True" if self.minimise else ""
        return f"{type(self).__name__}({self.sequence!r}, {self.domain!r}{aim})"

    @property
    def lock(self) -> threading.RLock:
        """The lock of the sequence, which every method holds while it works."""
        return self.sequence.lock

    @property
    def dim(self) -> int | None:
        """The dimension of actions; None while it is not known."""
        if self.domain is not None:
            return self.domain.dim
        return len(self._ledger.pending[0]) if self._ledger.pending else self.sequence.dim

    # --- what a policy of one's own implements

    @abstractmethod
    def choose(self, space: Domain, count: int) -> list[Suggestion]:
        """Choose ``count`` actions of a finite set or a box, without a change of state."""

    def told(self) -> None:
        """Change the policy's own state; called at the end of every :meth:`tell`."""
        return

    def settings(self) -> dict[str, Any]:
        """Return what a subclass has to save, as plain data for JSON."""
        return {}

    def restore(self, settings: dict[str, Any]) -> None:
        """Take back :meth:`settings`; called when a file is loaded."""
        return

    @property
    def others(self) -> list[ConfidenceSequence]:
        """Further sequences that the policy updates, and which are saved with it."""
        return []

    @classmethod
    def from_saved(
        cls,
        sequence: ConfidenceSequence,
        domain: Domain | None,
        minimise: bool,
        settings: dict[str, Any],
        others: list[ConfidenceSequence],
    ) -> Self:
        """Make the policy from what was saved; a policy with ``others`` overrides this."""
        policy = cls(sequence, domain, minimise=minimise)
        policy.restore(settings)
        return policy

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
        """Return the action to try next. Asking again, without telling, gives the same answer.

        Parameters
        ----------
        actions : array of shape (m, d), optional
            The actions there are in this round, in place of the domain.
        fixed : dict, optional
            Coordinates of the box, by name or position, that are given in this round.
        n : int, optional
            Ask for a list of n actions, to be tried in parallel. Each is chosen as if the ones
            before it, and the pending ones, had had an outcome in the middle of its bounds; the
            bounds reported come from real outcomes only.
        """
        with self.lock:
            space = self._space(actions, fixed)
            count = 1 if n is None else as_whole(n, "n", least=1)
            found = self.choose(space, count)
            if len(found) != count or not all(isinstance(one, Suggestion) for one in found):
                raise KernelBoundsError(
                    f"{type(self).__name__}.choose() must return a list of {count} Suggestion(s), "
                    f"got {brief(found)}."
                )
            for one in found:
                self._ledger.ask(one)
            _warn_if_slow(self.sequence)
        return found[0] if n is None else found

    def begin(self, X: Points) -> None:
        """Say that trials of these actions are under way, so that others are asked for next.

        Actions are given as for :meth:`tell`. An action is pending until its outcome is told.
        """
        with self.lock:
            self._ledger.pending += list(self._actions(X))

    @property
    def pending(self) -> Array:
        """The actions under way, (n, d), in the order of :meth:`begin`."""
        with self.lock:
            waiting = self._ledger.pending
            return np.array(waiting).reshape(len(waiting), self.dim or 0)

    def tell(self, X: Points, y: ArrayLike, noise_scale: ArrayLike | None = None) -> None:
        """Add outcomes, of actions that were asked for or others, one or many.

        They may come in another order than that of :meth:`ask`, if neither it nor the actions told
        before depend on outcomes that are not told yet: each must have sub-Gaussian noise given all
        that was told before, and given that it is the next to be told. If bad runs take longer, or
        fail, tell all of them in the order in which they were begun. An outcome by which somebody
        has chosen an action is told before that action's; see ``docs/how-to/bandits.md``.

        The arguments are those of :meth:`ConfidenceSequence.update`, and suggestions or, for a box
        with names, dicts may take the place of points. When an error is raised nothing has changed.
        Points outside of the box that were not asked for are taken with a warning.
        """
        with self.lock:
            points, outcomes = as_observations(_by_position(X, self.domain), y, self.dim)
            asked = self._ledger.entries(points)
            others = points[[entry is None for entry in asked]]
            if isinstance(self.domain, Box):
                self.domain.warn_if_outside(others, stacklevel=2)
            unasked = iter(_entries(self.sequence, others, self.sign * math.inf))
            entries = [entry or next(unasked) for entry in asked]
            scales = self.sequence.assumptions.checked_noise_scales(noise_scale, len(points))
            self.sequence.update_checked(points, outcomes, scales)
            self._ledger.tell(points, entries)
            self.told()

    @property
    def history(self) -> History:
        """The bounds on each action told, from before its outcome."""
        with self.lock:
            return self._ledger.history()

    def bounds(self, X: Points, bound: Bound | None = None) -> tuple[Array, Array]:
        """Compute :meth:`ConfidenceSequence.bounds` at points given as for :meth:`tell`."""
        if isinstance(bound, Bound):
            require_sequential(bound)
        return self.sequence.bounds(self._actions(X), bound)

    # --- certifying

    def certificate(
        self,
        actions: ArrayLike | None = None,
        *,
        fixed: Mapping[Any, float] | None = None,
        tolerance: float | None = None,
        seconds: float = 10.0,
    ) -> Certificate:
        """Return the best action known, and how far from optimal it can be at most.

        Over a box the maximum is certified by :class:`BranchAndBound` with this tolerance.

        When ``seconds`` are over the certificate is looser, and as true: points that were not
        looked at count by their trivial bound, B sqrt(k(x,x)). More than ``seconds`` are taken only
        where they are too few for the least that is done: the first work after new outcomes, which
        is that of :meth:`bounds`, and a look at about a thousand points.
        """
        maximiser = BranchAndBound(tolerance, seconds)
        with self.lock:
            space = self._space(actions, fixed)
            return self._certify(space, maximiser, math.inf, maximiser.seconds)

    def is_good_enough(self, regret: float) -> bool:
        """Tell whether the best action known is certified to have a regret below this number."""
        enough = as_scalar(regret, "regret", above=0.0)
        # A maximum this close to the limit is left undecided, and the answer is no.
        maximiser = BranchAndBound(tolerance=enough / 16)
        with self.lock:
            space = self._space(None, None)
            return self._certify(space, maximiser, enough, math.inf).regret < enough

    def _certify(
        self, space: Domain, maximiser: BranchAndBound, enough: float, seconds: float
    ) -> Certificate:
        """Certify only as tightly as it takes to tell whether the regret is below ``enough``.

        ``seconds`` are for a finite set; over a box the maximiser has its own.
        """
        optimistic, pessimistic = self.surface(self.sign), self.surface(-self.sign)
        if isinstance(space, Finite):
            return certify_finite(
                optimistic, pessimistic, space.points, partial(self.limit, space), seconds
            )
        played = space.clipped(self.sequence.landmarks)
        return certify_box(optimistic, pessimistic, space, played, maximiser, enough=enough)

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
            The experiment, called once for each action.
        rounds : int
            The number of rounds after which to stop at the latest.
        batch : int
            The number of actions to ask for at a time; each counts as a round.
        named : bool
            Whether the experiment takes a dict of coordinates by name, for a box with names.
        stop_when_regret_below : float, optional
            Stop as soon as :meth:`certificate` has a smaller regret than this.
        save_to : path, optional
            Save the policy there after every :meth:`tell`.
        """
        total, size = as_whole(rounds, "rounds", least=1), as_whole(batch, "batch", least=1)
        if not callable(experiment):
            raise InputError(f"experiment must be a function of actions, got {brief(experiment)}.")
        if as_flag(named, "named") and not (isinstance(self.domain, Box) and self.domain.names):
            raise InputError("named=True needs a Box with names as domain.")
        if save_to is not None:  # What cannot be saved is refused before the first experiment.
            archive.check_writable(save_to)
            with self.lock:
                saving.pack(self)
        enough = stop_when_regret_below
        if enough is not None:
            enough = as_scalar(enough, "stop_when_regret_below", above=0.0)
        stop = enough is not None and bool(len(self.sequence)) and self.is_good_enough(enough)
        if stop and save_to is not None:  # a run that has nothing to do leaves its file, too
            self.save(save_to)
        done = 0
        with late_progress("running", total) as report:
            while done < total and not stop:
                found = self.ask(n=min(size, total - done))
                tried = [dict(one.named) if named else one.x.copy() for one in found]
                got = [self._measured(experiment(x)) for x in tried]
                self._tell_measured(np.array([one.x for one in found]), got)
                done += len(found)
                if save_to is not None:
                    self.save(save_to)
                report(f"round {done} of {total}", done)
                stop = enough is not None and self.is_good_enough(enough)
        return self.history

    def _measured(self, value: Any) -> Any:
        """Check what an experiment returned, and return it as :meth:`_tell_measured` takes it."""
        return as_outcome(value, "the outcome of an experiment")

    def _tell_measured(self, points: Array, got: list[Any]) -> None:
        """Tell the outcomes of a batch, each as :meth:`_measured` returned it."""
        self.tell(points, got)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one file, atomically; see :meth:`load`."""
        with self.lock:
            archive.write(path, *saving.pack(self))

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

        ``kernel``, ``bound``, ``mixture`` and ``offset`` are needed only for those of your own, as
        in :meth:`ConfidenceSequence.load`.
        """
        own = storage.UserObjects.checked(kernel, bound, mixture, offset)
        return saving.load(cls, path, own)

    # --- for policies of one's own

    def surface(self, sign: int) -> Surface:
        """Return the upper bound on s f* as a function, before clipping."""
        return self.sequence.surface(sign)

    def limit(self, space: Finite, deadline: float = math.inf) -> float:
        """Bound s f* from above over a finite set, by the largest of the clipped bounds.

        The bound is looser where the deadline, a time as of ``time.monotonic``, comes too soon.
        """
        surface = self.surface(self.sign)
        if space is self.domain and self._tracker is not None:
            return self._tracker.largest_clipped(surface, deadline)
        most = surface.a_priori.most(space.points)
        return float(limited_values(surface, space.points, most, deadline).max())

    def available(self, space: Finite, taken: list[Array]) -> NDArray[np.bool_]:
        """Tell which points of a finite set may be asked for, besides those taken in this batch."""
        if not space.once:
            return np.ones(len(space.points), dtype=bool)
        free = ~among(space.points, [*self.sequence.points, *self._ledger.pending, *taken])
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
        """Make the suggestion of x; ``limit`` is an upper bound on s f* over the space."""
        lower, upper = (float(part[0]) for part in self.sequence.bounds(x[None]))
        named = space.named_values(x) if isinstance(space, Box) else {}
        return Suggestion(x.copy(), lower, upper, self.sign * limit, index, named)

    def _space(self, actions: ArrayLike | None, fixed: Mapping[Any, float] | None) -> Domain:
        """Return the set to choose from in a round."""
        if fixed is not None and (actions is not None or not isinstance(self.domain, Box)):
            raise InputError("fixed needs a Box as domain, and no actions.")
        if actions is not None:
            return Finite(as_points(actions, "actions", self.dim))
        if self.domain is None:
            raise InputError(
                "there is nothing to choose from: pass actions=, or a domain (kernelbounds.Box or "
                "Finite) when the policy is made."
            )
        if fixed is None or isinstance(self.domain, Finite):
            return self.domain
        return self.domain.fixed(fixed)

    def _actions(self, X: Points) -> Array:
        """Return one action or several as an array (n, d)."""
        return as_points(_by_position(X, self.domain), "X", self.dim, one=True)


def _entries(sequence: ConfidenceSequence, points: Array, limit: float) -> list[Entry]:
    """Return the entries of actions that were not asked for, of which no limit is known."""
    if not len(points):
        return []
    try:
        lower, upper = sequence.bounds(points)
    except EmptyConfidenceSetError:
        # The next ask will say so; outcomes are taken all the same.
        return [(math.nan, math.nan, math.nan)] * len(points)
    return [(float(a), float(b), limit) for a, b in zip(lower, upper, strict=True)]


def _warn_if_slow(sequence: ConfidenceSequence) -> None:
    """Warn of a sequence with so many points that asking is slow."""
    engine = sequence.known.radius_engine
    if isinstance(engine, ExactEngine) and engine.rows.count >= MANY_POINTS:
        warnings.warn(
            f"with {MANY_POINTS} different points and more, the first bounds after new outcomes "
            "take seconds to minutes, because all outcomes are kept; "
            "ConfidenceSequence(..., engine=kb.Sparse()) keeps sums instead, which a Study does "
            "not (docs/how-to/large-data.md).",
            UserWarning,
            stacklevel=3,
        )


def _by_position(X: Any, domain: Domain | None) -> Any:
    """Turn suggestions and dicts of named coordinates into numbers."""
    if isinstance(X, Suggestion):
        return X.x
    if isinstance(X, Mapping):
        if not isinstance(domain, Box):
            raise InputError("a point can be a dict only for a Box with names.")
        return domain.point(X)
    if isinstance(X, list | tuple) and X and isinstance(X[0], Mapping | Suggestion):
        return [_by_position(one, domain) for one in X]
    return X

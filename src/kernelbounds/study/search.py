"""The search for the best settings, and the certificate of how good they are.

Settings must be feasible: with few digits, and whole where an input takes whole numbers only. With
some whole inputs and some not, the box is searched as if all were continuous. The limits found are
then valid and a little loose, while what is suggested and recommended is feasible.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bandits import Ascent, Box, BranchAndBound, Certificate, Finite, KernelUCB
from kernelbounds.bandits.certify import certify_box
from kernelbounds.bandits.maximisers import Function, in_time
from kernelbounds.problem import Problem
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.surface import Clipped

# Settings are looked for at this many points that fill the box, and at those observed; the best of
# them is then improved.
FILLING_POINTS = 1024
BEYOND_CAP = 0.1  # see :class:`_Score`
# Where all inputs are whole numbers with at most this many combinations, each is a candidate.
MAX_COMBINATIONS = 5000


class _Score:
    """The score by which settings are called promising, as a function that can be climbed.

    It is the estimate of s f* at x, with the sign s = -1 when minimising, see
    :meth:`ConfidenceSequence.estimate`. Where data are far away an estimate says little, so beyond
    cap(x) = lower(x) + r / 2, with the range r of the output, little of it counts:

        score(x) = min(estimate(x), cap(x)) + 0.1 max(estimate(x) - cap(x), 0),

    all on the scale of the model. That little decides where lower(x) is the same everywhere, as it
    is while a noise that is unknown may be any.
    """

    def __init__(self, sequence: ConfidenceSequence, sign: int, output_range: float) -> None:
        self._sequence, self._sign, self._range = sequence, sign, output_range
        self._minus_lower = Clipped(sequence.surface(-sign))
        self.smooth = self._minus_lower.smooth

    def values(self, points: Array) -> Array:
        """Return values (m,) at points (m, d)."""
        return self._scores(*self._estimate_and_cap(points))

    def values_and_gradients(self, points: Array) -> tuple[Array, Array]:
        """Return values (m,) and gradients (m, d) at points (m, d)."""
        estimate, cap = self._estimate_and_cap(points)
        gradients = self._sign * self._sequence.estimate_gradients(points)
        beyond = cap < estimate
        if beyond.any():
            lower = -self._minus_lower.values_and_gradients(points[beyond])[1]
            gradients[beyond] = lower + BEYOND_CAP * (gradients[beyond] - lower)
        return self._scores(estimate, cap), gradients

    @staticmethod
    def _scores(estimate: Array, cap: Array) -> Array:
        capped = np.minimum(estimate, cap)
        return capped + BEYOND_CAP * (estimate - capped)

    def _estimate_and_cap(self, points: Array) -> tuple[Array, Array]:
        estimate, lower, upper = self._sequence.estimate_with_bounds(points)
        sure = lower if self._sign == 1 else -upper
        return self._sign * estimate, sure + self._range / 2


@dataclass(frozen=True)
class Promising:
    """The settings with the best estimate, which need not be proved to be good.

    They are the ``most_promising`` of a :class:`Status`: what one would use today.

    Attributes
    ----------
    values : dict
        The settings by the names of the inputs, in their units.
    estimate : float
        An estimate of the true output there, :meth:`ConfidenceSequence.estimate`. It carries no
        guarantee.
    lower, upper : float
        Bounds on the true output there, which do carry one.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> problem = kb.Problem(
    ...     ["batches=1:9:integer"], "yield[%]=0:100", noise=0.5, kernel="Matern(0.8, nu=2.5)",
    ...     norm_bound=80.0,
    ... )
    >>> study = kb.Study.create(":memory:", problem)
    >>> told = study.tell({"batches": 4}, 63.1)
    >>> found = study.status(seconds=0.1).most_promising
    >>> list(found.values), found.lower < found.estimate < found.upper
    (['batches'], True)
    """

    values: dict[str, Any]
    estimate: float
    lower: float
    upper: float

    def as_data(self) -> dict[str, Any]:
        """Return the attributes as plain data for JSON, with the settings as ``named``."""
        data = asdict(self)
        return {"named": data.pop("values")} | data


@dataclass(frozen=True)
class Search:
    """The search for settings with large values of the output, or with small ones."""

    problem: Problem
    minimise: bool

    @cached_property
    def domain(self) -> Box | Finite:
        """The unit box, or all combinations where there are only whole numbers, and not many."""
        inputs = self.problem.inputs
        counts = [int(one.range) + 1 if one.integer else math.inf for one in inputs]
        if math.prod(counts) > MAX_COMBINATIONS:
            return self.problem.inputs.unit_box
        sides = [np.arange(one.low, one.high + 1) for one in inputs]
        return Finite(self.problem.scaled(np.array(list(product(*sides)))))

    @property
    def sign(self) -> int:
        """The sign s with which s f* is to be large: -1 when minimising."""
        return -1 if self.minimise else 1

    @property
    def whole(self) -> list[int]:
        """The positions of the inputs that take whole numbers only, without categories.

        A box goes over all levels of categories by itself.
        """
        every = enumerate(self.problem.inputs)
        return [at for at, one in every if one.integer and not one.levels]

    def feasible(self, unit: Array) -> Array:
        """Return the scaled settings that are nearest to points (m, d) of the unit box."""
        return self.problem.scaled(self.problem.inputs.settable(unit))

    def most_promising(self, sequence: ConfidenceSequence, seconds: float = math.inf) -> Promising:
        """Find the settings with the best score, in the user's units; nothing is certified.

        After ``seconds`` the best so far is taken; some are looked at in any case.
        """
        deadline = time.monotonic() + seconds
        with sequence.lock:
            score = _Score(sequence, self.sign, self.problem.output.span)
            best = self.maximised(score, sequence.points, deadline)
            found = sequence.estimate_with_bounds(best[None])
        values = self.problem.inputs.named(self.problem.unscaled(best[None])[0])
        return Promising(values, *(float(one[0]) for one in self.problem.outcomes.estimate(*found)))

    def maximised(self, score: Function, also: Array, deadline: float = math.inf) -> Array:
        """Return the scaled settings (d,) with the best score that is found by a deadline.

        Points ``also`` (m, d) are looked at, before all others.
        """
        domain = self.domain
        if isinstance(domain, Finite):
            candidates = domain.points
        else:
            candidates = np.concatenate([also, self.feasible(domain.filling(FILLING_POINTS))])
        scores = np.full(len(candidates), -np.inf)
        for part in in_time(candidates, deadline):
            scores[part] = score.values(candidates[part])
        best = candidates[int(scores.argmax())]
        if isinstance(domain, Finite):
            return np.asarray(best)
        # The best point is improved with its whole numbers and levels as they are.
        near = domain.fixed({at: float(best[at]) for at in (*self.whole, *domain.categories)})
        top = Ascent(scan=1, starts=1).maximise(score, near, best[None], deadline).x
        both = np.concatenate([best[None], self.feasible(top[None])])
        return np.asarray(both[int(score.values(both).argmax())])

    def certified(
        self, sequence: ConfidenceSequence, seconds: float, enough: float = math.inf
    ) -> Certificate:
        """Certify the best settings known and their regret, in the user's units.

        Over a box, no more work is done than it takes to see whether the regret is below
        ``enough``, which is in the user's units, too.
        """
        if isinstance(self.domain, Finite):
            policy = KernelUCB(sequence, self.domain, minimise=self.minimise)
            found = policy.certificate(seconds=seconds)
        else:
            aim = math.log1p(enough) if self.problem.output.log else enough
            # A regret this close to the aim is left undecided.
            tolerance = None if math.isinf(aim) else aim / 16
            with sequence.lock:
                found = certify_box(
                    sequence.surface(self.sign), sequence.surface(-self.sign), self.domain,
                    sequence.points, BranchAndBound(tolerance, seconds), enough=aim,
                    whole=self.whole, feasible=self.feasible,
                )  # fmt: skip
        return self.in_users_units(found)

    def in_users_units(self, found: Certificate) -> Certificate:
        """Return a certificate of the model with its settings and numbers in the user's units."""
        point = self.problem.unscaled(found.x[None])[0]
        # An end that is not known is nan here, and None in the certificate.
        (lower, least), (upper, most) = self.problem.outcomes.bounds(
            np.array([found.lower, found.min_lower], dtype=float),
            np.array([found.upper, found.max_upper], dtype=float),
        )
        return replace(
            found,
            x=point,
            named=self.problem.inputs.named(point),
            index=None,
            lower=float(lower),
            upper=float(upper),
            max_upper=None if found.max_upper is None else float(most),
            min_lower=None if found.min_lower is None else float(least),
            regret=float(self.problem.output.difference(found.regret)),
        )

    def with_the_past(self, now: Certificate, past: Sequence[Certificate]) -> Certificate:
        """Join a certificate with earlier ones, of fewer outcomes, to the best one that follows.

        All certificates are true at once, with probability 1 - delta. So what an earlier one has
        excluded stays excluded, even if there was less time to look this time.
        """
        known, side = (now, *past), "min_lower" if self.minimise else "max_upper"
        limits = [limit for one in known if (limit := getattr(one, side)) is not None]
        if not limits:
            return now
        limit = max(limits) if self.minimise else min(limits)

        def limited(one: Certificate) -> Certificate:
            ends = (limit, one.upper) if self.minimise else (one.lower, limit)
            regret = max(self.problem.output.between_values(*ends), 0.0)
            return replace(one, **{side: limit}, regret=min(one.regret, regret))

        return min(map(limited, known), key=lambda one: one.regret)

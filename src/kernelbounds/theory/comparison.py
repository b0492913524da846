"""How much tighter AMM is than AY and IGP (Thm. 6.1), and how wide all bounds are on given data.

==============  ====================================  =====================================
code            paper                                 meaning
==============  ====================================  =====================================
``log_det``     l_alpha = ln det(I + K_t/alpha)       at the common ridge
``count``       t                                     number of observations
``Gap.ours``    R~_alpha/sqrt(alpha), c = sigma^2/    factor before rho_alpha(x) in AMM
                alpha
``Gap.rival``   R~^AY/sqrt(lambda) or R~^IGP          the same in the rival bound
==============  ====================================  =====================================

With p = sigma sqrt(l + 2 ln(1/delta))/sqrt(alpha), AMM has sqrt(p^2 + B^2) and AY has p + B, so
AY is up to sqrt(2) times wider, most so when p = B.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kernelbounds.arrays import as_points, as_scalar, as_whole, brief
from kernelbounds.bounds import AMM, AY, CMM, DMM, IGP, RIVALS, Assumptions, Bound, Guarantee
from kernelbounds.bounds.by_name import imported_bound
from kernelbounds.display import cards
from kernelbounds.errors import InputError
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.theory.regret_bounds import checked_assumptions


@dataclass(frozen=True)
class Gap:
    """The factors before rho(x) of AMM and of a rival at the same ridge.

    Examples
    --------
    >>> from kernelbounds import theory
    >>> gap = theory.Gap(ours=5.0, rival=7.0)
    >>> gap.difference, gap.ratio
    (2.0, 1.4)
    """

    ours: float
    rival: float

    @property
    def difference(self) -> float:
        """rival - ours, which is not negative."""
        return self.rival - self.ours

    @property
    def ratio(self) -> float:
        """rival / ours, at least 1; 1 when both are 0."""
        return self.rival / self.ours if self.ours else 1.0


def gap_to_ay(assumptions: Assumptions, log_det: float, ridge: float) -> Gap:
    """Compare AMM at alpha = lambda, c = sigma^2/lambda with AY at lambda (Thm. 6.1, part one).

    The difference p + B - sqrt(p^2 + B^2) is 2 p B/(p + B + sqrt(p^2 + B^2)).

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from kernelbounds import theory
    >>> known = kb.Assumptions(norm_bound=3.0, noise_scale=0.1, delta=0.01)
    >>> gap = theory.gap_to_ay(known, log_det=5.0, ridge=0.01)
    >>> round(gap.ratio, 3)
    1.405
    """
    alpha = as_scalar(ridge, "ridge", above=0.0)
    p = _noise_part(assumptions, log_det, 0.0) / math.sqrt(alpha)
    return Gap(math.hypot(p, assumptions.norm_bound), p + assumptions.norm_bound)


def gap_to_igp(assumptions: Assumptions, log_det: float, eta: float, count: int) -> Gap:
    """Compare AMM at alpha = 1 + eta, c = sigma^2/(1 + eta) with IGP at eta (Thm. 6.1, part two).

    IGP does not divide by sqrt(1 + eta), adds t eta under the root, and adds B outside of it.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from kernelbounds import theory
    >>> known = kb.Assumptions(norm_bound=3.0, noise_scale=0.1, delta=0.01)
    >>> gap = theory.gap_to_igp(known, log_det=5.0, eta=0.05, count=40)
    >>> round(gap.ratio, 3)
    1.126
    """
    h, t = as_scalar(eta, "eta", above=0.0), as_whole(count, "count", least=0)
    p = _noise_part(assumptions, log_det, 0.0) / math.sqrt(1 + h)
    rival = _noise_part(assumptions, log_det, t * h) + assumptions.norm_bound
    return Gap(math.hypot(p, assumptions.norm_bound), rival)


def _noise_part(assumptions: Assumptions, log_det: float, more: float) -> float:
    """Return sigma sqrt(l + more + 2 ln(1/delta))."""
    a, level = checked_assumptions(assumptions), as_scalar(log_det, "log_det", least=0.0)
    return a.noise_scale * math.sqrt(level + more - 2 * math.log(a.delta))


@dataclass(frozen=True)
class ComparisonRow:
    """How wide one bound is, relative to CMM, over some points, and how long it takes.

    ``seconds`` is the time of one query with the data as they were added, all work on the kernel
    matrix included that earlier queries have not done. ``guarantee`` is what the bound promises.

    Examples
    --------
    >>> from kernelbounds import theory
    >>> print(theory.ComparisonRow("AY", mean_width=0.8, mean_ratio=1.6, largest_ratio=1.9))
    AY: width 0.8, 1.600 times CMM's on average, 1.900 at most
    """

    name: str
    mean_width: float
    mean_ratio: float
    largest_ratio: float
    seconds: float = math.nan
    guarantee: Guarantee = field(default_factory=Guarantee)

    def __str__(self) -> str:
        return (
            f"{self.name}: width {self.mean_width:.4g}, {self.mean_ratio:.3f} times CMM's on "
            f"average, {self.largest_ratio:.3f} at most"
        )


@dataclass(frozen=True)
class Comparison:
    """The widths of several bounds, a row for each: the package's, then those that were given.

    ``refused`` are bounds that do not hold for this sequence, each with the reason.

    Examples
    --------
    >>> from kernelbounds import theory
    >>> cmm = theory.ComparisonRow("CMM", 0.5, 1.0, 1.0, 0.002)
    >>> ay = theory.ComparisonRow("AY", 0.8, 1.6, 1.9, 0.001)
    >>> found = theory.Comparison((cmm, ay))
    >>> print(found)
    bound   mean width  mean / CMM  most / CMM     time
    CMM            0.5       1.000       1.000   2.0 ms
    AY             0.8       1.600       1.900   1.0 ms
    >>> found["AY"].largest_ratio
    1.9
    """

    rows: tuple[ComparisonRow, ...]
    refused: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join([self.table(), *self._notes()])

    def __getitem__(self, name: str) -> ComparisonRow:
        for row in self.rows:
            if isinstance(name, str) and row.name == name:
                return row
        known = ", ".join(row.name for row in self.rows)
        raise InputError(f"no bound is called {brief(name)}; there are {known}.")

    def _repr_html_(self) -> str:
        """Show a card in notebooks."""
        return cards.shown(self, self._card)

    def _card(self) -> cards.Html:
        facts = [
            (
                row.name,
                f"width {row.mean_width:.4g}, {row.mean_ratio:.2f} times CMM's, {_time(row)}",
            )
            for row in self.rows
        ]
        return cards.card("Bounds side by side", facts, note=" ".join(self._notes()))

    def table(self) -> str:
        """Return the comparison as text, for the terminal."""
        wide = max(6, *(len(row.name) + 1 for row in self.rows))
        head = f"{'bound':<{wide}}{'mean width':>12}{'mean / CMM':>12}{'most / CMM':>12}"
        lines = [f"{head}{'time':>9}"]
        lines += [
            f"{r.name:<{wide}}{r.mean_width:>12.4g}{r.mean_ratio:>12.3f}{r.largest_ratio:>12.3f}"
            f"{_time(r):>9}"
            for r in self.rows
        ]
        return "\n".join(lines)

    def _notes(self) -> list[str]:
        """Write a sentence for each bound that promises something else, or that was refused."""
        notes = [
            f"{row.name} holds for {row.guarantee}."
            for row in self.rows
            if row.guarantee != Guarantee()
        ]
        return notes + [f"{name} was left out: {reason}" for name, reason in self.refused.items()]


def _time(row: ComparisonRow) -> str:
    return "" if math.isnan(row.seconds) else f"{1e3 * row.seconds:.1f} ms"


def compare(
    sequence: ConfidenceSequence,
    X: ArrayLike,
    eta: float | None = None,
    bounds: Mapping[str, Bound | str] | Iterable[Bound | str] | None = None,
) -> Comparison:
    """Compare the widths of CMM, DMM, AMM, AY and IGP at points X (m, d) on a sequence's data.

    Widths are as users see them, limited to +-B sqrt(k(x,x)). ``eta`` is IGP's; None is 2/t.
    Without noise DMM, AMM and AY use the smallest ridge that double precision allows. ``bounds``
    are further ones, in a list or by names of yours: the package's with other settings or your
    own, names of :data:`kernelbounds.bounds.RIVALS`, whose number of rounds is that of the data,
    and places to import from, ``"package.module:Name"``.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.3), norm_bound=3.0, noise_scale=0.1)
    >>> seq.update([[0.1], [0.5], [0.9]], [0.3, 1.0, 0.2])
    >>> found = kb.compare(seq, [[0.3], [0.7]], bounds=["Emmenegger 2023", kb.AMM(10.0)])
    >>> [row.name for row in found.rows]
    ['CMM', 'DMM', 'AMM', 'AY', 'IGP', 'Emmenegger 2023', 'AMM(ridge=10.0)']
    >>> found["AY"].mean_ratio > found["CMM"].mean_ratio
    True
    """
    if not isinstance(sequence, ConfidenceSequence):
        raise InputError(f"sequence must be a ConfidenceSequence, got {brief(sequence)}.")
    points = as_points(X, "X", sequence.dim)
    h = 2 / max(len(sequence), 1) if eta is None else as_scalar(eta, "eta", above=0.0)
    all_bounds: dict[str, Bound] = {
        "CMM": CMM(), "DMM": DMM(), "AMM": AMM(), "AY": AY(), "IGP": IGP(h)
    }  # fmt: skip
    all_bounds |= _further(sequence, points.shape[1], bounds, all_bounds)
    widths, seconds, refused = {}, {}, {}
    for name, bound in all_bounds.items():
        fresh = copy.deepcopy(sequence)  # Every bound starts with what was computed before.
        start = time.perf_counter()
        try:
            lower, upper = fresh.bounds(points, bound)
        except InputError as error:
            if name in ("CMM", "DMM", "AMM"):
                raise
            refused[name] = str(error)
            continue
        seconds[name], widths[name] = time.perf_counter() - start, upper - lower
    exact = widths["CMM"]
    rows = []
    for name, width in widths.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            # Where even the exact band has no width, equal ones count as equal.
            ratio = np.where(width == exact, 1.0, width / exact)
        measured = float(width.mean()), float(ratio.mean()), float(ratio.max())
        rows.append(ComparisonRow(name, *measured, seconds[name], all_bounds[name].guarantee))
    return Comparison(tuple(rows), refused)


def _further(
    sequence: ConfidenceSequence, dim: int, given: Any, taken: Iterable[str]
) -> dict[str, Bound]:
    """Return the further bounds that a user gives, by name."""
    if given is None:
        return {}
    if isinstance(given, str | Bound) or not isinstance(given, Iterable):
        raise InputError(
            f"bounds must be a list of bounds, or a dict of them by name, got {brief(given)}."
        )
    pairs = list(given.items()) if isinstance(given, Mapping) else [(None, one) for one in given]
    found: dict[str, Bound] = {}
    for name, one in pairs:
        bound = one
        if isinstance(one, str) and one in RIVALS:
            rounds = max(len(sequence), 1)
            bound = RIVALS[one](rounds, sequence.kernel, dim, sequence.assumptions)
        elif isinstance(one, str) and ":" in one:
            bound = imported_bound(one)
        called = _name_of(one) if name is None else name
        if not isinstance(bound, Bound) or not isinstance(called, str) or called in taken:
            raise InputError(
                "bounds must be objects of kernelbounds.Bound, package.module:Name or names of "
                f"kernelbounds.bounds.RIVALS, under names other than {', '.join(taken)}, got "
                f"{brief(one)} as {brief(called)}."
            )
        found[called] = bound
    return found


def _name_of(one: object) -> str:
    """Return the text that was given, or the class of a bound with its settings but defaults."""
    if isinstance(one, str):
        return one
    known: Any = one
    settings = [
        f"{part.name}={getattr(known, part.name)!r}"
        for part in (fields(known) if is_dataclass(known) else ())
        if part.repr and getattr(known, part.name) != part.default
    ]
    return f"{type(one).__name__}({', '.join(settings)})"

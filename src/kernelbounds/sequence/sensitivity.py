"""Find how wrong B or sigma may be while a conclusion still holds on the data at hand.

A conclusion is that an upper bound is below a number, or a lower one above. Its ``margin`` says by
how much: with s = 1 for upper and s = -1 for lower bounds, and a number v,

    margin = s v - max over what is bounded of (the upper bound on s L f*),

and the conclusion holds where the margin is positive. Where only B grows, confidence sets are
nested, so that margins fall; the largest B is bracketed, and the bracket halved on a log scale. For
that, all that a bound chooses by looking at B stays as it was chosen for the B that was assumed: c
of the mixture, and the directions and weights of :class:`~kernelbounds.FixedDesign`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from kernelbounds.arrays import LARGEST, Array, as_points, as_scalar, as_whole, brief
from kernelbounds.bounds import Assumptions, Bound, ConfidenceSet, DualBound
from kernelbounds.bounds.with_facts import least_norm_with_facts
from kernelbounds.errors import InputError, KernelBoundsError, MissingExtraError
from kernelbounds.functionals.targets import Targets, differences
from kernelbounds.surface import extremes

__all__ = ["Sensitivity", "SensitivityRow"]

# Multiples of what was assumed at which a conclusion is tried until it fails; if it never does, it
# is said to hold however large B or sigma is. Bounds of CMM are precise to 1e-7 of the trivial one,
# so that far more than a thousand times the B that was assumed would try their precision, and not
# the conclusion.
FACTORS = (2.0, 8.0, 64.0, 1000.0)
# Where 0 was assumed, multiples of a unit, which is margin / sqrt(k(x,x)) for the norm, by
# Cauchy-Schwarz, and B sqrt(k(x,x)) for the noise.
FACTORS_FROM_ZERO = tuple(10.0**power for power in range(-6, 4))
# The bracket's relative width at the end.
ACCURACY = 5e-3


@dataclass(frozen=True)
class Conclusion:
    """A claim that upper bounds (``sign`` 1) are below a number, or lower ones (-1) above it."""

    targets: Targets
    sign: int
    value: float
    what: str  # the target in words
    bound: Bound

    def margin(self, known: ConfidenceSet) -> float:
        """Compute by how much the conclusion holds; positive where it does."""
        seen = self.bound.view_of(known)
        # Where a bound is the smaller one of several, the two sides tell whether these are
        # compatible; that of one set says so itself.
        signs = (self.sign,) if isinstance(self.bound, DualBound) else (self.sign, -self.sign)
        found = extremes(seen, self.bound, self.targets, signs)
        return self.sign * self.value - float(found[0].max())

    def ends(self, known: ConfidenceSet) -> tuple[float, float]:
        """Lower and upper bounds on the largest of the targets."""
        seen = self.bound.view_of(known)
        upper, negative_lower = extremes(seen, self.bound, self.targets, (1, -1))
        return float((-negative_lower).max()), float(upper.max())

    def failure(self, margin: float) -> str:
        """Say why a conclusion with this margin does not hold."""
        side, wanted = ("upper", "below") if self.sign == 1 else ("lower", "above")
        found = self.value - self.sign * margin
        return f"the {side} bound on {self.what} is {found:.4g}, and not {wanted} {self.value:g}"


def conclusion(bound: Bound, dim: int | None, asked: dict[str, Any]) -> Conclusion:
    """Make a conclusion from the arguments of :meth:`ConfidenceSequence.sensitivity`."""
    given = {name: one for name, one in asked.items() if one is not None}
    if len(given) != 1:
        raise InputError(
            f"sensitivity() takes exactly one of {', '.join(asked)}, got "
            f"{' and '.join(given) or 'none'}."
        )
    ((name, parts),) = given.items()
    forms = {
        "above": "(x, value)",
        "below": "(x, value)",
        "better": "(x, x2)",
        "regret_below": "(x, points, value)",
    }
    if not isinstance(parts, tuple | list) or len(parts) != forms[name].count(",") + 1:
        raise InputError(f"{name} must be {forms[name]}, got {brief(parts)}.")
    x = _one_point(parts[0], "x", dim)
    if name in ("above", "below"):
        value = as_scalar(parts[1], "value", least=-LARGEST, most=LARGEST)
        return Conclusion(x, 1 if name == "below" else -1, value, "f(x)", bound)
    if not isinstance(bound, DualBound):
        raise InputError(f"{bound!r} bounds values only; {name} needs a DualBound.")
    if name == "better":
        other = _one_point(parts[1], "x2", x.shape[1])
        return Conclusion(differences(x, other[0]), -1, 0.0, "f(x) - f(x2)", bound)
    points = as_points(parts[1], "points", x.shape[1], one=True)
    others = points[(points != x).any(axis=1)]
    if not len(others):
        raise InputError("points must include one other than x, whose own regret is 0.")
    value = as_scalar(parts[2], "value", least=-LARGEST, most=LARGEST)
    return Conclusion(differences(others, x[0]), 1, value, "f(p) - f(x)", bound)


def _one_point(values: Any, name: str, dim: int | None) -> Array:
    """Check a single point, and return it in the shape (1, d)."""
    point = as_points(values, name, dim, one=True)
    if len(point) != 1:
        raise InputError(f"{name} must be one point, got {len(point)}.")
    return point


class SensitivityRow(NamedTuple):
    """The bounds under one B; see :meth:`Sensitivity.table`.

    Attributes
    ----------
    norm_bound : float
        B.
    lower, upper : float
        The bounds on what the conclusion is about.
    holds : bool
        Whether the conclusion holds.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.2], [0.8]], [0.1, 0.9])
    >>> row = seq.sensitivity(above=([0.8], 0.2)).table(count=2)[0]
    >>> row.lower > 0.2, row.holds
    (True, True)
    """

    norm_bound: float
    lower: float
    upper: float
    holds: bool


@dataclass(frozen=True, repr=False)
class Sensitivity:
    """The largest B, and the largest sigma, for which a conclusion still holds on these data.

    While B varies, sigma stays as assumed, and the other way round. So does c of the mixture:
    c = 0.03 B^2 of :class:`~kernelbounds.mixtures.Hybrid` stays that of the B that was assumed, and
    R_t with it. Noise scales of single observations are multiplied by what multiplies sigma. With
    :class:`~kernelbounds.FixedDesign` the number of directions, their radius r_p / sigma, and the
    weights of an estimate stay as well. So bounds under another B are not those of a sequence made
    with that B, which would choose its own settings, but they are as valid, and sets are nested.

    Attributes
    ----------
    norm_bound : float
        The conclusion holds under this B and, the sets being nested, under every smaller B that the
        data allow; under 1.01 times this B it does not. With probability at least 1 - delta the
        conclusion is true if the norm of f* is at most this; for a bound at one time, or at one x,
        if these were fixed beforehand, as its guarantee says. Infinite: the conclusion holds even
        with a thousand times the B that was assumed. Where f* has parts, this is the number by
        which all their bounds may be multiplied.
    noise_scale : float
        The conclusion holds under this sigma, and under all that were tried between the one assumed
        and this; under one that is larger by half a percent it does not. Infinite: it holds even
        with a thousand times the sigma assumed; if that is 0, a thousand times B sqrt(k(x,x)), of
        which a millionth is tried first: the answer is 0 where that is too much. R_t need not grow
        with sigma, so that nothing is proved of the values between, unless the mixture is
        :class:`~kernelbounds.mixtures.Single` and the bound CMM.
    norm_lower_bound : float
        The smallest B that the data allow: below it the confidence sets of the bound are empty.
    assumed : Assumptions
        What was assumed.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.2], [0.3], [0.8]], [0.1, 0.2, 0.9])
    >>> found = seq.sensitivity(above=([0.9], 0.1))  # f(0.9) > 0.1
    >>> round(found.norm_bound, 1), round(found.noise_scale, 2)
    (2.4, 0.11)
    >>> [row.holds for row in found.table(count=5)]
    [True, True, True, False, False]
    """

    norm_bound: float
    noise_scale: float
    norm_lower_bound: float
    assumed: Assumptions
    conclusion: Conclusion = field(compare=False)
    known: ConfidenceSet = field(compare=False)

    @classmethod
    def of(cls, known: ConfidenceSet, conclusion: Conclusion) -> Sensitivity:
        """Find the sensitivity of a conclusion; raise where it does not hold in the first place."""
        a, now = known.assumptions, known.assuming()
        margin = conclusion.margin(now)
        if not margin > 0:
            raise InputError(
                f"the conclusion does not hold to begin with: {conclusion.failure(margin)}."
            )
        size = float(np.sqrt(now.prior(conclusion.targets).max()))

        def under(**changed: float) -> float:
            try:
                return conclusion.margin(now.assuming(**changed))
            except InputError:
                raise
            except KernelBoundsError:  # an empty confidence set is no evidence for a conclusion
                return -math.inf

        # |L f| <= B size, by Cauchy-Schwarz.
        unit = min(margin / size, LARGEST) if size else 1.0
        norm_bound = largest(lambda B: under(norm_bound=B), a.norm_bound, unit)
        unit = a.norm_bound * size or 1.0
        noise_scale = largest(lambda s: under(noise_scale=s), a.noise_scale, unit)
        least = conclusion.bound.norm_lower_bound(now)
        if now.facts:
            least = max(least, least_norm_with_facts(now))
        return cls(norm_bound, noise_scale, least, a, conclusion, now)

    @property
    def has_parts(self) -> bool:
        """Whether f* has parts, and ``norm_bound`` is a factor on the bounds of all of them."""
        return self.known.evidence.parts is not None

    def __repr__(self) -> str:
        a = self.assumed
        norm = "common factor on the bounds of all parts" if self.has_parts else "norm_bound"
        return (
            f"holds for every {norm}{_up_to(self.norm_bound)} (assumed: {a.norm_bound:g}; the data "
            f"need at least {self.norm_lower_bound:.3g}), and for noise_scale"
            f"{_up_to(self.noise_scale)} (assumed: {a.noise_scale:g})"
        )

    def table(self, count: int = 15) -> list[SensitivityRow]:
        """The bounds under several B, on a log grid around the answer, and whether each suffices.

        They start where the data allow it, or at a quarter of what was assumed, and end at four
        times the answer; where that is infinite, at a thousand times what was assumed. Of
        ``regret_below``, they are bounds on the largest f(p) - f(x) over the points p. Rows are
        fewer where :class:`~kernelbounds.FixedDesign` takes the smaller of bounds that exclude
        each other under a small B.
        """
        number = as_whole(count, "count", least=2)
        assumed = self.assumed.norm_bound
        unit = assumed or min(self.norm_bound, 1.0)
        most = 4 * self.norm_bound if math.isfinite(self.norm_bound) else 1e3 * unit
        least = max(unit / 4, (1 + ACCURACY) * self.norm_lower_bound)
        rows = []
        for norm_bound in np.geomspace(min(least, self.norm_bound), most, number).tolist():
            with self.known.evidence.lock:
                believed = self.known.assuming(norm_bound=norm_bound)
                try:
                    lower, upper = self.conclusion.ends(believed)
                except InputError:
                    raise
                except KernelBoundsError:  # Two sets may exclude each other.
                    continue
            end = upper if self.conclusion.sign == 1 else -lower
            holds = self.conclusion.sign * self.conclusion.value > end
            rows.append(SensitivityRow(norm_bound, lower, upper, holds))
        return rows

    def plot(self, ax: Any = None) -> Any:
        """Draw the bounds against B and where the conclusion ends, and return the axes."""
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise MissingExtraError("Drawing a sensitivity", "plot") from error
        axes = pyplot.subplots(layout="constrained")[1] if ax is None else ax
        rows = self.table(40)
        norms = [row.norm_bound for row in rows]
        axes.fill_between(
            norms, [row.lower for row in rows], [row.upper for row in rows],
            color="#0014a8", alpha=0.2, linewidth=0, label=f"bounds on {self.conclusion.what}",
        )  # fmt: skip
        axes.axhline(self.conclusion.value, color="black", linewidth=1)
        marks = {
            "assumed": (self.assumed.norm_bound, ":", "black"),
            "holds up to here": (self.norm_bound, "-", "#c46210"),
            "the data need": (self.norm_lower_bound, "--", "#4b8b3b"),
        }
        for label, (at, style, colour) in marks.items():
            if 0 < at < math.inf:
                axes.axvline(at, linestyle=style, color=colour, linewidth=1.5, label=label)
        axes.set_xscale("log")
        axes.set_xlabel("factor on the bounds of all parts" if self.has_parts else "norm_bound")
        axes.legend(loc="upper left", framealpha=0.9, fontsize="small")
        return axes


def largest(margin: Callable[[float], float], assumed: float, unit: float) -> float:
    """Find the largest value, from ``assumed`` on, with a positive margin; inf if all have one.

    ``unit`` is something to start from where 0 is assumed. Halving the bracket on a log scale takes
    at most ten steps, whatever the margin looks like.
    """
    low = assumed
    for factor in FACTORS if assumed else FACTORS_FROM_ZERO:
        high = min(factor * (assumed or unit), LARGEST)
        if high <= low:
            return math.inf
        if not margin(high) > 0:
            break
        low = high
    else:
        return math.inf
    while low > 0 and high > (1 + ACCURACY) * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if margin(middle) > 0 else (low, middle)
    return low


def _up_to(value: float) -> str:
    """The end of "holds for every norm_bound ...", to three digits, rounded down."""
    if math.isinf(value):
        return ", however large"
    if value == 0:
        return " up to 0"
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f" up to {math.floor(value / unit * (1 + 1e-12)) * unit:.3g}"

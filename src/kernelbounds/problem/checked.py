"""What the data say of the assumptions: of the norm bound, of the noise, and of several kernels.

Of the norm bound and of the noise they say the smallest values that they allow: below these, an
assumption is refuted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelbounds.arrays import shortened
from kernelbounds.display.numbers import at_least, at_most
from kernelbounds.kernels import kernel_to_text
from kernelbounds.noise import Gaussian
from kernelbounds.problem.model import norm_at_least
from kernelbounds.problem.noise_in_words import UNKNOWN
from kernelbounds.problem.problem import Problem
from kernelbounds.sequence import ConfidenceSequence

# An assumption is strained when the data need more than this share of what is assumed.
STRAINED_SHARE = 0.9


@dataclass(frozen=True)
class Checked:
    """What the data say of an assumption: ``norm_bound`` or ``noise`` of a :class:`Status`.

    Attributes
    ----------
    assumed : float
        What was assumed when the study was made, in the user's units; for a logarithmic output,
        noise is a share, and the norm bound one of its natural logarithm. Infinite where noise was
        said to be unknown, without a limit.
    at_least : float
        The smallest value that these data allow, when the other assumptions stay as they are.
    at_most : float or None
        Of unknown noise: the largest value that these data allow, whatever the kernel and the norm
        bound are, or the limit that was stated. Infinite while there are too few, some 20 to 40.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> problem = kb.Problem(
    ...     ["speed[rpm]=100:500"], "yield[%]=0:100", noise=0.5, kernel="Matern(0.8, nu=2.5)",
    ...     norm_bound=80.0,
    ... )
    >>> study = kb.Study.create(":memory:", problem)
    >>> study.status().noise  # before the first observation the data allow everything
    Checked(assumed=0.5, at_least=0.0)
    >>> study.status().noise.strained
    False
    """

    assumed: float
    at_least: float
    at_most: float | None = None

    def __repr__(self) -> str:
        more = "" if self.at_most is None else f", at_most={self.at_most!r}"
        return f"Checked(assumed={self.assumed!r}, at_least={self.at_least!r}{more})"

    @property
    def strained(self) -> bool:
        """Whether what is assumed is little more than the data need, or less."""
        return self.at_least > STRAINED_SHARE * self.assumed

    def as_data(self) -> dict[str, float | None]:
        """Return the attributes as plain data for JSON; infinity becomes None."""
        names = ("assumed", "at_least", *["at_most"][: self.at_most is not None])
        values = {name: getattr(self, name) for name in names}
        return {name: one if math.isfinite(one) else None for name, one in values.items()}


def checked_assumptions(problem: Problem, sequence: ConfidenceSequence) -> tuple[Checked, Checked]:
    """Return what the data say of the norm bound, and what they say of the noise."""
    norm = float(problem.norm_bound or 0.0)
    law, in_units = problem.stated_noise.law, problem.stated_noise.in_units
    noise, most = in_units(problem.stated_noise.scale or 0.0, up=True), None
    if isinstance(law, Gaussian) and not law.scale_is_stated:
        noise = in_units(law.at_most or math.inf, up=True)
        most = in_units(sequence.noise_upper_bound, up=True)
    if not len(sequence):
        return Checked(norm, 0.0), Checked(noise, 0.0, most)
    least = sequence.norm_lower_bound
    if sequence.classes is None:
        least = norm_at_least(problem, least)
    else:  # All norm bounds must be multiplied by this.
        least = norm * least / sequence.assumptions.norm_bound
    return Checked(norm, least), Checked(noise, in_units(sequence.noise_lower_bound), most)


def noise_so_far(problem: Problem, noise: Checked) -> str:
    """Write the noise that is assumed and, where it is unknown, what the data say of it.

    >>> problem = Problem(["x=0:1"], "strength[MPa]=20:60", "unknown")
    >>> noise_so_far(problem, Checked(math.inf, 0.21, 0.4321))
    'unknown, at most 0.433 MPa so far (at least 0.210 MPa)'
    >>> noise_so_far(problem, Checked(math.inf, 0.0, math.inf))
    'unknown (not known yet: some 20 to 40 runs are needed)'
    """
    if noise.at_most is None:
        return problem.stated_noise.text()
    if math.isinf(noise.at_most):
        return f"{UNKNOWN} (not known yet: some 20 to 40 runs are needed)"
    stated = noise.at_most >= noise.assumed
    least = ""
    if 0 < noise.at_least < math.inf:
        least = f" (at least {problem.stated_noise.text(noise.at_least, at_least)})"
    # The limit that was stated has the digits with which it was stated.
    most = f"{problem.stated_noise.text()} as stated" if stated else (
        f"{UNKNOWN}, at most {problem.stated_noise.text(noise.at_most, at_most)} so far"
    )  # fmt: skip
    return f"{most}{least}"


def kernels_sentence(problem: Problem, sequence: ConfidenceSequence) -> str:
    """Say which of several kernels the data refute, as far as they do."""
    refuted, count = sequence.refuted_classes, len(problem.candidates)
    if not refuted:
        return f"All {count} kernels agree with the data."
    names = " and ".join(
        shortened(kernel_to_text(problem.candidates[number][0]), 100) for number in refuted
    )
    drop = "is refuted by the data and drops" if len(refuted) == 1 else "are refuted and drop"
    return f"Of {count} kernels, {names} {drop} out."

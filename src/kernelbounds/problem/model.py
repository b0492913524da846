"""The model of a problem: its confidence sequence, and the widths that it predicts before any data.

On the scale of the model (see :mod:`kernelbounds.problem.outputs`), for inputs in the unit cube,

    f* = the middle of the output's range + b + g,    ||g|| <= B,

with an unknown constant b of which |b| is at most the whole range: the level to which a function of
least norm returns may be outside of its values. With the kernel k + w^2 and
w^2 = range^2 / (s B^2),

    ||b + g||^2 <= b^2 / w^2 + B^2 <= (1 + s) B^2,    s = LEVEL_SHARE.

(``Offset(within=...)`` has shares that follow the data, and then widths cannot be predicted as
well.) That costs two percent of the width, and more only where the range is thousands of times B,
which no B that :func:`~kernelbounds.problem.assume` suggests is: then w^2 takes digits from k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel

from kernelbounds.arrays import EPS, Array
from kernelbounds.bounds import Bound
from kernelbounds.errors import InputError
from kernelbounds.facts import Fact
from kernelbounds.noise import Noise, SubGaussian
from kernelbounds.problem.facts_in_words import in_users_words
from kernelbounds.problem.random_functions import with_corners
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.structure.classes import AnyOf

if TYPE_CHECKING:
    from kernelbounds.problem.problem import Problem

# An unknown level adds this share to the square of the norm bound, and so two per cent to B.
LEVEL_SHARE = 0.04
# Where widths are predicted: points that fill the cube, besides the corners, where bounds are
# widest.
WIDTH_POINTS = 128


def confidence_sequence(
    problem: Problem,
    bound: Bound | None,
    facts: Sequence[Fact] | None,
    noise_scale: float | Noise | None,
) -> ConfidenceSequence:
    """Make the confidence sequence of a problem, see :meth:`Problem.sequence`."""
    noise = problem.stated_noise.law
    if isinstance(noise_scale, Noise):
        noise = noise_scale
    elif noise_scale is not None:
        noise = SubGaussian(noise_scale) if noise is None else noise.at_scale(noise_scale)
    if noise is None:
        raise InputError(
            "the noise of the output is missing; 0 means that there is none, and 'unknown' "
            "that the data bound it."
        )
    settled = problem.settled()
    several = settled.candidates if facts is None else ()
    stated = several or [(settled.kernel, float(settled.norm_bound or 0.0))]
    balls = [with_level(kernel, norm, problem.output.span) for kernel, norm in stated]
    kernel, norm_bound = (AnyOf(balls), None) if several else balls[0]
    try:
        return ConfidenceSequence(
            kernel, norm_bound, noise, problem.delta, bound=bound, offset=problem.output.middle,
            facts=problem.facts if facts is None else facts,
        )  # fmt: skip
    except InputError as error:
        raise InputError(in_users_words(problem, str(error))) from None


def with_level(kernel: Kernel, norm_bound: float, span: float) -> tuple[Kernel, float]:
    """Add the unknown constant b, at most a range away from its middle, to a kernel and its B."""
    level = ConstantKernel((span / norm_bound) ** 2 / LEVEL_SHARE)
    # Rounded up: the quotient above, the root and the product are rounded.
    return kernel + level, norm_bound * math.sqrt(1 + LEVEL_SHARE) * (1 + 4 * EPS)


def norm_at_least(problem: Problem, of_sequence: float) -> float:
    """Return the least ||g|| for which the norm of b + g in the sequence is at least this.

    ||g||^2 >= ||b + g||^2 - s B^2 for all levels b that are admitted. So the result is above B
    where the data refute B.
    """
    level = LEVEL_SHARE * float(problem.norm_bound or 0.0) ** 2
    return math.sqrt(max(0.0, of_sequence**2 - level))


def scattered_points(problem: Problem, count: int, seed: int) -> Array:
    """Return points (count, d) that fill the unit cube, and the levels of categories."""
    sobol = qmc.Sobol(len(problem.inputs), rng=np.random.default_rng(seed))
    return problem.inputs.unit_box.scaled(sobol.random(count))


def predicted_half_widths(
    problem: Problem, experiments: int, noise_scale: float | None = None
) -> tuple[float, float]:
    """Bound half of upper - lower after a space-filling design: mean and largest over points.

    Both are on the scale of the model, for noise of that scale, or of
    ``problem.stated_noise.planned``; where noise is unknown, nothing can be promised before the
    data. See :meth:`kernelbounds.ConfidenceSequence.predicted_width`.
    """
    box = problem.inputs.unit_box
    levels = {at: len(one) for at, one in box.categories.items()}
    points = with_corners(scattered_points(problem, WIDTH_POINTS, seed=1), levels)
    noise = problem.stated_noise.planned if noise_scale is None else noise_scale
    sequence = problem.sequence(facts=(), noise_scale=noise)
    widths = sequence.predicted_width(points, box.filling(experiments))
    return float(widths[:WIDTH_POINTS].mean() / 2), float(widths.max() / 2)

"""The confidence set before any data: what a user states, checked and put together."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import brief
from kernelbounds.bounds import Assumptions, ConfidenceSet
from kernelbounds.bounds.with_facts import inequalities, least_norm_with_facts
from kernelbounds.confidence.evidence import Evidence
from kernelbounds.engine import ExactEngine
from kernelbounds.errors import InputError
from kernelbounds.facts import AtLeast, Fact
from kernelbounds.facts.fact import checked_facts
from kernelbounds.functionals import Derivative
from kernelbounds.mixtures import Mixture
from kernelbounds.noise import Noise
from kernelbounds.noise.sub_gaussian import checked_noise
from kernelbounds.sequence.sparse import Sparse
from kernelbounds.structure.classes import Classes, sum_of
from kernelbounds.structure.offset import Offset, checked_offset
from kernelbounds.structure.parts import Parts, as_parts

# Facts that need a norm this many times B are taken to contradict each other, whatever B is.
CONTRADICTION = 1e3


def set_before_data(
    kernel: Kernel | Parts | Classes,
    norm_bound: float | None,
    noise_scale: float | Noise | None,
    delta: float,
    mixture: Mixture,
    offset: Offset | float | None,
    misspecification: float,
    facts: Sequence[Fact] | None,
    engine: Sparse | None,
) -> ConfidenceSet:
    """Make the confidence set from the arguments of ``ConfidenceSequence``, or refuse them."""
    if noise_scale is None:
        raise InputError("noise_scale is missing; 0 means that there is no noise.")
    level = checked_offset(offset)
    classes = kernel if isinstance(kernel, Classes) else None
    parts, whole, norm_of_whole = as_parts(
        kernel if classes is None else sum_of(classes), norm_bound, level.within
    )
    noise = checked_noise(noise_scale)
    assumptions = Assumptions(norm_of_whole, noise.scale, delta, mixture, misspecification, noise)
    if engine is not None and not isinstance(engine, Sparse):
        raise InputError(f"engine must be a kernelbounds.Sparse, got {brief(engine)}.")
    if engine is not None and classes is not None:
        raise InputError(
            f"{type(classes).__name__} needs the observations themselves, which a sparse "
            "engine does not keep; use Parts, or one kernel."
        )
    chosen = ExactEngine(whole) if engine is None else engine.engine(whole, assumptions)
    known = ConfidenceSet(
        Evidence(chosen, noise.unit, parts, level, classes=classes),
        assumptions,
        stated_facts=checked_facts(facts, chosen.dim),
    )
    _refute_facts(known)
    return known


def without_data(known: ConfidenceSet, delta: float) -> ConfidenceSet:
    """The confidence set of the same assumptions at another delta, of no observations yet."""
    own = known.evidence
    kernel = own.radius_engine.data.kernel
    return ConfidenceSet(
        Evidence(ExactEngine(kernel), own.noise_unit, own.parts, own.offset, classes=own.classes),
        dataclasses.replace(known.stated, delta=delta),
        stated_facts=known.stated_facts,
        region=known.region,
    )


def _refute_facts(known: ConfidenceSet) -> None:
    """Refuse facts that contradict each other, or the norm bound, before there are data."""
    for fact in known.stated_facts:
        steep = isinstance(fact, AtLeast) and isinstance(fact.functional, Derivative)
        if steep and (known.assumptions.misspecification or known.evidence.offset.constant is None):
            raise InputError(
                f"{fact} cannot be used with misspecification, nor with a mean function as offset: "
                "what these add to f* may be steep; say it with Slope(axis, low, high)."
            )
    if not known.stated_facts or inequalities(known) is None:
        return
    norm_bound, needed = known.assumptions.norm_bound, least_norm_with_facts(known)
    if needed <= norm_bound * (1 + 1e-9):
        return
    facts = " and ".join(map(str, known.stated_facts))
    if needed > CONTRADICTION * max(norm_bound, 1e-280):
        raise InputError(f"the facts contradict each other: no function satisfies {facts}.")
    larger = f"{needed / norm_bound:.4g} times as large" if norm_bound else "positive"
    raise InputError(
        f"no function of norm at most {norm_bound:.4g} satisfies {facts}: "
        + (
            f"the bounds on the parts must be {larger}."
            if known.evidence.parts is not None
            else f"norm_bound must be at least {needed:.4g}, or the offset another one."
        )
    )

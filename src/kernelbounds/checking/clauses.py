"""The clauses that hold for every bound, except the one on coverage."""

from __future__ import annotations

import copy

import numpy as np

from kernelbounds.bounds import Bound
from kernelbounds.checking.cases import (
    AGREEMENT,
    BOTH,
    KERNEL,
    NOISE,
    NORM,
    SURE,
    BrokenError,
    ask,
    equal,
    make_case,
)
from kernelbounds.errors import KernelBoundsError
from kernelbounds.sequence import ConfidenceSequence


def has_repr(bound: Bound) -> None:
    """It has a repr, which messages and saved files need."""
    if not (isinstance(text := repr(bound), str) and text):
        raise BrokenError("has an empty repr")


def answers(bound: Bound) -> None:
    """Numbers of the right shape, in all the ways in which it is asked."""
    for dim in (1, 2):
        for count in (1, 3, 150):
            case = make_case(count, dim)
            for signs in ((1,), (-1,), BOTH):
                for points in (case.points, case.points[:1]):
                    ask(bound, case.known, points, signs)
    quiet = make_case(8, noise=0.0)
    try:
        ask(bound, quiet.known, quiet.points)
    except KernelBoundsError:
        return  # it refuses data without noise, and says so
    except BrokenError as broken:
        raise BrokenError(f"{broken}; this was at noise_scale = 0") from None


def sides(bound: Bound) -> None:
    """Upper bounds are above and lower ones below, whatever the order of the signs."""
    for count in (3, 150):
        case = make_case(count)
        upper, opposite = both = ask(bound, case.known, case.points)
        if np.any(upper + opposite < -AGREEMENT * case.scale):
            raise BrokenError("gives lower bounds that exceed its upper ones")
        truth = case.truth(case.points)
        slack = AGREEMENT * case.scale
        if np.any(truth > upper + slack) or np.any(-truth > opposite + slack):
            swapped = np.all(truth <= opposite + slack) and np.all(-truth <= upper + slack)
            raise BrokenError(
                "has its signs the wrong way round: +1 asks for an upper bound on f*, and -1 for "
                "one on -f*"
                if swapped
                else f"does not contain the truth after {count} observations of a fixed example"
            )
        turned = ask(bound, case.known, case.points, (-1, 1))[::-1]
        equal(case, both, turned, "for the signs (1, -1) and (-1, 1)")
        alone = [ask(bound, case.known, case.points, (sign,))[0] for sign in BOTH]
        equal(case, both, np.array(alone), "for both signs at once and one at a time")


def weights(bound: Bound) -> None:
    """The truth is inside also where observations have noise scales of their own."""
    for count in (4, 40):
        for seed in range(4):
            # What is 20 times too precise or too vague is seen beyond the width of most bounds.
            case = make_case(count, seed=seed, spread=20.0)
            try:
                upper, opposite = ask(bound, case.known, case.points)
            except KernelBoundsError:
                return  # it refuses such data, and says so
            truth, slack = case.truth(case.points), AGREEMENT * case.scale
            if np.any(truth > upper + slack) or np.any(-truth > opposite + slack):
                raise BrokenError(
                    "does not contain the truth where observations have noise scales sigma_s of "
                    "their own: known.outcomes are w_s y_s with the known.weights w_s = sigma / "
                    "sigma_s, which observe w_s f*(x_s) with noise of scale sigma; use them so, or "
                    "raise an InputError where weights are not 1"
                )


def points(bound: Bound) -> None:
    """A bound depends on its point alone."""
    for count in (3, 150):
        case = make_case(count)
        together = ask(bound, case.known, case.points)
        backwards = ask(bound, case.known, case.points[::-1].copy())[:, ::-1]
        equal(case, together, backwards, "when the points are given in another order")
        apart = [ask(bound, case.known, point[None]) for point in case.points]
        equal(case, together, np.concatenate(apart, axis=1), "at a point when others are asked")


def data(bound: Bound) -> None:
    """A bound depends on the data alone, not on how they came or what was asked before."""
    case, other, fresh = make_case(40), make_case(40, seed=1), copy.deepcopy(bound)
    first = ask(bound, case.known, case.points)
    equal(case, first, ask(bound, case.known, case.points), "when it is asked twice")
    used, new = (ask(one, other.known, other.points) for one in (bound, fresh))
    equal(other, used, new, "after it was asked about other data")
    grown = ConfidenceSequence(KERNEL, NORM, NOISE, SURE)
    for x, y in zip(case.known.points, case.known.outcomes, strict=True):
        grown.update(x, y)
        ask(bound, grown.known, case.points[:2])
    one_by_one = ask(bound, grown.known, case.points)
    equal(case, first, one_by_one, "for data that were added one by one and at once")


def nothing_changes(bound: Bound) -> None:
    """Asking leaves everything as it was."""
    case = make_case(20)
    looked_at = {
        "the points that it is asked about": case.points,
        "the points of the data": case.known.points,
        "the outcomes": case.known.outcomes,
    }
    before = {name: array.copy() for name, array in looked_at.items()}
    ask(bound, case.known, case.points)
    for name, array in looked_at.items():
        if not np.array_equal(array, before[name]):
            raise BrokenError(f"changes {name}")


def copies(bound: Bound) -> None:
    """A deep copy gives the same bounds."""
    case = make_case(20)
    found = ask(copy.deepcopy(bound), case.known, case.points)
    equal(case, ask(bound, case.known, case.points), found, "as a deep copy of itself")


def largest(bound: Bound) -> None:
    """``largest`` agrees with ``extremes``."""
    if bound.points_at_once is not None:
        return  # which is of all points at once
    for count in (3, 150):
        case = make_case(count)
        near = AGREEMENT * float(case.scale.max())
        both = ask(bound, case.known, case.points)
        for sign, upper, opposite in zip(BOTH, both, both[::-1], strict=True):
            with np.errstate(all="ignore"):
                found = bound.largest(case.known, case.points, sign, near)
            there = upper[found.at], opposite[found.at]
            pairs = [(found.value, upper.max()), (found.opposite, there[1])]
            if any(a != b and not abs(a - b) <= near for a, b in pairs):
                raise BrokenError("returns another largest bound from largest than from extremes")
            if there[0] < upper.max() - 2 * near:
                raise BrokenError("does not find where its bounds are largest")


def follows_units(bound: Bound) -> bool:
    """Whether the bounds are multiplied by s when outcomes, B and sigma are."""
    case, unit = make_case(20), 2.0**10
    other = ConfidenceSequence(KERNEL, unit * NORM, unit * NOISE, SURE)
    other.update(case.known.points, unit * case.known.outcomes)
    found = ask(bound, other.known, case.points) / unit
    return bool(np.allclose(found, ask(bound, case.known, case.points), rtol=1e-6, atol=AGREEMENT))

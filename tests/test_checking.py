"""The contract of bounds: kept by those that are valid, and each clause broken by another."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from own_bounds import Patient, Plain, Wider
from problems import BOUNDS
from scipy.stats import binom

import kernelbounds as kb
from kernelbounds import checking
from kernelbounds.bounds import DualMinimum
from kernelbounds.bounds.ellipsoids import Ellipsoids
from kernelbounds.checking import BoundReport, clauses
from kernelbounds.engine import Largest

# An exact bound, one around a ridge estimate, and one that is not made from R_t.
QUICK = ("CMM", "AMM", "AY")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in BOUNDS]
)
def test_the_packages_bounds_pass(name):
    report = kb.check_bound(BOUNDS[name])
    assert report.runs == checking.RUNS and report.misses <= report.expected == 6
    assert report.p_value > 0.5
    assert report.follows_units
    assert report.width == 1 if name == "CMM" else 1 < report.width < 2
    assert str(report).startswith("the contract holds; ")


@pytest.mark.parametrize(
    "bound", [Wider(0.1), Plain(), Patient()], ids=lambda bound: type(bound).__name__
)
def test_bounds_of_ones_own_pass(bound):
    assert kb.check_bound(bound).follows_units == (not isinstance(bound, Wider))


class Broken(kb.Bound):
    """DMM, but for one thing."""

    def __repr__(self):
        return f"{type(self).__name__}()"

    def extremes(self, known, points, signs):
        return self.spoil(kb.DMM().extremes(known, points, signs), known, points, signs)

    def spoil(self, found, known, points, signs):
        return found


class NotANumber(Broken):
    def spoil(self, found, known, points, signs):
        return np.where(points[:, 0] > 0.9, np.nan, found)


class MinusInfinity(Broken):
    def spoil(self, found, known, points, signs):
        return found - np.where(known.count > 100, np.inf, 0)


class Transposed(Broken):
    def spoil(self, found, known, points, signs):
        return found.T


class OneSided(Broken):
    """Right for both signs at once only."""

    def spoil(self, found, known, points, signs):
        return found[0] if len(signs) == 1 else found


class Text(Broken):
    def spoil(self, found, known, points, signs):
        return "wide"


class Nothing(Broken):
    def spoil(self, found, known, points, signs):
        return None


class Crossing(Broken):
    def spoil(self, found, known, points, signs):
        return found - 3.0


class Swapped(Broken):
    def spoil(self, found, known, points, signs):
        return kb.DMM().extremes(known, points, [-sign for sign in signs])


class OneOrder(Broken):
    """Takes it that the first sign is +1."""

    def spoil(self, found, known, points, signs):
        return kb.DMM().extremes(known, points, (1, -1)[: len(signs)])


class Centred(Broken):
    """Depends on the company of its points."""

    def spoil(self, found, known, points, signs):
        return found + np.abs(points.mean())


class Numbered(Broken):
    def spoil(self, found, known, points, signs):
        return found + 1e-3 * np.arange(len(points))


class Noisy(Broken):
    def spoil(self, found, known, points, signs):
        return found + 1e-3 * np.random.default_rng().random()


@dataclass(repr=False)
class Remembering(Broken):
    """Keeps what it computed for a number of observations."""

    kept: dict = field(default_factory=dict)

    def spoil(self, found, known, points, signs):
        return found + self.kept.setdefault(known.count, known.outcomes.sum() ** 2)


class Latest(Broken):
    """Looks at how the data came."""

    def __init__(self):
        self.asked = 0

    def spoil(self, found, known, points, signs):
        self.asked += len(points) == 2
        return found + self.asked


class Moving(Broken):
    def spoil(self, found, known, points, signs):
        points += 0.1
        return found


class Forgetting(Broken):
    def spoil(self, found, known, points, signs):
        known.outcomes[0] = 0.0
        return found


class Uncopied(Broken):
    def __deepcopy__(self, memo):
        return Plain()


class Raising(Broken):
    def spoil(self, found, known, points, signs):
        return found[:, 3]


class Unweighed(Broken):
    """Takes 8 sigma around each outcome, which is right where all noise scales are sigma."""

    def told(self, known):
        return known.outcomes

    def spoil(self, found, known, points, signs):
        signs = np.array(signs)[:, None]
        for x, y in zip(known.points, self.told(known), strict=True):
            ends = signs * y + 8 * known.assumptions.noise_scale
            found = np.where(np.all(points == x, axis=1), np.minimum(found, ends), found)
        return found


class AsObserved(Unweighed):
    """The same around what was observed, whose noise may be larger."""

    def told(self, known):
        return known.data.observed


class Narrow(Broken):
    """Half the width around the middle."""

    def spoil(self, found, known, points, signs):
        return found - 0.25 * kb.DMM().extremes(known, points, (1, -1)).sum(axis=0)


class Stubborn(Broken):
    """Right only after many observations: the width grows as it should shrink."""

    def spoil(self, found, known, points, signs):
        return np.minimum(found, 0.3 * known.trivial(points)) if known.count < 3 else found


class Unnamed(Broken):
    def __repr__(self):
        return {}["name"]


class Unquiet(Broken):
    def spoil(self, found, known, points, signs):
        return found + 0.0 / (known.assumptions.noise_scale * np.ones(len(points)))


class WrongLargest(Broken):
    def largest(self, known, points, sign, tie):
        found = super().largest(known, points, sign, tie)
        return Largest(found.value - 0.5, found.at, found.opposite)


class WrongPlace(Broken):
    def largest(self, known, points, sign, tie):
        worst = int(self.extremes(known, points, (sign,)).argmin())
        opposite = self.extremes(known, points, (-sign,))[0, worst]
        return super().largest(known, points, sign, tie)._replace(at=worst, opposite=opposite)


class OtherFactor(kb.AMM):
    """Wider than AMM, which is fine, with the joint_bound of AMM, which is not."""

    def ellipsoids(self, known, points):
        found = super().ellipsoids(known, points)
        return Ellipsoids(found.ridges, 1.5 * found.factors, found.mean, found.variance)


class OtherValues(kb.AMM):
    def attained(self, known, points, signs):
        found = super().attained(known, points, signs)
        return DualMinimum(found.values + 0.1, found.ridges, found.scales)


class OtherScales(kb.AMM):
    def attained(self, known, points, signs):
        found = super().attained(known, points, signs)
        return DualMinimum(found.values, found.ridges, 0 * found.scales)


class NotExact(kb.AMM):
    @property
    def exact(self):
        return True


class NotLasting(kb.AMM):
    """A ridge that follows the number of observations, and says that it stays."""

    def ellipsoids(self, known, points):
        ridges = np.array([0.3 if known.count < 10 else 30.0])
        return Ellipsoids.of_radius(known, ridges, known.predict(points, ridges))


@pytest.mark.parametrize(
    ("bound", "clause", "what"),
    [
        (Unnamed(), "repr", "raised KeyError"),
        (NotANumber(), "answers", "nan"),
        (MinusInfinity(), "answers", "minus infinity"),
        (Transposed(), "answers", r"shape \(15, 1\) .* 1 sign.* 15 point.* must be \(1, 15\)"),
        (OneSided(), "answers", r"shape \(15,\)"),
        (Text(), "answers", "returned str in place of an array"),
        (Nothing(), "answers", "NoneType|shape"),
        (Raising(), "answers", "shape|raised IndexError"),
        (Unquiet(), "answers", "nan .* at noise_scale = 0"),
        (Moving(), "nothing changes", "changes the points that it is asked about"),
        (Forgetting(), "nothing changes", "changes the outcomes"),
        (Crossing(), "sides", "lower bounds that exceed its upper ones"),
        (Swapped(), "sides", "wrong way round"),
        (OneOrder(), "sides", "wrong way round|for the signs"),
        (Unweighed(), "weights", r"known\.outcomes are w_s y_s with the known\.weights"),
        (AsObserved(), "weights", r"noise scales sigma_s of their own"),
        (Centred(), "points", "when others are asked"),
        (Numbered(), "points", "in another order"),
        (Noisy(), "sides", "other bounds"),
        (Remembering(), "data", "after it was asked about other data"),
        (Latest(), "data", "one by one"),
        (Uncopied(), "copies", "deep copy"),
        (WrongLargest(), "largest", "from largest"),
        (WrongPlace(), "largest", "where its bounds are largest"),
        (OtherFactor(), "dual", "ridges, scales and joint_bound"),
        (OtherValues(), "dual", "from attained than from extremes"),
        (OtherScales(), "dual", "scales that are not positive"),
        (NotExact(), "dual", "changes faster"),
        (NotLasting(), "dual", "larger later"),
        (Narrow(), "coverage", "in .* of 60 runs at delta = 0.1, where at most 6 are expected"),
        (Stubborn(), "coverage", "missed the truth"),
    ],
    ids=lambda part: type(part).__name__ if isinstance(part, kb.Bound) else None,
)
def test_a_broken_bound_is_named_with_the_clause(bound, clause, what):
    with pytest.raises(kb.KernelBoundsError, match=what) as error:
        kb.check_bound(bound)
    text = str(error.value)
    assert text.startswith(f"the bound {type(bound).__name__}")
    assert f"clause '{clause}': it " in text
    assert text.endswith(".") and "\n" not in text


@dataclass(frozen=True)
class Scaled(kb.Bound):
    """Half-widths that are too small by a factor."""

    name: str
    factor: float

    def extremes(self, known, points, signs):
        both = BOUNDS[self.name].extremes(known, points, (1, -1))
        missing = (1 - self.factor) / 2 * both.sum(axis=0)
        return np.array([both[0 if sign == 1 else 1] - missing for sign in signs])


@pytest.mark.parametrize(
    ("name", "factor"), [("CMM", 0.3), ("CMM", 0.6), ("CMM", 0.9), ("DMM", 0.8), ("AMM", 0.7)]
)
def test_how_narrow_a_bound_is_noticed(name, factor):
    """Of bounds that are close to exact."""
    with pytest.raises(kb.KernelBoundsError, match=r"coverage|sides"):
        kb.check_bound(Scaled(name, factor))


def test_where_misses_leave_a_doubt_there_are_more_runs():
    """14 of 60 may be seen of a valid bound, and 62 of 300 may not."""
    with pytest.raises(
        kb.KernelBoundsError, match=r"in \d+ of 300 runs .* at most 30 are expected"
    ):
        kb.check_bound(Scaled("AY", 0.7))


def test_a_report_says_how_many_misses_are_expected():
    fine, doubtful = (BoundReport(misses, 60, 1.2, True) for misses in (3, 12))
    assert "outside in 3 of 60 runs, where at most 6 are expected at delta = 0.1" in str(fine)
    assert fine.p_value > 0.9 and str(fine).startswith("the contract holds")
    assert np.isclose(doubtful.p_value, 1 - binom.cdf(11, 60, 0.1)) and doubtful.p_value < 0.05
    assert str(doubtful).startswith("no clause is broken, but coverage is doubtful")


def test_a_refusal_of_weighted_data_is_fine():
    class Refusing(Plain):
        def extremes(self, known, points, signs):
            if np.any(known.weights != 1):
                raise kb.InputError("this bound needs one noise scale.")
            return super().extremes(known, points, signs)

    clauses.weights(Refusing())


@pytest.mark.parametrize("wrong", [kb.CMM, "CMM", None, 3, lambda known, points, signs: 1.0])
def test_what_is_no_bound_is_refused(wrong):
    with pytest.raises(kb.InputError, match=r"derived from kernelbounds\.Bound"):
        kb.check_bound(wrong)


def test_a_refusal_of_noiseless_data_is_fine():
    class Refusing(Plain):
        def extremes(self, known, points, signs):
            if known.assumptions.noise_scale == 0:
                raise kb.InputError("this bound needs noise.")
            return super().extremes(known, points, signs)

    kb.check_bound(Refusing())


def test_the_error_rate_is_as_stated():
    """With two looks, each at half of what is stated."""
    most = max(k for k in range(61) if binom.sf(k - 1, 60, 0.1) >= checking.FAILING_P_VALUE)
    assert 2 * binom.sf(most, 60, 0.1) < 2 * checking.FAILING_P_VALUE <= 1e-4
    assert (checking.RUNS, checking.DELTA) == (60, 0.1)

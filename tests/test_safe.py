"""SafeUCB: no point that is asked for violates a constraint, and certificates compare with all."""

from __future__ import annotations

import copy
import itertools
import warnings

import numpy as np
import pytest
from problems import refused, too_many, truth
from sklearn.gaussian_process.kernels import RBF, Matern

import kernelbounds as kb
from kernelbounds.bandits.constraints import Possible
from kernelbounds.surface import Clipped

KERNEL = Matern(0.4, nu=2.5)
LINE = np.linspace(0, 1, 41)[:, None]
NOISE = 0.1


def sequences(count=2, delta=0.01, noise_scale=NOISE, norm=2.0, **options):
    return [
        kb.ConfidenceSequence(KERNEL, norm, noise_scale, delta, **options) for _ in range(count)
    ]


class Case:
    """Functions f and g of one input, a limit of g that divides the line, and the safest point."""

    def __init__(self, seed, kernel=KERNEL, norm=2.0):
        self.rng = np.random.default_rng(seed)
        self.f, self.g = (truth(kernel, self.rng, norm, dim=1, centres=6) for _ in range(2))
        values = self.g(LINE)
        self.least, self.seed = float(np.quantile(values, 0.35)), LINE[[int(values.argmax())]]

    def policy(self, domain=None, minimise=False, **options):
        objective, own = sequences(**options)
        return kb.SafeUCB(
            objective, domain or kb.Finite(LINE), constraints={"g": (own, self.least)},
            seed=self.seed, minimise=minimise,
        )  # fmt: skip

    def outcome(self, x, noise=NOISE):
        f, g = (
            float(one(x[None])[0]) + noise * self.rng.standard_normal() for one in (self.f, self.g)
        )
        return f, {"g": g}


def violations(runs, rounds, delta, domain=None, believed=NOISE):
    """The number of runs in which a point was asked for that violates the constraint."""
    failures = 0
    for seed in range(runs):
        case = Case(seed)
        policy = case.policy(domain, delta=delta, noise_scale=believed)
        try:
            policy.run(case.outcome, rounds)
        except kb.KernelBoundsError:  # which a refutation of right assumptions is, too
            failures += 1
            continue
        failures += bool((case.g(policy.sequence.points) < case.least).any())
    return failures


class TestSafety:
    @pytest.mark.parametrize("domain", [None, kb.Box([0.0], [1.0])], ids=["finite", "box"])
    @pytest.mark.usefixtures("short_searches")
    def test_no_point_that_is_asked_for_violates_a_constraint(self, domain):
        assert violations(2 if domain else 8, 10 if domain else 20, 0.01, domain) == 0

    def test_that_test_can_fail(self):
        """With the noise believed a tenth of what it is, points violate the constraint."""
        assert violations(8, 20, 0.01, believed=NOISE / 10) > 3

    @pytest.mark.slow
    @pytest.mark.parametrize("domain", [None, kb.Box([0.0], [1.0])], ids=["finite", "box"])
    def test_as_rarely_as_is_promised(self, domain):
        """A binomial test of the promise; its level is 1e-4."""
        runs, delta = (30, 0.1) if domain else (150, 0.1)
        assert not too_many(violations(runs, 40, delta, domain), runs, delta)

    def test_each_point_is_safe_by_its_own_lower_bound(self):
        case = Case(1)
        domain = kb.Box([0.0], [1.0])
        policy = case.policy(domain)
        (own,) = policy.others
        for _ in range(8):
            for one in policy.ask(n=2):
                seed = np.array_equal(one.x, case.seed[0])
                # To what a search of CMM leaves open, which depends on the points around.
                assert seed or own.lower(one.x[None])[0] >= case.least - 1e-6
            x = policy.ask().x
            policy.tell(x, *case.outcome(x))

    def test_both_sides_and_a_limit_of_the_objective_itself(self):
        objective, own = sequences(noise_scale=0.0)
        limits = {"f": (objective, -0.2), "g": (own, -0.5, 0.5)}
        safe = kb.SafeUCB(objective, kb.Finite(LINE), constraints=limits, seed=LINE[12])
        f, g = lambda x: 0.4 - 2 * (x - 0.3) ** 2, lambda x: 1.2 * (x - 0.3)
        safe.run(lambda x: (f(x[0]), {"g": g(x[0])}), 30)
        tried = objective.points
        assert f(tried).min() >= -0.2 and np.abs(g(tried)).max() <= 0.5
        assert len(np.unique(tried)) > 10
        lower, upper = own.bounds(LINE)
        expected = (objective.lower(LINE) >= -0.2) & (lower >= -0.5) & (upper <= 0.5)
        np.testing.assert_array_equal(safe.is_safe(LINE), expected | (LINE[:, 0] == LINE[12, 0]))

    def test_imagined_outcomes_make_nothing_safe(self):
        case = Case(3)
        policy = case.policy()
        first = policy.ask(n=3)
        assert all(np.array_equal(one.x, case.seed[0]) for one in first)
        policy.begin(case.seed)
        assert np.array_equal(policy.ask().x, case.seed[0])

    def test_a_seed_that_is_not_safe_is_given_up(self):
        policy = kb.SafeUCB(
            *sequences(1), kb.Finite(LINE), constraints={"g": (own := sequences(1)[0], 1.0)},
            seed=[[0.0], [1.0]],
        )  # fmt: skip
        own.update(np.zeros((30, 1)), np.zeros(30))
        with pytest.warns(UserWarning, match=r"the seed \[0.\] violates a constraint"):
            assert policy.ask().x[0] == 1.0


class TestChoices:
    def test_without_effect_constraints_leave_the_largest_upper_bound(self):
        objective, own = sequences()
        safe = kb.SafeUCB(objective, kb.Finite(LINE), constraints={"g": (own, -5.0)})
        plain = kb.KernelUCB(copy.deepcopy(objective), kb.Finite(LINE))
        for number in range(12):
            one, two = safe.ask(), plain.ask()
            if number > 3:  # while bounds are trivial, there are ties
                assert (one.index, one.limit) == (two.index, pytest.approx(two.limit))
            safe.tell(two.x, np.sin(5 * two.x[0]), {"g": 0.0})
            plain.tell(two.x, np.sin(5 * two.x[0]))

    @pytest.mark.parametrize("domain", [kb.Finite(LINE), kb.Box([0.0], [1.0])], ids=["line", "box"])
    @pytest.mark.usefixtures("short_searches")
    def test_the_safe_set_grows_towards_what_may_be_better(self, domain):
        """f is best at 1, and g at least 0 up to 0.8; the seed is 0."""
        objective, own = sequences(noise_scale=0.02)
        safe = kb.SafeUCB(objective, domain, constraints={"g": (own, 0.0)}, seed=[0.0])
        safe.run(lambda x: (x[0], {"g": 0.8 - x[0]}), 40)
        reached = objective.points.max()
        assert 0.6 < reached <= 0.8
        found = safe.certificate()
        assert 0.6 < found.x[0] <= 0.8 and safe.is_safe(found.x)[0]
        assert found.max_upper >= 0.8 and 0.8 - found.x[0] <= found.regret

    def test_no_expander_where_nothing_better_may_be_beyond(self):
        """f is best at the seed and known well; g is hardly known, and nobody needs to know it."""
        objective, own = sequences()
        objective.update(np.repeat(LINE, 10, axis=0), np.repeat(-LINE[:, 0], 10))
        safe = kb.SafeUCB(objective, kb.Finite(LINE), constraints={"g": (own, 0.0)}, seed=[0.0])
        for _ in range(10):
            x = safe.ask().x
            assert x[0] == 0.0
            safe.tell(x, 0.0, {"g": 0.5})

    def test_an_expander_would_show_a_point_to_be_safe(self):
        """The definition, by a copy that learns the best value of g there without noise."""
        case = Case(5)
        policy = case.policy(noise_scale=0.0)
        policy.run(lambda x: case.outcome(x, 0.0), 4)
        known = policy._constraints
        bands = known.bands(LINE)
        (own,) = policy.others
        safe = np.flatnonzero(policy.is_safe(LINE))
        for at in safe[:: max(len(safe) // 3, 1)]:
            learned = copy.deepcopy(own)
            learned.update(LINE[[at]], own.upper(LINE[[at]]) - 1e-9)
            shown = known.would_show(at, LINE, bands)
            # To know g(z) says more than the bound on a difference, which is for any g(z).
            assert not np.any(shown & ~(learned.lower(LINE) >= case.least - 1e-5))

    def test_bounds_without_differences(self):
        case = Case(6)
        objective, own = sequences(bound=kb.AY())
        policy = kb.SafeUCB(
            objective, kb.Finite(LINE), constraints={"g": (own, case.least)}, seed=case.seed
        )
        policy.run(case.outcome, 10)
        assert (case.g(objective.points) >= case.least).all()
        assert policy.certificate().regret >= 0

    def test_points_are_moved_before_they_are_checked(self, tmp_path):
        """Only tenths can be set, and up to 0.75 is safe: so 0.8 is never tried."""
        objective, own = (kb.ConfidenceSequence(Matern(1.0, nu=2.5), 2.0, 0.01) for _ in range(2))
        safe = kb.SafeUCB(
            objective, kb.Box([0.0], [1.0]), constraints={"g": (own, 0.0)}, seed=[0.0],
            feasible=lambda points: np.round(points, 1),
        )  # fmt: skip
        safe.run(lambda x: (x[0], {"g": 0.75 - x[0]}), 30)
        np.testing.assert_array_equal(objective.points, np.round(objective.points, 1))
        assert 0.6 <= objective.points.max() <= 0.7
        assert safe.certificate().x[0] in (0.6, 0.7)
        refused(lambda: safe.save(tmp_path / "safe.npz"), "cannot be saved")

    def test_categories(self):
        box = kb.Box.named(a=(0, 1), kind=kb.Categories("oak", "elm"))
        kernel = kb.OnInputs(RBF(0.5), [0]) * kb.OnInputs(kb.Levels(0.3), [1])
        objective, own = (kb.ConfidenceSequence(kernel, 2.0, 0.02) for _ in range(2))
        seed = [{"a": 0.2, "kind": "elm"}]
        safe = kb.SafeUCB(objective, box, constraints={"g": (own, None, 0.6)}, seed=seed)
        assert safe.ask().named == seed[0]
        safe.run(lambda x: (x[0], {"g": x[0] + 0.1 * x[1]}), 12)
        assert (own.points @ [1.0, 0.1]).max() <= 0.6
        assert safe.certificate(tolerance=0.5, seconds=2).named["kind"] in ("oak", "elm")


@pytest.mark.usefixtures("short_searches")
class TestCertificates:
    @pytest.mark.parametrize("minimise", [False, True])
    @pytest.mark.parametrize("domain", [kb.Finite(LINE), kb.Box([0.0], [1.0])], ids=["line", "box"])
    def test_regret_among_all_points_that_satisfy_the_constraints(self, domain, minimise):
        for seed in range(1 if isinstance(domain, kb.Box) else 3):
            case = Case(seed)
            policy = case.policy(domain, minimise)
            policy.run(case.outcome, 10)
            found = policy.certificate(tolerance=0.02)
            sign, line = -1 if minimise else 1, np.linspace(0, 1, 401)[:, None]
            if isinstance(domain, kb.Finite):
                line = LINE
            best = (sign * case.f(line))[case.g(line) >= case.least].max()
            there = sign * float(case.f(found.x[None])[0])
            assert best - there <= found.regret
            assert best <= sign * (found.min_lower if minimise else found.max_upper)
            assert case.g(found.x[None])[0] >= case.least and policy.is_safe(found.x)[0]
            assert found.lower <= sign * there <= found.upper

    def test_points_that_violate_a_constraint_for_sure_do_not_count(self):
        objective, own = sequences(noise_scale=0.02)
        objective.update(LINE, LINE[:, 0])
        own.update(np.repeat(LINE, 5, axis=0), np.repeat(0.5 - LINE[:, 0], 5))
        everything = kb.KernelUCB(objective, kb.Finite(LINE)).certificate()
        for domain in (kb.Finite(LINE), kb.Box([0.0], [1.0])):
            safe = kb.SafeUCB(objective, domain, constraints={"g": (own, 0.0)})
            found = safe.certificate(tolerance=0.01)
            assert 0.4 < found.x[0] <= 0.5 <= found.max_upper < 0.7 < everything.lower
            assert 0 <= found.regret < found.max_upper - found.lower

    def test_a_surface_of_what_is_possible_has_ceilings_above_it(self):
        case = Case(7)
        policy = case.policy(noise_scale=0.02)
        policy.tell(LINE, case.f(LINE), {"g": case.g(LINE)})
        surface = Possible(policy.surface(1), policy._constraints.surfaces(LINE))
        rng = np.random.default_rng(0)
        centres, halves = rng.random((30, 1)), 0.1 * rng.random((30, 1))
        values, ceilings = surface.ceilings(centres, halves)
        np.testing.assert_allclose(values, surface.values(centres), atol=1e-6)
        for shift in np.linspace(-1, 1, 21):
            assert np.all(surface.values(centres + shift * halves) <= ceilings + 1e-9)
        assert np.isinf(values).any() and np.isfinite(values).any()
        plain = Clipped(policy.surface(1)).values(centres)
        np.testing.assert_allclose(values[np.isfinite(values)], plain[np.isfinite(values)])

    def test_too_little_time_is_looser_and_true(self):
        case = Case(8)
        points = np.linspace(0, 1, 20_001)[:, None]
        policy = case.policy(kb.Finite(np.concatenate([points, case.seed])))
        policy.run(case.outcome, 3)
        short, long = policy.certificate(seconds=1e-3), policy.certificate(seconds=60)
        best = case.f(points)[case.g(points) >= case.least].max()
        for found in (short, long):
            assert best - case.f(found.x[None])[0] <= found.regret
        assert long.regret <= short.regret


class TestAskAndTell:
    def test_asking_twice_is_the_same_and_changes_nothing(self):
        case = Case(9)
        for domain in (kb.Finite(LINE), kb.Box([0.0], [1.0])):
            policy = case.policy(domain)
            policy.run(case.outcome, 5)
            first, batch = policy.ask(), policy.ask(n=3)
            again = policy.ask()
            assert np.array_equal(again.x, first.x) and np.array_equal(batch[0].x, first.x)

    def test_a_constraint_without_its_outcome_is_refused(self):
        case = Case(10)
        policy = case.policy()
        for values in (None, {}, {"h": 1.0}, {"g": 1.0, "h": 1.0}, 3.0):
            assert "(g)" in refused(
                lambda v=values: policy.tell(case.seed[0], 0.1, v), "by its name"
            )
        for values in ({"g": np.nan}, {"g": "high"}, {"g": [1.0, 2.0]}):
            refused(lambda v=values: policy.tell(case.seed[0], 0.1, v), "g")
        refused(lambda: policy.tell(case.seed[0], np.inf, {"g": 1.0}), "y")
        refused(lambda: policy.run(lambda x: 0.1, 3), "must return its outcome and a dict")
        refused(lambda: policy.run(lambda x: (0.1, {"g": None}), 3), "the outcome of 'g'")
        assert len(policy.sequence) == len(policy.others[0]) == 0
        policy.tell([[0.1], [0.2]], [0.1, 0.2], {"g": [1.0, 2.0]})
        policy.tell([0.3], 0.1, {"g": 1.0})
        assert len(policy.sequence) == len(policy.others[0]) == 3

    def test_nothing_is_safe_without_seeds_and_data(self):
        for domain in (kb.Finite(LINE), kb.Box([0.0], [1.0])):
            for seed in (None, [], np.empty((0, 1))):
                objective, own = sequences()
                safe = kb.SafeUCB(objective, domain, constraints={"g": (own, 0.0)}, seed=seed)
                for call in (safe.ask, safe.certificate):
                    refused(call, r"points looked at is known to be safe; pass .* seed=")
                safe.tell([[0.5]] * 30, [0.0] * 30, {"g": [1.0] * 30})
                assert abs(safe.ask().x[0] - 0.5) < 0.2

    def test_actions_of_each_round_and_no_domain(self):
        objective, own = sequences()
        safe = kb.SafeUCB(objective, constraints={"g": (own, 0.0)}, seed=[[0.5]])
        refused(lambda: safe.ask(LINE[::4][:2]), "known to be safe")
        assert safe.ask([[0.1], [0.5]]).index == 1
        refused(lambda: safe.tell([0.1, 0.2], 1.0, {"g": 1.0}), "dim|coordinates|columns")
        assert len(own) == len(objective) == 0

    def test_safe_actions_may_be_used_up(self):
        objective, own = sequences()
        domain = kb.Finite(LINE, once=True)
        safe = kb.SafeUCB(objective, domain, constraints={"g": (own, 0.0)}, seed=[[0.5]])
        safe.begin([0.5])
        refused(safe.ask, "all 1 actions that are known to be safe")

    def test_saved_and_loaded_it_goes_on_the_same(self, tmp_path):
        case = Case(11)
        objective, own = sequences()
        limits = {"f": (objective, -3.0), "g": (own, case.least, 9.0)}
        policy = kb.SafeUCB(objective, kb.Finite(LINE), constraints=limits, seed=case.seed)
        policy.run(case.outcome, 6, save_to=tmp_path / "safe.npz")
        again = kb.SafeUCB.load(tmp_path / "safe.npz")
        assert repr(again) == repr(policy) and "g <= 9" in repr(again) and "f >= -3" in repr(again)
        assert again.delta == policy.delta == 0.02
        for _ in range(4):
            one, two = policy.ask(), again.ask()
            assert one.index == two.index and (one.lower, one.limit) == (two.lower, two.limit)
            outcome = case.outcome(one.x)
            policy.tell(one, *outcome)
            again.tell(two, *outcome)
        np.testing.assert_array_equal(policy.is_safe(LINE), again.is_safe(LINE))
        with pytest.raises(kb.StoredFileError, match="holds a SafeUCB"):
            kb.KernelUCB.load(tmp_path / "safe.npz")

    def test_refuted_assumptions_of_a_constraint_end_it(self):
        case = Case(12)
        policy = case.policy()
        policy.others[0].update(LINE, 50 * case.rng.standard_normal(len(LINE)))
        for call in (policy.ask, policy.certificate, lambda: policy.is_safe(LINE)):
            with pytest.raises(kb.EmptyConfidenceSetError):
                call()

    def test_bad_input(self):
        objective, own = sequences()
        other = kb.ConfidenceSequence(RBF((0.1, 0.2)), 1.0, 0.1)
        fixed = kb.ConfidenceSequence(KERNEL, 1.0, 0.1, bound=kb.FixedDesign())

        line = kb.Finite(LINE)

        def make(constraints, domain=line, **more):
            return lambda: kb.SafeUCB(objective, domain, constraints=constraints, **more)

        cases = {
            "a dict of names": [make(None), make({}), make([own])],
            "a name that is a text": [make({1: (own, 0.0)})],
            "must be a pair": [make({"g": own}), make({"g": (own,)}), make({"g": (own, 0, 1, 2)})],
            "must be a ConfidenceSequence": [make({"g": (3.0, 0.0)})],
            "a limit of the constraint 'g' must be": [
                make({"g": (own, "low")}), make({"g": (own, np.nan)}), make({"g": (own, np.inf)}),
            ],
            "has no limit": [make({"g": (own, None)}), make({"g": (own, None, None)})],
            "at least 2 and at most 1": [make({"g": (own, 2.0, 1.0)})],
            "the sequence of another one": [make({"g": (own, 0.0), "h": (own, None, 1.0)})],
            "2 length scales": [make({"g": (other, 0.0)})],
            "FixedDesign": [make({"g": (fixed, 0.0)})],
            "points of the domain": [
                make({"g": (own, 0.0)}, seed=[[0.123]]),
                make({"g": (own, 0.0)}, kb.Box([0.0], [1.0]), seed=[[1.5]]),
            ],
            "dim|coordinates|columns": [make({"g": (own, 0.0)}, seed=[[0.1, 0.2]])],
        }  # fmt: skip
        for match, calls in cases.items():
            for call in calls:
                refused(call, match)
        refused(make({"g": (own, 0.0)}, feasible=3), "feasible must be a function")
        own.update([[0.1, 0.2]], [0.0])
        objective.update([[0.1]], [0.0])
        refused(make({"g": (own, 0.0)}, None), "need one dimension, got 1, 2")

    def test_copies_are_whole(self):
        case = Case(13)
        policy = case.policy()
        policy.run(case.outcome, 3)
        other = copy.deepcopy(policy)
        other.run(case.outcome, 2)
        assert len(policy.others[0]) == 3 and len(other.others[0]) == len(other.sequence) == 5

    def test_no_warnings_on_the_way(self):
        case = Case(14)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for domain, minimise in itertools.product((None, kb.Box([0.0], [1.0])), (False, True)):
                policy = case.policy(domain, minimise)
                policy.run(case.outcome, 3, batch=3)
                policy.certificate(tolerance=0.1)

"""Optuna's studies: the same choices as our own, certificates from trials, and what voids them."""

from __future__ import annotations

import importlib
import json
import math
import pickle
import re
import runpy
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import kernelbounds as kb

optuna = pytest.importorskip("optuna")

from optuna.distributions import (  # noqa: E402
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import TrialState, create_trial  # noqa: E402

from kernelbounds.integrations.optuna import (  # noqa: E402
    CERTIFICATE,
    KernelBoundsSampler,
    StopWhenCertified,
    problem_of,
    trials_of,
)
from kernelbounds.study.asking import PURPOSES  # noqa: E402
from kernelbounds.study.search import Search  # noqa: E402

pytestmark = pytest.mark.usefixtures("short_searches")
optuna.logging.set_verbosity(optuna.logging.ERROR)

SPACE = {
    "rate": FloatDistribution(1e-4, 1e-1, log=True),
    "depth": IntDistribution(1, 9),
    "kind": CategoricalDistribution(["oak", "elm"]),
}


def problem(**changes):
    known = {"kernel": "OnInputs(Matern(1.0, nu=2.5), [0, 1]) * OnInputs(Levels(0.5), [2])"}
    return problem_of(SPACE, "gain=0:10", **{"noise": 0.2, "norm_bound": 20.0} | known | changes)


def suggested(trial):
    return {
        "rate": trial.suggest_float("rate", 1e-4, 1e-1, log=True),
        "depth": trial.suggest_int("depth", 1, 9),
        "kind": trial.suggest_categorical("kind", ["oak", "elm"]),
    }


def truth(rate, depth, kind):
    return 6 - (math.log10(rate) + 2) ** 2 - 0.1 * (depth - 6) ** 2 + (kind == "elm")


def objective(trial):
    rng = np.random.default_rng(trial.number)
    return truth(**suggested(trial)) + 0.2 * rng.standard_normal()


ONE = kb.Problem(["x=0:1"], "y=-2:2", noise=0.05, kernel="RBF(0.7)", norm_bound=1.5)


def line(trial):
    x = trial.suggest_float("x", 0, 1)
    return (x - 0.3) ** 2 + 0.05 * np.random.default_rng(trial.number).standard_normal()


def sampled(count, given=ONE, objective=line, direction="minimize", purpose="best", **more):
    sampler = KernelBoundsSampler(given, purpose, seed=0)
    study = optuna.create_study(direction=direction, sampler=sampler, **more)
    study.optimize(objective, n_trials=count, catch=(ZeroDivisionError,))
    return study


# --- choices


@pytest.mark.parametrize("purpose", PURPOSES)
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_choices_are_those_of_our_own_study(purpose, direction):
    study = sampled(11, problem(), objective, direction, purpose)
    own = kb.Study.create(":memory:", problem(), minimise=direction == "minimize")
    for trial in study.trials:
        assert own.ask(purpose=purpose).values == trial.params
        own.tell(trial.params, trial.value)
    assert isinstance(study.trials[0].params["depth"], int)


def test_certificates_are_those_of_our_own_study():
    study = sampled(12)
    own = kb.Study.create(":memory:", ONE, minimise=True)
    for trial in study.trials:
        own.tell(trial.params, trial.value)
    found = StopWhenCertified(ONE, regret=0.01, seconds=20).certificate(study)
    expected = own.certificate(20)
    assert found["params"] == pytest.approx(expected.named)
    assert found["regret"] == pytest.approx(expected.regret)
    assert (found["lower"], found["upper"]) == pytest.approx((expected.lower, expected.upper))
    true = (found["params"]["x"] - 0.3) ** 2
    assert found["lower"] <= true <= found["upper"] and true <= found["regret"]


def test_trials_that_run_are_pending():
    study = optuna.create_study(direction="maximize", sampler=KernelBoundsSampler(problem()))
    own = kb.Study.create(":memory:", problem())
    for _ in range(2):
        trials, theirs = [study.ask(SPACE) for _ in range(4)], own.ask(4)
        assert [one.params for one in trials] == [one.values for one in theirs]
        for number, (trial, one) in enumerate(zip(trials, theirs)):
            study.tell(trial, float(number))
            own.tell(one, float(number))


def test_a_trial_is_pending_before_its_parameters_are_asked_for():
    study = optuna.create_study(sampler=KernelBoundsSampler(ONE))
    first, second = study.ask(), study.ask()
    with pytest.warns(UserWarning, match="'other' is no input"):
        first.suggest_float("other", 0, 1)  # which makes the sampler choose x, too
    assert second.suggest_float("x", 0, 1) != first.suggest_float("x", 0, 1)


def test_where_trials_fail_or_are_pruned_is_not_tried_again():
    def failing(trial):
        x = trial.suggest_float("x", 0, 1)
        if trial.number == 1:
            raise optuna.TrialPruned
        return 1 / (trial.number != 0) + x

    study = sampled(6, objective=failing)
    states = [one.state for one in study.trials[:3]]
    assert states == [TrialState.FAIL, TrialState.PRUNED, TrialState.COMPLETE]
    assert len({one.params["x"] for one in study.trials[:3]}) == 3


def test_steps_and_choices_that_are_not_text():
    space = {
        "size": IntDistribution(32, 256, step=32),
        "share": FloatDistribution(0.0, 1.0, step=0.25),
        "flag": CategoricalDistribution([None, True, 3]),
    }
    given = problem_of(
        space, "y=0:1", noise=0.1, norm_bound=5.0,
        kernel="OnInputs(RBF(0.7), [0, 1]) * OnInputs(Levels(0.5), [2])",
    )  # fmt: skip
    study = optuna.create_study(sampler=KernelBoundsSampler(given))
    for _ in range(9):
        trial = study.ask(space)
        assert trial.params["size"] % 32 == 0 and trial.params["share"] % 0.25 == 0
        study.tell(trial, 0.5)
    assert {one.params["flag"] for one in study.trials} >= {None, True}
    found = StopWhenCertified(given, regret=0.1, seconds=0.2).certificate(study)
    assert found["params"]["flag"] in (None, True, 3) and found["trials"] == 9
    assert type(found["params"]["size"]) is int


def test_parameters_that_the_problem_does_not_have():
    def conditional(trial):
        value = line(trial)
        return value + (trial.suggest_float("extra", 0, 0.1) if trial.number % 2 else 0)

    with pytest.warns(UserWarning, match="'extra' is no input of the problem, so RandomS") as seen:
        study = sampled(6, objective=conditional)
    assert len(seen) == 1
    with pytest.warns(UserWarning, match="'extra' varies and is no input"):
        found = StopWhenCertified(ONE, regret=100.0).certificate(study)
    assert not found["reached"] and "extra" in found["void"][0]


def test_a_sampler_reads_its_study_again_after_pickle_and_beside_others():
    study = sampled(5)
    sampler = pickle.loads(pickle.dumps(study.sampler))
    for _ in range(2):  # two studies in turn, with one sampler
        empty = optuna.create_study(sampler=sampler)
        assert empty.ask({"x": FloatDistribution(0, 1)}).params["x"] == 0.5
        again = optuna.create_study(sampler=sampler)
        again.add_trials(study.trials)
        expected = sampled(6).trials[5].params
        assert again.ask({"x": FloatDistribution(0, 1)}).params == expected


def test_refuted_assumptions_do_not_end_a_run():
    tiny = ONE.replace(noise=0.001, norm_bound=0.01)
    with pytest.warns(UserWarning, match="refute the assumptions.*sampled at random"):
        study = sampled(8, tiny, lambda trial: 100 * trial.suggest_float("x", 0, 1))
    with pytest.warns(UserWarning, match="refute"):
        found = StopWhenCertified(tiny, regret=0.1).certificate(study)
    assert found["void"] and not found["reached"] and found["regret"] is None
    assert json.loads(json.dumps(found, allow_nan=False)) == found


# --- certificates


@pytest.mark.parametrize("sampler", [optuna.samplers.TPESampler, optuna.samplers.RandomSampler])
def test_the_callback_stops_any_sampler(sampler):
    study = optuna.create_study(sampler=sampler(seed=0))
    study.optimize(line, n_trials=200, callbacks=[StopWhenCertified(ONE, regret=0.2, every=5)])
    found = study.user_attrs[CERTIFICATE]
    assert found["reached"] and found["regret"] <= 0.2 and found["trials"] == len(study.trials)
    assert len(study.trials) < 200 and len(study.trials) % 5 == 0
    assert (found["params"]["x"] - 0.3) ** 2 <= found["regret"]
    assert not found["void"] and not found["notes"] and found["confidence"] == 0.99
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    # Another worker, or the same one later, stops at once: the certificate stays true.
    study.optimize(line, n_trials=5, callbacks=[StopWhenCertified(ONE, regret=0.2)])
    assert len(study.trials) == found["trials"] + 1
    assert study.user_attrs[CERTIFICATE] == found


def test_a_certificate_needs_an_aim_in_the_right_units():
    with pytest.raises(kb.InputError, match=r"regret must be .* above 0"):
        StopWhenCertified(ONE, regret=0.0)
    log = kb.Problem(["x=0:1"], "y=1:9:log", noise="5%", kernel="RBF(0.7)", norm_bound=1.0)
    with pytest.raises(kb.InputError, match="percentage"):
        StopWhenCertified(log, regret=0.1)
    study = optuna.create_study(sampler=KernelBoundsSampler(log))
    stop = StopWhenCertified(log, regret="60%")
    study.optimize(lambda t: math.exp(t.suggest_float("x", 0, 1)), n_trials=60, callbacks=[stop])
    found = study.user_attrs[CERTIFICATE]
    assert found["reached"] and found["regret"] <= 0.6 and found["lower"] > 0.9


def test_pruned_trials_void_the_guarantee():
    def pruning(trial):
        value = line(trial)
        if trial.number in (2, 3):
            raise optuna.TrialPruned
        return value

    stop = StopWhenCertified(ONE, regret=100.0)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    with pytest.warns(UserWarning, match="2 trials were pruned") as seen:
        study.optimize(pruning, n_trials=4)
        study.optimize(line, n_trials=4, callbacks=[stop])
    found = study.user_attrs[CERTIFICATE]
    assert len(seen) == 1 and len(study.trials) == 8
    assert found["trials"] == 6 and not found["reached"] and found["regret"] < 100
    assert "pruned" in found["void"][0]


def test_failed_trials_are_left_out_with_a_note():
    study = sampled(4, objective=lambda trial: line(trial) / (trial.number != 1))
    with pytest.warns(UserWarning, match="1 trial was left out for having failed"):
        found = StopWhenCertified(ONE, regret=100.0).certificate(study)
    assert found["trials"] == 3 and found["reached"] and "failed" in found["notes"][0]


def test_impossible_outcomes_void_the_guarantee():
    study = sampled(4, objective=lambda trial: line(trial) + (0 if trial.number else math.inf))
    with pytest.warns(UserWarning, match="trial 0 has the outcome inf"):
        found = StopWhenCertified(ONE, regret=100.0).certificate(study)
    assert found["trials"] == 3 and not found["reached"]


def test_the_order_of_trials_that_end_in_another_one():
    study, space = optuna.create_study(), {"x": FloatDistribution(0, 1)}
    trials = [study.ask(space) for _ in range(4)]
    study.tell(trials[0], 0.0)
    assert not StopWhenCertified(ONE, regret=100.0).certificate(study)["notes"]
    study.tell(trials[2], 0.2)
    with pytest.warns(UserWarning, match="in another order than they began"):
        StopWhenCertified(ONE, regret=100.0).certificate(study)  # since trial 1 still runs
    study = optuna.create_study()
    trials = [study.ask(space) for _ in range(4)]
    ending = [2, 0, 3]  # and trial 1 still runs
    for number in ending:
        study.tell(trials[number], 0.1 * number)
    stop = StopWhenCertified(ONE, regret=100.0)
    with pytest.warns(UserWarning, match="in another order than they began"):
        assert stop.certificate(study)["reached"]
    assert [one.trial for one in stop._record.read(*trials_of(study)).rows] == ending
    begun = StopWhenCertified(ONE, regret=100.0, order="start")
    assert begun.certificate(study)["trials"] == 1  # since trial 1 holds up the others
    study.tell(trials[1], 0.1)
    found = begun.certificate(study)
    assert found["trials"] == 4 and not found["notes"]
    assert [one.trial for one in begun._record.read(*trials_of(study)).rows] == [0, 1, 2, 3]
    assert [one.trial for one in stop._record.read(*trials_of(study)).rows] == [*ending, 1]


def test_trials_out_of_range_are_left_out():
    study = sampled(3)
    far = {"x": FloatDistribution(0, 9)}
    study.add_trial(create_trial(params={"x": 5.0}, distributions=far, value=1.0))
    with pytest.warns(UserWarning, match="1 trial was left out for lacking an input"):
        found = StopWhenCertified(ONE, regret=100.0).certificate(study)
    assert found["trials"] == 3


def test_what_is_refused():
    two = optuna.create_study(directions=["minimize"] * 2, sampler=KernelBoundsSampler(ONE))
    with pytest.raises(kb.InputError, match="2 objectives"):
        two.ask({"x": FloatDistribution(0, 1)})
    study = sampled(1)
    trial = study.ask({"x": FloatDistribution(0, 1)})
    trial.set_constraint("c", 1.0)
    with pytest.raises(kb.InputError, match="trial 1 has constraints, of which nothing is known"):
        study.ask({"x": FloatDistribution(0, 1)})
    counts = kb.Problem(["x=0:1"], "rate=0:1", successes="k", tries="n")
    with pytest.raises(kb.InputError, match="one number for a trial"):
        KernelBoundsSampler(counts)
    with pytest.raises(kb.InputError, match="one of completion, start, got 'end'"):
        StopWhenCertified(ONE, regret=1.0, order="end")
    with pytest.raises(kb.InputError, match="noise of the output is missing"):
        KernelBoundsSampler(ONE.replace(noise=None))
    with pytest.raises(kb.InputError, match=r"distributions by name, got \(0, 1\) for 'x'"):
        problem_of({"x": (0, 1)}, "y=0:1")
    wrong = optuna.create_study(sampler=KernelBoundsSampler(ONE))
    with pytest.raises(kb.InputError, match="state the input as the objective suggests it"):
        wrong.ask({"x": CategoricalDistribution(["a", "b"])})


# --- constraints

HEAT = ONE.replace(output="over=-2:2", delta=0.001)
COOL = [{"x": 0.1}]


def heating(trial):
    """What is wanted grows with x, and the constraint holds up to 0.7."""
    x = trial.suggest_float("x", 0, 1)
    noise = 0.05 * np.random.default_rng(trial.number).standard_normal(2)
    trial.set_constraint("heat", x - 0.7 + noise[0])
    return x + noise[1]


def safely(count, given=ONE, limit=HEAT, safe=COOL, objective=heating, direction="maximize"):
    sampler = KernelBoundsSampler(given, constraints={"heat": limit}, safe=safe)
    study = optuna.create_study(direction=direction, sampler=sampler)
    study.optimize(objective, n_trials=count)
    return study


def natively(given, limit, safe, minimise):
    """The safe policy on the scale of the model, and its sequences."""
    sequence, own = given.sequence(), limit.sequence()
    search = Search(given, minimise)
    seed = given.scaled([[one[name] for name in given.inputs.names] for one in safe])
    return kb.SafeUCB(
        sequence, search.domain, constraints={"heat": (own, None, 0.0)}, seed=seed,
        minimise=minimise, feasible=search.feasible,
    )  # fmt: skip


TWO = kb.Problem(["x=0:1", "n=1:9:integer"], "y=-2:2", noise=0.05, kernel="RBF(0.7)", norm_bound=2)
WHOLE = kb.Problem(["n=1:9:integer"], "y=-2:2", noise=0.05, kernel="RBF(0.7)", norm_bound=2)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("given", [ONE, TWO, WHOLE], ids=["float", "mixed", "whole"])
def test_with_constraints_choices_are_those_of_the_safe_policy(given, direction):
    def objective(trial):
        x = trial.suggest_float("x", 0, 1) if "x" in given.inputs.names else 0.1
        n = trial.suggest_int("n", 1, 9) if "n" in given.inputs.names else 2
        trial.set_constraint("heat", x + n / 10 - 1.2)
        return math.sin(2 * x) + n / 10

    safe = [{name: {"x": 0.2, "n": 3}[name] for name in given.inputs.names}]
    limit = given.replace(output="over=-2:2")
    study = safely(8, given, limit, safe, objective, direction)
    policy = natively(given, limit, safe, direction == "minimize")
    for trial in study.trials:
        point = [trial.params[name] for name in given.inputs.names]
        chosen = given.inputs.settable(policy.ask().x[None])[0]
        np.testing.assert_allclose(chosen, point, rtol=1e-12)
        assert trial.constraints["heat"] <= 0
        policy.tell(given.scaled([point]), [trial.value], {"heat": [trial.constraints["heat"]]})
    assert len({tuple(one.params.values()) for one in study.trials}) > 2


def test_with_constraints_certificates_are_those_of_the_safe_policy():
    study = safely(15)
    policy = natively(ONE, HEAT, COOL, False)
    for trial in study.trials:
        heat = [trial.constraints["heat"]]
        policy.tell(ONE.scaled([[trial.params["x"]]]), [trial.value], {"heat": heat})
        assert trial.params["x"] <= 0.7
    stop = StopWhenCertified(ONE, 0.4, constraints={"heat": HEAT}, safe=COOL)
    found, expected = stop.certificate(study), policy.certificate()
    assert found["params"]["x"] == pytest.approx(expected.x[0]) and expected.x[0] <= 0.7
    assert found["regret"] == pytest.approx(expected.regret, rel=1e-2)
    assert found["confidence"] == pytest.approx(1 - policy.delta) and "heat" in found["problem"]
    assert 0.7 - found["params"]["x"] <= found["regret"]
    enough = StopWhenCertified(ONE, found["regret"] + 0.1, constraints={"heat": HEAT}, safe=COOL)
    study.optimize(heating, n_trials=4, callbacks=[enough])
    assert study.user_attrs[CERTIFICATE]["reached"] and len(study.trials) < 19
    # While nothing is known to be safe, there is no certificate.
    hot = optuna.create_study()
    trial = hot.ask({"x": FloatDistribution(0, 1)})
    trial.set_constraint("heat", 0.5)
    hot.tell(trial, 0.1)
    found = StopWhenCertified(ONE, 0.4, constraints={"heat": HEAT}).certificate(hot)
    assert found["regret"] is None and found["trials"] == 1 and not found["reached"]


def test_with_constraints_pending_trials_and_pickles():
    study = safely(6)
    space = {"x": FloatDistribution(0, 1)}
    again = optuna.create_study(
        direction="maximize", sampler=pickle.loads(pickle.dumps(study.sampler))
    )
    again.add_trials(study.trials)
    for _ in range(3):
        one, two = study.ask(space), again.ask(space)
        assert one.params == two.params and one.params["x"] <= 0.7


def test_safe_parameters_are_at_steps():
    def stepping(trial):
        x = trial.suggest_float("x", 0, 1, step=0.1)
        trial.set_constraint("heat", x - 0.75)
        return x

    study = safely(20, objective=stepping)
    tried = np.array([one.params["x"] for one in study.trials])
    np.testing.assert_allclose(tried, np.round(tried, 1))
    assert 0.4 <= tried.max() <= 0.75
    with pytest.raises(kb.InputError, match=r"x = 0.15 is known to be safe, .* only have 0\.[12]"):
        safely(1, safe=[{"x": 0.15}], objective=stepping)


def test_what_is_refused_of_constraints():
    limits = {"heat": HEAT}
    calls = {
        "safe parameters need constraints": lambda: KernelBoundsSampler(ONE, safe=COOL),
        "a dict of names and problems": lambda: KernelBoundsSampler(ONE, constraints={}),
        "a name that is a text": lambda: KernelBoundsSampler(ONE, constraints={1: HEAT}),
        "must be a kernelbounds.Problem": lambda: KernelBoundsSampler(ONE, constraints={"h": 3}),
        "the inputs of the objective's": lambda: KernelBoundsSampler(ONE, constraints={"h": TWO}),
        "must be a plain number": lambda: KernelBoundsSampler(
            ONE, constraints={"h": ONE.replace(output="y=1:9:log", noise="5%")}
        ),
        "one way to choose": lambda: KernelBoundsSampler(ONE, "learning", constraints=limits),
        "a list of parameters": lambda: KernelBoundsSampler(ONE, constraints=limits, safe=3),
        "a dict with x in their": lambda: KernelBoundsSampler(
            ONE, constraints=limits, safe=[{"x": 7.0}]
        ),
    }
    for match, call in calls.items():
        with pytest.raises(kb.InputError, match=match) as error:
            call()
        assert str(error.value).endswith(".") and "\n" not in str(error.value)
    with pytest.raises(kb.InputError, match="known to be safe; pass"):
        safely(1, safe=None)
    with pytest.raises(kb.InputError, match="trial 0 must have the constraints heat, and has none"):
        safely(2, objective=lambda trial: trial.suggest_float("x", 0, 1))
    study = safely(0)
    trial = study.ask({"x": FloatDistribution(0, 1)})
    trial.set_constraint("heat", math.inf)
    study.tell(trial, 0.1)
    with pytest.warns(UserWarning, match="trial 0 has a constraint of an infinite value"):
        found = StopWhenCertified(ONE, 1.0, constraints=limits, safe=COOL).certificate(study)
    assert found["void"] and found["trials"] == 0


def test_refuted_assumptions_of_a_constraint_end_a_run():
    """Nothing is known to be safe then, and parameters at random would not be."""

    def wild(trial):
        trial.set_constraint("heat", 100.0 * (-1) ** trial.number)
        return trial.suggest_float("x", 0, 1)

    with pytest.raises((kb.EmptyConfidenceSetError, kb.InputError)):
        safely(4, limit=HEAT.replace(noise=0.001), objective=wild)


# --- storages and workers


@pytest.fixture(params=["sqlite", "journal"])
def storage(request, tmp_path):
    return f"{request.param}:{tmp_path / 'study.db'}"


OPENED = """
def opened(text):
    kind, path = text.split(":", 1)
    if kind == "sqlite":
        return optuna.storages.RDBStorage(
            f"sqlite:///{path}", engine_kwargs={"connect_args": {"timeout": 60}}
        )
    from optuna.storages.journal import JournalFileBackend
    return optuna.storages.JournalStorage(JournalFileBackend(path))
"""
exec(OPENED)


def test_a_stored_study_goes_on_as_one_in_memory(storage):
    whole = sampled(9)
    part = sampled(5, study_name="s", storage=opened(storage))  # noqa: F821
    part = optuna.load_study(
        study_name="s", storage=opened(storage), sampler=KernelBoundsSampler(ONE)  # noqa: F821
    )  # fmt: skip
    part.optimize(line, n_trials=4, callbacks=[StopWhenCertified(ONE, regret=1e-6, seconds=0.1)])
    assert [one.params for one in part.trials] == [one.params for one in whole.trials]
    kept = optuna.load_study(study_name="s", storage=opened(storage))  # noqa: F821
    assert kept.user_attrs[CERTIFICATE]["trials"] == 9


def test_threads_share_a_sampler():
    study = optuna.create_study(sampler=KernelBoundsSampler(ONE))
    study.optimize(line, n_trials=8, n_jobs=2)
    assert len({one.params["x"] for one in study.trials[:3]}) == 3


WORKER = f"""
import sys, time, optuna
import kernelbounds as kb
from kernelbounds.integrations.optuna import KernelBoundsSampler
optuna.logging.set_verbosity(optuna.logging.ERROR)
{OPENED}
where, total = sys.argv[1], int(sys.argv[2])
problem = kb.Problem(["x=0:1", "z=0:1"], "y=-2:2", noise=0.05, kernel="RBF(0.7)", norm_bound=1.5)
study = optuna.load_study(
    study_name="s", storage=opened(where), sampler=KernelBoundsSampler(problem)
)
def objective(trial):
    x, z = trial.suggest_float("x", 0, 1), trial.suggest_float("z", 0, 1)
    print("running", flush=True)
    time.sleep(0.01)
    return (x - 0.3) ** 2 + z
done = optuna.study.MaxTrialsCallback(total)
study.optimize(objective, callbacks=[done])
"""


def workers(tmp_path, count, killed, total):
    """Run workers on one study, of which some are killed in the middle; the study, at the end."""
    where = f"sqlite:{tmp_path / 'shared.db'}"
    optuna.create_study(study_name="s", storage=opened(where))  # noqa: F821
    command = [sys.executable, "-c", WORKER, where, str(total)]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    for number, one in enumerate(running[:killed]):
        for _ in range(2 + number):
            assert one.stdout.readline() == "running\n"
        one.kill()
    for number, one in enumerate(running):
        _, errors = one.communicate(timeout=1200)
        assert one.returncode == (-9 if number < killed else 0), errors
    return optuna.load_study(study_name="s", storage=opened(where))  # noqa: F821


def check_workers(study, killed, total):
    states = [one.state for one in study.trials]
    assert states.count(TrialState.COMPLETE) >= total
    assert states.count(TrialState.RUNNING) <= killed  # what the killed ones were at, and no more
    # The first five fill the ranges; workers that choose in one instant may choose the same.
    assert len({tuple(one.params.values()) for one in study.trials[:5]}) >= 3
    given = kb.Problem(["x=0:1", "z=0:1"], "y=-2:2", noise=0.05, kernel="RBF(0.7)", norm_bound=1.5)
    stop = StopWhenCertified(given, regret=1.0, seconds=5)
    with warnings.catch_warnings():  # that trials ended in another order than they began
        warnings.simplefilter("ignore")
        found = stop.certificate(study)
    assert found["trials"] == states.count(TrialState.COMPLETE) and not found["void"]
    params = found["params"]
    assert (params["x"] - 0.3) ** 2 + params["z"] <= found["regret"]


def test_three_workers_of_which_one_is_killed(tmp_path):
    check_workers(workers(tmp_path, 3, 1, 14), 1, 14)


@pytest.mark.slow
def test_four_workers_of_which_two_are_killed(tmp_path):
    start = time.monotonic()
    study = workers(tmp_path, 4, 2, 200)
    print(f"{len(study.trials)} trials in {time.monotonic() - start:.0f} s")
    check_workers(study, 2, 200)


def test_without_optuna_one_sentence_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    monkeypatch.delitem(sys.modules, "kernelbounds.integrations.optuna")
    with pytest.raises(kb.MissingExtraError) as caught:
        importlib.import_module("kernelbounds.integrations.optuna")
    assert str(caught.value) == (
        "Using kernelbounds from Optuna needs an optional dependency: "
        "pip install 'kernelbounds[optuna]'."
    )


HUB = Path(__file__).parent.parent / "optunahub"


@pytest.mark.parametrize("package", ["callbacks/kernelbounds_stop", "samplers/kernelbounds"])
def test_packages_for_optunahub(package, monkeypatch, capsys):
    hub = pytest.importorskip("optunahub")
    monkeypatch.setattr(
        hub, "load_module", lambda package: hub.load_local_module(package, registry_root=str(HUB))
    )
    runpy.run_path(str(HUB / package / "example.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "'reached': True" in printed if "callbacks" in package else "'x': " in printed
    text = (HUB / package / "README.md").read_text()
    for field in ("author", "title", "description", "tags", "optuna_versions", "license"):
        assert re.search(rf"^{field}: \S", text.split("---")[1], re.MULTILINE), field
    assert f"[{package.split('/')[0][:-1]}," in text
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        compile(block, "README.md", "exec")
    assert (HUB / package / "LICENSE").exists()


def test_trials_that_do_not_match_the_problem_are_warned_of_at_once():
    other = kb.Problem(["rate=0:1"], "loss=0:1", noise=0.1, kernel="RBF(0.7)", norm_bound=1.0)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    stop = StopWhenCertified(other, regret=0.1, every=5)
    with pytest.warns(UserWarning, match="1 trial was left out .* trial 0 lacks rate and has lr;"):
        study.optimize(lambda trial: trial.suggest_float("lr", 0, 1), 1, callbacks=[stop])
    kept = study.user_attrs[CERTIFICATE]
    assert kept["trials"] == 0 and not kept["reached"] and "lacks rate" in kept["notes"][0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # It is said once.
        study.optimize(lambda trial: trial.suggest_float("lr", 0, 1), 3, callbacks=[stop])
    with pytest.warns(UserWarning, match="trial 0 has {'rate': 7"):
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
        stop = StopWhenCertified(other, regret=0.1)
        study.optimize(lambda trial: trial.suggest_float("rate", 7, 8), 1, callbacks=[stop])

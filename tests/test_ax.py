"""Ax's experiments: the same choices as our own studies, certificates as cards, what is refused."""

from __future__ import annotations

import copy
import importlib
import json
import math
import sys

import numpy as np
import pytest

import kernelbounds as kb

pytest.importorskip("ax")

from ax.adapter.registry import Generators
from ax.api.client import Client
from ax.api.configs import (
    ChoiceParameterConfig,
    DerivedParameterConfig,
    RangeParameterConfig,
)
from ax.api.protocols.metric import IMetric
from ax.api.protocols.runner import IRunner
from ax.core.parameter import ParameterType, RangeParameter
from ax.core.trial_status import TrialStatus
from ax.exceptions.core import UnsupportedError
from ax.generation_strategy.center_generation_node import CenterGenerationNode
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generation_strategy.transition_criterion import MinTrials

from kernelbounds.integrations.ax import (
    CertificateAnalysis,
    KernelBoundsNode,
    problem_of,
)
from kernelbounds.study.asking import PURPOSES

pytestmark = [
    pytest.mark.usefixtures("short_searches"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning"),
]

SPACE = [
    RangeParameterConfig("rate", (1e-4, 1e-1), "float", scaling="log"),
    RangeParameterConfig("depth", (1, 9), "int"),
    ChoiceParameterConfig("kind", ["oak", "elm", "ash"], "str", is_ordered=False),
    ChoiceParameterConfig("seed", [7], "int"),
    DerivedParameterConfig("width", "2 * depth + 1", "int"),
]
KERNEL = "OnInputs(Matern(1.0, nu=2.5), [0, 1]) * OnInputs(Levels(0.5), [2])"
MIXED = problem_of(SPACE, "gain=0:10", noise=0.2, norm_bound=20.0, kernel=KERNEL)
ONE = kb.Problem(["x=0:1"], "y=-2:2", noise=0.05, kernel="RBF(0.7)", norm_bound=1.5)
X = [RangeParameterConfig("x", (0, 1), "float")]


def client_of(
    given=ONE, space=X, objective="-y", nodes=None, purpose="best", constraints=None, **more
):
    client = Client()
    client.configure_experiment(space, parameter_constraints=constraints)
    client.configure_optimization(objective, **more)
    strategy = GenerationStrategy(nodes=nodes or [KernelBoundsNode(given, purpose)])
    client.set_generation_strategy(strategy)
    return client


def truth(rate, depth, kind, **others):
    assert others == {"seed": 7, "width": 2 * depth + 1}
    return 6 - (math.log10(rate) + 2) ** 2 - 0.1 * (depth - 6) ** 2 + (kind == "elm")


def line(params, number):
    return (params["x"] - 0.3) ** 2 + 0.05 * np.random.default_rng(number).standard_normal()


def run(client, count, outcome=line, metric="y"):
    """Run trials one after the other; their parameters and outcomes."""
    done = []
    for _ in range(count):
        for number, params in client.get_next_trials(max_trials=1).items():
            done.append((params, float(outcome(params, number))))
            client.complete_trial(number, {metric: done[-1][1]})
    return done


def certificate(client, given=ONE, regret=None, **more):
    [card] = client.compute_analyses([CertificateAnalysis(given, regret, **more)], display=False)
    return json.loads(card.blob)


def inputs(params, given=MIXED):
    return {name: params[name] for name in given.inputs.names}


# --- choices


@pytest.mark.parametrize("purpose", PURPOSES)
@pytest.mark.parametrize("objective", ["gain", "-gain"])
def test_choices_are_those_of_our_own_study(purpose, objective):
    count = 9 if purpose == "best" else 4  # The first seven of "best" fill the ranges.
    client = client_of(MIXED, SPACE, objective, purpose=purpose)
    done = run(client, count, lambda params, number: truth(**params) + 0.1 * number, "gain")
    own = kb.Study.create(":memory:", MIXED, minimise=objective == "-gain")
    for params, value in done:
        assert own.ask(purpose=purpose).values == inputs(params)
        own.tell(inputs(params), value)
    assert [type(one) for one in done[0][0].values()] == [float, int, str, int, int]


def test_certificates_are_those_of_our_own_study():
    client = client_of()
    own = kb.Study.create(":memory:", ONE, minimise=True)
    for params, value in run(client, 8):
        own.tell(params, value)
    found, expected = certificate(client, seconds=20), own.certificate(20)
    assert found["params"] == pytest.approx(expected.named)
    assert found["regret"] == pytest.approx(expected.regret)
    assert (found["lower"], found["upper"]) == pytest.approx((expected.lower, expected.upper))
    true = (found["params"]["x"] - 0.3) ** 2
    assert found["lower"] <= true <= found["upper"] and true <= found["regret"]


def test_trials_that_run_are_pending():
    client = client_of(MIXED, SPACE, "gain")
    own = kb.Study.create(":memory:", MIXED)
    for at_once in (True, False):  # in one call, and one by one
        theirs = own.ask(4)
        if at_once:
            trials = client.get_next_trials(max_trials=4)
        else:
            trials = {k: v for _ in range(4) for k, v in client.get_next_trials(1).items()}
        assert [inputs(one) for one in trials.values()] == [one.values for one in theirs]
        for (number, _), one in zip(trials.items(), theirs):
            client.complete_trial(number, {"gain": float(number)})
            own.tell(one, float(number))


def test_data_of_other_metrics_do_not_matter():
    plain, tracked = client_of(), client_of()
    for client in (plain, tracked):
        run(client, 5)
    tracked.configure_tracking_metrics(["seconds"])  # which no trial has data of
    assert plain.get_next_trials(1) == tracked.get_next_trials(1)


def test_where_trials_fail_is_not_tried_again_and_repeats_are():
    client = client_of()
    chosen = []
    for mark in (client.mark_trial_failed, client.mark_trial_abandoned, client.complete_trial):
        ((number, params),) = client.get_next_trials(1).items()
        mark(number)  # the last one is completed without data
        chosen.append(params["x"])
    assert len(set(chosen)) == 3
    with pytest.warns(UserWarning, match="3 trials were left out for having failed"):
        run(client, 1)
        assert certificate(client)["trials"] == 1
    # Where there are few settings, and none is certain, the best ones are tried again.
    switch = [RangeParameterConfig("n", (0, 1), "int")]
    given = kb.Problem(["n=0:1:integer"], "y=-2:2", noise=0.5, kernel="RBF(0.7)", norm_bound=1.5)
    assert len(run(client_of(given, switch), 8, lambda at, number: at["n"])) == 8


def test_a_strategy_with_another_node_before():
    sobol = GenerationNode(
        "sobol", [GeneratorSpec(Generators.SOBOL, generator_kwargs={"seed": 0})],
        transition_criteria=[MinTrials(threshold=2, transition_to="kernelbounds")],
    )  # fmt: skip
    client = client_of(nodes=[sobol, KernelBoundsNode(ONE)])
    first = client.get_next_trials(max_trials=2)
    then = client.get_next_trials(max_trials=2)
    assert {one["x"] for one in first.values()}.isdisjoint({0.25, 0.5, 0.75})
    # The two are counted among the three that fill the range.
    assert then[2]["x"] == 0.25 and then[3]["x"] not in (0.25, 0.5, 0.75)
    # What another node has chosen in the same call is no trial yet, and is pending all the same.
    client = client_of(nodes=[CenterGenerationNode("kernelbounds"), KernelBoundsNode(ONE)])
    assert [one["x"] for one in client.get_next_trials(max_trials=3).values()] == [0.5, 0.75, 0.25]


def test_trials_of_ones_own_and_data_in_steps():
    client = client_of()
    number = client.attach_trial({"x": 0.9})
    client.attach_data(number, {"y": 3.0}, progression=1)
    second = client.get_next_trials(1)
    assert second[1]["x"] != 0.5  # since the first is pending, whatever data it has
    client.attach_data(number, {"y": 0.3}, progression=2)
    client.complete_trial(number)
    assert certificate(client)["notes"] == []
    client.complete_trial(1, {"y": (0.2, 0.01)}, progression=3)
    with pytest.warns(UserWarning, match="completed at different progressions"):
        found = certificate(client, order="start")
    assert found["trials"] == 2 and len(found["notes"]) == 1


class Machine(IRunner):
    def run_trial(self, trial_index, parameterization):
        return dict(parameterization)

    def poll_trial(self, trial_index, trial_metadata):
        return TrialStatus.COMPLETED

    def stop_trial(self, trial_index, trial_metadata):
        return {}


class Measured(IMetric):
    def fetch(self, trial_index, trial_metadata):
        return 0, line(trial_metadata, trial_index)


def test_trials_that_ax_runs_by_itself():
    client = client_of(purpose="certificate")
    client.configure_runner(Machine())
    client.configure_metrics([Measured("y")])
    client.run_trials(max_trials=3, initial_seconds_between_polls=0)
    chosen = [trial.arm.parameters for trial in client._experiment.trials.values()]
    assert chosen == [params for params, _ in run(client_of(purpose="certificate"), 3)]
    assert certificate(client, seconds=0.5)["trials"] == 3


def test_steps_flags_and_numbers_in_an_order():
    space = [
        RangeParameterConfig("share", (0.0, 1.0), "float", step_size=0.25),
        ChoiceParameterConfig("size", [16, 32, 64, 128], "int", is_ordered=True),
        ChoiceParameterConfig("flag", [True, False], "bool", is_ordered=True),
    ]
    given = problem_of(
        space, "y=0:1", noise=0.1, norm_bound=5.0,
        kernel="OnInputs(RBF(0.7), [0, 1]) * OnInputs(Levels(0.5), [2])",
    )  # fmt: skip
    assert [one.text for one in given.inputs] == [
        "share=0:1", "size=16:128:log", "flag=False|True",
    ]  # fmt: skip
    client = client_of(given, space, "y")
    done = run(client, 8, lambda params, number: 0.5)
    assert {params["flag"] for params, _ in done} == {True, False}
    assert len({params["size"] for params, _ in done}) > 2
    found = certificate(client, given, seconds=0.2)
    assert type(found["params"]["flag"]) is bool and found["trials"] == 8


def test_a_client_goes_on_from_its_file(tmp_path):
    nodes = [
        KernelBoundsNode(
            ONE, "certificate", name="first",
            transition_criteria=[MinTrials(threshold=4, transition_to="second")],
        ),
        KernelBoundsNode(ONE, "best", name="second"),
    ]  # fmt: skip
    client = client_of(nodes=nodes)
    run(client, 3)
    client.save_to_json_file(str(tmp_path / "client.json"))
    again = Client.load_from_json_file(str(tmp_path / "client.json"))
    assert run(again, 3) == run(client, 3)
    assert again._generation_strategy.current_node_name == "second"
    # Ax keeps ten decimals of the data in its files.
    found = [certificate(one)["regret"] for one in (client, again)]
    assert found[0] != found[1] and found[0] == pytest.approx(found[1], rel=1e-8)
    again.set_generation_strategy(client._generation_strategy.clone_reset())
    assert again.get_next_trials(1) == copy.deepcopy(client).get_next_trials(1)


def test_refuted_assumptions_do_not_end_a_run():
    tiny = ONE.replace(noise=0.001, norm_bound=0.01)
    client = client_of(tiny)
    with pytest.warns(UserWarning, match="refute the assumptions.*Sobol"):
        done = run(client, 6, lambda params, number: 100 * params["x"])
    assert len({params["x"] for params, _ in done}) == 6
    with pytest.warns(UserWarning, match="refute"):
        found = certificate(client, tiny, regret=0.1)
    assert found["void"] and not found["reached"] and found["regret"] is None
    assert found["params"] == {}


# --- certificates


def test_the_card():
    client = client_of(purpose="certificate")
    run(client, 12)
    analysis = CertificateAnalysis(ONE, regret=0.5)
    [card] = client.compute_analyses([analysis], display=False)
    found = json.loads(card.blob)
    assert found["reached"] and found["regret"] <= found["aim"] == 0.5 and not found["notes"]
    assert (found["params"]["x"] - 0.3) ** 2 <= found["regret"]
    assert card.name == "CertificateAnalysis" and "after 12 outcomes" in card.title
    assert card.subtitle.startswith("With these parameters the true y is between ")
    assert "with probability 0.99, if the problem is right" in card.subtitle
    table = dict(zip(card.df["what"], card.df["value"]))
    assert table["best x"] == found["params"]["x"] and table["regret"] == found["regret"]
    assert table["reached"] and "best x" in card._body_html(depth=0)
    # A certificate stays true, so that a shorter search does not make it worse.
    analysis._seconds = 1e-6
    [later] = client.compute_analyses([analysis], display=False)
    assert json.loads(later.blob)["regret"] <= found["regret"]


def test_cards_for_any_generation_strategy():
    client = client_of()
    client.configure_generation_strategy("random_search", initialization_random_seed=0)
    run(client, 6)
    found = certificate(client, seconds=0.5)
    assert found["trials"] == 6 and (found["params"]["x"] - 0.3) ** 2 <= found["regret"] < 2


def test_a_card_needs_outcomes():
    client = client_of()
    client.get_next_trials(1)
    [card] = client.compute_analyses([CertificateAnalysis(ONE)], display=False)
    assert "no trial that is completed" in card.blob


def test_trials_that_were_stopped_void_the_guarantee():
    client = client_of()
    run(client, 3)
    for mark in (client.mark_trial_early_stopped, client.mark_trial_abandoned):
        (number,) = client.get_next_trials(1)
        client.attach_data(number, {"y": 1.0}, progression=1)
        mark(number)
    with pytest.warns(UserWarning, match="2 trials were pruned, stopped early or abandoned with"):
        found = certificate(client, regret=100.0)
        [card] = client.compute_analyses([CertificateAnalysis(ONE)], display=False)
    assert found["trials"] == 3 and not found["reached"] and found["regret"] < 100
    assert card.subtitle.startswith("There is no guarantee: 2 trials were pruned")


def test_impossible_outcomes_void_the_guarantee():
    client = client_of()
    run(client, 3, lambda params, number: math.nan if number == 1 else 0.5)
    with pytest.warns(UserWarning, match="trial 1 has the outcome nan"):
        found = certificate(client, regret=100.0)
    assert found["trials"] == 2 and not found["reached"]


def test_standard_errors_are_not_used_and_large_ones_are_noted():
    clients = [client_of() for _ in range(2)]
    for client, error in zip(clients, (0.05, 0.3)):
        for _ in range(4):
            ((number, params),) = client.get_next_trials(1).items()
            client.complete_trial(number, {"y": (line(params, number), error)})
    small = certificate(clients[0])
    with pytest.warns(UserWarning, match=r"trial 0 has a standard error of 0\.3, above the noise"):
        large = certificate(clients[1])
    assert small["notes"] == [] and len(large["notes"]) == 1
    assert small["regret"] == large["regret"]


def test_the_order_of_trials_that_end_in_another_one():
    client = client_of()
    client.get_next_trials(max_trials=3)
    for number in (2, 0):
        client.complete_trial(number, {"y": 0.1})
    with pytest.warns(UserWarning, match="in another order than they began"):
        assert certificate(client)["trials"] == 2
    assert certificate(client, order="start")["trials"] == 1  # since trial 1 still runs


def test_a_logarithmic_output_has_an_aim_in_percent():
    log = kb.Problem(["x=0:1"], "y=1:9:log", noise="5%", kernel="RBF(0.7)", norm_bound=1.0)
    with pytest.raises(kb.InputError, match="percentage"):
        CertificateAnalysis(log, regret=0.1)
    client = client_of(log)
    run(client, 10, lambda params, number: math.exp(params["x"]))
    found = certificate(client, log, regret="90%")
    assert found["reached"] and found["regret"] <= 0.9 and found["lower"] > 0.8


# --- what is refused


def refused(given=ONE, space=X, objective="-y", **more):
    """Return the one sentence with which both doors refuse."""
    client = client_of(given, space, objective, **more)
    with pytest.raises(kb.InputError) as caught:
        client.get_next_trials(1)
    values = ["a"] if isinstance(space[0], ChoiceParameterConfig) else [0.5, 0.5]
    client.complete_trial(client.attach_trial(dict(zip([one.name for one in space], values))))
    [card] = client.compute_analyses([CertificateAnalysis(given)], display=False)
    assert card.subtitle == f"InputError: {caught.value}"
    return str(caught.value)


def test_what_is_refused():
    two = [*X, RangeParameterConfig("z", (0, 1), "float")]
    both = ONE.replace(inputs=["x=0:1", "z=0:1"])
    assert "'y, -w' has several metrics" in refused(objective="y, -w")
    assert "'2*y + w' has several metrics" in refused(objective="2*y + w")
    assert "outcome constraints, [" in refused(outcome_constraints=["w <= 3"])
    assert "parameter constraints, [" in refused(both, two, constraints=["x + z <= 1"])
    assert "'z' is no input of the problem" in refused(space=two)
    wide = ONE.replace(inputs=["x=0:2"])
    assert "x=0:2, and the search space has RangeParameter" in refused(wide)
    assert "z=0:1, and the search space has nothing" in refused(both)
    flags = [ChoiceParameterConfig("x", ["a", "b"], "str", is_ordered=True)]
    assert "x=0:1, and the search space has ChoiceParameter" in refused(space=flags)


def test_conditional_spaces_are_refused():
    branches = ChoiceParameterConfig(
        "kind", ["a", "b"], "str", is_ordered=True, dependent_parameters={"a": ["x"], "b": ["z"]}
    )
    space = [branches, *X, RangeParameterConfig("z", (0, 1), "float")]
    kernel = "OnInputs(RBF(0.7), [1, 2]) * OnInputs(Levels(0.5), [0])"
    given = problem_of(space, "y=0:1", noise=0.1, norm_bound=1.0, kernel=kernel)
    with pytest.raises(kb.InputError, match="the search space is conditional"):
        client_of(given, space).get_next_trials(1)


def test_arguments_that_are_refused():
    client = client_of()
    with pytest.raises(kb.InputError, match=r"fixed_parameters \{'x': 0\.2\} were given"):
        client.get_next_trials(1, fixed_parameters={"x": 0.2})
    with pytest.raises(kb.InputError, match="a purpose is one of"):
        KernelBoundsNode(ONE, "fun")
    with pytest.raises(kb.InputError, match=r"range, choice and derived .*, got \(0, 1\)"):
        problem_of([(0, 1)], "y=0:1")
    logit = RangeParameter("x", ParameterType.FLOAT, 0.1, 0.9, logit_scale=True)
    with pytest.raises(kb.InputError, match="linear or a logarithmic scale"):
        problem_of([logit], "y=0:1")
    with pytest.raises(kb.InputError, match="one of completion, start, got 'end'"):
        CertificateAnalysis(ONE, order="end")
    client._experiment.new_batch_trial()
    with pytest.raises(kb.InputError, match="trial 0 is a batch of several arms"):
        client.get_next_trials(1)
    plain = Client()
    plain.configure_experiment(X)
    plain.set_generation_strategy(GenerationStrategy(nodes=[KernelBoundsNode(ONE)]))
    with pytest.raises(UnsupportedError, match="OptimizationConfig not set"):
        plain.get_next_trials(1)


def test_without_ax_one_sentence_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ax.adapter.registry", None)
    monkeypatch.delitem(sys.modules, "kernelbounds.integrations.ax")
    with pytest.raises(kb.MissingExtraError) as caught:
        importlib.import_module("kernelbounds.integrations.ax")
    assert str(caught.value) == (
        "Using kernelbounds from Ax needs an optional dependency: pip install 'kernelbounds[ax]'."
    )

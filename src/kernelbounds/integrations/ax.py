"""Ax: a generation node that chooses parameters, and the certificate as an analysis card.

Both take a :class:`~kernelbounds.Problem`, whose inputs are named like Ax's parameters. All that
they know besides is read from the trials and the data of the experiment.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kernelbounds.errors import EmptyConfidenceSetError, InputError, MissingExtraError

try:
    import pandas as pd
    from ax.adapter.registry import Generators
    from ax.analysis.analysis import Analysis
    from ax.api.configs import ChoiceParameterConfig, DerivedParameterConfig, RangeParameterConfig
    from ax.api.utils.instantiation.from_config import parameter_from_config
    from ax.core.analysis_card import AnalysisCard
    from ax.core.data import Data
    from ax.core.experiment import Experiment
    from ax.core.parameter import (
        ChoiceParameter,
        DerivedParameter,
        FixedParameter,
        ParameterType,
        RangeParameter,
    )
    from ax.core.search_space import SearchSpace
    from ax.generation_strategy.external_generation_node import ExternalGenerationNode
    from ax.generation_strategy.generator_spec import GeneratorSpec
    from ax.storage.json_store.decoder import object_from_json
    from ax.storage.json_store.registry import CORE_DECODER_REGISTRY, CORE_ENCODER_REGISTRY
except ImportError:
    raise MissingExtraError("Using kernelbounds from Ax", "ax") from None

from kernelbounds.arrays import as_scalar, brief
from kernelbounds.integrations.ax_trials import as_params, notes_of, refuse_misfit, trials_of
from kernelbounds.integrations.outside_trials import COMPLETION, Reading, Record, point_of
from kernelbounds.problem import Input, Problem
from kernelbounds.problem.outputs import checked_amount
from kernelbounds.study.asking import BEST, checked_purpose, new_trials

__all__ = ["CertificateAnalysis", "KernelBoundsNode", "problem_of"]

CONFIGS = RangeParameterConfig, ChoiceParameterConfig, DerivedParameterConfig


def problem_of(parameters: Iterable[Any], *rest: Any, **more: Any) -> Problem:
    """Make a problem from Ax's parameters, so that ranges need not be stated twice.

    Choices are levels of a category, by their text. Three or more numbers in an order, which Ax
    makes of ranges with a step, are a range: bounds and certificates are then for all of it.
    Parameters with one value only and derived ones are left out.

    Parameters
    ----------
    parameters : list
        Those that ``client.configure_experiment`` takes, or ``search_space.parameters.values()``.
    *rest, **more
        The other arguments of :class:`~kernelbounds.Problem`: the output, the noise and so on.

    Examples
    --------
    >>> parameters = [
    ...     RangeParameterConfig("rate", (1e-5, 1e-1), "float", scaling="log"),
    ...     ChoiceParameterConfig("optimiser", ["adam", "sgd"], "str", is_ordered=True),
    ... ]
    >>> [one.text for one in problem_of(parameters, "accuracy[%]=0:100", noise=0.5).inputs]
    ['rate=1e-05:0.1:log', 'optimiser=adam|sgd']
    """
    inputs = [_input(one) for one in parameters]
    return Problem([one for one in inputs if one is not None], *rest, **more)


def _input(given: Any) -> Input | None:
    """Make the input of a parameter; None where it has one value only, or follows from others."""
    one = parameter_from_config(given) if isinstance(given, CONFIGS) else given
    if isinstance(one, FixedParameter | DerivedParameter):
        return None
    if isinstance(one, ChoiceParameter):
        if one.is_ordered and one.is_numeric and len(one.values) > 2:
            return Input(one.name, min(one.values), max(one.values), log=one.log_scale)
        return Input(one.name, 0, 1, levels=tuple(map(str, one.values)))
    if isinstance(one, RangeParameter) and not one.logit_scale:
        whole = one.parameter_type is ParameterType.INT
        return Input(one.name, one.lower, one.upper, log=one.log_scale, integer=whole)
    raise InputError(
        f"parameters must be Ax's range, choice and derived parameters, on a linear or a "
        f"logarithmic scale, got {brief(given)}."
    )


class KernelBoundsNode(ExternalGenerationNode):
    """A node of a generation strategy that chooses parameters as :meth:`kernelbounds.Study.ask`.

    Its choices are those of a study with the same outcomes. Trials that run count as pending, and
    parameters of trials that failed, were abandoned or were stopped early are avoided in the same
    way, because the same choice would be made again. Repeats are not removed: one more outcome of
    the same parameters is often what a certificate needs. Where the data refute the problem, the
    node warns and goes on with Ax's Sobol points.

    Parameters
    ----------
    problem : :class:`~kernelbounds.Problem`
        What is known, with its noise. The inputs are named like the parameters. A kernel and a norm
        bound, where missing, are settled now, which may take a while: pass ``problem.settled()`` to
        do so once.
    purpose : "best", "certificate" or "learning"
        What trials are for, see :meth:`kernelbounds.Study.ask`.
    name : str
        The name of the node, which differs between the nodes of one strategy.
    transition_criteria : list, optional
        When the strategy goes on with another node, as for all of Ax's nodes.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from ax.api.client import Client
    >>> from ax.generation_strategy.generation_strategy import GenerationStrategy
    >>> problem = kb.Problem(
    ...     ["speed=100:500"], "strength[MPa]=0:100", noise=0.5, kernel="Matern(0.8, nu=2.5)",
    ...     norm_bound=80.0,
    ... )
    >>> client = Client()
    >>> client.configure_experiment([RangeParameterConfig("speed", (100, 500), "float")])
    >>> client.configure_optimization("strength")
    >>> client.set_generation_strategy(GenerationStrategy(nodes=[KernelBoundsNode(problem)]))
    >>> client.get_next_trials(max_trials=2)
    {0: {'speed': 300.0}, 1: {'speed': 400.0}}
    """

    def __init__(
        self,
        problem: Problem,
        purpose: str = BEST,
        *,
        name: str = "kernelbounds",
        transition_criteria: Sequence[Any] | None = None,
    ) -> None:
        began = time.monotonic()
        checked_purpose(purpose)
        self._record, self._purpose = Record(problem), purpose
        super().__init__(
            name=name, should_deduplicate=False, transition_criteria=transition_criteria
        )
        sobol = GeneratorSpec(generator_enum=Generators.SOBOL, generator_key_override="Sobol")
        self.fallback_specs = {EmptyConfidenceSetError: sobol}
        self._space: SearchSpace | None = None
        self._known: Reading | None = None
        self._seen: set[Any] = set()
        self._given: list[tuple[float, ...]] = []
        self.fit_time_since_gen += time.monotonic() - began

    def update_generator_state(self, experiment: Experiment, data: Data) -> None:
        """Read all trials and their data."""
        self._space, (trials, minimise) = experiment.search_space, trials_of(experiment, data)
        refuse_misfit(self._record.problem, self._space)
        self._known = self._record.read(trials, minimise)
        self._seen = {point_of(self._record.problem, one.params) for one in trials}
        self._given = []

    def get_next_candidate(self, pending_parameters: list[dict[str, Any]]) -> dict[str, Any]:
        """Choose the parameters of the next trial."""
        if self._known is None or self._space is None:
            raise InputError("update_generator_state must be called before get_next_candidate.")
        problem = self._record.problem
        # Ax has repeats only once among what is pending, and has trials there which lack the data
        # of other metrics. So only what no trial has yet, from other nodes, is taken from Ax.
        pending = (point_of(problem, one) for one in pending_parameters)
        others = [one for one in pending if one and one not in {*self._seen, *self._given}]
        taken = [*self._known.taken.values(), *self._given, *others]
        try:
            (new,) = new_trials(self._known.search, self._known.sequence, taken, 1, self._purpose)
        except EmptyConfidenceSetError as error:
            self._record.warn_once({"refuted": f"{error} Parameters are now Ax's Sobol points."})
            raise  # Ax catches the error, and calls the generator that stands in for this one.
        params = as_params(problem.inputs.named(new.point), self._space)
        self._given.append(point_of(problem, params) or new.point)
        return params

    def _gen(self, *given: Any, fixed_features: Any = None, **more: Any) -> Any:
        """Refuse what Ax would otherwise leave unheeded."""
        if fixed_features is not None and fixed_features.parameters:
            raise InputError(
                f"fixed_parameters {fixed_features.parameters} were given, and kernelbounds "
                "chooses all inputs of the problem; leave them out, or attach_trial with "
                "parameters of your own."
            )
        return super()._gen(*given, **more)

    # --- Ax's files

    @classmethod
    def serialize_init_args(cls, obj: KernelBoundsNode) -> dict[str, Any]:
        """Return what the node is made of, for Ax's JSON and its databases."""
        return {
            "__type": cls.__name__,
            "problem": obj._record.problem.as_data(),
            "purpose": obj._purpose,
            "name": obj.name,
            "transition_criteria": list(obj.transition_criteria),
        }

    @classmethod
    def deserialize_init_args(
        cls,
        args: dict[str, Any],
        decoder_registry: Any = None,
        class_decoder_registry: Any = None,
    ) -> dict[str, Any]:
        """Return the arguments of a node from what Ax has stored."""
        criteria = object_from_json(
            args["transition_criteria"], decoder_registry, class_decoder_registry
        )
        return args | {
            "problem": Problem.from_data(args["problem"]), "transition_criteria": criteria,
        }  # fmt: skip


# Ax stores and loads those classes only that are in its tables.
CORE_ENCODER_REGISTRY[KernelBoundsNode] = KernelBoundsNode.serialize_init_args
CORE_DECODER_REGISTRY[KernelBoundsNode.__name__] = KernelBoundsNode


class CertificateAnalysis(Analysis):
    """An analysis that certifies the best parameters; ``client.compute_analyses`` makes its card.

    It works with any generation strategy, and needs only the trials and their data. The table of
    the card is for people, and its ``blob`` is JSON:

    - ``reached``: whether the regret is at most ``regret``, and nothing voids the guarantee;
    - ``params``: the best parameters known, which need not be those of a trial;
    - ``regret``: how far from the best possible they are at most, or None;
    - ``lower`` and ``upper``: bounds on the true value there, without noise;
    - ``trials``: the number of outcomes that all this rests on;
    - ``confidence``: the probability with which it is true, if the problem is right;
    - ``void``: sentences on what voids the guarantee;
    - ``notes``: sentences on what else the guarantee depends on;
    - ``aim`` and ``problem``: the regret that is small enough, and what was assumed.

    Trials that were stopped early, or abandoned with data, void the guarantee. Those that failed,
    or have no data, are left out, which is right only if that is not because of their outcomes.
    Standard errors in the data are not used: estimates of the noise are no bounds on it.

    Parameters
    ----------
    problem : :class:`~kernelbounds.Problem`
        As for :class:`KernelBoundsNode`. It must not have been chosen by a look at the outcomes.
    regret : float, or "10%" for a logarithmic output, optional
        The regret that is small enough, for ``reached``.
    order : "completion" or "start"
        In which order the trials count, where several run at a time. "completion" is right if run
        times do not depend on outcomes. "start" is right in any case, but a trial that never ends
        holds up all that began after it.
    seconds : float
        How long a search for a certificate may take. Less time makes it looser, and not less true.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from ax.api.client import Client
    >>> from ax.generation_strategy.generation_strategy import GenerationStrategy
    >>> problem = kb.Problem(
    ...     ["x=0:1"], "loss=0:1", noise=0.01, kernel="RBF(0.7)", norm_bound=1.0
    ... )
    >>> client = Client()
    >>> client.configure_experiment([RangeParameterConfig("x", (0, 1), "float")])
    >>> client.configure_optimization("-loss")
    >>> node = KernelBoundsNode(problem, purpose="certificate")
    >>> client.set_generation_strategy(GenerationStrategy(nodes=[node]))
    >>> for _ in range(8):
    ...     for number, at in client.get_next_trials(max_trials=1).items():
    ...         _ = client.complete_trial(number, {"loss": (at["x"] - 0.3) ** 2})
    >>> analysis = CertificateAnalysis(problem, regret=0.1)
    >>> [card] = client.compute_analyses([analysis], display=False)
    >>> found = json.loads(card.blob)
    >>> found["reached"], found["regret"] <= 0.1, found["trials"]
    (True, True, 8)
    """

    def __init__(
        self,
        problem: Problem,
        regret: float | str | None = None,
        *,
        order: str = COMPLETION,
        seconds: float = 5.0,
    ) -> None:
        self._record = Record(problem, order)
        self._aim = None
        if regret is not None:
            self._aim = checked_amount(regret, "regret", self._record.problem.output, above=0.0)
        self._seconds = as_scalar(seconds, "seconds", above=0.0)

    def validate_applicable_state(
        self,
        experiment: Experiment | None = None,
        generation_strategy: Any = None,
        adapter: Any = None,
    ) -> str | None:
        """Say what is missing for a certificate; None where nothing is."""
        if experiment is None:
            return "A certificate needs an experiment."
        if not any(one.status.is_completed for one in experiment.trials.values()):
            return "There is no trial that is completed, and a certificate rests on outcomes."
        return None

    def compute(
        self,
        experiment: Experiment | None = None,
        generation_strategy: Any = None,
        adapter: Any = None,
    ) -> AnalysisCard:
        """Certify the best parameters, and return the card."""
        if experiment is None:
            raise InputError("a certificate needs an experiment, got None.")
        problem, data = self._record.problem, experiment.lookup_data()
        refuse_misfit(problem, experiment.search_space)
        known = self._record.read(*trials_of(experiment, data))
        notes = notes_of(known.rows, experiment, data, problem)
        known = replace(known, notes=known.notes | notes)
        made = self._record.certificate(known, self._seconds, self._aim)
        if made["params"]:
            made["params"] = as_params(made["params"], experiment.search_space, move=False)
        return AnalysisCard(
            name=type(self).__name__,
            title=f"Certificate of the best {problem.output.name} after {len(known.rows)} outcomes",
            subtitle=self._in_words(made),
            df=_table(made),
            blob=json.dumps(made, allow_nan=False),
        )

    def _in_words(self, made: Mapping[str, Any]) -> str:
        """Say what is certified in a sentence."""
        if made["void"]:
            return f"There is no guarantee: {' '.join(made['void'])}"
        if made["regret"] is None:
            return "Nothing is certified yet."
        problem = self._record.problem
        out = problem.output
        return (
            f"With these parameters the true {out.name} is "
            f"{out.between(made['lower'], made['upper'])}, and no parameters in the ranges are "
            f"better by more than {out.amount(made['regret'])}, {problem.certainty}, if the "
            "problem is right."
        )


def _table(made: Mapping[str, Any]) -> pd.DataFrame:
    """Return a certificate as a table for people, with a row for each thing that it says."""
    rows = [(f"best {name}", value) for name, value in made["params"].items()]
    rows += [(name, made[name]) for name in ("regret", "lower", "upper", "trials", "confidence")]
    if made["aim"] is not None:
        rows += [(name, made[name]) for name in ("aim", "reached")]
    rows += [(name, one) for name in ("void", "notes") for one in made[name]]
    return pd.DataFrame([*rows, ("problem", made["problem"])], columns=["what", "value"])

"""Optimisers of functions on the unit cube, ours and others', behind one small interface.

A new optimiser is one more line of :data:`CONTENDERS`. Optuna, BoTorch and bayes_opt are imported
when an optimiser is made, and only then. Ours are told a problem: the kernel, the norm bound and
the noise. The others are told nothing and fit their hyperparameters, with the settings of their own
documentation.
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from scipy.stats import qmc

from kernelbounds.arrays import Array
from kernelbounds.bandits import KernelUCB
from kernelbounds.problem import Problem
from kernelbounds.study import Study
from kernelbounds.study.asking import first_runs
from kernelbounds.study.search import Search

# How hard BoTorch looks for the maximum of an acquisition function, for its own and for ours.
SEARCH = {"q": 1, "num_restarts": 4, "raw_samples": 128}
# The variance of the noise over that of the outcomes. The default of bayes_opt is 1e-6, nearly no
# noise; this value is that of its documentation for functions with some, and near the truth here.
BAYES_OPT_ALPHA = 1e-3
BAYES_OPT_FIRST = 5  # random points, the default of its ``maximize``

LOWER = "largest lower bound among the points tried"
MEAN = "largest posterior mean among the points tried"
OBSERVED = "best outcome observed"


class Optimiser(ABC):
    """A method that looks for the maximum of a function on the unit cube, trial by trial."""

    def __init__(self) -> None:
        self.points: list[Array] = []
        self.outcomes: list[float] = []

    @abstractmethod
    def ask(self) -> Array:
        """Choose the next point, (d,)."""

    def tell(self, x: Array, y: float) -> None:
        """Take the outcome at the point that was asked for."""
        self.points.append(x)
        self.outcomes.append(y)

    def recommended(self) -> Array:
        """Return the point that the method recommends now: that of the best outcome by default."""
        return self.points[int(np.argmax(self.outcomes))]


@dataclass(frozen=True)
class Contender:
    """A description of an optimiser, from which it is made.

    Attributes
    ----------
    make : callable
        From a problem, whose inputs are in the unit cube, and a seed to an :class:`Optimiser`.
        Others than ours look at nothing of the problem but its number of inputs.
    rule : str
        How the recommended point is chosen.
    packages : tuple of str
        What has to be installed, by the names of the distributions.
    ours : bool
        Whether it is told the problem.
    """

    make: Callable[[Problem, int], Optimiser]
    rule: str
    packages: tuple[str, ...] = ()
    ours: bool = False

    @property
    def installed(self) -> bool:
        """Whether all packages that the optimiser needs are installed."""
        try:
            return all(map(version, self.packages))
        except PackageNotFoundError:
            return False


# --- ours


class _OurUCB(Optimiser):
    """KernelUCB on the unit cube."""

    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__()
        self._sequence = problem.sequence()
        self._policy = KernelUCB(self._sequence, problem.inputs.unit_box)

    def ask(self) -> Array:
        return self._policy.ask().x

    def tell(self, x: Array, y: float) -> None:
        super().tell(x, y)
        self._policy.tell(x, y)

    def recommended(self) -> Array:
        points = np.array(self.points)
        return np.asarray(points[int(self._sequence.lower(points).argmax())])


class _OurBoTorch(_OurUCB):
    """The upper bound as an acquisition function that BoTorch maximises."""

    def __init__(self, problem: Problem, seed: int) -> None:
        import torch

        from kernelbounds.integrations.botorch import ConfidenceBound

        super().__init__(problem, seed)
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self._acquisition, self._dim = ConfidenceBound(self._sequence), len(problem.inputs)

    def ask(self) -> Array:
        return _maximised(self._acquisition, self._dim)


class _OurStudy(Optimiser):
    """A study, which is asked for settings that are probably good."""

    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__()
        self._study, self._search = Study.create(":memory:", problem), Search(problem, False)

    def ask(self) -> Array:
        self._trial = self._study.ask()
        return np.array([float(value) for value in self._trial.values.values()])

    def tell(self, x: Array, y: float) -> None:
        super().tell(x, y)
        self._study.tell(self._trial, y)

    def recommended(self) -> Array:
        found = self._search.most_promising(self._study.sequence)
        return np.array([float(value) for value in found.values.values()])


class _OurAx(Optimiser):
    """A client of Ax whose generation node chooses as our studies do."""

    def __init__(self, problem: Problem, seed: int) -> None:
        from ax.api.client import Client
        from ax.api.configs import RangeParameterConfig
        from ax.generation_strategy.generation_strategy import GenerationStrategy

        from kernelbounds.integrations.ax import KernelBoundsNode

        super().__init__()
        logging.getLogger("ax").setLevel(logging.WARNING)  # It would log each trial.
        self._names, self._output = problem.inputs.names, problem.output.name
        self._client = Client(random_seed=seed)
        self._client.configure_experiment(
            [RangeParameterConfig(name, (0.0, 1.0), "float") for name in self._names]
        )
        self._client.configure_optimization(self._output)
        node = KernelBoundsNode(problem)
        self._client.set_generation_strategy(GenerationStrategy(nodes=[node]))

    def ask(self) -> Array:
        ((self._number, found),) = self._client.get_next_trials(max_trials=1).items()
        return np.array([found[name] for name in self._names])

    def tell(self, x: Array, y: float) -> None:
        super().tell(x, y)
        self._client.complete_trial(self._number, {self._output: y})


# --- Optuna


class _Optuna(Optimiser):
    """A study of Optuna with one of its samplers, or with ours."""

    def __init__(self, sampler: str, problem: Problem, seed: int) -> None:
        import optuna

        super().__init__()
        if sampler == "ours":
            from kernelbounds.integrations.optuna import KernelBoundsSampler

            made: Any = KernelBoundsSampler(problem, seed=seed)
        else:
            if sampler == "GPSampler":
                import torch

                torch.set_num_threads(1)
            made = getattr(optuna.samplers, sampler)(seed=seed)
        with _quiet(optuna.logging):
            self._study = optuna.create_study(direction="maximize", sampler=made)
        unit: Any = optuna.distributions.FloatDistribution(0, 1)
        self._space = dict.fromkeys(problem.inputs.names, unit)

    def ask(self) -> Array:
        self._trial = self._study.ask(self._space)
        return np.array([self._trial.params[name] for name in self._space])

    def tell(self, x: Array, y: float) -> None:
        super().tell(x, y)
        self._study.tell(self._trial, y)


@contextmanager
def _quiet(log: Any) -> Iterator[None]:
    """Let Optuna log nothing but warnings while the block runs."""
    before = log.get_verbosity()
    log.set_verbosity(log.WARNING)
    try:
        yield
    finally:
        log.set_verbosity(before)


# --- BoTorch


class _BoTorch(Optimiser):
    """A Gaussian process that is fitted before each trial, and one of the acquisition functions.

    The first 2d + 1 points are scrambled Sobol' points: as many fill the ranges in our studies.
    """

    def __init__(self, acquisition: str, problem: Problem, seed: int) -> None:
        import torch

        super().__init__()
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self._name, self._dim = acquisition, len(problem.inputs)
        self._model: Any = None
        count = first_runs(len(problem.inputs))
        sobol = qmc.Sobol(len(problem.inputs), scramble=True, rng=np.random.default_rng(seed))
        self._first = sobol.random_base2(count.bit_length())[:count]

    def ask(self) -> Array:
        if self._model is None:
            return np.asarray(self._first[len(self.points)])
        return _maximised(self._acquisition(self._model), self._dim)

    def tell(self, x: Array, y: float) -> None:
        super().tell(x, y)
        if len(self.points) < len(self._first):
            return
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from gpytorch.mlls import ExactMarginalLogLikelihood

        X, outcomes = self._tensor(self.points), self._tensor(self.outcomes)[:, None]
        self._model = SingleTaskGP(X, outcomes)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(self._model.likelihood, self._model))

    def recommended(self) -> Array:
        if self._model is None:
            return super().recommended()
        mean = self._model.posterior(self._tensor(self.points)).mean
        return self.points[int(mean.argmax())]

    def _acquisition(self, model: Any) -> Any:
        from botorch.acquisition import UpperConfidenceBound
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement

        if self._name == "LogNEI":
            return qLogNoisyExpectedImprovement(model, self._tensor(self.points))
        # This beta is that of Kandasamy, Schneider and Poczos (ICML 2015); many use it since.
        return UpperConfidenceBound(model, beta=0.2 * self._dim * math.log(2 * len(self.points)))

    def _tensor(self, values: Any) -> Any:
        import torch

        return torch.tensor(np.array(values), dtype=torch.double)


def _maximised(acquisition: Any, dim: int) -> Array:
    """Maximise an acquisition function over the unit cube as BoTorch does."""
    import torch
    from botorch.optim import optimize_acqf

    box = torch.stack([torch.zeros(dim), torch.ones(dim)]).double()
    found, _ = optimize_acqf(acquisition, box, **SEARCH)
    return np.asarray(found[0].numpy())


# --- others


class _BayesOpt(Optimiser):
    """BayesianOptimization of bayes_opt, with its default acquisition function."""

    def __init__(self, problem: Problem, seed: int) -> None:
        from bayes_opt import BayesianOptimization

        super().__init__()
        self._names, self._rng = problem.inputs.names, np.random.default_rng(seed)
        self._made: Any = BayesianOptimization(
            None, dict.fromkeys(self._names, (0.0, 1.0)), random_state=seed, verbose=0,
            allow_duplicate_points=True,
        )  # fmt: skip
        self._made.set_gp_params(alpha=BAYES_OPT_ALPHA)

    def ask(self) -> Array:
        if len(self.points) < BAYES_OPT_FIRST:
            return self._rng.random(len(self._names))
        found = self._made.suggest()
        return np.array([float(found[name]) for name in self._names])

    def tell(self, x: Array, y: float) -> None:
        super().tell(x, y)
        # It prints a line for each point that is not new, whatever its verbosity.
        with redirect_stdout(None):
            self._made.register(dict(zip(self._names, x.tolist(), strict=True)), y)


class _Random(Optimiser):
    """Uniformly random points."""

    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__()
        self._rng, self._dim = np.random.default_rng(seed), len(problem.inputs)

    def ask(self) -> Array:
        return self._rng.random(self._dim)


OPTUNA, BOTORCH = ("optuna",), ("torch", "botorch")
PROMISING = "largest estimate, of which less counts where little is known"
CONTENDERS = {
    "KernelUCB": Contender(_OurUCB, LOWER, ours=True),
    "KernelUCB in BoTorch": Contender(_OurBoTorch, LOWER, BOTORCH, ours=True),
    "Study, best": Contender(_OurStudy, PROMISING, ours=True),
    "Study, best, in Optuna": Contender(partial(_Optuna, "ours"), OBSERVED, OPTUNA, ours=True),
    "Study, best, in Ax": Contender(_OurAx, OBSERVED, ("ax-platform",), ours=True),
    "BoTorch LogNEI": Contender(partial(_BoTorch, "LogNEI"), MEAN, BOTORCH),
    "BoTorch UCB": Contender(partial(_BoTorch, "UCB"), MEAN, BOTORCH),
    "Optuna GP": Contender(partial(_Optuna, "GPSampler"), OBSERVED, (*OPTUNA, "torch")),
    "Optuna TPE": Contender(partial(_Optuna, "TPESampler"), OBSERVED, OPTUNA),
    "bayes_opt": Contender(_BayesOpt, OBSERVED, ("bayesian-optimization",)),
    "random": Contender(_Random, OBSERVED),
}


def missing() -> str:
    """Say which contenders are left out for missing packages; an empty text if none is."""
    absent = [name for name, one in CONTENDERS.items() if not one.installed]
    if not absent:
        return ""
    return (
        f"optimisers: {'; '.join(absent)} left out, because what they need is not installed; "
        "pip install 'kernelbounds[compare]' has it all."
    )

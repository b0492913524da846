"""Optuna: a sampler, and a callback that stops a study when its best parameters are certified.

Both take a :class:`~kernelbounds.Problem`, whose inputs are named like Optuna's parameters. All
that they know besides is read from the trials of the study.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernelbounds.errors import EmptyConfidenceSetError, InputError, MissingExtraError

try:
    import optuna
    from optuna.distributions import (
        BaseDistribution,
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )
    from optuna.trial import FrozenTrial, TrialState
except ImportError:
    raise MissingExtraError("Using kernelbounds from Optuna", "optuna") from None

from kernelbounds.arrays import as_scalar, as_whole, brief
from kernelbounds.integrations.optuna_trials import (
    PLAN,
    Safety,
    as_params,
    fitted,
    last_distributions,
    trials_of,
)
from kernelbounds.integrations.outside_trials import COMPLETION, Reading, Record
from kernelbounds.problem import Input, Problem
from kernelbounds.problem.outputs import checked_amount
from kernelbounds.study.asking import BEST, checked_purpose, new_trials

__all__ = ["KernelBoundsSampler", "StopWhenCertified", "problem_of"]

# The name of the study's user attribute that has the certificate.
CERTIFICATE = "kernelbounds:certificate"


def problem_of(search_space: Mapping[str, BaseDistribution], *rest: Any, **more: Any) -> Problem:
    """Make a problem from Optuna's distributions, so that ranges need not be stated twice.

    Choices of a category are levels by their text, and parameters with one value only are left out.
    Steps are forgotten: bounds and certificates are for the whole range.

    Parameters
    ----------
    search_space : dict of distributions
        The parameters by name, as ``study.ask`` takes them.
    *rest, **more
        The other arguments of :class:`~kernelbounds.Problem`: the output, the noise and so on.

    Examples
    --------
    >>> from optuna.distributions import CategoricalDistribution, FloatDistribution
    >>> space = {
    ...     "rate": FloatDistribution(1e-5, 1e-1, log=True),
    ...     "optimiser": CategoricalDistribution(["adam", "sgd"]),
    ... }
    >>> [one.text for one in problem_of(space, "accuracy[%]=0:100", noise=0.5).inputs]
    ['rate=1e-05:0.1:log', 'optimiser=adam|sgd']
    """
    inputs = [_input(name, one) for name, one in search_space.items()]
    return Problem([one for one in inputs if one is not None], *rest, **more)


def _input(name: str, one: Any) -> Input | None:
    """Make the input of a parameter; None where it has one value only."""
    if not isinstance(one, FloatDistribution | IntDistribution | CategoricalDistribution):
        raise InputError(
            f"search_space must have Optuna's distributions by name, got {brief(one)} for "
            f"{brief(name)}."
        )
    if one.single():
        return None
    if isinstance(one, CategoricalDistribution):
        return Input(name, 0, 1, levels=tuple(map(str, one.choices)))
    return Input(name, one.low, one.high, log=one.log, integer=isinstance(one, IntDistribution))


class KernelBoundsSampler(optuna.samplers.BaseSampler):
    """A sampler that chooses parameters as :meth:`kernelbounds.Study.ask` does.

    Its choices are those of a study with the same outcomes. Trials that run in other processes
    count as pending. The points of trials that failed or were pruned are avoided in the same way,
    because the same choice would be made again.

    Parameters
    ----------
    problem : :class:`~kernelbounds.Problem`
        What is known, with its noise. The inputs are named like the parameters. A kernel and a norm
        bound, where missing, are settled now, which may take a while: pass ``problem.settled()`` to
        do so once.
    purpose : "best", "certificate" or "learning"
        What trials are for, see :meth:`kernelbounds.Study.ask`.
    constraints : dict, optional
        The problem of each constraint by its name, whose outcomes are the values that the objective
        passes to ``trial.set_constraint``: at most 0 where the constraint holds. Parameters are
        then chosen by :class:`~kernelbounds.SafeUCB`, and with probability 1 minus the sum of the
        deltas of these problems none of them violates a constraint.
    safe : list of dicts, optional
        Parameters that you know to satisfy the constraints, to begin with.
    independent_sampler : optuna sampler, optional
        For parameters that the problem does not have, as conditional ones; None: at random.
    seed : int, optional
        The seed of the random sampler. The other choices have no chance in them.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> problem = kb.Problem(
    ...     ["speed=100:500"], "yield[%]=0:100", noise=0.5, kernel="Matern(0.8, nu=2.5)",
    ...     norm_bound=80.0,
    ... )
    >>> study = optuna.create_study(direction="maximize", sampler=KernelBoundsSampler(problem))
    >>> study.optimize(lambda trial: 60 - trial.suggest_float("speed", 100, 500) / 50, n_trials=2)
    >>> study.trials[0].params
    {'speed': 300.0}
    """

    def __init__(
        self,
        problem: Problem,
        purpose: str = BEST,
        *,
        constraints: Mapping[str, Problem] | None = None,
        safe: Sequence[Mapping[str, Any]] | None = None,
        independent_sampler: optuna.samplers.BaseSampler | None = None,
        seed: int | None = None,
    ) -> None:
        checked_purpose(purpose)
        self._safety = Safety.checked(problem, constraints, safe)
        if self._safety.constraints and purpose != BEST:
            raise InputError(
                f"with constraints there is one way to choose, got the purpose {purpose!r}; leave "
                "it out."
            )
        self._record = Record(problem, constraints=self._safety.constraints)
        self._purpose = purpose
        self._independent = independent_sampler or optuna.samplers.RandomSampler(seed=seed)

    def reseed_rng(self) -> None:
        """Reseed the random sampler."""
        self._independent.reseed_rng()

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return no parameters: steps and choices are not known before the objective asks for them.

        All parameters are chosen together all the same, in :meth:`sample_relative`, and are handed
        out by :meth:`sample_independent`, where their distributions are known.
        """
        return {}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Choose all inputs of the problem, and keep them in the trial."""
        with self._record.lock:
            beside: set[int] | None = None
            kept = False
            while True:
                known = self._record.read(*trials_of(study))
                taken = {n: point for n, point in known.taken.items() if n != trial.number}
                # Other workers may have chosen in the meantime. Once this choice can be seen by
                # all, only the later trial of two gives way.
                new = {n for n in taken if beside is None or n not in beside}
                if beside is None or any(not kept or n < trial.number for n in new):
                    plan = self._chosen(study, known, list(taken.values()))
                    beside, kept = set(taken), False
                elif kept:
                    return {}
                else:
                    # Optuna's own samplers share their choices with other workers by this call.
                    study._storage.set_trial_system_attr(trial._trial_id, PLAN, plan)
                    kept = True

    def _chosen(
        self, study: optuna.Study, known: Reading, taken: Sequence[tuple[float, ...]]
    ) -> dict[str, Any]:
        """Choose parameters by their names; none where the data refute the assumptions.

        With constraints, refuted assumptions end the run, because nothing is known to be safe.
        """
        search = known.search
        if self._safety.constraints:
            self._record.warn_once(known.void | known.notes)
            chosen = self._safety.chosen(known, taken, last_distributions(study, known))
            return search.problem.inputs.named(chosen)
        try:
            (new,) = new_trials(search, known.sequence, taken, 1, self._purpose)
        except EmptyConfidenceSetError as error:
            self._record.warn_once({"refuted": f"{error} Parameters are now sampled at random."})
            return {}
        return search.problem.inputs.named(new.point)

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Hand out a parameter that was chosen, or sample one that the problem does not have."""
        plan = trial.system_attrs.get(PLAN, {})
        if param_name in plan:
            value = fitted(param_name, chosen := plan[param_name], param_distribution)
            moved = value != chosen and str(value) != str(chosen)  # a choice is a level by its text
            if moved and self._safety.constraints:
                raise InputError(
                    f"{param_name} = {chosen} is known to be safe, and the objective can only have "
                    f"{value}; state the parameter with the same range and steps in all trials, "
                    "and safe parameters at steps."
                )
            return value
        if param_name not in self._record.problem.inputs.names:
            by = type(self._independent).__name__
            self._record.warn_once({param_name: (
                f"the parameter {param_name!r} is no input of the problem, so {by} samples it, and "
                "there is no guarantee where it varies; state it as an input if you can."
            )})  # fmt: skip
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Let the independent sampler know that a trial begins."""
        self._independent.before_trial(study, trial)

    def after_trial(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Let the independent sampler know that a trial has ended."""
        self._independent.after_trial(study, trial, state, values)


class StopWhenCertified:
    """A callback that stops a study once its best parameters are certified to be good enough.

    It works with any sampler, and needs only the trials. After each trial the certificate is
    written to ``study.user_attrs["kernelbounds:certificate"]``, as plain JSON:

    - ``reached``: whether the regret is small enough, and nothing voids the guarantee;
    - ``params``: the best parameters known, which need not be those of a trial;
    - ``regret``: how far from the best possible they are at most, or None;
    - ``lower`` and ``upper``: bounds on the true value there, without noise;
    - ``trials``: the number of outcomes that all this rests on;
    - ``confidence``: the probability with which it is true, if the problem is right;
    - ``void``: sentences on what voids the guarantee, and then the study is not stopped;
    - ``notes``: sentences on what else the guarantee depends on;
    - ``aim`` and ``problem``: the regret that is small enough, and what was assumed.

    Pruned trials void the guarantee, and so do parameters that vary and are no inputs. Failed
    trials are left out, which is right only if they do not fail because of their outcomes.

    Parameters
    ----------
    problem : :class:`~kernelbounds.Problem`
        As for :class:`KernelBoundsSampler`. It must not have been chosen by a look at the outcomes.
    regret : float, or "10%" for a logarithmic output
        Stop when the best parameters known are certified to be within this of the best possible.
    order : "completion" or "start"
        In which order the trials count, where several run at a time. "completion" is right if run
        times do not depend on outcomes. "start" is right in any case, but a trial that never ends
        holds up all that began after it; give the storage a heartbeat.
    constraints, safe : optional
        As for :class:`KernelBoundsSampler`: the certificate is then that of
        :class:`~kernelbounds.SafeUCB`. Its parameters are known to satisfy the constraints, and are
        compared with all that may. ``confidence`` is 1 minus the sum of all deltas.
    seconds : float
        How long a search for a certificate may take. Less time makes it looser, and not less true.
        After each trial one sees whether it may be good enough, with as little work as that takes.
    every : int
        Look after this many outcomes only, where trials are quick.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> problem = kb.Problem(
    ...     ["x=0:1"], "loss=0:1", noise=0.01, kernel="RBF(0.7)", norm_bound=1.0
    ... )
    >>> study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    >>> stop = StopWhenCertified(problem, regret=0.1)
    >>> def objective(trial):
    ...     return (trial.suggest_float("x", 0, 1) - 0.3) ** 2
    >>> study.optimize(objective, n_trials=100, callbacks=[stop])
    >>> found = study.user_attrs["kernelbounds:certificate"]
    >>> found["reached"], found["regret"] <= 0.1, found["trials"] < 100
    (True, True, True)
    """

    def __init__(
        self,
        problem: Problem,
        regret: float | str,
        *,
        constraints: Mapping[str, Problem] | None = None,
        safe: Sequence[Mapping[str, Any]] | None = None,
        order: str = COMPLETION,
        seconds: float = 5.0,
        every: int = 1,
    ) -> None:
        self._safety = Safety.checked(problem, constraints, safe)
        self._record = Record(problem, order, self._safety.constraints)
        self._aim = checked_amount(regret, "regret", self._record.problem.output, above=0.0)
        self._seconds = as_scalar(seconds, "seconds", above=0.0)
        self._every = as_whole(every, "every", least=1)
        self._looked = 0  # the number of outcomes at the last look

    def __getstate__(self) -> dict[str, Any]:
        """Forget what was looked at, because the copy may be for another study."""
        return vars(self) | {"_looked": 0}

    def __call__(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Stop the study if its best parameters are good enough."""
        if self._stopped_before(study) or self._certified(study, at_once=False):
            study.stop()

    def certificate(self, study: optuna.Study) -> dict[str, Any]:
        """Write the certificate of all trials now, and return it; for use with ask and tell.

        All the time given by ``seconds`` is spent on it, also where it is not good enough.
        """
        self._certified(study, at_once=True)
        return dict(study.user_attrs[CERTIFICATE])

    def _stopped_before(self, study: optuna.Study) -> bool:
        """Tell whether another worker has certified this study: certificates stay true."""
        kept = study.user_attrs.get(CERTIFICATE, {})
        same = kept.get("problem") == self._record.assumed
        return bool(same and kept["reached"] and kept["regret"] <= self._aim)

    def _certified(self, study: optuna.Study, at_once: bool) -> bool:
        """Write a certificate where one is due, and tell whether it is good enough."""
        with self._record.lock:
            known = self._record.read(*trials_of(study))
            self._record.warn_once(known.void | known.notes)
            # Where no trial counts, that is written after the first one, without any computing.
            if known.rows and not at_once and 0 <= len(known.rows) - self._looked < self._every:
                return False
            self._looked = len(known.rows)
            steps = last_distributions(study, known)
            policy = self._safety.policy(known, steps) if self._safety.constraints else None
            data = self._record.certificate(
                known, self._seconds, self._aim, at_once=at_once, policy=policy
            )
            data["params"] = as_params(data["params"], steps)
            if not data["reached"] and self._stopped_before(study):
                return True  # Another worker was faster, and its certificate stays.
            study.set_user_attr(CERTIFICATE, data)
            return bool(data["reached"])

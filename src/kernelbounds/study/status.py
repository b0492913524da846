"""How a study stands: what is certified, whether to go on, and whether the assumptions hold.

A study at a glance: its card in a notebook.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from kernelbounds.bandits import Certificate
from kernelbounds.display import cards as notebook
from kernelbounds.display.numbers import at_most, interval
from kernelbounds.kernels import kernel_to_text
from kernelbounds.problem import Problem
from kernelbounds.problem.quantities import after_number
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.study.records import Promising, Trial, written


def card(
    problem: Problem,
    minimise: bool,
    aim: float | None,
    count: int,
    pending: list[Trial],
    certificates: list[tuple[int, Certificate]],
    title: str = "Study",
    advice: str = "",
    promising: str = "",
) -> notebook.Html:
    """What is sought, how far it is, and the certificates that were made so far."""
    out = problem.output
    unit = f" {out.unit}" if out.unit else ""
    facts: list[tuple[object, object]] = [
        ("minimise" if minimise else "maximise", out.label),
        *((one.name, one.description) for one in problem.inputs),
        ("observations", count),
    ]
    facts += [
        (f"trial {one.number} pending", written(problem, one.values.values())) for one in pending
    ]
    picture = None
    if not count:
        advice = advice or "Ask for a trial, run it and tell its outcome."
    if certificates:
        last, best = certificates[-1]
        facts += [
            (f"best after {last}", written(problem, best.x.tolist())),
            (f"{out.name} there", f"in {interval(best.lower, best.upper)}{unit}"),
            ("certified", f"within {at_most(best.regret)}{unit} of the best possible"),
        ]
        picture = best.picture()
    if promising:
        facts.append(("most promising, not proved", promising))
    if aim is not None:
        facts.append(("aim", f"within {aim:.4g}{unit}"))
    if len(certificates) > 1:
        counts, regrets = [n for n, _ in certificates], [one.regret for _, one in certificates]
        what = "Certified regret against observations, both on logarithmic scales."
        picture = notebook.line_picture(counts, regrets, what, log=True, aim=aim)
        advice = advice or what
    return notebook.card(title, facts, picture, advice)


# An assumption is strained when the data allow little less than what is assumed.
STRAINED = 0.9
# By which power of the number of observations the regret falls, at least and at most, whatever the
# last certificates say: the trend of a few is rough.
SLOWEST, FASTEST = 0.25, 2.0
# A certified regret of more than this times limit - lower bound needs no explanation: with the
# three digits printed, nobody would notice the difference.
NOTICED = 0.995


@dataclass(frozen=True)
class Checked:
    """What the data say of an assumption: ``norm_bound`` or ``noise`` of a :class:`Status`.

    Attributes
    ----------
    assumed : float
        What was assumed when the study was made, in the user's units.
    at_least : float
        The smallest value that these data allow, when the other assumptions stay as they are.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> problem = kb.Problem(
    ...     ["speed[rpm]=100:500"], "yield[%]=0:100", noise=0.5, kernel="Matern(0.8, nu=2.5)",
    ...     norm_bound=80.0,
    ... )
    >>> study = kb.Study.create(":memory:", problem)
    >>> study.status().noise  # before the first observation the data allow everything
    Checked(assumed=0.5, at_least=0.0)
    >>> study.status().noise.strained
    False
    """

    assumed: float
    at_least: float

    @property
    def strained(self) -> bool:
        """Whether what is assumed is little more than the data need, or less."""
        return self.at_least > STRAINED * self.assumed

    def as_data(self) -> dict[str, float | None]:
        """As plain data for JSON; infinity becomes None."""
        least = self.at_least if math.isfinite(self.at_least) else None
        return {"assumed": self.assumed, "at_least": least}


@dataclass(frozen=True)
class Status:
    """How a study stands, from :meth:`Study.status`.

    ``str`` of it is a readable text, and :meth:`as_data` is for JSON.

    Attributes
    ----------
    problem : Problem
        With the assumptions made at creation.
    minimise : bool
        Whether small values of the output are wanted.
    observations, withdrawn : int
        How many there are, and how many others were taken back.
    pending : list of Trial
        Those that were asked for and not told yet.
    certificate : Certificate or None
        In the user's units; None before the first observation, and where the assumptions are
        refuted.
    refuted : bool
        Whether the data refute the assumptions.
    norm_bound, noise : Checked
        What the data say of the two.
    stop_within : float or None
        The aim for the regret.
    more_observations : int or None
        About how many it may take to get there: a guess from the trend of the certificates. None
        where there is no aim, or it is reached, or no trend is to be seen.
    most_promising : Promising or None
        The settings with the best estimate, in the user's units. None where there is no
        certificate.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> problem = kb.Problem(
    ...     ["batches=1:9:integer"], "yield[%]=0:100", noise=0.5, kernel="Matern(0.8, nu=2.5)",
    ...     norm_bound=80.0,
    ... )
    >>> study = kb.Study.create(":memory:", problem, stop_within=5.0)
    >>> told = study.tell({"batches": 4}, 63.1)
    >>> status = study.status(seconds=0.1)
    >>> status.observations, status.stop, status.certificate.named
    (1, False, {'batches': 4.0})
    >>> status.advice
    ['Go on: the aim is to be certified within 5 %.']
    """

    problem: Problem
    minimise: bool
    observations: int
    withdrawn: int
    pending: list[Trial]
    certificate: Certificate | None
    refuted: bool
    norm_bound: Checked
    noise: Checked
    stop_within: float | None
    more_observations: int | None
    most_promising: Promising | None = None

    @property
    def stop(self) -> bool | None:
        """Whether the aim is reached; None where there is no aim, or no certificate."""
        if self.stop_within is None or self.certificate is None:
            return None
        return self.certificate.regret <= self.stop_within

    @property
    def limit(self) -> float | None:
        """What no settings can beat."""
        if self.certificate is None:
            return None
        return self.certificate.min_lower if self.minimise else self.certificate.max_upper

    @property
    def advice(self) -> list[str]:
        """What to do now, and why; a sentence or two each."""
        if self.refuted:
            return _remedies(self)
        unit = after_number(self.problem.output.unit)
        said = [_strain(name, one, unit) for name, one in self._checked if one.strained]
        if not self.observations:
            said.append("Nothing is observed yet: ask for a trial, run it and tell its outcome.")
        elif self.stop:
            said.append(f"Stop: certified within {self.stop_within:g}{unit} of the best possible.")
        elif self.stop is False:
            said.append(f"Go on: the aim is to be certified within {self.stop_within:g}{unit}.")
            if self.more_observations is not None:
                said.append(
                    f"It may take about {self.more_observations} more observations, or several "
                    "times that: a guess from the trend of the certificates."
                )
        return said

    @property
    def _why_smaller(self) -> str:
        """Why the regret is less than the numbers printed above it seem to say."""
        best = self.certificate
        if best is None or self.limit is None:
            return ""
        difference = best.upper - self.limit if self.minimise else self.limit - best.lower
        if best.regret > NOTICED * difference:
            return ""
        return (
            f"\n  (smaller than the difference of {'upper' if self.minimise else 'lower'} bound "
            "and limit, because no function is worst at both places)"
        )

    @property
    def _promising(self) -> str:
        """The settings with the best estimate, and how far it may be off."""
        found = self.most_promising
        if found is None:
            return ""
        unit = after_number(self.problem.output.unit)
        return (
            f"{written(self.problem, found.values.values())} (estimate {found.estimate:.4g}{unit}, "
            f"between {found.lower:.4g} and {found.upper:.4g}{unit})"
        )

    @property
    def _checked(self) -> list[tuple[str, Checked]]:
        return [("norm bound", self.norm_bound), ("noise", self.noise)]

    def __str__(self) -> str:
        problem, out = self.problem, self.problem.output
        unit = after_number(out.unit)
        goal = "minimise" if self.minimise else "maximise"
        gone = f" ({self.withdrawn} others taken back)" if self.withdrawn else ""
        lines = [
            f"{goal} {out.name} over {', '.join(problem.names)}",
            f"observations: {self.observations}{gone}",
        ]
        for trial in self.pending:
            settings = written(problem, trial.values.values())
            lines.append(f"pending: trial {trial.number}: {settings}")
        if self.certificate is not None:
            best, side = self.certificate, "below" if self.minimise else "above"
            lines += [
                f"best known: {written(problem, best.x.tolist())}",
                f"  {out.name} there, without noise: between {best.lower:.4g} and "
                f"{best.upper:.4g}{unit}",
                f"  {out.name} anywhere: not {side} {self.limit:.4g}{unit}",
                f"  within {best.regret:.3g}{unit} of the best possible {out.name}, with "
                f"probability {1 - problem.delta:g}, if the assumptions hold{self._why_smaller}",
            ]
        if self.most_promising is not None:
            lines.append(f"most promising, not proved: {self._promising}")
        lines.append(
            f"assumptions: noise {problem.noise:g}{unit}, norm bound "
            f"{problem.norm_bound:.4g}{unit}, kernel {kernel_to_text(problem.kernel)}"
        )
        return "\n".join(lines + self.advice)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """For notebooks."""
        return notebook.shown(self, self._card)

    def _card(self) -> notebook.Html:
        found = [] if self.certificate is None else [(self.observations, self.certificate)]
        return card(
            self.problem, self.minimise, self.stop_within, self.observations, self.pending, found,
            title="Status", advice=" ".join(self.advice), promising=self._promising,
        )  # fmt: skip

    def as_data(self) -> dict[str, Any]:
        """As plain data for JSON; an infinite number becomes None."""
        best = None
        if self.certificate is not None:
            best = self.certificate.as_data()
            best = {name: best[name] for name in ("named", "lower", "upper", "regret")}
        return {
            "problem": self.problem.as_data(),
            "minimise": self.minimise,
            "observations": self.observations,
            "withdrawn": self.withdrawn,
            "pending": [one.as_data() for one in self.pending],
            "best": best,
            "most_promising": self.most_promising and self.most_promising.as_data(),
            "limit": self.limit,
            "confidence": 1 - self.problem.delta,
            "refuted": self.refuted,
            "norm_bound": self.norm_bound.as_data(),
            "noise": self.noise.as_data(),
            "stop_within": self.stop_within,
            "stop": self.stop,
            "more_observations": self.more_observations,
            "advice": self.advice,
        }


def checked_assumptions(problem: Problem, sequence: ConfidenceSequence) -> tuple[Checked, Checked]:
    """What the data say of the norm bound, and of the noise."""
    norm, noise = float(problem.norm_bound or 0.0), float(problem.noise or 0.0)
    if not len(sequence):
        return Checked(norm, 0.0), Checked(noise, 0.0)
    least = problem.norm_at_least(sequence.norm_lower_bound)
    return Checked(norm, least), Checked(noise, sequence.noise_lower_bound)


def more_needed(old: list[tuple[int, float]], count: int, regret: float, aim: float) -> int | None:
    """How many more observations, if regret goes on falling as it did since a third as many.

    ``old`` are numbers of observations and regrets of certificates before; None where there is no
    trend in them yet.
    """
    for before, then in old:
        if count / 3 <= before < count and then > regret:
            power = math.log(then / regret) / math.log(count / before)
            times = math.pow(regret / aim, 1 / min(max(power, SLOWEST), FASTEST))
            return math.ceil(count * (times - 1))
    return None


def _strain(name: str, one: Checked, unit: str) -> str:
    return (
        f"The {name} is nearly refuted: {one.assumed:.4g}{unit} is assumed, and the data need "
        f"{one.at_least:.4g}{unit} at least. Certificates still hold if you still believe it."
    )


def _remedies(status: Status) -> list[str]:
    """What to do when the assumptions are refuted."""
    problem, noise, norm = status.problem, status.noise, status.norm_bound
    said = [
        "The data refute the assumptions: no function with this kernel and norm bound fits the "
        f"outcomes with noise {noise.assumed:g}{after_number(problem.output.unit)}. One of the "
        f"assumptions is wrong, or something of probability {problem.delta:g} has happened. All "
        "observations are safe in the file, and more can be told; but there are no bounds any "
        "more. What to do:"
    ]
    if math.isfinite(noise.at_least):
        said.append(
            "- if single outcomes scatter more than was assumed: a new study with "
            f"--noise {_up(noise.at_least)} or more;"
        )
    larger = (
        f"--norm-bound {_up(norm.at_least)} or more, or " if math.isfinite(norm.at_least) else ""
    )
    turns = int(problem.turns_of_inputs.max()) + 1
    said += [
        "- if the output varies more, or faster, than was assumed: a new study with "
        f"{larger}--turns {turns} or more;",
        "- if an outcome was typed wrongly: study undo, back to it.",
        "A new study with the same observations is made by study export, study create and study "
        "import. Its guarantee holds only if the new assumptions would have been made without "
        "these data.",
    ]
    return said


def _up(value: float) -> str:
    """Rounded up to two digits."""
    step = 10.0 ** (math.floor(math.log10(value)) - 1) if value > 0 else 1.0
    return f"{math.ceil(value / step) * step:.6g}"

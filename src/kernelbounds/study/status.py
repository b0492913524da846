"""The state of a study: what is certified, whether to go on, and whether the assumptions hold."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from kernelbounds.bandits import Certificate
from kernelbounds.display import cards as notebook
from kernelbounds.display.numbers import at_least, at_most
from kernelbounds.errors import EmptyConfidenceSetError, FactRefutedError
from kernelbounds.problem import Problem
from kernelbounds.problem.checked import (
    Checked,
    checked_assumptions,
    kernels_sentence,
    noise_so_far,
)
from kernelbounds.problem.refutation import contradiction
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.study.findings import Findings, Replay, more_needed
from kernelbounds.study.remedies import remedies
from kernelbounds.study.revision import (
    GOALS,
    Revision,
    Terms,
    certainty,
    condition_of,
    kernel_in_words,
    proved_delta,
)
from kernelbounds.study.search import Promising
from kernelbounds.study.telling import told_text
from kernelbounds.study.trial import Trial

# A certified regret above this share of limit - lower bound needs no explanation: with the three
# digits printed, nobody would notice the difference.
UNNOTICED_SHARE = 0.995
# The share of the settings at which a fact matters is that of this many which fill the ranges.
FACT_POINTS = 128
# With more outcomes than this, to find the one that refutes the assumptions takes too long.
MOST_REPLAYED = 500


@dataclass(frozen=True)
class Status:
    """The state of a study, from :meth:`Study.status`.

    ``str(status)`` is a readable text, and :meth:`as_data` is for JSON.

    Attributes
    ----------
    problem : Problem
        The problem, with the assumptions made at creation.
    minimise : bool
        Whether small values of the output are wanted.
    observations, withdrawn : int
        How many observations there are, and how many outcomes were taken back or corrected.
    pending : list of Trial
        Trials that were asked for and not told yet.
    certificate : Certificate or None
        What is certified, in the user's units; None before the first observation, and where the
        assumptions are refuted.
    refuted : bool
        Whether the data refute the assumptions.
    norm_bound, noise : Checked
        What the data say of these two assumptions.
    stop_within : float or None
        The aim for the regret.
    more_observations : int or None
        About how many observations it may take to reach the aim: a guess from the trend of the
        certificates. None where there is no aim, or it is reached, or there is no trend yet.
    most_promising : Promising or None
        The settings with the best estimate, in the user's units. None where there is no
        certificate.
    binding : dict
        What is known of the output, in words, and the share of the settings at which it makes the
        bounds narrower; None where that is not computed.
    contradicted : str
        The facts that the data contradict, and where; empty where they contradict none.
    kernels : str
        What the data say of several kernels; empty where there is one.
    revisions : tuple of Revision
        The studies that this one was made from by :meth:`Study.revise`, the oldest first, and what
        that did to the guarantee.
    refuting : str
        With which trial the data refute the assumptions, in a sentence; empty where they do not.

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
    norm_bound: Checked
    noise: Checked
    stop_within: float | None
    certificate: Certificate | None = None
    refuted: bool = False
    more_observations: int | None = None
    most_promising: Promising | None = None
    binding: dict[str, float | None] = field(default_factory=dict)
    contradicted: str = ""
    kernels: str = ""
    revisions: tuple[Revision, ...] = ()
    refuting: str = ""

    @property
    def stop(self) -> bool | None:
        """Whether the aim is reached; None where there is no aim, or no certificate."""
        if self.stop_within is None or self.certificate is None:
            return None
        return self.certificate.regret <= self.stop_within

    @property
    def limit(self) -> float | None:
        """The value of the output that no settings can beat."""
        if self.certificate is None:
            return None
        return self.certificate.min_lower if self.minimise else self.certificate.max_upper

    @property
    def advice(self) -> list[str]:
        """Advice on what to do now and why, one or two sentences each."""
        if self.refuted:
            return self.remedies()
        said = [
            f"The {name} is nearly refuted: {assumed} is assumed, and the data need {needed} at "
            "least. Certificates still hold if you still believe it."
            for name, checked, assumed, needed in checked_in_words(self)
            if checked.strained
        ]
        if not self.observations:
            said.append("Nothing is observed yet: ask for a trial, run it and tell its outcome.")
        if self.certificate is not None and self._says_nothing:
            said.append(
                "So far the certificate says nothing: it is not narrower than the whole range that "
                f"was stated, {self.problem.output.stated_range}. Good settings are found long "
                "before they are proved to be good; kernelbounds plan says what would help."
            )
        if self.stop:
            said.append(f"Stop: certified within {self._aim} of the best possible.")
        elif self.stop is False:
            said.append(f"Go on: the aim is to be certified within {self._aim}.")
            if self.more_observations is not None:
                some = f"{float(f'{self.more_observations:.2g}'):,.0f}"
                said.append(
                    f"It may take some {some} more observations, or several times that: a guess "
                    "from the trend of the certificates."
                )
        return said

    def remedies(self, options: bool = True) -> list[str]:
        """Say what to do where the assumptions are refuted, with options of commands or without."""
        return remedies(
            self.problem, self.norm_bound, self.noise, self.contradicted, self.refuting, options
        )

    @property
    def _aim(self) -> str:
        """The aim in words."""
        return self.problem.output.amount(float(self.stop_within or 0.0), "{:g}".format)

    @property
    def _says_nothing(self) -> bool:
        """Whether no outcome in the stated range could be farther from the best than certified."""
        out, best = self.problem.output, self.certificate
        return best is not None and best.regret >= out.between_values(out.low, out.high)

    @property
    def _why_smaller(self) -> str:
        """The reason why the regret is less than the numbers printed above it seem to say."""
        best = self.certificate
        if best is None or self.limit is None:
            return ""
        ends = (self.limit, best.upper) if self.minimise else (best.lower, self.limit)
        if best.regret > UNNOTICED_SHARE * self.problem.output.between_values(*ends):
            return ""
        what = "ratio" if self.problem.output.log else "difference"
        return (
            f"\n  (smaller than the {what} of {'upper' if self.minimise else 'lower'} bound "
            "and limit, because no function is worst at both places)"
        )

    @property
    def headline(self) -> str:
        """The best estimate, where it is, and its guarantee: what one would tell a colleague."""
        found = self.most_promising
        if found is None:
            return ""
        settings = self.problem.inputs.settings_text(found.values.values())
        out = self.problem.output
        known = out.about(found.estimate, found.lower, found.upper, settings)
        condition = condition_of(self.revisions)
        return f"{out.name} is {known}{condition and f', {condition}'}."

    @property
    def certainty(self) -> str:
        """How sure all bounds are at once, and what that depends on."""
        return certainty(self.problem, self.revisions)

    def _facts(self) -> list[tuple[str, str]]:
        """Return the facts by their names, of which the text and the card are made."""
        problem, out = self.problem, self.problem.output
        goal, settings = GOALS[self.minimise], problem.inputs.settings_text
        gone = f" ({self.withdrawn} taken back or corrected)" if self.withdrawn else ""
        found = [
            ("goal", f"{goal} {out.name} over {', '.join(problem.inputs.names)}"),
            ("observations", f"{self.observations}{gone}"),
        ]
        found += [
            (f"trial {one.number} pending", settings(one.values.values())) for one in self.pending
        ]
        if self.certificate is not None:
            best, limit = self.certificate, float(self.limit or 0.0)
            beyond = (
                f"below {at_least(limit, 4)}" if self.minimise else f"above {at_most(limit, 4)}"
            )
            found += [
                ("best known", settings(best.x.tolist())),
                (f"  {out.name} there, without noise", out.between(best.lower, best.upper)),
                (f"  {out.name} anywhere", f"not {beyond}{out.after_number}"),
                (
                    "  certified",
                    f"within {out.amount(best.regret)} of the best possible {out.name}, "
                    f"{self.certainty}{self._why_smaller}",
                ),
            ]
        others = f" and {len(problem.candidates) - 1} others" if problem.candidates else ""
        found.append((
            "assumptions",
            f"noise {noise_so_far(problem, self.noise)}, norm bound {problem.norm_text}, "
            f"{kernel_in_words(problem)}{others}",
        ))  # fmt: skip
        for words, share in self.binding.items():
            where = f" (makes bounds narrower at {100 * (share or 0):.0f} % of the settings)"
            found.append(("known", words if share is None else f"{words}{where}"))
        found += [("kernels", self.kernels)] * bool(self.kernels)
        found += [("revision", str(one)) for one in self.revisions]
        if self.stop_within is not None:
            found.append(("aim", f"within {self._aim}"))
        return found

    def __str__(self) -> str:
        facts = [f"{name}: {fact}" for name, fact in self._facts()]
        return "\n".join([*[self.headline] * bool(self.headline), *facts, *self.advice])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return a card for notebooks."""
        found = [] if self.certificate is None else [(self.observations, self.certificate)]
        return notebook.shown(self, lambda: card_of(self, "Status", found))

    def as_data(self) -> dict[str, Any]:
        """Return the attributes as plain data for JSON; an infinite number becomes None."""
        data = {name: _plain(value) for name, value in vars(self).items()}
        best, binding = data.pop("certificate"), data.pop("binding")
        return data | {
            "best": best and {name: best[name] for name in ("named", "lower", "upper", "regret")},
            "limit": self.limit,
            "facts": [{"known": one, "binding_share": share} for one, share in binding.items()],
            "confidence": 1 - proved_delta(self.problem, self.revisions),
            "stop": self.stop,
            "advice": self.advice,
        }


def _plain(value: Any) -> Any:
    """Return an attribute of a status as plain data."""
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value.as_data() if hasattr(value, "as_data") else value


def first_look(
    terms: Terms,
    sequence: ConfidenceSequence,
    observations: int,
    withdrawn: int,
    pending: list[Trial],
) -> Status:
    """Return the state of a study as far as no search is needed."""
    norm, noise = checked_assumptions(terms.problem, sequence)
    refuted = norm.at_least > norm.assumed or noise.at_least > noise.assumed
    return Status(
        terms.problem, terms.minimise, observations, withdrawn, pending, norm, noise,
        terms.stop_within, refuted=refuted, revisions=terms.revisions,
        binding=dict.fromkeys(terms.problem.facts_in_words),
    )  # fmt: skip


def searched(found: Status, findings: Findings, seconds: float) -> Status:
    """Add what takes a search: the certificate, promising settings, and the effect of facts."""
    problem, sequence = found.problem, findings.sequence
    if not len(sequence):
        return found
    if found.refuted and not problem.facts:
        return replace(found, refuting=_first_refuting(problem, findings))
    try:
        sequence.bounds(sequence.points[:1])  # This raises where anything is refuted.
        best = findings.certificate(seconds)
        promising = findings.search.most_promising(sequence, seconds)
        facts = _effect_of_facts(problem, sequence)
    except FactRefutedError as error:
        said = contradiction(problem, sequence, error)
        first = _first_refuting(problem, findings)
        return replace(found, refuted=True, contradicted=said, refuting=first)
    except EmptyConfidenceSetError:
        return replace(found, refuted=True, refuting=_first_refuting(problem, findings))
    old = [(count, one.regret) for count, one in findings.kept()]
    more = more_needed(old, len(sequence), best.regret, found.stop_within)
    return replace(
        found, certificate=best, more_observations=more, most_promising=promising, **facts
    )


def _first_refuting(problem: Problem, findings: Findings) -> str:
    """Say with which trial the data refute the assumptions; nothing where that takes too long."""
    outcomes = findings.outcomes
    if len(outcomes) > MOST_REPLAYED:
        return ""

    def refutes(count: int) -> bool:
        sequence = Replay(problem).after(outcomes[:count])
        try:
            sequence.bounds(sequence.points[:1])
        except EmptyConfidenceSetError:
            return True
        return False

    one = outcomes[bisect_left(range(1, len(outcomes)), True, key=refutes)]
    settings = problem.inputs.settings_text(one.point)
    return (
        f"The outcomes before that of trial {one.trial} do not refute them, but with it they do: "
        f"{settings} {told_text(problem, one.told)}."
    )


def checked_in_words(status: Status) -> list[tuple[str, Checked, str, str]]:
    """Say of norm bound and noise what is assumed, and what the data need: name, numbers, words."""
    problem, norm, noise = status.problem, status.norm_bound, status.noise
    least = problem.stated_noise.text(noise.at_least, partial(at_least, digits=4))
    needed = problem.output.norm_text(norm.at_least, partial(at_least, digits=4))
    name = "limit of the noise" if problem.stated_noise.is_unknown else "noise"
    return [
        ("norm bound", norm, problem.output.norm_text(norm.assumed), needed),
        (name, noise, problem.stated_noise.text(), least),
    ]


def _effect_of_facts(problem: Problem, sequence: ConfidenceSequence) -> dict[str, Any]:
    """Compute ``binding`` and ``kernels`` of a status, where there are facts or several kernels."""
    found: dict[str, Any] = {}
    if problem.facts:
        settings = problem.inputs.settable(problem.inputs.unit_box.filling(FACT_POINTS))
        shares = sequence.binding_facts(problem.scaled(settings))
        found["binding"] = dict(zip(problem.facts_in_words, shares, strict=True))
    if sequence.classes is not None:
        found["kernels"] = kernels_sentence(problem, sequence)
    return found


def card_of(
    status: Status, title: str, certificates: list[tuple[int, Certificate]]
) -> notebook.Html:
    """Make a card for notebooks of a status and the certificates over time."""
    problem, picture, note = status.problem, None, " ".join(status.advice)
    if certificates and status.certificate is None:
        status = replace(status, certificate=certificates[-1][1])
    facts = [("most promising", status.headline)] * bool(status.headline) + status._facts()
    if certificates:
        last, best = certificates[-1]
        facts += [("certificate after", f"{last} observations")] * (last < status.observations)
        picture = best.picture()
    facts += [(one.name, one.description) for one in problem.inputs]
    if len(certificates) > 1:
        counts, regrets = [n for n, _ in certificates], [one.regret for _, one in certificates]
        what = "Certified regret against observations, both on logarithmic scales."
        picture = notebook.line_picture(counts, regrets, what, log=True, aim=status.stop_within)
        note = note or what
    return notebook.card(title, facts, picture, note)

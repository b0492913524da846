"""The terms of a study, which never change, and revisions: other terms for the same observations.

What is guaranteed after a revision
-----------------------------------
All bounds of a study hold unless the energy of the noise exceeds R_t^2 at some time, an event of
probability at most delta that depends on the kernel, B, the noise and delta, and on no fact. So

* statements that are withdrawn, wider limits, and a smaller delta of a stated noise scale leave the
  event as it was, or make it smaller: the guarantee remains, whatever made one change them;
* a statement that is new leaves the event as it was, too, and must be true;
* a larger norm bound or noise has an event of its own, also of probability at most delta: with
  numbers that were not tuned to the data, both studies hold together with 1 - delta - delta';
* for anything else the event is another one, and the assumptions are others as well.

The proof is in ``docs/how-to/studies.md``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelbounds.arrays import as_flag, brief, shortened
from kernelbounds.display.numbers import confidence
from kernelbounds.errors import InputError
from kernelbounds.kernels import kernel_to_text
from kernelbounds.noise import SubGaussian
from kernelbounds.problem import Problem
from kernelbounds.problem.facts_in_words import SHAPES
from kernelbounds.problem.outputs import checked_amount
from kernelbounds.study.database import Tables
from kernelbounds.study.study_file import utc_now
from kernelbounds.study.trial import Outcome
from kernelbounds.version import __version__

# What a kernel and a norm bound are suggested for; while these stay, so does the suggestion.
SUGGESTED_FOR = (
    "inputs", "output", "turns", "interactions", "quantile", "experiments", "kernels", "successes",
)  # fmt: skip
# A longer kernel is written in words for people; programs find it in the problem.
SHORT_KERNEL = 60
GOALS = {False: "maximise", True: "minimise"}
# The levels of a guarantee, from the strongest to the weakest.
KEPT, STATED, WEAKER, NONE = LEVELS = ("kept", "if true", "weaker", "none")
# What remains of the guarantee, with the probabilities of the old bounds, of the new ones, and of
# both together.
GUARANTEES = {
    KEPT: "The guarantee remains: what is assumed now was assumed before the data, and if it is "
    "true, bounds hold with probability {old:g}, whatever made you change your mind.",
    STATED: "Bounds hold with probability {old:g} if what you state now is true. That the data "
    "look like it is no proof of it.",
    WEAKER: "The new assumptions are weaker: they follow from the old ones. If you would have "
    "taken these numbers without the data, the new bounds hold with probability {new:g}, and old "
    "and new ones together with {both:g}. For numbers that were tuned to the data there is no "
    "guarantee.",
    NONE: "There is no guarantee, unless you would have made the new assumptions without these "
    "data: then bounds hold with probability {new:g}.",
}
# What any bound depends on after a revision, besides its assumptions.
CONDITIONS = {
    KEPT: "",
    STATED: "",
    WEAKER: "only if the numbers that were revised are not tuned to these data",
    NONE: "only if the revised assumptions would have been made without these data",
}


@dataclass(frozen=True)
class Revision:
    """A revision of a study: the study it was made from, and what remains of the guarantee.

    Attributes
    ----------
    file, time : str
        The study that it was made from, and when, in UTC.
    changes : tuple of str
        What was changed, in words.
    level : str
        "kept": the guarantee remains. "if true": it remains if the new statements are true.
        "weaker": the new assumptions follow from the old ones. "none": they do not.
    guarantee : str
        What remains of the guarantee in a sentence or two, with probabilities.
    delta : float
        The probability with which bounds may fail after the revision.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> problem = kb.Problem(
    ...     ["speed[rpm]=100:500"], "yield[%]=0:100", noise=0.5, kernel="Matern(0.8, nu=2.5)",
    ...     norm_bound=80.0,
    ... )
    >>> study = kb.Study.create(":memory:", problem)
    >>> made, = study.revise(":memory:", problem.replace(noise=1.0)).revisions
    >>> made.changes, made.level
    (('noise 0.5 % -> 1 %',), 'weaker')
    """

    file: str
    time: str
    changes: tuple[str, ...]
    level: str
    guarantee: str
    delta: float

    def as_data(self) -> dict[str, Any]:
        """Return the attributes as plain data for JSON."""
        return vars(self) | {"changes": list(self.changes)}

    def __str__(self) -> str:
        return f"revised from {self.file} ({'; '.join(self.changes)}): {self.guarantee}"


def kernel_in_words(problem: Problem) -> str:
    """Write the kernel where it is short, or say where it comes from."""
    text = kernel_to_text(problem.kernel)
    if len(text) <= SHORT_KERNEL:
        return f"kernel {text}"
    if "kernel" in problem.suggested:
        return "kernel as suggested for this problem"
    return f"kernel {shortened(text, 100)}"


def condition_of(revisions: Sequence[Revision]) -> str:
    """Say what bounds depend on because of revisions; empty where these take nothing away."""
    return CONDITIONS[revisions[-1].level] if revisions else ""


def proved_delta(problem: Problem, revisions: Sequence[Revision]) -> float:
    """Return the probability with which bounds may fail: not every smaller delta is proved."""
    return revisions[-1].delta if revisions else problem.delta


def certainty(
    problem: Problem,
    revisions: Sequence[Revision],
    written: Callable[[float], str] = confidence,
) -> str:
    """Say how sure all bounds of a study are at once, and what that depends on.

    ``written`` writes the probability 1 - delta.
    """
    condition, delta = condition_of(revisions), proved_delta(problem, revisions)
    sure = f"with probability {written(delta)}" if delta else "for certain"
    return f"{sure}, if the assumptions hold{condition and f', and {condition}'}"


@dataclass(frozen=True)
class Terms:
    """The terms of a study: its problem, the goal, the aim, and the revisions it was made by.

    ``stop_within`` is the regret that is good enough, None where there is no aim. The oldest
    revision is the first.
    """

    problem: Problem
    minimise: bool
    stop_within: float | None
    revisions: tuple[Revision, ...] = ()

    @classmethod
    def checked(cls, problem: Any, minimise: Any, stop_within: Any) -> Terms:
        """Check what a user has said, and make terms of it."""
        problem = checked_problem(problem)
        return cls(problem, as_flag(minimise, "minimise"), checked_aim(problem, stop_within))

    def changed(self, problem: Any, minimise: Any, stop_within: Any) -> Terms:
        """Return other terms for the same observations; what is None is as in these."""
        new = checked_problem(self.problem if problem is None else problem)
        new = continued(self.problem, new)
        small = self.minimise if minimise is None else as_flag(minimise, "minimise")
        aim = self.stop_within if stop_within is None else checked_aim(new, stop_within)
        return replace(self, problem=new, minimise=small, stop_within=aim)

    def settled(self) -> Terms:
        """Settle a kernel and a norm bound where they are missing, which may take minutes."""
        problem = self.problem.settled()
        problem.sequence()  # which refuses facts that contradict each other, or the norm bound
        return replace(self, problem=problem)

    def revised(self, old: Terms, file: str) -> Terms:
        """Add the revision that leads to these terms from ``old``, those of the study ``file``."""
        before = old.revisions
        level = level_of(old.problem, self.problem)
        past = before[-1].delta if before else old.problem.delta
        new = self.problem.delta
        sentence = GUARANTEES[level].format(old=1 - past, new=1 - new, both=1 - past - new)
        worst = max([level, *(one.level for one in before)], key=LEVELS.index)
        if worst != level:
            sentence += f" But this adds to what was said of {file}, which had been revised itself."
        changes = _changes_in_words(old, self)
        if not changes:
            raise InputError("nothing is changed; say what is to be assumed in the new study.")
        delta = past if level in (KEPT, STATED) else new
        made = Revision(file, utc_now(), tuple(changes), worst, sentence, delta)
        return replace(self, revisions=(*before, made))

    def as_texts(self) -> dict[str, str]:
        """Return the terms as texts by name, as a file keeps them."""
        found: dict[str, Any] = {
            "problem": self.problem.as_data(),
            "minimise": self.minimise,
            "stop_within": self.stop_within,
        }
        if self.revisions:
            found["revisions"] = [one.as_data() for one in self.revisions]
        texts = {name: json.dumps(one, ensure_ascii=False) for name, one in found.items()}
        return texts | {"kernelbounds": __version__}

    @classmethod
    def from_texts(cls, texts: Mapping[str, str]) -> Terms:
        """Read the terms from the texts in a file."""
        made = json.loads(texts.get("revisions", "[]"))
        return cls(
            Problem.from_data(json.loads(texts["problem"])),
            bool(json.loads(texts["minimise"])),
            json.loads(texts["stop_within"]),
            tuple(Revision(**(one | {"changes": tuple(one["changes"])})) for one in made),
        )


def checked_problem(problem: Any) -> Problem:
    """Check that this is a problem, and that it states its noise."""
    if not isinstance(problem, Problem):
        raise InputError(f"problem must be a kernelbounds.Problem, got {brief(problem)}.")
    if problem.stated_noise.law is None:
        raise InputError(
            "the noise of the output is missing; 0 means that there is none, and 'unknown' "
            "that the data bound it."
        )
    return problem


def checked_aim(problem: Problem, aim: Any) -> float | None:
    """Return the regret that is good enough, or None where there is no aim."""
    return None if aim is None else checked_amount(aim, "stop_within", problem.output, above=0.0)


def level_of(old: Problem, new: Problem) -> str:
    """Return the level of the guarantee that remains after a change, see :class:`Revision`."""
    (old_kind, old_noise), (new_kind, new_noise) = _noise(old), _noise(new)
    if not _same_functions(old, new) or old_kind != new_kind:
        return NONE
    if new.delta > old.delta or new_noise < old_noise:
        return NONE
    stated = _statements_follow(old, new)
    same_event = new.delta == old.delta or isinstance(old.stated_noise.law, SubGaussian)
    if same_event and _norms(new) == _norms(old) and old_noise == new_noise:
        return KEPT if stated else STATED
    larger = all(b >= a for a, b in zip(_norms(old), _norms(new), strict=True))
    return WEAKER if larger and stated else NONE


def _changes_in_words(before: Terms, after: Terms) -> list[str]:
    """List the differences between two terms, in words."""
    old, new = before.problem, after.problem
    found = [
        f"{a.text} -> {b.text}"
        for a, b in zip((*old.inputs, old.output), (*new.inputs, new.output), strict=True)
        if a != b
    ]
    pairs = {
        "noise": (old.stated_noise.text(), new.stated_noise.text()),
        "norm bound": (old.norm_text, new.norm_text),
        "kernels": (old.kernels, new.kernels),
        "kernels and their norm bounds": (_candidates_in_words(old), _candidates_in_words(new)),
        "turns": (old.turns, new.turns),
        "interactions": (old.interactions, new.interactions),
        "quantile": (f"{old.quantile:g}", f"{new.quantile:g}"),
        "experiments": (str(old.experiments), str(new.experiments)),
        "delta": (f"{old.delta:g}", f"{new.delta:g}"),
    }
    found += [f"{name} {a} -> {b}" for name, (a, b) in pairs.items() if a != b]
    if kernel_to_text(old.kernel) != kernel_to_text(new.kernel):
        words = kernel_in_words(old), kernel_in_words(new)
        anew = "another kernel, suggested anew"
        found.append(anew if words[0] == words[1] else " -> ".join(words))
    was, now = old.facts_in_words, new.facts_in_words
    found += [f"no longer stated: {one}" for one in was if one not in now]
    found += [f"now stated: {one}" for one in now if one not in was]
    if before.minimise != after.minimise:
        found.append(f"{GOALS[before.minimise]} -> {GOALS[after.minimise]}")
    if before.stop_within != after.stop_within:
        found.append(f"aim {before.stop_within} -> {after.stop_within}")
    return found


def continued(old: Problem, new: Problem) -> Problem:
    """Return new assumptions for old outcomes, which keep of the old ones what nobody has changed.

    A kernel and a norm bound stay while all that they were suggested for stays: facts do not enter
    the event of failure, so that whoever changes facts alone keeps the guarantee. A number that is
    stated as it was printed is unchanged, too.
    """
    check_same_quantities(old, new)
    same = all(getattr(old, name) == getattr(new, name) for name in SUGGESTED_FOR)
    kept: dict[str, Any] = {}
    kernel = old.kernel if same and new.kernel is None else new.kernel
    if kernel is None and new.norm_bound is not None:
        raise InputError(
            f"the norm bound {new.norm_text} is for one kernel, and the kernel would be chosen "
            "anew; state the kernel, too (kernel, --kernel), or leave out the norm bound. That of "
            f"this study is {kernel_to_text(old.kernel)}."
        )
    if kernel is not None and kernel_to_text(kernel) == kernel_to_text(old.kernel):
        kept["kernel"] = old.kernel
        unsaid = same and new.norm_bound is None
        if unsaid or new.norm_text == old.norm_text:
            kept["norm_bound"] = old.norm_bound
            if same and not new.candidates:
                kept["candidates"] = old.candidates
    if new.stated_noise.text() == old.stated_noise.text():
        kept["noise"] = old.noise
    if f"{new.delta:g}" == f"{old.delta:g}":
        kept["delta"] = old.delta
    still = kept.keys() & set(old.suggested) if same else set()
    return new.replace(**kept, suggested=(*new.suggested, *still))


def check_same_quantities(old: Problem, new: Problem) -> None:
    """Raise where outcomes of the old problem are not outcomes of the new one."""
    columns, others = (
        [problem.outcomes.names, *((one.name, one.levels) for one in problem.inputs)]
        for problem in (old, new)
    )
    if columns != others:
        raise InputError(
            "a revised study has the same inputs, levels and columns measured, in the same order: "
            f"{', '.join((*old.inputs.names, *old.outcomes.names))}; for others, make a new study "
            "and import the runs."
        )


def check_possible(new: Problem, told: Sequence[Outcome]) -> None:
    """Raise where outcomes that were told are impossible under the new assumptions."""
    if told:
        places = [f"trial {one.trial}: " for one in told]
        new.inputs.checked_points(np.array([one.point for one in told]), places.__getitem__)
        new.scaled_outcomes([one.told for one in told], places.__getitem__)


def carried_over(tables: Tables, new: Problem) -> Tables:
    """Return the rows of a study for its copy with a new problem.

    Pending trials that are out of the new ranges are dropped.
    """

    def fits(point: str) -> bool:
        try:
            new.inputs.checked_points([json.loads(point)])
        except InputError:
            return False
        return True

    dropped = {"state": "dropped", "place": None, "digest": None}
    trials = [
        one | dropped if one["state"] == "pending" and not fits(one["point"]) else one
        for one in tables["trials"]
    ]
    return {**tables, "trials": trials}


def _same_functions(old: Problem, new: Problem) -> bool:
    """Tell whether two problems are about functions of the same inputs, with the same kernels."""
    before, now = (
        (
            [(one.low, one.high, one.log, one.integer, one.levels) for one in problem.inputs],
            (problem.output.low, problem.output.high, problem.output.log),
            _kernels(problem),
        )
        for problem in (old, new)
    )
    return before == now


def _kernels(problem: Problem) -> list[str]:
    kernels: Sequence[Any] = [problem.kernel, *(one for one, _ in problem.candidates)]
    return [kernel_to_text(one) for one in kernels if one is not None]


def _candidates_in_words(problem: Problem) -> str:
    """Write the kernels of which any may be right, each with its norm bound."""
    listed = (
        f"{kernel_to_text(kernel)} with {problem.output.norm_text(norm)}"
        for kernel, norm in problem.candidates
    )
    return " or ".join(listed) or "none"


def _norms(problem: Problem) -> list[float]:
    return [float(problem.norm_bound or math.nan), *(bound for _, bound in problem.candidates)]


def _noise(problem: Problem) -> tuple[str, float]:
    """Return the kind of noise and its number, which is larger for weaker assumptions."""
    if problem.noise is None:  # It follows from the tries.
        return "tries", 0.0
    words, amount = problem.stated_noise.words, problem.stated_noise.amount
    return words.split(",")[0], math.inf if amount is None else amount


def _statements_follow(old: Problem, new: Problem) -> bool:
    """Tell whether all that the new problem states of the output was stated in the old one."""
    (low, high), (below, above) = (
        (-math.inf if low is None else low, math.inf if high is None else high)
        for low, high in (old.limits or (None, None), new.limits or (None, None))
    )
    kept = all(set(getattr(new, name)) <= set(getattr(old, name)) for name in (*SHAPES, "known"))
    return bool(below <= low and high <= above and kept)

"""A study: experiments on a system, one after the other or in batches, kept in one file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

from numpy.typing import ArrayLike

from kernelbounds.arrays import Array, as_flag, as_scalar, as_whole
from kernelbounds.bandits import Certificate
from kernelbounds.display import cards as notebook
from kernelbounds.errors import (
    EmptyConfidenceSetError,
    InputError,
    KernelBoundsError,
    StoredFileError,
    said,
)
from kernelbounds.io import files
from kernelbounds.io.csv_table import write_csv
from kernelbounds.plot import canvas
from kernelbounds.problem import Problem
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.study import asking, pictures, revision, telling
from kernelbounds.study.database import checked_new_path, checked_path
from kernelbounds.study.findings import Findings
from kernelbounds.study.revision import Terms, checked_aim
from kernelbounds.study.search import Search
from kernelbounds.study.status import Status, card_of, first_look, searched
from kernelbounds.study.study_file import StudyFile
from kernelbounds.study.trial import Note, StoredTrial, Told, Trial, columns_of, trials_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A curve of certificates has at most this many of them.
MAX_CERTIFICATES = 60


class Study:
    """A series of experiments, kept in a file that several programs may use at once.

    All settings and outcomes are in the user's units. The problem, and with it the kernel and the
    norm bound, is fixed when the study is made: assumptions are chosen before the data. An
    observation that was told is on the disk when :meth:`tell` returns, once, whatever happens to
    this process or to others.

    Parameters
    ----------
    path : path
        A file that :meth:`create` has made.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> problem = kb.Problem(
    ...     ["temperature[°C]=180:220", "catalyst=0.1:0.9"], "yield[%]=0:100", noise=0.5,
    ...     kernel="Matern(0.8, nu=2.5)", norm_bound=80.0,
    ... )
    >>> study = Study.create(":memory:", problem)  # or "reactor.db"
    >>> trial = study.ask()
    >>> list(trial.values)
    ['temperature', 'catalyst']
    >>> told = study.tell(trial, 63.1)
    >>> told = study.tell({"temperature": 190, "catalyst": 0.4}, 61.0)
    >>> len(study)
    2
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._open(StudyFile(checked_path(path)))

    @classmethod
    def create(
        cls,
        path: str | PathLike[str],
        problem: Problem,
        *,
        minimise: bool = False,
        stop_within: float | str | None = None,
    ) -> Self:
        """Make a new study in a new file; ``":memory:"`` keeps it in memory only.

        Parameters
        ----------
        path : path
            The new file; one that is there already is refused.
        problem : :class:`~kernelbounds.Problem`
            The problem, with its noise. A kernel and a norm bound, where missing, are settled now.
        minimise : bool
            Whether small values of the output are wanted.
        stop_within : float, optional
            The aim: to be certified within this of the best possible, in units of the output;
            ``"10%"`` for a logarithmic one.
        """
        # All is checked before minutes are spent on assumptions.
        terms = Terms.checked(problem, minimise, stop_within)
        where = checked_new_path(path)
        return cls._made(StudyFile(where, terms.settled().as_texts()))

    @classmethod
    def _made(cls, store: StudyFile) -> Self:
        study = cls.__new__(cls)
        study._open(store)
        return study

    def revise(
        self,
        path: str | PathLike[str],
        problem: Problem | None = None,
        *,
        minimise: bool | None = None,
        stop_within: float | str | None = None,
    ) -> Self:
        """Make a new study with the same trials, outcomes and notes under other assumptions.

        What that does to the guarantee is in :attr:`revisions` of the new study, and in its status.

        Parameters
        ----------
        path : path
            The new file; one that is there already is refused. This study stays as it is.
        problem : :class:`~kernelbounds.Problem`, optional
            The new assumptions, as ``study.problem.replace(noise=1.0)``. The kernel and the norm
            bound stay, unless they are replaced, or were suggested and the inputs, the output,
            ``turns``, ``interactions``, ``quantile``, ``experiments`` or ``kernels`` are replaced:
            then they are suggested anew. A number that is stated as it is printed is unchanged.
        minimise, stop_within : optional
            As in :meth:`create`. What is None is as in this study.

        Examples
        --------
        >>> import kernelbounds as kb
        >>> problem = kb.Problem(
        ...     ["speed[rpm]=100:500"], "yield[%]=0:100", noise=0.5, kernel="Matern(0.8, nu=2.5)",
        ...     norm_bound=80.0, limits="0:100",
        ... )
        >>> study = kb.Study.create(":memory:", problem)
        >>> told = study.tell({"speed": 300}, 63.1)
        >>> other = study.revise(":memory:", problem.replace(limits=None))
        >>> len(other), other.revisions[0].changes, other.revisions[0].level
        (1, ('no longer stated: yield between 0 and 100 %',), 'kept')
        """
        old, where = self._terms, checked_new_path(path)
        new = old.changed(problem, minimise, stop_within).settled()
        outcomes, rows = self._store.everything()
        revision.check_possible(new.problem, outcomes)
        new = new.revised(old, telling.name_from(where, self.path))
        copied = revision.carried_over(rows, new.problem)
        return self._made(StudyFile(where, new.as_texts(), copied))

    def _open(self, store: StudyFile) -> None:
        try:
            self._terms = Terms.from_texts(store.meta)
        except (KeyError, TypeError, ValueError) as error:
            store.close()
            raise StoredFileError(f"the study {store.name} is damaged: {said(error)}.") from error
        self.problem, self.minimise = self._terms.problem, self._terms.minimise
        self.stop_within, self.revisions = self._terms.stop_within, self._terms.revisions
        self.path, self._store = store.path, store
        self._findings = Findings(store, Search(self.problem, self.minimise))
        self._lock = self._findings.lock

    def __repr__(self) -> str:
        aim = ", minimise=True" if self.minimise else ""
        of = f"of {self.problem.output.label} over {', '.join(self.problem.inputs.names)}"
        try:
            return f"Study({str(self.path)!r}{aim}) with {len(self)} observations {of}"
        except KernelBoundsError:  # The study was closed, or its file is gone.
            return f"Study({str(self.path)!r}{aim}) {of}, closed"

    def _repr_html_(self) -> str:
        """Return a card for notebooks with what is in the file, without computing anything."""
        return notebook.shown(self, self._card)

    def _card(self) -> notebook.Html:
        known = self._first_look(self.problem.sequence(), len(self), self.stop_within)
        return card_of(known, "Study", self._findings.kept())

    def __len__(self) -> int:
        """Return the number of observations."""
        return len(self._store)

    @property
    def stamp(self) -> str:
        """A text that changes whenever trials, outcomes or notes are added or changed."""
        return self._store.stamp

    def close(self) -> None:
        """Close the file; everything is in it already."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- asking

    @overload
    def ask(self, n: None = ..., *, more: bool = ..., purpose: str = ...) -> Trial: ...
    @overload
    def ask(self, n: int, *, more: bool = ..., purpose: str = ...) -> list[Trial]: ...
    def ask(
        self, n: int | None = None, *, more: bool = False, purpose: str = "best"
    ) -> Trial | list[Trial]:
        """Choose the next trial, which is pending in the file until its outcome is told.

        Asking again gives the same trial, in this process or another.

        Parameters
        ----------
        n : int, optional
            Ask for a list of n trials, to be run in parallel: those that are pending, and new ones
            if there are fewer.
        more : bool
            Ask for new trials, beside all that are pending: for another bench, say.
        purpose : "best", "certificate" or "learning"
            What new trials are for: settings that are probably good, after a few first runs that
            fill the ranges; a certificate as soon as possible, which tries whatever is not excluded
            yet; or a narrow band everywhere. Bounds hold whatever you choose, and you may change it
            at any time. Each trial says in a sentence why it was chosen, :attr:`Trial.why`.
        """
        asking.checked_purpose(purpose)
        count = 1 if n is None else as_whole(n, "n", least=1)
        new_only = as_flag(more, "more")
        found = asking.asked(self._store, self._findings, count, purpose, new_only)
        trials = self._trials(lambda: found)
        return trials[0] if n is None else trials

    @property
    def pending(self) -> list[Trial]:
        """The trials that were asked for and not told yet, in their order."""
        return self._trials(lambda: self._store.pending)

    @property
    def trials(self) -> list[Trial]:
        """All trials in the order of their numbers: told, pending and dropped, with their notes."""
        return self._trials(lambda: self._store.trials)

    def trial(self, number: int) -> Trial:
        """Return a trial by its number."""
        number = as_whole(number, "trial", least=1)
        return self._trials(lambda: [self._store.trial(number)])[0]

    def drop(self, trial: Trial | int) -> Trial:
        """Give up a pending trial, which will have no outcome.

        Do not drop a trial because of its outcome: with only good ones there is no guarantee.
        """
        dropped = self._store.drop(telling.number_of(trial))
        return self._trials(lambda: [dropped])[0]

    def _trials(self, find: Callable[[], list[StoredTrial]]) -> list[Trial]:
        """Make trials of rows, with their outcomes and notes as they are at the same moment."""
        with self._store.one_moment():
            stored = find()
            waiting = all(one.state == "pending" for one in stored)
            outcomes = [] if waiting else self._store.outcomes
            return trials_of(self.problem, stored, outcomes, self._store.notes)

    # --- telling

    def tell(
        self,
        point: Trial | int | Mapping[str, Any] | ArrayLike,
        value: float | tuple[int, int],
        *,
        trial: Trial | int | None = None,
        key: str | None = None,
    ) -> Told:
        """Add an outcome, of any settings; when this returns, it is on the disk.

        Trials may be told in any order, as long as neither the order nor the settings depend on
        outcomes that are not told yet: an outcome by which somebody has chosen settings is told
        before the outcome at these.

        Parameters
        ----------
        point : Trial, dict or array of shape (d,)
            What was tried. Settings that are those of a pending trial settle it.
        value : float, or (successes, tries)
            The outcome; where the output is a rate, how many successes there were in how many
            tries.
        trial : Trial or int, optional
            The trial that is settled by this, where the settings were not quite those asked for.
        key : str, optional
            Text that names this outcome. Telling it again with the same key and content is
            acknowledged and changes nothing; so after a failure one may simply tell again.
        """
        outcome = telling.checked_outcome(self.problem, point, value, trial, key)
        return self._store.tell([outcome])[0]

    def tell_many(
        self, points: Any, values: ArrayLike, *, keys: Sequence[str] | None = None
    ) -> list[Told]:
        """Add outcomes in their order, all or none; points as a list, an array or columns.

        Where the output is a rate, values are pairs (n, 2) of successes and tries.
        """
        return self._store.tell(telling.checked_outcomes(self.problem, points, values, keys))

    def import_runs(
        self, runs: Any, *, skip: int | None = None, name: str | None = None
    ) -> list[Told]:
        """Add old runs in their order, all or none, from a CSV file, a dict or a data frame.

        The rows must be all runs that were made, in the order in which they were made, and not a
        selection by their outcomes. Import them before the first trial that was chosen by anybody
        who knows these. Columns are found by the names of the inputs and the output.

        A CSV file that has grown at its end may be imported again: a study knows its path, and how
        many of its rows it has. Those must still be what they were, and the rows after them are
        added. No row is ever left out because of its outcome, since a repeat may have the same.
        Where a row is equal to an observation that did not come from this file, the table is
        refused, and ``skip`` settles whether the run is a new one.

        Parameters
        ----------
        runs : path, dict of columns or data frame
            One row for each run.
        skip : int, optional
            How many rows at the beginning are in the study already; 0 if all are new runs. All
            others are added, whatever is in them.
        name : str, optional
            The name by which the table is known when it is imported again, and in messages, in the
            place of its path: for a table that was uploaded, say.

        Returns
        -------
        list of :class:`Told`
            One for each run that is new, after those that were imported from this file before,
            which have ``again=True``.
        """
        return telling.import_runs(self._store, self.problem, runs, skip, name)

    def undo(
        self, trial: Trial | int | None = None
    ) -> list[tuple[int, dict[str, Any], float | tuple[int, int]]]:
        """Take back what was told or imported last, or the outcome of one trial.

        Returns number, settings and outcome of each. The outcomes stay in the file as withdrawn,
        and trials that had been asked for are pending again. This is for slips of the pen: to take
        back an outcome because of its value voids the guarantee.

        Told again by the number of its trial, the right outcome has the place in the order that the
        wrong one had, as with :meth:`correct`. A trial that was never run is dropped instead; when
        it is run and told after that, it is the last.

        Parameters
        ----------
        trial : Trial or int, optional
            The trial whose outcome is taken back; None: what was told last.
        """
        gone = self._store.undo(None if trial is None else telling.number_of(trial))
        return [(one.trial, self.problem.inputs.named(one.point), one.told) for one in gone]

    @property
    def taken_back(self) -> list[tuple[int, dict[str, Any], float | tuple[int, int]]]:
        """What was taken back or corrected: number, settings and outcome, as :meth:`undo` has."""
        gone = self._store.taken_back
        return [(one.trial, self.problem.inputs.named(one.point), one.told) for one in gone]

    def correct(
        self,
        trial: Trial | int,
        value: float | tuple[int, int] | None = None,
        *,
        point: Mapping[str, Any] | ArrayLike | None = None,
    ) -> Told:
        """Correct what was told of a trial: what was really measured, and where.

        The right outcome has the place in the order that the wrong one had, which stays in the file
        as withdrawn, and the guarantee holds (``docs/how-to/studies.md``). A correction is what was
        measured in that run. Another measurement at the same settings is another trial.

        Parameters
        ----------
        trial : Trial or int
            A trial that was told.
        value : float, or (successes, tries), optional
            Its outcome; None: as it was told.
        point : dict or array of shape (d,), optional
            The settings at which it was run; None: as they were told.

        Returns
        -------
        :class:`Told`
            With ``again=True`` where this is what was told already.
        """
        number = telling.number_of(trial)
        return telling.correct(self._store, self.problem, number, value, point)

    def note(
        self,
        trial: Trial | int,
        text: str = "",
        *,
        attach: str | PathLike[str] | None = None,
    ) -> Note:
        """Add a note to a trial; notes are never changed, only added.

        Parameters
        ----------
        trial : Trial or int
            The trial.
        text : str
            What there is to say.
        attach : path, optional
            A file that belongs to the trial, a photo say. Its path is kept, from the folder of the
            study, so that both may be moved together; its content is not.
        """
        words, file = telling.checked_note(self.path, text, attach)
        return self._store.note(telling.number_of(trial), words, file)

    # --- what is known

    @property
    def observations(self) -> dict[str, Any]:
        """Columns by name, in the order told: number of the trial, inputs and output.

        Where the output is a rate, successes and tries are before it. Columns of categories are
        lists of the names of levels. Where there are notes, the last column has them, ``note``.
        """
        return columns_of(self.problem, self._store.outcomes, self._store.notes)

    @property
    def sequence(self) -> ConfidenceSequence:
        """The confidence sequence of all observations in the file, on the scale of the model."""
        return self._findings.sequence

    def bounds(self, X: Any) -> tuple[Array, Array]:
        """Return lower and upper bounds at points, from an array, a dict or a data frame."""
        with self._lock:
            return self.problem.bounds(self.sequence, X)

    def estimate_with_bounds(self, X: Any) -> tuple[Array, Array, Array]:
        """Return estimates, lower and upper bounds at points, as :meth:`bounds` takes them."""
        with self._lock:
            return self.problem.estimate_with_bounds(self.sequence, X)

    def certificate(self, seconds: float = 10.0) -> Certificate:
        """Return the best settings known, and how far from the best possible they are at most.

        All is in the user's units, and kept in the file: certificates of different times are true
        together, so that a later one is never worse than those before it. ``seconds`` limits the
        search; less time makes a certificate looser, and not less true. The regret of a logarithmic
        output is a share: 0.12 where the best possible is at most 1.12 times as good.
        """
        return self._findings.certificate(as_scalar(seconds, "seconds", above=0.0))

    def status(self, seconds: float = 10.0, stop_within: float | str | None = None) -> Status:
        """Return the state of the study; ``str`` of the result is a readable text.

        ``seconds`` limits the search for the certificate, and that for the most promising settings.
        ``stop_within`` is an aim in place of that of the study.
        """
        aim, limit = self.stop_within, as_scalar(seconds, "seconds", above=0.0)
        if stop_within is not None:
            aim = checked_aim(self.problem, stop_within)
        with self._lock:
            sequence = self.sequence
            found = self._first_look(sequence, len(sequence), aim)
            return searched(found, self._findings, limit)

    def _first_look(self, sequence: ConfidenceSequence, count: int, aim: float | None) -> Status:
        terms = replace(self._terms, stop_within=aim)
        return first_look(terms, sequence, count, self._store.withdrawn, self.pending)

    def certificates(
        self, most: int = MAX_CERTIFICATES, seconds: float = 20.0
    ) -> list[tuple[int, Certificate]]:
        """Return certificates over time, each with its number of observations.

        They are those in the file, and others at ``most`` numbers of observations that are spread
        evenly, as far as they can be made within ``seconds``; these too are kept in the file. No
        certificate is worse than one before it: all of them are true together.
        """
        limit, count = as_scalar(seconds, "seconds", above=0.0), as_whole(most, "most", least=1)
        with self._lock:
            if not len(self.sequence):
                return []
            with suppress(EmptyConfidenceSetError):
                self.certificate(limit / 2)
            self._findings.fill(count, limit / 2)
            return self._findings.over_time()

    def plot(self, folder: str | PathLike[str], seconds: float = 20.0) -> list[Path]:
        """Draw ``history.png``, ``certificate.png`` and ``slices.png`` into a folder.

        Where the noise is unknown, ``noise.png`` shows how it closes in. Needs
        ``kernelbounds[plot]``. Returns what was written; there are no slices where the assumptions
        are refuted. Certificates of the past that are missing take at most ``seconds``.
        """
        canvas.require_matplotlib()
        with self._lock:
            drawn = self.drawings(seconds)
            if not drawn:
                raise InputError("there is nothing to draw before the first observation.")
            found = self._findings.over_time()
            if found and found[-1][0] == len(self) and self.problem.inputs.numbers:
                drawn["slices"] = lambda: pictures.slices(self, found[-1][1].x)
            return pictures.save_all(folder, drawn)

    def drawings(self, seconds: float = 20.0) -> dict[str, Callable[[], Axes]]:
        """Return functions that draw the study over time, by name; each returns its axes.

        They are ``history``, ``certificate`` and, where the noise is unknown, ``noise``; none
        before the first observation. Certificates of the past that are missing take at most
        ``seconds``, now; all else is computed when a function is called.
        """
        with self._lock:
            if not len(self.sequence):
                return {}
            found = self.certificates(seconds=seconds)
            return pictures.over_time(self, self._findings.outcomes, found)

    def export(self, path: str | PathLike[str]) -> None:
        """Write the observations to a CSV file, whole or not at all.

        A file that is there already is replaced only if it is an earlier export. A study is never
        replaced, nor a table from which runs were imported.
        """
        target, columns = files.as_path(path), self.observations
        with files.failure_reported(f"write {files.named(target)}"):
            files.check_writable(target)
            imported = {one.source for one in self._store.outcomes}
            if telling.name_from(self.path, target) in imported:
                raise OSError(0, "runs of this study were imported from it; name another file")
            if not telling.may_be_export(target, columns):
                raise OSError(
                    0, "it is there already, and is not an export of this study; name another file"
                )
        write_csv(target, columns)

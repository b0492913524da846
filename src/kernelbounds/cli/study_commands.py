"""The commands of studies: ``kernelbounds study create|ask|tell|status|...``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

import kernelbounds as kb
from kernelbounds.cli.options import settled_with_progress, with_changes, with_problem
from kernelbounds.cli.output import counted, print_table, remark, say
from kernelbounds.cli.study_report import (
    ask_about_repeats,
    ask_about_slips,
    ask_about_units,
    certify,
    command_line,
    described,
    outcome_among,
    print_trials,
    read_values,
    setting_texts,
    unexpected_at,
    warn_of_far_aim,
)
from kernelbounds.errors import EmptyConfidenceSetError, InputError

study_app = typer.Typer(
    help="Experiments one after the other, in a file: what to try next, and how good the best is.",
    no_args_is_help=True,
)

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The study.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SecondsOption = Annotated[
    float, typer.Option(help="Time limit for the certificate; less is looser.")
]
WithinOption = Annotated[
    str | None,
    typer.Option(
        help="The aim: to be certified within this of the best possible, in units of the output, "
        "or in percent, 10%, for a logarithmic one.",
        metavar="NUMBER|PERCENT",
    ),
]


@study_app.command("create", no_args_is_help=True)
@with_problem(needs_noise=True)
def create(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file, such as reactor.db.")],
    problem: kb.Problem,
    minimise: Annotated[
        bool,
        typer.Option("--minimise/--maximise", help="Whether small or large values are wanted."),
    ] = False,
    stop_within: WithinOption = None,
) -> None:
    """Make a new study. Its assumptions are then fixed, before there are any data.

    So is all that you say you know, such as --limits. To change it, make a
    new study with study revise.

    Example: kernelbounds study create reactor.db --problem assume/problem.json --maximise
    """
    kb.study.database.refuse_existing(file)
    settled = settled_with_progress(problem)
    with kb.Study.create(file, settled, minimise=minimise, stop_within=stop_within) as study:
        typer.echo(f"made {file}")
        typer.echo(str(study.status()))
        if study.stop_within is not None:
            warn_of_far_aim(settled, study.stop_within)


@study_app.command("ask")
def ask(
    file: FileArgument,
    count: Annotated[
        int | None,
        typer.Option("--count", "-n", min=1, help="How many trials, to be run in parallel."),
    ] = None,
    purpose: Annotated[
        str,
        typer.Option(
            "--for",
            help="best: settings that are probably good, after a few first runs that fill the "
            "ranges. certificate: what must be excluded for a certificate. learning: where least "
            "is known, for a narrow band. The guarantee is the same, and you may change it.",
            metavar="best|certificate|learning",
        ),
    ] = "best",
    more: Annotated[
        bool, typer.Option("--more", help="Ask for new trials, beside all that are pending.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Say what to try next; asking again gives the same trials until they are told or dropped."""
    with kb.Study(file) as study:
        wanted = count or (1 if more else max(1, len(study.pending)))
        with Console(stderr=True).status("looking for the best settings to try"):
            try:
                trials = study.ask(wanted, more=more, purpose=purpose)
            except EmptyConfidenceSetError:
                raise InputError(
                    "the data refute the assumptions, so nothing can be suggested; see what to do: "
                    f"kernelbounds study status {file}"
                ) from None
        if as_json:
            Console().print_json(data={"trials": [one.as_data() for one in trials]})
            return
        if len(trials) == 1:
            typer.echo(described(study, trials[0]))
        else:
            print_trials(study, trials)
        typer.echo(f"then: {command_line(study, 'tell', trials[0].number)}")
        other = next((one for one in trials if one.purpose not in ("", purpose)), None)
        if other is not None:
            remark(
                f"trial {other.number} was asked for before, for {other.purpose}, and is pending; "
                f"for new trials beside it: --more --for {purpose}"
            )


@study_app.command("tell", no_args_is_help=True)
def tell(
    file: FileArgument,
    values: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=VALUE...",
            help="The settings and the outcome. With --trial: the outcome, and any settings that "
            "were not as asked for.",
        ),
    ],
    trial: Annotated[int | None, typer.Option(min=1, help="The trial that was run.")] = None,
    key: Annotated[
        str | None,
        typer.Option(
            help="A name for this outcome. If you tell it again with the same key and content, it "
            "counts once."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Tell an outcome. When this returns, it is safe on the disk.

    If you choose other settings because of this outcome, tell it before the outcome at those.

    Example: kernelbounds study tell reactor.db --trial 3 yield=63.1

    Or with settings of your own: kernelbounds study tell reactor.db temperature=200 yield=63.1
    """
    with kb.Study(file) as study:
        given, names = read_values(values, study.problem), study.problem.outcomes.names
        asked = {} if trial is None else study.trial(trial).values
        kb.study.telling.check_names(study.problem, asked | given, names)
        point = {name: (asked | given)[name] for name in study.problem.inputs.names}
        value = outcome_among(study.problem, given)
        expected = unexpected_at(study, point, value)
        told = study.tell(point, value, trial=trial, key=key)
        count, waiting = len(study), study.pending
        if as_json:
            Console().print_json(
                data={"trial": told.trial, "again": told.again, "observations": count}
            )
            return
        again = ", which was told before: nothing changed" if told.again else ""
        typer.echo(
            f"trial {told.trial}: {study.problem.inputs.settings_text(point.values())} "
            f"{kb.study.telling.told_text(study.problem, value)}{again}; "
            f"{counted(count, 'observation')}"
        )
        ask_about_repeats(study, told)
        ask_about_slips(study, told, value, expected)
        if trial is None and waiting and not told.again:
            numbers = ", ".join(str(one.number) for one in waiting)
            remark(
                f"still pending: trial {numbers}; an outcome of one of those is told with --trial, "
                "also where the settings were a little different"
            )
        certify(study)


@study_app.command("status")
def status(
    file: FileArgument,
    stop_within: WithinOption = None,
    seconds: SecondsOption = 10.0,
    as_json: JsonOption = False,
) -> None:
    """Say how the study stands: the best settings, what is certified, whether to stop."""
    with kb.Study(file) as study:
        found = study.status(seconds, stop_within)
        if as_json:
            Console().print_json(data=found.as_data())
        else:
            typer.echo(f"{file}: {found}")


@study_app.command("plot")
def plot(
    file: FileArgument,
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("."),
    seconds: Annotated[float, typer.Option(help="Time limit for earlier certificates.")] = 20.0,
) -> None:
    """Draw the history, the certificate over time, and slices through the best settings.

    If the noise is unknown, also draw how its bounds close in.
    """
    with kb.Study(file) as study:
        for path in study.plot(out, seconds):
            typer.echo(f"wrote {path}")


@study_app.command("undo")
def undo(
    file: FileArgument,
    trial: Annotated[
        int | None,
        typer.Option(
            min=1, help="The trial whose outcome is taken back.", show_default="what was told last"
        ),
    ] = None,
) -> None:
    """Take back an outcome, after a slip of the pen; it stays in the file as withdrawn.

    Taking back an outcome because of its value voids the guarantee. If you know the right one,
    correct it: kernelbounds study correct FILE --trial 12 yield=63.1
    """
    with kb.Study(file) as study:
        gone = study.undo(trial)
        for number, values, value in gone[:10]:
            settings = study.problem.inputs.settings_text(values.values())
            told = kb.study.telling.told_text(study.problem, value)
            typer.echo(f"taken back: trial {number}: {settings} {told}")
        if len(gone) > 10:
            typer.echo(f"taken back: and {len(gone) - 10} more, imported together")
        if trial is not None:
            typer.echo(f"tell its right outcome: {command_line(study, 'tell', trial)}")
            remark(
                "that will have the place in the order that the wrong one had; if the trial was "
                f"never run: {command_line(study, 'drop', trial)}"
            )


@study_app.command("correct", no_args_is_help=True)
def correct(
    file: FileArgument,
    values: Annotated[
        list[str],
        typer.Argument(metavar="NAME=VALUE...", help="What was wrong: the outcome, or settings."),
    ],
    trial: Annotated[int, typer.Option(min=1, help="A trial that was told.")],
) -> None:
    """Correct what was told of a trial, after a slip of the pen, and keep its place in the order.

    Tell what was measured in that run, and not what another run has given since.

    Example: kernelbounds study correct reactor.db --trial 12 yield=63.1
    """
    with kb.Study(file) as study:
        problem, before = study.problem, study.trial(trial)
        if before.ran is None or before.outcome is None:
            raise InputError(f"trial {trial} has no outcome to correct; it is {before.state}.")
        given, old = read_values(values, problem), before.outcome
        was = dict(
            zip(problem.outcomes.names, old if isinstance(old, tuple) else (old,), strict=True)
        )
        now = before.ran | was | given
        kb.study.telling.check_names(problem, now, problem.outcomes.names)
        value = outcome_among(problem, now)
        told = study.correct(trial, value, point={name: now[name] for name in problem.inputs.names})
        if told.again:
            typer.echo(f"trial {trial} is as you say already: nothing changed")
            return
        lines = [
            f"{problem.inputs.settings_text(settings.values())} "
            f"{kb.study.telling.told_text(problem, measured)}"
            for settings, measured in (
                (before.ran, old),
                ({name: now[name] for name in problem.inputs.names}, value),
            )
        ]
        typer.echo(f"trial {trial} was: {lines[0]}\ntrial {trial} is:  {lines[1]}")
        certify(study)


@study_app.command("note", no_args_is_help=True)
def note(
    file: FileArgument,
    trial: Annotated[int, typer.Argument(metavar="TRIAL", min=1, help="The number of a trial.")],
    text: Annotated[str, typer.Argument(metavar="[TEXT]", help="What there is to say.")] = "",
    attach: Annotated[
        Path | None,
        typer.Option(help="A file that belongs to it; its path is kept, and not its content."),
    ] = None,
) -> None:
    """Write something down on a trial.

    Example: kernelbounds study note reactor.db 12 "new batch of resin"
    """
    with kb.Study(file) as study:
        added = study.note(trial, text, attach=attach)
        typer.echo(f"noted on trial {trial}: {added}")


@study_app.command("trials")
def trials(
    file: FileArgument,
    last: Annotated[int, typer.Option(min=1, help="How many of the last trials to list.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """List the trials with their outcomes and notes."""
    with kb.Study(file) as study:
        found = study.trials
        shown, problem = found[-last:], study.problem
        if as_json:
            Console().print_json(data={"trials": [one.as_data() for one in shown]})
            return
        rows = []
        for one in shown:
            told = one.outcome if isinstance(one.outcome, tuple) else (one.outcome,)
            measured = [f"{value:g}" for value in told if value is not None]
            empty = [f"({one.state})", ""][: len(problem.outcomes.names)]
            rows.append([
                str(one.number),
                *setting_texts(one.ran or one.values),
                *(measured or empty),
                "; ".join(map(str, one.notes)),
            ])  # fmt: skip
        title = f"{file}: {counted(len(found), 'trial')}"
        title += f", the last {last} of them" if len(found) > last else ""
        columns = [*(one.label for one in problem.inputs), *problem.outcomes.names]
        print_table(title, ["trial", *columns, "notes"], rows)


@study_app.command("revise", no_args_is_help=True)
@with_changes
def revise(
    file: FileArgument,
    new: Annotated[Path, typer.Argument(metavar="NEW", help="A new file.")],
    problem: Any,
    minimise: Annotated[
        bool | None,
        typer.Option("--minimise/--maximise", help="Whether small or large values are wanted."),
    ] = None,
    stop_within: WithinOption = None,
) -> None:
    """Make a new study with the same trials under other assumptions, and say what is guaranteed.

    What you do not say stays as it is; "none" takes a statement back: --limits none. If the kernel
    and B were suggested, and you change what they were suggested for (--input, --output, --turns,
    --interactions, --quantile, --experiments, --kernels), they are suggested anew. The old file
    stays as it is.

    Example: kernelbounds study revise reactor.db reactor-2.db --noise 1
    """
    kb.study.database.refuse_existing(new)
    with kb.Study(file) as study:
        changed = kb.study.revision.continued(study.problem, problem(study.problem))
        settled = settled_with_progress(changed)
        with study.revise(new, settled, minimise=minimise, stop_within=stop_within) as made:
            last = made.revisions[-1]
            typer.echo(f"made {new} with {counted(len(made), 'observation')} of {file}")
            for change in last.changes:
                typer.echo(f"  {change}")
            say(last.guarantee)


@study_app.command("drop")
def drop(
    file: FileArgument, trial: Annotated[int, typer.Option(min=1, help="A pending trial.")]
) -> None:
    """Give up a pending trial that will have no outcome, but never because its outcome is bad."""
    with kb.Study(file) as study:
        gone = study.drop(trial)
        typer.echo(
            f"dropped trial {trial}: {study.problem.inputs.settings_text(gone.values.values())}"
        )


@study_app.command("export")
def export(
    file: FileArgument,
    csv: Annotated[Path, typer.Argument(metavar="CSV", help="The file to write.")],
) -> None:
    """Write all observations to a CSV file, which is new or an earlier export."""
    with kb.Study(file) as study:
        study.export(csv)
        typer.echo(f"wrote {counted(len(study), 'observation')} to {csv}")


@study_app.command("report")
def report(
    file: FileArgument,
    out: Annotated[
        Path | None, typer.Option(help="The page to write.", show_default="FILE.html")
    ] = None,
) -> None:
    """Write a page about the study, as one file to send to a colleague: it needs no network.

    It has what is known and certified, the band and maps, the progress, what is assumed and all
    trials. The page of kernelbounds studio is the same, with which one can also ask and tell.
    """
    from kernelbounds.studio import sections

    page = file.with_suffix(".html") if out is None else out
    with Console(stderr=True).status("computing bounds and pictures"):
        sections.save_report(file, page)
    typer.echo(f"wrote {page}")


@study_app.command("import")
def import_command(
    file: FileArgument,
    csv: Annotated[
        Path,
        typer.Argument(
            metavar="CSV",
            help="A table with a named column for each input and for the output (or for successes "
            "and tries).",
        ),
    ],
    skip: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="How many rows at the beginning are already in the study; 0 if all are new runs.",
            show_default="those imported from this file before",
        ),
    ] = None,
) -> None:
    """Add old runs from a CSV file, all or none, in their order; later, add the rows that are new.

    The table must have all runs that were made, and not a selection by outcomes. Import them before
    you tell a trial that was chosen by anybody who knows them. No row is left out because of its
    outcome: where it may be in the study already, you are asked for --skip.
    """
    with kb.Study(file) as study:
        told = study.import_runs(csv, skip=skip)
        new = sum(not one.again for one in told)
        was = "was" if len(told) - new == 1 else "were"
        old = f", after {len(told) - new} that {was} imported before" if new < len(told) else ""
        typer.echo(f"imported {counted(new, 'run')}{old}; {counted(len(study), 'observation')}")
        ask_about_units(study, new)
        if told and not new:
            remark("the table has no new rows; if all are new runs: --skip 0")

"""One command: run what is missing, then write tables, figures and the report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from kernelbounds.paper import contenders, report, specs, table1
from kernelbounds.paper.cells import Cell, collect
from kernelbounds.paper.experiments import EXPERIMENTS
from kernelbounds.paper.results import ResultStore, run_missing, software, written_together
from kernelbounds.paper.specs import Choices


@dataclass(frozen=True)
class Reproduced:
    """The outcome of a reproduction."""

    computed: int  # jobs
    files: list[Path]
    table: str  # the tables of all experiments that have some, as text


def reproduce(
    names: Iterable[str],
    choices: Choices,
    out: Path,
    workers: int = 1,
    dask: str | None = None,
    say: Callable[[str], None] = print,
) -> Reproduced:
    """Reproduce experiments of the paper into the folder ``out``.

    Jobs that are done already are not computed again. Tables, figures and the report are made
    from their results; each file is replaced as a whole, and none before all are made.
    """
    wanted = list(names)
    specs.refuse_unknown("experiment", wanted, tuple(specs.TITLES), ["all"])
    if "all" in wanted:
        wanted = list(EXPERIMENTS)
    if "optimisers" in wanted and (absent := contenders.missing()):
        say(absent)
    store = ResultStore(out)
    store.open(choices)
    start = time.monotonic()
    jobs = {name: list(one.jobs(choices)) for name, one in EXPERIMENTS.items()}
    for name in wanted:
        if not jobs[name]:
            say(f"{name} has nothing to run with these kernels")
    asked = list(dict.fromkeys(job for name in wanted for job in jobs[name]))
    computed = run_missing(asked, store, workers, dask, say)
    where = f"the Dask cluster at {dask}" if dask else f"{workers} worker(s) on this machine"
    used = [store.software(job) for job in asked] or [software()]
    facts = {
        "rounds": str(choices.rounds),
        "repetitions": str(choices.repetitions),
        "seed": str(choices.seed),
        "methods": ", ".join(choices.methods),
        "cells": f"{len(asked)}, of which {computed} computed in this run",
        "this run": f"{time.monotonic() - start:.0f} s on {where}",
        "computed with": "; ".join(
            sorted({f"{key} {value}" for one in used for key, value in one.items()})
        ),
    }
    # The report is about everything that is there, not only what was asked for this time.
    shown = {
        name: members
        for name, members in jobs.items()
        if members and (name in wanted or all(store.state(job) == "done" for job in members))
    }
    runs = {
        name: collect([job for job in members if isinstance(job, Cell)], store)
        for name, members in shown.items()
    }

    def write(folder: Path) -> str:
        texts = [
            EXPERIMENTS[name].write(name, members, store, folder) for name, members in shown.items()
        ]
        compared = table1.recursion_comparison(runs.get("table1", []), runs.get("figure-time", []))
        if compared:
            facts["speed"] = compared
            say(compared)
        page = report.as_html(runs, facts, folder)
        (folder / "report.html").write_text(page, encoding="utf-8")
        return "\n".join(text for text in texts if text)

    text, made = written_together(out, write)
    return Reproduced(computed, made, text)

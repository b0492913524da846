"""The command line: run the named benchmarks, print the table, fail when a target is missed."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path

import numpy as np
import scipy
import sklearn
from rich.console import Console
from threadpoolctl import threadpool_limits

from benchmarks import (
    acquisition,
    asks,
    bandits,
    cluster,
    cone,
    estimate,
    facts,
    frozen,
    greedy,
    growth,
    long,
    loop,
    noise,
    repeats,
    samplers,
    scale,
    step,
)
from benchmarks.report import table

BENCHMARKS = {
    "cone": cone.run,
    "loop": loop.run,
    "step": step.run,
    "growth": growth.run,
    "bandits": bandits.run,
    "greedy": greedy.run,
    "estimate": estimate.run,
    "asks": asks.run,
    "samplers": samplers.run,
    "acquisition": acquisition.run,
    "facts": facts.run,
    "frozen": frozen.run,
    "noise": noise.run,
    "repeats": repeats.run,
    "long": long.run,
    "scale": scale.run,
    "cluster": cluster.run,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}.")

    rows = []
    with threadpool_limits(1):
        for name in arguments.names or BENCHMARKS:
            rows += BENCHMARKS[name]()

    console = Console() if sys.stdout.isatty() else Console(width=130)
    console.print(table(rows))
    if arguments.json:
        versions = {"numpy": np.__version__, "scipy": scipy.__version__}
        versions |= {"scikit-learn": sklearn.__version__, "python": platform.python_version()}
        data = {"versions": versions, "rows": [row.as_data() for row in rows]}
        arguments.json.write_text(json.dumps(data, indent=2) + "\n")
    missed = [row.name for row in rows if row.ok is False]
    for name in missed:
        console.print(f"[bold red]missed[/] {name}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

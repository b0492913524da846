"""The numbers printed in the paper."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from kernelbounds.paper.specs import SMOOTHNESS, Setting


class Published(NamedTuple):
    """Mean and standard deviation over 10 repetitions of the regret after 1000 rounds."""

    mean: float
    std: float


@cache
def table1() -> dict[tuple[str, float, str], Published]:
    """Table 1, by kernel, length scale and method."""
    kernels = {(name.split("-")[0], nu): name for name, nu in SMOOTHNESS.items()}
    text = files("kernelbounds.paper").joinpath("table1.csv").read_text()
    return {
        (
            kernels[row["kernel"], float(row["nu"]) if row["nu"] else None],
            float(row["length_scale"]),
            row["method"],
        ): Published(float(row["mean"]), float(row["std"]))
        for row in csv.DictReader(text.splitlines())
    }


def of(setting: Setting, method: str) -> Published | None:
    """What the paper prints for a method in a setting, if anything."""
    papers = Setting(setting.kernel, setting.length_scale)
    return (
        table1().get((setting.kernel, setting.length_scale, method)) if setting == papers else None
    )

"""``reproduce scale``: loads are measured one by one; tables and figure follow from them."""

from __future__ import annotations

import csv
import io
import subprocess

import numpy as np
import pytest

from kernelbounds.paper import scale
from kernelbounds.paper.results import ResultStore
from kernelbounds.paper.scale import Load, jobs
from kernelbounds.paper.specs import Choices


def test_loads_go_up_to_the_square_of_the_rounds():
    full = jobs(Choices())
    assert len({one.name for one in full}) == len(full)
    assert max(one.count for one in full) == 1_000_000
    assert max(one.count for one in full if one.engine == "exact") == scale.EXACT_COUNT
    assert {one.kernel for one in jobs(Choices(kernels=["rbf"]))} == {"rbf"}
    assert {one.count for one in jobs(Choices(10))} == {scale.COUNTS[0]}
    more = jobs(Choices(4000))
    assert max(one.count for one in more if one.engine == "sparse") == 10_000_000
    assert max(one.count for one in more if one.engine != "sparse") == 1_000_000


def test_a_load_is_measured_in_a_process_of_its_own():
    here, there = (way(Load("rbf", "merged", 250)) for way in (scale.measure, Load.run))
    assert there["half_width"][0] == pytest.approx(here["half_width"])
    assert there["covered"][0] == 1.0 and there["seconds"][0] > 0
    assert 50 < there["megabytes"][0] < 2000


def test_engines_are_measured_on_the_same_function(monkeypatch):
    monkeypatch.setitem(scale.INDUCING, "rbf", 200)
    monkeypatch.setattr(scale, "BLOCKS", 1)
    found = {name: scale.measure(Load("rbf", name, 250)) for name in ("exact", "sparse", "grown")}
    exact = found["exact"]["half_width"]
    for name in ("sparse", "grown"):
        assert exact * 0.95 < found[name]["half_width"] < 1.2 * exact
    assert found["sparse"]["inducing"] == 200
    assert 0 < found["sparse"]["sums_seconds_a_row"] < found["sparse"]["growth_seconds_a_row"]


@pytest.fixture
def store(tmp_path):
    """Made-up results, in which half-widths fall and seconds grow."""
    found, choices = ResultStore(tmp_path), Choices(rounds=150)
    found.open(choices)
    for one in jobs(choices):
        numbers = {
            "seconds": 1e-4 * one.count, "bounds_seconds": 0.5, "megabytes": 200.0,
            "half_width": one.count**-0.25, "covered": 1.0, "inducing": 0.0,
        }  # fmt: skip
        if one.engine in ("sparse", "grown"):
            numbers |= {"inducing": float(scale.INDUCING[one.kernel])}
        if one.engine == "sparse":
            numbers["half_width"] *= 1.25
            each = {"product": 1e-5, "sums": 2.5e-5, "growth": 1e-4}
            numbers |= {f"{name}_seconds_a_row": value for name, value in each.items()}
        found.write(one, {name: np.array([value]) for name, value in numbers.items()})
    return found


def test_tables_say_what_was_measured(store, tmp_path):
    members = jobs(Choices(rounds=150))
    text = scale.EXPERIMENT.write("scale", members, store, tmp_path)
    assert "1.250" in text and "By a model, not measured" in text
    assert f"in {len(members)} of {len(members)} cases" in text
    rows = list(csv.DictReader(io.StringIO((tmp_path / "scale.csv").read_text())))
    assert len(rows) == len(members) and rows[0]["covered"] == "1"
    assert {"scale.png", "scale.svg", "scale.txt"} <= {file.name for file in tmp_path.iterdir()}


def test_the_model_of_a_cluster(store):
    found = scale.largest(scale.collect(jobs(Choices(rounds=150)), store))["rbf"]
    count = 1_000_000
    one, two, hundred = (found.on_cluster(workers, count) for workers in (1, 2, 100))
    assert one == pytest.approx(1e-4 * count + 0.5)
    # All rows grow, and all but those of the first and the last range are summed before.
    assert (1e-4 * count) / 2 < two < (1.25e-4 * count) / 2 + 1.0
    assert two / 60 < hundred < two
    assert found.over_product == pytest.approx((1e-4 * 16_000 + 0.5) / (16_000 * 1e-5))


def test_errors_of_a_load_are_not_hidden():
    with pytest.raises(subprocess.CalledProcessError):
        Load("no such kernel", "exact", 10).run()

"""The examples run."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

pytestmark = pytest.mark.usefixtures("drawn_once", "short_searches")  # it matters that they run

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_the_pendulum_is_tuned_and_drawn(tmp_path, monkeypatch, capsys):
    arguments = ["pendulum.py", "--rounds", "4", "--quick", "--out", str(tmp_path / "new")]
    monkeypatch.setattr(sys, "argv", arguments)
    runpy.run_path(str(EXAMPLES / "pendulum.py"), run_name="__main__")
    pictures = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert pictures == ["pendulum-angle.png", "pendulum-bounds.png", "pendulum-regret.png"]
    assert "KernelUCB after 4 trials" in capsys.readouterr().out


def run(monkeypatch, name, *arguments):
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    return runpy.run_path(str(EXAMPLES / name), run_name="__main__")


def test_bands_are_drawn(tmp_path, monkeypatch, capsys):
    out = tmp_path / "bands.png"
    run(monkeypatch, "bands.py", "--observations", "4", "--out", str(out))
    assert out.read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out.count("truth inside 100%") == 5


def test_too_small_norm_bounds_are_counted(monkeypatch, capsys):
    found = run(monkeypatch, "too_small.py", "--runs", "1", "--rounds", "3")
    assert capsys.readouterr().out.startswith("| B / norm of f* | wrong in, of 1 |")
    assert found["played"](0.3, 0, 6) != (False, False)


def test_norms_are_printed(monkeypatch, capsys):
    run(monkeypatch, "norms.py", "--points", "150")
    printed = capsys.readouterr().out
    assert printed.count("| bowl |") == 4
    assert "| waves in all |" in printed


@pytest.mark.parametrize("scale", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("nu", [1.5, 2.5])
def test_norms_of_a_wave_agree_with_the_integral(nu, scale):
    """In one dimension ||f||^2 = s(0)' P^-1 s(0) + (1/q) integral of (d/dx + r)^m f squared.

    Here m = nu + 1/2, r = sqrt(2 nu)/scale, s = (f, f', ...) has m entries, and P and q are the
    stationary covariance and the noise density of the Gaussian process as a Markov process.
    """
    example = runpy.run_path(str(EXAMPLES / "norms.py"))
    points = example["design"](1, 48)
    wave = example["FUNCTIONS"]["one wave"](points)
    w, r = 2 * np.pi, np.sqrt(2 * nu) / scale
    x = (np.arange(20_000) + 0.5) / 20_000  # the midpoint rule
    if nu == 1.5:
        start, P, q = np.array([0, w]), np.diag([1, r**2]), 4 * r**3
    else:
        start, q = np.array([0, w, 0]), 16 / 3 * r**5
        P = np.array([[1, 0, -(r**2) / 3], [0, r**2 / 3, 0], [-(r**2) / 3, 0, r**4]])
    driven = ((1j * w + r) ** len(start) * np.exp(1j * w * x)).imag
    exact = np.sqrt(start @ np.linalg.solve(P, start) + np.mean(driven**2) / q)
    found = example["norms"](Matern(scale, nu=nu), points, wave[:, None])[0]
    assert 0.99 * exact < found < exact * (1 + 1e-6)


def test_the_norm_of_a_gaussian_agrees_with_its_closed_form():
    """Under RBF, exp(-x^2/(2 w^2)) has the squared norm w^2/(l sqrt(2 w^2 - l^2))."""
    example = runpy.run_path(str(EXAMPLES / "norms.py"))
    points, width, scale = example["design"](1, 48), 0.3, 0.25
    gaussian = np.exp(-((points - 0.5) ** 2) / (2 * width**2))
    exact = width / np.sqrt(scale * np.sqrt(2 * width**2 - scale**2))
    found = example["norms"](RBF(scale), points, gaussian)[0]
    assert 0.99 * exact < found < exact * (1 + 1e-6)


def test_loose_assumptions_are_priced(monkeypatch, capsys):
    run(monkeypatch, "loose.py", "--problems", "1", "--observations", "10")
    assert capsys.readouterr().out.count("| 10 |") == 4


def test_the_ideas_are_drawn(tmp_path, monkeypatch):
    run(monkeypatch, "ideas.py", "--out", str(tmp_path / "new"))
    assert (tmp_path / "new" / "ideas.png").stat().st_size > 10_000


def test_a_bound_of_ones_own_is_run_beside_the_papers(tmp_path, monkeypatch, capsys):
    run(monkeypatch, "own_bound.py", "--rounds", "6", "--seeds", "2", "--out", str(tmp_path))
    printed = capsys.readouterr().out
    assert printed.startswith("TwoMixtures: the contract holds")
    assert printed.count(" ± ") == 4
    assert (tmp_path / "own-bounds.png").stat().st_size > 10_000


def test_radii_are_compared(monkeypatch, capsys):
    run(monkeypatch, "radii.py", "--problems", "1", "--rounds", "12")
    printed = capsys.readouterr().out
    assert printed.count("`Hybrid()`") == printed.count("`Single(") == 3


def test_too_small_a_noise_scale_is_counted_and_drawn(tmp_path, monkeypatch, capsys):
    example = run(monkeypatch, "believed_noise.py", "--runs", "1", "--out", str(tmp_path / "new"))
    assert "| `Hybrid()`: refuted |" in capsys.readouterr().out
    assert (tmp_path / "new" / "radius-noise.png").stat().st_size > 10_000
    violated, refuted = example["play"](example["MIXTURES"]["Hybrid()"], 4.0, seed=0)
    assert violated or refuted


def test_structure_makes_bounds_narrow(tmp_path, monkeypatch, capsys):
    run(
        monkeypatch, "structure.py", "--side", "5", "--points", "30", "--out", str(tmp_path / "new")
    )
    printed = capsys.readouterr().out
    assert "between 51.3 and 75.3 percent" in printed
    assert "the truth is in all intervals: True" in printed
    rows = {line.split(" | ")[0]: line.split(" | ") for line in printed.splitlines()}
    widths = {
        name: float(cells[1])
        for name, cells in rows.items()
        if len(cells) == 4 and "known" not in cells[1]
    }
    assert min(widths, key=widths.get) == "| single inputs + pairs + remainder"
    assert (tmp_path / "new" / "structure.png").stat().st_size > 10_000


def test_differences_certify_less_regret(tmp_path, monkeypatch, capsys):
    size = ["--seeds", "1", "--rounds", "40", "--side", "8"]
    run(monkeypatch, "differences.py", *size, "--out", str(tmp_path / "new"))
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert len(rows) == 3
    for _, _, apart, by_difference, _, true in rows:
        assert float(true.strip(" |")) <= float(by_difference) < float(apart)
    assert (tmp_path / "new" / "functionals.png").stat().st_size > 10_000


def test_how_wrong_is_told_and_drawn(tmp_path, monkeypatch, capsys):
    run(monkeypatch, "how_wrong.py", "--runs", "2", "--out", str(tmp_path / "new"))
    printed = capsys.readouterr().out
    assert printed.startswith("x is better than x2: holds for every norm_bound up to ")
    assert "| 300 |" in printed
    assert (tmp_path / "new" / "how-wrong.png").stat().st_size > 10_000


def test_pictures_are_drawn(tmp_path, monkeypatch):
    run(monkeypatch, "pictures.py", "--count", "20", "--out", str(tmp_path / "new"))
    pictures = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert pictures == ["pictures-band.png", "pictures-maps.png", "pictures-slices.png"]


def test_turns_are_priced(monkeypatch, capsys):
    run(monkeypatch, "turns.py", "--inputs", "1", "--turns", "0", "4", "--experiments", "20",
        "--functions", "10")  # fmt: skip
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    few, many = (float(row[-1].strip("±% |")) for row in rows)
    assert few < many


# Each draws one picture in a few seconds when asked for little.
GALLERY = {
    "textbook.py": ["--quick"],
    "admitted.py": ["--functions", "3"],
    "anytime.py": ["--runs", "2", "--measurements", "30"],
    "coverage.py": ["--runs", "1", "--rounds", "10"],
    "certificate.py": ["--quick"],
    "calibration.py": ["--readings", "20"],
    "simulation.py": ["--quick"],
    "hyperparameters.py": ["--quick"],
    "contexts.py": ["--days", "8"],
    "batches.py": ["--problems", "1", "--trials", "8"],
    "long_log.py": ["--rows", "4000"],
    "reactor_facts.py": ["--points", "10"],
}


@pytest.mark.parametrize("name", GALLERY)
def test_the_gallery_is_drawn(name, tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(EXAMPLES)  # as Python does for a script
    run(monkeypatch, name, *GALLERY[name], "--out", str(tmp_path / "new"))
    [picture] = (tmp_path / "new").iterdir()
    assert picture.stat().st_size > 10_000
    assert "truth inside: False" not in capsys.readouterr().out
    pages = (EXAMPLES.parent / "docs").rglob("*.md")
    assert any(picture.name in page.read_text() for page in pages)


def test_facts_make_bands_narrow(tmp_path, monkeypatch, capsys):
    run(monkeypatch, "facts.py", "--quick", "--out", str(tmp_path / "new"))
    printed = capsys.readouterr().out
    assert "truth inside: False" not in printed
    rows = [line.split(" | ") for line in printed.splitlines() if "| truth inside" in line]
    widths = {name.strip("| "): float(width) for name, width, _ in rows}
    assert len(widths) == 6
    assert all(width < widths["nothing"] for name, width in widths.items() if name != "nothing")
    assert min(widths, key=widths.get) == "all four"
    for name in ("facts.png", "facts-classes.png"):
        assert (tmp_path / "new" / name).stat().st_size > 10_000


def test_the_safe_set_grows_up_to_the_limit(tmp_path, monkeypatch, capsys):
    run(monkeypatch, "safe.py", "--rounds", "1", "6", "--out", str(tmp_path))
    first, last = (float(line.split()[-1]) for line in capsys.readouterr().out.splitlines())
    assert 0.1 < first < last < 0.7906
    assert (tmp_path / "safe.png").stat().st_size > 10_000


def test_runs_of_the_oven_are_written_and_measured(tmp_path, monkeypatch, capsys):
    run(monkeypatch, "curing.py", "--runs", "5", "--out", str(tmp_path / "runs.csv"))
    rows = (tmp_path / "runs.csv").read_text().splitlines()
    assert rows[0] == "temperature,minutes,strength"
    assert len(rows) == 6
    capsys.readouterr()
    run(monkeypatch, "curing.py", "temperature=170", "minutes=25", "--seed", "0")
    assert 48 < float(capsys.readouterr().out) < 52


def test_every_example_is_run():
    """By this file, for the pages by test_docs.py, or where it is the subject."""
    files = ("test_examples.py", "test_docs.py", "test_categories.py")
    tests = "".join((Path(__file__).parent / name).read_text() for name in files)
    for example in EXAMPLES.glob("*.py"):
        assert example.name in tests, f"no test runs {example.name}"


def test_a_product_is_narrower_on_a_logarithmic_scale(tmp_path, monkeypatch, capsys):
    run(monkeypatch, "product.py", "--runs", "20", "--functions", "20")
    rows = [row.split(" | ") for row in capsys.readouterr().out.splitlines()[2:]]
    assert [row[3] for row in rows] == ["100% |"] * 3
    assert float(rows[2][2]) < float(rows[0][2]) / 2
    run(monkeypatch, "product.py", "--out", str(tmp_path / "runs.csv"))
    assert (tmp_path / "runs.csv").read_text().startswith("temperature,pressure,catalyst,product")


def test_grasps_are_counted(tmp_path, monkeypatch):
    run(monkeypatch, "grasps.py", "--runs", "3", "--out", str(tmp_path / "grasps.csv"))
    assert (tmp_path / "grasps.csv").read_text().startswith("force,grasped,attempts\n")


def test_a_tube_contains_all_trajectories(tmp_path, monkeypatch, capsys):
    example = run(
        monkeypatch, "tube.py", "--transitions", "120", "--repeats", "2", "--out", str(tmp_path)
    )
    assert "2 of 2 sets of measurements" in capsys.readouterr().out
    assert (tmp_path / "control-tube.png").stat().st_size > 10_000
    plan, residuals = np.full(example["HORIZON"], example["TARGET"]), example["truth"]()
    paths = example["simulated"](example["START"], plan, residuals)
    boxes = example["tube"](example["learnt"](residuals, 100, seed=3), plan)
    assert example["inside"](paths, boxes)
    boxes[7] = boxes[7].mean(axis=0)
    assert not example["inside"](paths, boxes)

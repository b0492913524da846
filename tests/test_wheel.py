"""The wheel, in a clean environment without extras: slow, because packages are downloaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# scikit-learn takes most of the time of an import; this is what the library may add to it.
WITH_SCIKIT_LEARN = 1.4
CPU_TIME = "import resource as r; u = r.getrusage(r.RUSAGE_SELF); print(u.ru_utime + u.ru_stime)"


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """The Python of a new environment with nothing but the wheel and what it depends on."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "-q"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", str(folder), str(ROOT)], check=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    python = folder / "venv" / "bin" / "python"
    (wheel,) = folder.glob("kernelbounds-*.whl")
    subprocess.run([str(python), "-m", "pip", "-q", "install", str(wheel)], check=True)
    return python


def _run(python, *words, folder):
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(python), *words], capture_output=True, text=True, env=env, cwd=folder, check=False
    )


def _seconds(python, code, folder):
    """Of processor time, the least of five, so that other work on the computer matters little."""
    runs = [_run(python, "-c", f"{code}\n{CPU_TIME}", folder=folder) for _ in range(5)]
    return min(float(one.stdout) for one in runs)


@pytest.mark.slow
def test_the_wheel_works_without_extras(clean, tmp_path):
    table = "x,y\n" + "".join(f"{i / 9},{i % 3}\n" for i in range(10))
    (tmp_path / "runs.csv").write_text(table)
    words = ["bound", "runs.csv", "--input", "x=0:1", "--output", "y=-5:5", "--noise", "1"]
    done = _run(clean, "-m", "kernelbounds", *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "bounds" / "bounds.csv").exists()
    assert "kernelbounds[plot]" in done.stderr and not (tmp_path / "bounds" / "bounds.png").exists()


@pytest.mark.slow
def test_the_import_adds_little_to_that_of_scikit_learn(clean, tmp_path):
    ours = _seconds(clean, "from kernelbounds import *", tmp_path)  # or else nothing is
    theirs = _seconds(clean, "import sklearn.gaussian_process", tmp_path)
    print(f"kernelbounds {ours:.2f} s, scikit-learn's Gaussian processes alone {theirs:.2f} s")
    assert ours < WITH_SCIKIT_LEARN * theirs

"""The examples run."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_the_pendulum_is_tuned_and_drawn(tmp_path, monkeypatch, capsys):
    arguments = ["pendulum.py", "--rounds", "4", "--quick", "--out", str(tmp_path / "new")]
    monkeypatch.setattr(sys, "argv", arguments)
    runpy.run_path(str(EXAMPLES / "pendulum.py"), run_name="__main__")
    pictures = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert pictures == ["pendulum-angle.png", "pendulum-bounds.png", "pendulum-regret.png"]
    assert "KernelUCB after 4 trials" in capsys.readouterr().out

"""What is imported, and when: help must not wait for NumPy, SciPy and scikit-learn."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import kernelbounds as kb
from kernelbounds.cli import plan_command
from kernelbounds.problem import plans

SLOW = {"matplotlib", "numpy", "pandas", "pydantic", "scipy", "sklearn"}


def _modules(code):
    """All that are imported once this was run, in a process of its own."""
    code += "\nimport sys; print('modules:', *sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    return set(done.stdout.partition("modules:")[2].split())


def test_the_package_alone_imports_nothing_else():
    found = _modules("import kernelbounds")
    ours = {name for name in found if name.startswith("kernelbounds.")}
    assert ours == {"kernelbounds.version"} and not found & SLOW
    assert "kernelbounds.study" in _modules("from kernelbounds import Study")


@pytest.mark.parametrize(
    "words",
    [["--help"], ["study", "--help"], ["study", "ask", "--help"], ["reproduce", "--help"],
     ["plan", "--no-such-option"], ["study", "tell", "--no-such-option"], ["no-such-command"]],
    ids=" ".join,
)  # fmt: skip
def test_help_and_slips_do_not_wait(words):
    found = _modules(f"""
import sys
from kernelbounds import cli
sys.argv = ["kernelbounds", *{words!r}]
try:
    cli.main()
except SystemExit as end:
    assert end.code == {0 if "--help" in words else 2}
""")
    assert "kernelbounds.cli.bound_command" in found and not found & SLOW


@pytest.mark.parametrize("module", ["typer", "kernelbounds.cli.options", "numpy", "scipy.linalg"])
def test_an_interrupt_while_modules_are_imported_is_one_line(module, tmp_path):
    code = f"""
import sys

class Interrupted:
    def find_spec(self, name, *_):
        if name == {module!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
sys.argv = ["kernelbounds", "study", "status", "none.db"]
from kernelbounds.__main__ import main
main()
"""
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "interrupted; nothing was changed\n"


def test_every_public_name_can_be_imported():
    for name in kb.__all__:
        assert name in dir(kb) and getattr(kb, name) is not None
    assert kb.problem.Problem is kb.Problem
    with pytest.raises(AttributeError, match="kernelbounds has no 'Nothing'"):
        kb.Nothing  # noqa: B018


def test_names_are_listed_without_rooms_and_slips_are_corrected():
    modules = {name for name in dir(kb) if isinstance(getattr(kb, name), ModuleType)}
    assert len(modules) <= 12 and modules <= set(kb.__all__) and set(dir(kb)) == set(kb.__all__)
    with pytest.raises(AttributeError, match=r"\(did you mean 'ConfidenceSequence'\?\)"):
        kb.ConfidenceSequnce  # noqa: B018


def test_the_limits_in_the_help_of_plan_are_those_of_plans():
    assert (plan_command.DEFAULT_COUNT, plan_command.LARGEST_COUNT) == (
        plans.DEFAULT_COUNT,
        plans.LARGEST_COUNT,
    )

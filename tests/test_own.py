"""Bounds and policies of a user's own, wherever the package's can be used."""

from __future__ import annotations

import csv
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from own_bounds import MostUncertain, Patient, Plain, Wider
from problems import AIMS, DOMAINS, KERNEL, POINTS, policy_on
from sklearn.gaussian_process.kernels import RBF
from typer.testing import CliRunner

import kernelbounds as kb
from kernelbounds import theory
from kernelbounds.cli import app
from kernelbounds.paper import specs, table1
from kernelbounds.paper.cells import RECURSIONS
from kernelbounds.paper.reproduce import EXPERIMENTS
from kernelbounds.paper.results import ResultStore

# What is found in a box does not matter here, only that it is found by all means there are.
pytestmark = pytest.mark.usefixtures("short_searches")

OWN = {"plain": Plain(), "wider": Wider(0.1), "patient": Patient()}
MAXIMISERS = [kb.Ascent(scan=64, starts=2), kb.Grid(cells=100), kb.BranchAndBound(tolerance=0.5)]


@pytest.fixture(params=OWN)
def bound(request):
    return OWN[request.param]


class Broken(kb.Bound):
    """Returns what it is told to."""

    def __init__(self, what):
        self.what = what

    def __repr__(self):
        return "Broken()"

    def extremes(self, known, points, signs):
        return self.what * np.ones((len(signs), len(points)))


class TestBounds:
    def test_in_a_sequence(self, bound):
        seq = kb.ConfidenceSequence(KERNEL, 5.0, 0.1, bound=bound)
        assert seq.upper([[0.5, 0.5]]) == 5.0
        seq.update(POINTS[:8], np.sin(POINTS[:8].sum(axis=1)))
        lower, upper = seq.bounds(POINTS)
        exact = seq.bounds(POINTS, kb.CMM())
        assert np.all(lower <= exact[0] + 1e-6) and np.all(upper >= exact[1] - 1e-6)
        np.testing.assert_array_equal(seq.upper(POINTS), upper)
        alone = np.concatenate(seq.bounds(POINTS[3]))
        np.testing.assert_allclose(alone, [lower[3], upper[3]], rtol=1e-9)
        with pytest.raises(kb.InputError, match="only that of a DualBound is"):
            seq.gradients(POINTS)

    def test_gradients_of_a_dual_bound_of_ones_own(self):
        class Twice(kb.AMM):
            """AMM by another name."""

        seq = kb.ConfidenceSequence(KERNEL, 5.0, 0.1, bound=Twice())
        seq.update(POINTS[:8], np.sin(POINTS[:8].sum(axis=1)))
        np.testing.assert_array_equal(seq.gradients(POINTS), seq.gradients(POINTS, kb.AMM()))

    @pytest.mark.parametrize(("name", "minimise"), AIMS)
    @pytest.mark.filterwarnings("ignore:the gradient in x")
    def test_on_domains_with_certificates_and_batches(self, bound, name, minimise):
        policy, function, _ = policy_on(
            kb.KernelUCB, DOMAINS[name], bound=bound, minimise=minimise, t=7
        )
        batch = policy.ask(n=3)
        assert len({one.x.tobytes() for one in batch}) > 1
        policy.begin(batch)
        policy.ask()
        policy.tell(batch, function(np.array([one.x for one in batch])))
        found = policy.certificate(tolerance=0.5)
        sign = -1 if minimise else 1
        best = (sign * function(POINTS)).max()  # the points are in all domains
        limit = -found.min_lower if minimise else found.max_upper
        assert best <= limit + 1e-9
        assert limit - sign * function(found.x[None])[0] <= found.regret + 1e-9

    @pytest.mark.parametrize("maximiser", MAXIMISERS, ids=lambda m: type(m).__name__)
    def test_on_a_box_with_every_maximiser(self, bound, maximiser, tmp_path):
        seq = kb.ConfidenceSequence(RBF(0.5), 3.0, 0.1, bound=bound)
        with pytest.warns(UserWarning, match="searched without derivatives"):
            policy = kb.KernelUCB(seq, kb.Box([0], [1]), maximiser=maximiser)
        history = policy.run(lambda x: float(np.sin(3 * x[0])), 8, save_to=tmp_path / "x.npz")
        certified = not isinstance(maximiser, kb.Ascent)
        assert np.all(np.isfinite(history.regret_bound[5:]) == certified)
        with pytest.warns(UserWarning, match="searched without derivatives"):
            again = kb.KernelUCB.load(tmp_path / "x.npz", bound=bound)
        assert np.array_equal(again.ask().x, policy.ask().x)

    def test_on_fresh_actions_and_in_simulations(self, bound):
        problem = kb.SyntheticProblem.draw(KERNEL, 2, np.random.default_rng(0), norm=4.0)
        policy = kb.KernelUCB(problem.sequence(bound, rounds=20))
        trace = kb.simulate(policy, problem, 20, np.random.default_rng(1))
        assert np.all((trace.lower <= trace.value) & (trace.value <= trace.upper))
        assert np.all(trace.regret <= policy.history.regret_bound + 1e-9)
        for t in (8, 19):  # it plays the largest of its bounds
            seq = problem.sequence(bound, rounds=20)
            seq.update(trace.x[:t], trace.outcome[:t])
            of_actions = np.random.default_rng(1).spawn(2)[0]
            actions = [problem.actions(of_actions) for _ in range(t + 1)][-1]
            values = seq.surface(1).values(actions)
            assert values[int(trace.index[t])] == pytest.approx(values.max(), abs=1e-6)

    @pytest.mark.parametrize("what", [np.nan, -np.inf, -9.0, np.ones((3, 1, 1))])
    @pytest.mark.parametrize("name", ["finite", "box", None])
    @pytest.mark.filterwarnings("ignore:the gradient in x")
    def test_what_is_no_bound_is_named_in_policies_too(self, what, name):
        domain = None if name is None else DOMAINS[name]
        policy, _, _ = policy_on(kb.KernelUCB, domain, bound=Broken(what))
        policy.sequence.update(POINTS[:3], [0.1, 0.2, 0.3])
        calls = [
            lambda: policy.ask(POINTS if name is None else None),
            lambda: policy.ask(POINTS if name is None else None, n=2),
            lambda: policy.certificate(POINTS if name is None else None, tolerance=0.5),
            lambda: policy.sequence.bounds(POINTS),
        ]
        for call in calls:
            with pytest.raises(kb.KernelBoundsError, match=r"the bound Broken\(\)"):
                call()

    def test_compared_with_the_others(self):
        seq = kb.ConfidenceSequence(KERNEL, 5.0, 0.1)
        seq.update(POINTS[:8], np.sin(POINTS[:8].sum(axis=1)))
        found = theory.compare(seq, POINTS, bounds={"a little wider": Wider(0.1), "plain": Plain()})
        assert [row.name for row in found.rows][5:] == ["a little wider", "plain"]
        assert found["plain"].mean_width == found["AMM"].mean_width
        assert found["a little wider"].mean_ratio > 1
        lines = found.table().splitlines()
        assert len({len(line) for line in lines}) == 1 and lines[-2].startswith("a little wider ")
        for wrong in ({"CMM": Plain()}, {"mine": Plain}, {3: Plain()}, [Plain], [3], Plain(), "AY"):
            with pytest.raises(kb.InputError, match=r"^bounds must be .*\.$"):
                theory.compare(seq, POINTS, bounds=wrong)


class TestPolicies:
    @pytest.mark.parametrize("name", DOMAINS)
    def test_asks_runs_saves_and_loads(self, name, tmp_path):
        policy, function, _ = policy_on(MostUncertain, DOMAINS[name], t=3)
        policy.scan = 33
        policy.run(lambda x: function(x[None])[0], 3, batch=2, save_to=tmp_path / "x.npz")
        policy.begin(policy.ask(n=2))
        policy.save(tmp_path / "x.npz")
        again = MostUncertain.load(tmp_path / "x.npz")
        assert again.scan == 33 and len(again.pending) == 2
        one, two = policy.ask(), again.ask()
        assert np.array_equal(one.x, two.x) and one.limit == two.limit
        assert policy.certificate(tolerance=0.5).regret == again.certificate(tolerance=0.5).regret
        with pytest.raises(kb.StoredFileError, match="holds a MostUncertain, not a KernelUCB"):
            kb.KernelUCB.load(tmp_path / "x.npz")

    def test_in_simulations_it_learns_the_most(self):
        problem = kb.SyntheticProblem.draw(KERNEL, 2, np.random.default_rng(0), norm=4.0)
        widths = {}
        for cls in (MostUncertain, kb.KernelUCB):
            policy = cls(problem.sequence(kb.AMM(), rounds=30))
            kb.simulate(policy, problem, 30, np.random.default_rng(1))
            lower, upper = policy.sequence.bounds(POINTS)
            widths[cls] = np.max(upper - lower)
        assert widths[MostUncertain] < widths[kb.KernelUCB]

    def test_public_methods_are_enough(self):
        text = Path(__file__).with_name("own_bounds.py").read_text()
        assert "._" not in text

    def test_what_is_no_choice_is_named(self, tmp_path):
        class Silent(MostUncertain):
            def choose(self, space, count):
                return super().choose(space, count)[1:]

        class Nameless(MostUncertain):
            def choose(self, space, count):
                return [self.suggestion(space, space.points[0], math.inf)]

        class Unsaved(MostUncertain):
            def settings(self):
                return {"scan": np.arange(3)}

        with pytest.raises(kb.KernelBoundsError, match=r"Silent.choose\(\) .* list of 1 "):
            policy_on(Silent, DOMAINS["finite"])[0].ask()
        problem = kb.SyntheticProblem.draw(KERNEL, 2, np.random.default_rng(0), norm=4.0)
        with pytest.raises(kb.KernelBoundsError, match="Nameless does not say which"):
            kb.simulate(Nameless(problem.sequence()), problem, 2, np.random.default_rng(1))
        with pytest.raises(kb.InputError, match=r"Unsaved.settings\(\) must .* JSON"):
            policy_on(Unsaved, DOMAINS["finite"])[0].save(tmp_path / "x.npz")
        with pytest.raises(kb.InputError, match=r"kernelbounds\.bandits\.Policy"):
            kb.simulate(MostUncertain, problem, 2, np.random.default_rng(1))


OPTIONS = ["--rounds", "6", "--reps", "2", "--kernels", "rbf"]
MODULE = """
from dataclasses import dataclass
import numpy as np
import kernelbounds as kb

@dataclass(frozen=True)
class Wide(kb.Bound):
    by: float = 0.5

    def extremes(self, known, points, signs):
        return kb.AMM().extremes(known, points, signs) + self.by

class Needy(kb.Bound):
    def __init__(self, by):
        self.by = by

    def extremes(self, known, points, signs):
        return known.trivial(points) + np.zeros((len(signs), 1))

class Same(kb.AMM):
    pass

class NoBound:
    pass

WIDER = Wide(2.0)
NUMBER = 3
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A current directory with a package of bounds."""
    (tmp_path / "mine_of_the_tests").mkdir()
    (tmp_path / "mine_of_the_tests" / "__init__.py").write_text("")
    (tmp_path / "mine_of_the_tests" / "bounds.py").write_text(MODULE)
    (tmp_path / "mine_of_the_tests" / "torn.py").write_text("import nothing_of_this_name")
    (tmp_path / "mine_of_the_tests" / "raising.py").write_text("1 / 0")
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    yield tmp_path
    assert sys.path == before
    for name in [name for name in sys.modules if name.startswith("mine_of_the_tests")]:
        del sys.modules[name]


def _reproduce(*arguments):
    command = [sys.executable, "-m", "kernelbounds", "reproduce", *map(str, arguments)]
    path = os.pathsep.join([str(Path(kb.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


class TestReproduce:
    def test_beside_the_papers(self, place):
        methods = "CMM,mine_of_the_tests.bounds:Wide,AMM,mine_of_the_tests.bounds:Same"
        names = ["table1", "figure2", "--methods", methods, *OPTIONS]
        done = _reproduce(*names, "--out", "one", "--workers", 1)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        heads = [line.split("  ")[0] for line in lines if line and not line.startswith(" ")]
        assert heads[:4] == [
            "Kernel CMM-UCB", "Kernel AMM-UCB", "Wide (mine_of_the_tests.bounds)",
            "Same (mine_of_the_tests.bounds)",
        ]  # fmt: skip
        rows = list(csv.DictReader((place / "one" / "table1.csv").open()))
        found = {(row["length_scale"], row["method"]): row["mean"] for row in rows}
        for scale in ("0.5", "0.2"):
            assert found[scale, "mine_of_the_tests.bounds:Same"] == found[scale, "AMM"]
        assert r"Wide (mine\_of\_the\_tests.bounds) & " in (place / "one/table1.tex").read_text()
        assert "mine_of_the_tests.bounds:Wide" in (place / "one" / "report.html").read_text()
        assert "Wide (mine_of_the_tests.bounds)" in (place / "one" / "report.html").read_text()

        cells = {path.name: path.stat().st_mtime_ns for path in (place / "one/cells").iterdir()}
        # Drawing takes its time, and so does a process of its own.
        again = ["table1", *map(str, names[2:]), "--out", "one", "--workers", "1"]
        assert CliRunner().invoke(app, ["reproduce", *again]).exit_code == 0
        assert cells == {p.name: p.stat().st_mtime_ns for p in (place / "one/cells").iterdir()}

    @pytest.mark.slow
    def test_two_workers_find_the_same(self, place):
        names = ["table1", "--methods", "CMM,mine_of_the_tests.bounds:Wide", *OPTIONS]
        one, two = (_reproduce(*names, "--out", f"{n}", "--workers", n) for n in (1, 2))
        assert one.returncode == two.returncode == 0, two.stderr
        assert one.stdout == two.stdout

    @pytest.mark.slow
    def test_a_bound_that_was_changed_is_run_again(self, place):
        def cells(folder):
            return {p.name: p.stat().st_mtime_ns for p in (place / folder / "cells").iterdir()}

        names = ["table1", "--methods", "AMM,mine_of_the_tests.bounds:Wide", *OPTIONS]
        names += ["--out", "one", "--workers", 1]
        assert _reproduce(*names).returncode == 0
        before = cells("one")
        file = place / "mine_of_the_tests" / "bounds.py"
        file.write_text(file.read_text().replace("0.5", "1.5"))
        shutil.rmtree(file.parent / "__pycache__", ignore_errors=True)
        done = _reproduce(*names)
        assert done.returncode == 0 and "computed again" in done.stderr
        changed = {name for name, when in cells("one").items() if before[name] != when}
        assert changed == {name for name in before if "Wide" in name} and len(changed) == 4

    @pytest.mark.parametrize(
        ("method", "what"),
        [
            ("mine_of_the_tests.bounds:", "is not a kernelbounds.Bound, but <module"),
            (":Wide", "ValueError: .*write package.module:Name"),
            ("a:b:c", "ValueError: .*write package.module:Name"),
            ("../mine:Wide", "ValueError: .*write package.module:Name"),
            ("nowhere_to_be_found:Wide", "No module named 'nowhere_to_be_found'"),
            ("mine_of_the_tests.none:Wide", "No module named 'mine_of_the_tests.none'"),
            ("mine_of_the_tests.torn:Wide", "No module named 'nothing"),
            ("mine_of_the_tests.raising:Wide", "cannot be used as a bound, ZeroDivisionError"),
            ("mine_of_the_tests.bounds:Wild", "has no attribute 'Wild'"),
            ("mine_of_the_tests.bounds:NUMBER", "is not a kernelbounds.Bound, but "),
            ("mine_of_the_tests.bounds:NoBound", "is not a kernelbounds.Bound, but "),
            ("mine_of_the_tests.bounds:Needy", "TypeError: .*'by'.* needs no arguments"),
            ("kernelbounds:Bound", "TypeError: .* needs no arguments"),
            ("Wide", "no method is called 'Wide'; .* package.module:Name"),
        ],
    )
    def test_what_cannot_be_had_is_named(self, place, method, what):
        result = CliRunner().invoke(app, ["reproduce", "table1", "--methods", method])
        assert isinstance(result.exception, kb.InputError), result.exception
        with pytest.raises(kb.InputError, match=what):
            raise result.exception
        assert "\n" not in str(result.exception) and str(result.exception).endswith(".")
        assert not (place / "results").exists()

    def test_objects_and_classes(self, place):
        wide, wider = (f"mine_of_the_tests.bounds:{name}" for name in ("Wide", "WIDER"))
        assert specs.bound_of(wider).by == 2.0 and specs.bound_of(wide).by == 0.5
        assert specs.bound_of("kernelbounds:DMM") == kb.DMM()
        assert specs.fingerprint(specs.bound_of(wide)) != specs.fingerprint(specs.bound_of(wider))
        choices = specs.Choices(rounds=12, methods=(wider, "DMM", wide, wider))
        cells = table1.jobs(choices)
        assert list(dict.fromkeys(cell.method for cell in cells)) == ["DMM", wider, wide]
        for cell in cells:
            assert ("fingerprint" in cell.as_data()) == (cell.method != "DMM")
            assert ":" not in cell.name
        assert len({cell.name for cell in cells}) == len(cells)
        timed = {cell.method for cell in EXPERIMENTS["figure-time"].jobs(choices)}
        assert timed == {"DMM", wide, wider, *RECURSIONS}
        assert (
            ResultStore(place).path(cells[-1]).name.endswith("mine_of_the_tests.bounds-Wide-9.npz")
        )

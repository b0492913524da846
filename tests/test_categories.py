"""Inputs that are categories: their kernel, boxes, tables, problems, studies and pictures."""

from __future__ import annotations

import json
import pickle
import re
import runpy
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from exact_kernels import exact, exact_derivative
from problems import refused, too_many
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import kernelbounds as kb
from kernelbounds import kernels
from kernelbounds.bounds.with_facts import inequalities
from kernelbounds.facts import Region
from kernelbounds.io.csv_table import read_csv, write_csv
from kernelbounds.problem import Input, assume, candidate_kernels, norms
from kernelbounds.problem.runs import Runs

pytestmark = pytest.mark.usefixtures("drawn_once")

EPS = np.finfo(float).eps
QUENCH = kb.Categories("oil", "water", "air")
BOX = kb.Box.named(a=(0, 1), b=(-1, 2), quench=QUENCH)
NUMBERS = kb.OnInputs(Matern((0.5, 1.5), nu=2.5), [0, 1])
LEVELS = kb.OnInputs(kb.Levels(0.6), [2])
KERNELS = {
    "product": NUMBERS * LEVELS,
    "alone": LEVELS,
    "additive": NUMBERS + 2.0 * LEVELS,
    "both": NUMBERS * LEVELS + kb.OnInputs(RBF(0.7), [0]) + ConstantKernel(0.3),
}
ALLOY = [
    "temperature[°C]=800:950",
    "carbon[%]=0.2:0.8",
    "time[min]=5:60",
    "quench=oil|water|air:matters=0.4",
]


@pytest.fixture(params=KERNELS)
def kernel(request):
    return KERNELS[request.param]


def in_box(rng, count):
    return BOX.scaled(rng.random((count, BOX.dim)))


def observed(kernel=KERNELS["product"], count=25, seed=0, **options):
    """A sequence of a function that it admits, and the function."""
    rng = np.random.default_rng(seed)
    f = kb.RKHSFunction(kernel, in_box(rng, 8), rng.standard_normal(8)).rescaled(3.0)
    seq = kb.ConfidenceSequence(kernel, 3.5, 0.1, **options)
    X = in_box(rng, count)
    seq.update(X, f(X) + 0.1 * rng.standard_normal(count))
    return seq, f


class TestKernel:
    def test_values_are_exact(self):
        """Equal to the last digit: there is nothing to be rounded."""
        kernel, rng = kb.Levels(1 / 3), np.random.default_rng(0)
        x = rng.integers(5, size=(30, 1)).astype(float)
        values = kernels.cross(kernel, x, x[:7])
        assert kernels.evaluation_error(kernel, 1) == 0
        assert all(values[i, j] == exact(kernel, x[i], x[j]) for i in range(30) for j in range(7))
        assert np.array_equal(kernel(x, x[:7]), values) and np.array_equal(kernel(x), kernel(x, x))
        assert np.array_equal(kernel.diag(x), np.ones(30))

    def test_errors_in_combinations_are_within_those_derived(self, kernel):
        x = in_box(np.random.default_rng(1), 20)
        values, prior = kernels.cross(kernel, x, x), np.sqrt(kernels.diagonal(kernel, x))
        wrong = [
            [float(values[i, j] - exact(kernel, x[i], x[j])) for j in range(20)] for i in range(20)
        ]
        assert np.abs(wrong / np.outer(prior, prior)).max() / EPS <= kernels.evaluation_error(
            kernel, 3
        )

    @pytest.mark.parametrize("correlation", [0.0, 0.3, 0.999, 1.0])
    def test_it_is_positive_semi_definite(self, correlation):
        x = np.random.default_rng(2).integers(9, size=(60, 1)).astype(float)
        assert np.linalg.eigvalsh(kb.Levels(correlation)(x)).min() > -1e-12

    @pytest.mark.parametrize("correlation", [-0.1, 1.1, np.nan, "half", True])
    def test_other_correlations_are_refused(self, correlation):
        refused(lambda: kb.Levels(correlation), "correlation of Levels must be")

    def test_text_files_copies(self, kernel):
        again = [
            kernels.kernel_from_text(kernels.kernel_to_text(kernel)),
            kernels.from_data(json.loads(json.dumps(kernels.to_data(kernel)))),
            pickle.loads(pickle.dumps(kernel)),
            clone(kernel),
            kernels.checked_kernel(kernel),
        ]
        assert all(one == kernel for one in again)
        assert kernels.kernel_from_text("OnInputs(Levels(0.25), [1])").kernel.correlation == 0.25

    def test_features_move_no_further_than_said(self, kernel):
        rng = np.random.default_rng(3)
        centres, x = in_box(rng, 40), in_box(rng, 40)
        same = rng.random(40) < 0.5
        x[same, 2] = centres[same, 2]
        found = kernels.features_in_boxes(kernel, centres, np.abs(x - centres))
        across = np.diagonal(kernels.cross(kernel, x, centres))
        moved = kernels.diagonal(kernel, x) + kernels.diagonal(kernel, centres) - 2 * across
        assert np.all(np.sqrt(np.maximum(moved, 0)) <= found.moved + 1e-7)
        if kernel is LEVELS:
            assert np.all(found.moved[same] == 0) and np.all(found.moved[~same] ** 2 <= 0.8 + 1e-12)

    def test_there_is_no_slope_along_it(self):
        kernel, x = KERNELS["product"], in_box(np.random.default_rng(4), 6)
        axes = np.zeros(6, dtype=int)
        found = kernels.derivative_cross(kernel, x, axes, x[:3])
        for i in range(6):
            for j in range(3):
                assert found[i, j] == pytest.approx(float(exact_derivative(kernel, x[i], 0, x[j])))
        seq, _ = observed()
        seq.bounds_of(kb.functionals.Derivative([0.5, 0.5, 1.0], 0))
        refused(
            lambda: seq.bounds_of(kb.functionals.Derivative([0.5, 0.5, 1.0], 2)),
            "no derivative along coordinate 2, which is a category",
        )

    def test_parts_with_an_additive_effect(self):
        rng = np.random.default_rng(5)
        parts = kb.Parts([(NUMBERS, 3.0), (LEVELS, 2.0)])
        f = kb.RKHSFunction(NUMBERS, in_box(rng, 5), rng.standard_normal(5)).rescaled(2.5)
        seq = kb.ConfidenceSequence(parts, noise_scale=0.1)
        X, effect = in_box(rng, 30), np.array([-1.0, 0.5, 0.8])  # of norm below 2
        seq.update(X, f(X) + effect[X[:, 2].astype(int)] + 0.1 * rng.standard_normal(30))
        grid = BOX.filling(200)
        lower, upper = seq.bounds(grid)
        truth = f(grid) + effect[grid[:, 2].astype(int)]
        assert np.all((lower <= truth) & (truth <= upper))

    def test_coverage(self):
        """The band of delta = 0.1 misses the truth in no more runs than that explains."""
        failures = 0
        grid = BOX.filling(60)
        for seed in range(40):
            seq, f = observed(seed=seed, count=15, delta=0.1)
            lower, upper = seq.bounds(grid)
            failures += bool(np.any((f(grid) < lower) | (f(grid) > upper)))
        assert not too_many(failures, 40, 0.1)


class TestBox:
    def test_names_and_numbers(self):
        assert repr(BOX) == "Box(a=(0, 1), b=(-1, 2), quench=Categories('oil', 'water', 'air'))"
        point = BOX.point({"a": 0.5, "b": 0, "quench": "water"})
        assert point.tolist() == [0.5, 0, 1]
        assert BOX.named_values(point) == {"a": 0.5, "b": 0.0, "quench": "water"}
        held = BOX.fixed({"quench": "air"})
        assert repr(held).endswith("quench='air')") and held.faces() == [held]
        assert [face.lower[2] for face in BOX.faces()] == [0, 1, 2]
        assert all(face.lower[2] == face.upper[2] for face in BOX.faces())

    def test_filling_has_levels_evenly(self):
        found = BOX.filling(300)[:, 2]
        assert np.all(np.bincount(found.astype(int)) >= 90) and set(found) == {0, 1, 2}
        assert set(BOX.clipped(np.array([[0, 0, 0.6], [0, 0, 7.0]]))[:, 2]) == {1, 2}

    def test_refusals(self):
        refused(lambda: BOX.point({"a": 0, "b": 0, "quench": "Oil"}), "only in case; is that meant")
        refused(lambda: BOX.fixed({"quench": "wader"}), r"did you mean 'water'\?")
        refused(lambda: BOX.fixed({"quench": 3}), "not one of the levels oil, water, air")
        refused(lambda: kb.Categories("oil", "Oil"), "differ only in case: are they the same")
        refused(lambda: kb.Categories("oil", "oil"), "given twice")
        refused(lambda: kb.Categories("oil"), "two levels or more")
        refused(lambda: kb.Categories("a|b", "c"), "without '|'")
        refused(lambda: kb.Box([0], [5], categories={0: QUENCH}), "not one of the levels")
        many = {f"c{i}": kb.Categories(*"abcdefghij") for i in range(4)}
        refused(lambda: kb.Box.named(**many).faces(), "10000 combinations of levels")

    def test_facts_are_used_at_levels(self):
        wide = kb.Box.named(a=(0, 1), machine=kb.Categories(*(f"m{i}" for i in range(50))))
        assert set(Region.checked(wide).places()[:, 1]) <= set(range(50))
        seq, _ = observed(facts=[kb.facts.Between(-4, 4)])
        assert set(inequalities(seq.known).centres[:, 2]) == {0, 1, 2}
        kb.KernelUCB(seq, kb.Finite(BOX.filling(20)))
        assert set(inequalities(seq.known).centres[:, 2]) == {0, 1, 2}


class TestDecisions:
    @pytest.mark.parametrize("maximiser", [kb.Ascent(), kb.Grid(3000), kb.BranchAndBound(0.02)])
    def test_ask_goes_over_all_levels(self, maximiser):
        """The bound at the point asked for is the best of those of each level alone."""
        seq, _ = observed()
        found = kb.KernelUCB(seq, BOX, maximiser=maximiser).ask()
        alone = [kb.KernelUCB(seq, face, maximiser=kb.Ascent()).ask() for face in BOX.faces()]
        best = max(one.upper for one in alone)
        assert found.upper >= best - (0.1 if isinstance(maximiser, kb.Grid) else 0.03)
        assert found.x[2] in (0, 1, 2) and found.named["quench"] in QUENCH.names
        assert not np.isfinite(found.limit) or found.limit >= best - 1e-9

    @pytest.mark.parametrize("minimise", [False, True])
    def test_certificates_are_true_and_as_tight_as_those_of_levels(self, minimise):
        seq, f = observed(count=60)
        grid = np.concatenate([face.filling(2000) for face in BOX.faces()])
        values = -f(grid) if minimise else f(grid)
        policy = kb.KernelUCB(seq, BOX, minimise=minimise)
        found = policy.certificate(tolerance=0.02, seconds=20)
        here = -f(found.x[None])[0] if minimise else f(found.x[None])[0]
        assert values.max() - here <= found.regret
        limit = -found.min_lower if minimise else found.max_upper
        lower, upper = seq.bounds(grid)
        highest = (-lower if minimise else upper).max()
        assert highest <= limit <= highest + 0.1
        assert found.named["quench"] == QUENCH.name(found.x[2])

    @pytest.mark.usefixtures("short_searches")  # it matters that both find the same
    def test_lucb_and_runs_by_name(self, tmp_path):
        seq, f = observed(count=5)
        policy = kb.KernelLUCB(seq, BOX)
        policy.run(lambda named: float(f(BOX.point(named)[None])[0]), 3, named=True)
        policy.tell({"a": 0.1, "b": 0.2, "quench": "air"}, 0.3)
        assert seq.points[-1].tolist() == [0.1, 0.2, 2.0]
        policy.save(tmp_path / "policy")
        again = kb.KernelLUCB.load(tmp_path / "policy")
        assert repr(again.domain) == repr(BOX) and again.ask().named == policy.ask().named

    def test_random_actions_are_at_levels(self):
        seq, _ = observed(count=5)
        found = kb.RandomPolicy(seq, BOX).ask(n=12)
        assert {one.named["quench"] for one in found} == set(QUENCH.names)
        assert BOX.contains(np.array([one.x for one in found])).all()

    def test_what_is_no_level_is_told_with_a_warning(self):
        seq, _ = observed(count=5)
        with pytest.warns(UserWarning, match="outside of the box"):
            kb.KernelUCB(seq, BOX).tell([0.1, 0.2, 0.5], 0.3)


class TestInput:
    @pytest.mark.parametrize("text", ["quench=oil|water|air", "m=1|2:matters=0.25"])
    def test_text_and_files(self, text):
        one = Input.parse(text)
        assert one.text == text and Input.parse(one.text) == one
        problem = kb.Problem(["x=0:1", text], "y=0:1")
        assert kb.Problem.from_data(json.loads(json.dumps(problem.as_data()))).inputs[1] == one
        assert "levels" not in problem.as_data()["inputs"][0]

    @pytest.mark.parametrize(
        ("text", "match"),
        [
            ("quench=oil|Oil", "differ only in case: are they the same"),
            ("quench=oil|water:log", "'log' after its levels; only matters=0.3"),
            ("quench=oil|water:matters=2", "matters of quench must be"),
            ("quench[s]=oil|water", "no unit"),
            ("quench=oil,water,air", r"as in oil\|water\|air"),
            ("quench=oil|", "name of a level"),
        ],
    )
    def test_refusals(self, text, match):
        refused(lambda: Input.parse(text), match)

    def test_points_by_name(self):
        problem = kb.Problem(ALLOY, "hardness=35:65")
        point = {"temperature": 800, "carbon": 0.8, "time": 5, "quench": "air"}
        assert problem.scaled(point).tolist() == [[0, 1, 0, 2]]
        assert problem.scaled([[800, 0.8, 5, "air"]]).tolist() == [[0, 1, 0, 2]]
        assert problem.scaled(np.array([[800, 0.8, 5, 2.0]])).tolist() == [[0, 1, 0, 2]]
        assert problem.inputs.named([800, 0.8, 5, 2]) == point
        assert problem.inputs.settings_text([800, 0.8, 5, 2]).endswith("quench=air")
        refused(lambda: problem.scaled([[800, 0.8, 5, "aer"]]), "did you mean")
        numbered = kb.Problem(["machine=1|2|3"], "y=0:1")
        assert numbered.scaled({"machine": [3, 1]}).tolist() == [[2], [0]]  # by name
        assert problem.inputs.box.named_values([800, 0.8, 5, 1])["quench"] == "water"

    def test_facts(self):
        problem = kb.Problem(ALLOY, "h=35:65", known=["quench=air & carbon=0.2 -> h=40 +- 5"])
        assert problem.known == ("quench=air & carbon=0.2 -> h=40 +- 5",)
        assert dict(problem.facts[0].where) == {3: 2.0, 1: 0.0}
        for what in ("increasing", "decreasing", "convex", "concave"):
            arguments = {what: ["quench"]}
            make = partial(kb.Problem, ALLOY, "h=35:65", **arguments)
            refused(make, "quench is a category")
        refused(lambda: kb.Problem(ALLOY, "h=35:65", known=["quench=ear -> h=40"]), "'air'")

    def test_a_kernel_must_know_the_category(self):
        why = r"use Levels for it, as in OnInputs\(Matern\(0.5, nu=2.5\), \[0, 1, 2\]\) \* OnInputs"
        for stated in (
            {"kernel": "Matern(0.5, nu=2.5)"},
            {"kernels": "any", "candidates": [("Matern(0.5, nu=2.5)", 3.0)]},
        ):
            refused(partial(kb.Problem, ALLOY, "h=35:65", **stated), why)


class TestAssume:
    def test_levels_differ_as_stated(self):
        for matters in (0.2, 0.6):
            problem = kb.Problem(["x=0:1", f"q=a|b|c:matters={matters}"], "y=-1:1", turns=1)
            found = assume(problem, functions=40)
            x = np.linspace(0, 1, 33)  # where turns are counted
            apart, ranges = [], []
            for f in found.functions:
                each = np.array([f(np.column_stack([x, np.full(33, level)])) for level in range(3)])
                apart.append(np.ptp(each, axis=0).max() / 2)
                ranges.append([each.min(), each.max()])
                turns = np.diff(np.diff(each, axis=1) > 0, axis=1).sum(axis=1)
                assert np.all(turns <= 1)
            assert np.allclose(ranges, [-1, 1], atol=0.1)
            # Scaling to the whole range makes them differ by a little more.
            assert 0.7 * matters < np.median(apart) < 1.4 * matters
            assert found.problem.kernel.k2.kernel.correlation == candidate_kernels.correlation(
                matters
            )

    @pytest.mark.parametrize("interactions", ["all", "pairs", "none"])
    def test_the_norms_are_those_under_the_kernel(self, interactions):
        """From the inverse of the whole kernel matrix, at grid points in all levels."""
        problem = kb.Problem(
            ["x=0:1", "q=a|b|c:matters=0.5", "p=u|v"], "y=-1:1", 0.05, 1, interactions
        )
        found = assume(problem, functions=5)
        grid = np.array(
            [[x, q, p] for x in np.linspace(0, 1, 60) for q in range(3) for p in range(2)]
        )
        values = np.stack([f(grid) for f in found.functions], axis=1)
        dense = np.sqrt(norms.squared_norms(found.chosen.kernel, grid, values).least)
        if interactions == "all":
            assert np.all(np.abs(dense / found.chosen.norms - 1) < 0.1)
        else:  # where the norm of a sum is at most what follows from its parts
            assert np.all(dense < 1.05 * found.chosen.norms)

    def test_shapes_hold_at_all_levels(self):
        problem = kb.Problem(["x=0:1", "q=a|b|c"], "y=-1:1", increasing=["x"])
        found = assume(problem, functions=10)
        assert not found.left_out
        x = np.linspace(0, 1, 9)  # where shapes are looked at
        for f in found.functions:
            for level in range(3):
                assert np.all(np.diff(f(np.column_stack([x, np.full(9, level)]))) > -1e-9)

    def test_categories_alone(self):
        found = assume(kb.Problem(["q=a|b|c", "p=u|v"], "y=0:10", 0.1), functions=10)
        assert found.chosen.settled and found.problem.norm_bound > 1

    def test_too_many_combinations(self):
        names = "|".join(f"l{i}" for i in range(101))
        refused(lambda: assume(kb.Problem([f"q={names}", "x=0:1"], "y=0:1")), "101 combinations")


class TestTables:
    def test_names_in_and_out(self, tmp_path):
        path = tmp_path / "runs.csv"
        write_csv(path, {"x": [1.0, 2.0], "quench": ["oil", "air; cold"]})
        levels = kb.Categories("air; cold", "oil")
        assert read_csv(path, ["quench", "x"], {"quench": levels}).columns["quench"] == [
            "oil",
            "air; cold",
        ]

    @pytest.mark.parametrize(
        ("cell", "match"),
        [
            (
                "Water",
                "line 3, column 'quench': 'Water' differs from the level 'water' only in case",
            ),
            ("watr", r"line 3, .*'watr' is not one of the levels oil, water, air \(did you mean"),
            ("", "line 3, .*the cell is empty"),
        ],
    )
    def test_unknown_levels_have_a_line(self, tmp_path, cell, match):
        path = tmp_path / "runs.csv"
        path.write_text(f"x,quench,y\n0,oil,1\n0.5,{cell},2\n")
        problem = kb.Problem(["x=0:1", "quench=oil|water|air"], "y=0:3")
        refused(lambda: Runs.read(problem, path), match)

    def test_more_levels_than_rows(self):
        problem = kb.Problem(["quench=oil|water|air"], "y=0:3")
        runs = Runs.read(problem, {"quench": ["oil", "air"], "y": [1, 2]})
        refused(
            lambda: runs.refuse_more_levels_than_rows(problem),
            "3 levels, but the table has only 2 rows",
        )


def alloy(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "sys.argv", ["alloy.py", "--seed", "0", "--out", str(tmp_path / "alloy.csv")]
    )
    path = Path(__file__).parent.parent / "examples" / "alloy.py"
    return runpy.run_path(str(path), run_name="__main__")


@pytest.mark.usefixtures("short_searches", "few_functions")
def test_the_alloy_from_a_table_to_a_certificate(tmp_path, monkeypatch, run):
    example = alloy(tmp_path, monkeypatch)
    inputs = [f"--input={text}" for text in ALLOY]
    more = ["--output=hardness=35:65", "--noise=0.5", "--turns=1", "--interactions=none"]

    def said_by(*words):
        code, out, error = run(*words)
        assert code == 0, error
        return out

    said = said_by("bound", "alloy.csv", *inputs, *more, "--grid=4")
    assert re.search(r"hardness is about .* quench=water, guaranteed between .*: the largest", said)
    table = read_csv(
        "bounds/bounds.csv", [*example["BOX"].names, "lower", "upper"], {"quench": QUENCH}
    ).columns
    levels = [QUENCH.number(one) for one in table["quench"]]
    numbers = [table[name] for name in ("temperature", "carbon", "time")]
    truth = example["true_hardness"](np.column_stack([*numbers, levels]))
    assert len(truth) == 4**3 * 3
    assert np.all((table["lower"] <= truth) & (truth <= table["upper"]))
    assert Path("bounds/bounds.png").read_bytes().startswith(b"\x89PNG")

    problem = ["--problem", "bounds/problem.json"]
    said_by("study", "create", "alloy.db", *problem)
    assert "quench=" in said_by("study", "ask", "alloy.db")
    asked = json.loads(said_by("study", "ask", "alloy.db", "--json"))["trials"][0]["values"]
    assert asked["quench"] in QUENCH.names
    said_by("study", "tell", "alloy.db", "--trial", "1", "hardness=50")
    settings = ["temperature=850", "carbon=0.5", "time=20", "quench=oil"]
    assert "quench=oil" in said_by("study", "tell", "alloy.db", *settings, "hardness=52")
    assert "quench=oil" in said_by("study", "undo", "alloy.db")
    said_by("study", "undo", "alloy.db")
    said_by("study", "import", "alloy.db", "alloy.csv")
    status = json.loads(said_by("study", "status", "alloy.db", "--seconds", "0.3", "--json"))
    assert (
        status["best"]["named"]["quench"] == status["most_promising"]["named"]["quench"] == "water"
    )
    assert status["limit"] > 55
    said_by("study", "export", "alloy.db", "out.csv")
    assert read_csv("out.csv", ["quench"], {"quench": QUENCH}).columns["quench"][0] in QUENCH.names
    said_by("study", "plot", "alloy.db", "--seconds", "0.3")
    assert Path("slices.png").exists()


def test_pictures_have_all_levels():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    seq, _ = observed()
    four = kb.plot.maps(seq, BOX, resolution=5)
    assert len(four) == 12 and four[5].get_title() == "water: lower bound"
    one = kb.plot.band(seq, BOX.fixed({"b": 0.5}), resolution=5)
    labels = one.get_legend_handles_labels()[1] or [
        t.get_text() for t in one.figure.legends[0].texts
    ]
    assert [name in " ".join(labels) for name in QUENCH] == [True] * 3
    panels = kb.plot.slices(seq, BOX, {"a": 0.5, "b": 0.3, "quench": "air"}, resolution=5)
    assert len(panels) == 2
    lines = [line for line in panels[0].lines if len(line.get_xdata()) == 5]
    _, upper = seq.bounds(np.column_stack([np.linspace(0, 1, 5), np.full(5, 0.3), np.full(5, 2)]))
    assert any(np.allclose(line.get_ydata(), upper) for line in lines)
    many = kb.Box.named(a=(0, 1), b=(0, 1), c=kb.Categories(*"abcdefg"))
    refused(lambda: kb.plot.slices(seq.bounds, many, [0, 0, 0]), "at most 6 combinations of levels")
    pyplot.close("all")

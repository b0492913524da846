"""Facts in the user's words: what is read and refused, what is computed, and what is said."""

from __future__ import annotations

import json

import numpy as np
import pytest
from problems import refused

import kernelbounds as kb
from kernelbounds.facts import Between, Concave, Decreasing, Increasing, Value
from kernelbounds.io.csv_table import write_csv
from kernelbounds.problem import Problem, assume, random_functions
from kernelbounds.problem.candidate_kernels import turns_along_inputs
from kernelbounds.problem.facts_in_words import unit_region
from kernelbounds.problem.worth import ALL, worth_of_facts, worth_steps

# Here it matters what is computed and said, and not what is drawn or how well a box is searched.
pytestmark = pytest.mark.usefixtures("drawn_once", "short_searches", "without_pictures")

INPUTS = ["temperature[°C]=140:190", "minutes=10:40", "stages=1:5:integer", "dose=1:100:log"]
OUTPUT = "strength[MPa]=0:60"
STATED = {
    "limits": "0:60",
    "increasing": ["minutes"],
    "decreasing": ["stages"],
    "concave": ["temperature"],
    "known": ["dose=1 & stages=1 -> strength=20 +- 5"],
}
POINT = "temperature=140 & minutes=10 & stages=3 & dose=100 -> strength = 2e1"


def problem(*inputs, noise=0.5, kernel="Matern(0.75, nu=2.5)", norm_bound=150.0, **facts):
    kind = {"kernel": kernel, "norm_bound": norm_bound}
    return Problem(inputs or INPUTS, OUTPUT, noise, 1, **kind, **facts)


def test_in_words_and_as_facts():
    stated = problem(**STATED | {"known": [*STATED["known"], POINT]})
    assert stated.facts_in_words == (
        "strength between 0 and 60 MPa",
        "strength rises with minutes",
        "strength falls with stages",
        "strength is concave along temperature",
        "strength = 20 ± 5 MPa where dose=1 and stages=1",
        "strength = 20 MPa where temperature=140 °C and minutes=10 and stages=3 and dose=100",
    )
    limits, rising, falling, concave, face, point = stated.facts
    region = unit_region(stated.inputs)
    assert region.steps == (0, 0, 4, 0)
    assert limits == Between(0, 60, region)
    assert (rising, falling) == (Increasing(1, region), Decreasing(2, region))
    assert concave == Concave(0, region)
    assert face == Value(where={3: 0.0, 2: 0.0}, y=20, within=5, region=region)
    assert point == Value([0.0, 0.0, 0.5, 1.0], 20)
    assert stated.sequence().facts == stated.facts
    assert not stated.sequence(facts=()).facts
    assert "strength rises with minutes" in stated._repr_html_()
    assert "limits='0:60', increasing=['minutes']" in repr(stated)
    assert problem(limits=":50").facts_in_words == ("strength at most 50 MPa",)
    assert problem(limits=(5, None)).facts_in_words == ("strength at least 5 MPa",)


def test_whole_numbers_on_a_logarithmic_scale():
    """They are not at equal steps: facts are used at both ends, which are whole."""
    stated = problem("n=1:100:log:integer", increasing=["n"])
    assert stated.facts[0].region.places().tolist() == [[0.0], [1.0]]


def test_files_with_and_without_facts(tmp_path):
    old = problem().as_data()
    assert not {"limits", "increasing", "known", "kernels", "candidates"} & set(old)
    stated = problem(**STATED)
    stated.save(tmp_path / "problem.json")
    again = Problem.load(tmp_path / "problem.json")
    assert again.as_data() == stated.as_data() and again.facts == stated.facts
    assert json.loads((tmp_path / "problem.json").read_text())["limits"] == "0:60"
    assert eval(repr(stated)).as_data() == stated.as_data()


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"limits": "60:0"}, "upside down or equal: 60 is not below 0"),
        ({"limits": ":"}, "lower or an upper end"),
        ({"limits": "zero"}, "written as 0:60, 0: or :60"),
        ({"limits": "70:80"}, "leave nothing of the range 0:60"),
        ({"increasing": ["minute"]}, "'minute', which is not an input .did you mean 'minutes'"),
        ({"increasing": "minutes"}, "a list of names"),
        ({"increasing": ["minutes"], "decreasing": ["minutes"]}, "both rise and fall with minutes"),
        ({"concave": ["dose"]}, "dose is on a logarithmic scale"),
        ({"convex": ["dose"]}, "dose is on a logarithmic scale"),
        ({"known": ["dose=1"]}, "must be written as"),
        ({"known": ["dose=one -> strength=2"]}, "must be written as"),
        ({"known": ["dose=1 -> strenght=2"]}, "did you mean 'strength'"),
        ({"known": ["dos=1 -> strength=2"]}, "did you mean 'dose'"),
        ({"known": ["dose=0 -> strength=2"]}, "not in its range 1:100"),
        ({"known": ["stages=1.5 -> strength=2"]}, "a whole number in its range 1:5"),
        ({"known": ["dose=1 & dose=1 -> strength=2"]}, "gives an input twice"),
        ({"known": ["dose=1 -> strength=99"]}, "outside the range 0:60"),
        ({"known": ["dose=1 -> strength=9"], "limits": "10:"}, "outside the limits 10:"),
        ({"kernels": "two"}, "must be one of one, any"),
    ],
)
def test_what_is_refused(facts, said):
    refused(lambda: problem(**facts), said)


def test_facts_that_contradict_each_other_are_named_in_words():
    twice = problem("x=0:1", known=["x=0 -> strength=9", "x=0 -> strength=10"])
    said = refused(twice.sequence, "contradict each other")
    assert "'strength = 9 MPa where x=0' and 'strength = 10 MPa where x=0'" in said


def test_facts_that_need_a_larger_norm_bound():
    steep = problem("x=0:1", norm_bound=5.0, known=["x=0 -> strength=0", "x=1 -> strength=60"])
    said = refused(steep.sequence, "norm_bound must be at least")
    assert "'strength = 60 MPa where x=1'" in said and "something of this is not true" in said


def test_suggestions_follow_anew():
    known = problem("x=0:1", kernel=None, norm_bound=None).settled()
    changed = known.replace(limits="0:30")
    assert changed.kernel is None and changed.norm_bound is None
    assert known.replace(noise=1.0).norm_bound == known.norm_bound


def test_random_functions_have_the_shapes():
    stated = problem("x=0:1", "y=0:1:turns=3", "n=0:4:integer", kernel=None, norm_bound=None,
                     limits="10:50", increasing=["x"], decreasing=["n"], concave=["y"])  # fmt: skip
    assert turns_along_inputs(stated).tolist() == [0, 1, 0]
    found = assume(stated, functions=10)
    assert not found.left_out
    side = np.linspace(0, 1, 5)
    grid = np.stack(np.meshgrid(side, side, side, indexing="ij"), -1)
    for function in found.functions:
        values = found.values(function, grid.reshape(-1, 3)).reshape(5, 5, 5)
        assert np.all(np.diff(values, axis=0) >= 0) and np.all(np.diff(values, axis=2) <= 0)
        assert np.all(np.diff(values, 2, axis=1) <= 1e-9)
        assert values.min() > 9 and values.max() < 51
    without = found.norm_bound_without_facts
    assert without is None or found.chosen.norm_bound < without


def test_parts_of_mirrored_functions_add_up():
    shapes = random_functions.Shapes.of(
        (Increasing(0), Decreasing(1)), unit_region(problem().inputs[:2])
    )
    subsets, rng = random_functions.subsets_of(2, "none"), np.random.default_rng(0)
    drawn = random_functions.random_functions(rng, np.zeros(2), subsets, shapes, 5, bool)
    X = rng.random((20, 2))
    for one in drawn:
        assert np.allclose(one(X), one.of_part(0, X) + one.of_part(1, X))
    assert any(one.mirrored.any() for one in drawn)


def test_shapes_that_are_too_rare(monkeypatch):
    monkeypatch.setattr(random_functions, "MOST_TRIES", 2)
    stated = problem("x=0:1", "y=0:1", increasing=["x"], concave=["x", "y"])
    found = assume(stated, functions=20)
    assert found.left_out == ("strength is concave along x", "strength is concave along y")


def test_any_of_several_kernels(tmp_path):
    stated = problem("x=0:1", kernel=None, norm_bound=None, kernels="any").settled()
    assert stated.suggested == ("kernel", "norm_bound", "candidates")
    assert len(stated.candidates) == 6
    assert stated.norm_bound in [bound for _, bound in stated.candidates]
    again = Problem.from_data(stated.as_data())
    assert again.as_data() == stated.as_data()
    assert again.sequence().classes == stated.sequence().classes
    assert len(stated.sequence().classes.members) == 6
    assert not stated.replace(limits="0:30").candidates
    assert not stated.replace(kernels="one").candidates
    x = np.linspace(0, 1, 40)
    study = kb.Study.create(":memory:", stated)
    study.tell_many({"x": x}, 30 + 25 * np.sin(4 * x))
    status = study.status(seconds=1.0)
    assert not status.refuted and "kernels" in status.kernels


DOSE = ("--input", "dose=0:10", "--output", "yield[%]=0:100", "--noise", 2, "--norm-bound", 600,
        "--kernel", "Matern(0.75, nu=2.5)")  # fmt: skip


@pytest.fixture
def runs(tmp_path):
    dose = np.linspace(0, 10, 9)
    noise = np.random.default_rng(0).standard_normal(9)
    write_csv(tmp_path / "runs.csv", {"dose": dose, "yield": 100 - 100 * np.exp(-dose / 3) + noise})
    return tmp_path / "runs.csv"


def test_bound_uses_facts_and_says_so(run, runs):
    facts = ["--limits", "0:100", "--increasing", "dose", "--concave", "dose",
             "--known", "dose=0 -> yield=0"]  # fmt: skip
    assert run("bound", runs, *DOSE, "--out", "plain")[0] == 0
    code, out, _ = run("bound", runs, *DOSE, *facts, "--out", "known")
    assert code == 0 and "What you know makes the band narrower" in out
    assert "yield rises with dose (" in out and "yield = 0 % where dose=0 (" in out
    bounds = np.loadtxt("known/bounds.csv", delimiter=",", skiprows=1)
    plain = np.loadtxt("plain/bounds.csv", delimiter=",", skiprows=1)
    assert np.all(bounds[:, 2] >= 0) and np.all(bounds[:, 3] <= 100)
    assert np.mean(bounds[:, 3] - bounds[:, 2]) < 0.7 * np.mean(plain[:, 3] - plain[:, 2])
    _, out, err = run("bound", runs, *DOSE, *facts, "--fixed-design", "--out", "fixed")
    assert "do not use what you know" in err and "narrower" not in out


@pytest.mark.parametrize(
    ("fact", "said"),
    [
        (["--limits", ":60"], "'yield at most 60 %'. By the data"),
        (["--decreasing", "dose"], "'yield falls with dose'. From dose="),
        (["--convex", "dose"], "'yield is convex along dose'. The contradiction is largest around"),
        (["--known", "dose=5 -> yield=10"], "'yield = 10 % where dose=5'"),
    ],
)
def test_contradicted_facts_are_named_in_words(run, runs, fact, said):
    code, _, err = run("bound", runs, *DOSE, *fact)
    assert code == 1 and f"the data contradict {said}" in err
    assert "do not contradict it, but with that line they do" in err
    run("study", "create", "a.db", *DOSE, *fact)
    run("study", "import", "a.db", runs)
    code, out, _ = run("study", "status", "a.db")
    assert code == 0 and f"The data contradict {said}" in out


def test_study_keeps_facts(run, runs):
    run("study", "create", "a.db", *DOSE, "--limits", "0:100")
    run("study", "import", "a.db", runs)
    _, out, _ = run("study", "status", "a.db")
    assert "known: yield between 0 and 100 % (makes bounds narrower at" in out
    assert "not above 100.0 %" in out
    data = json.loads(run("study", "status", "a.db", "--json")[1])
    assert data["facts"][0]["known"] == "yield between 0 and 100 %"
    assert 0 < data["facts"][0]["binding_share"] <= 1


@pytest.mark.usefixtures("few_functions")
def test_assume_says_what_facts_do(run):
    code, out, _ = run("assume", "--input", "x=0:1", "--output", "y=0:10", "--noise", 0.1,
                       "--limits", "2:8", "--known", "x=0 -> y=3", "--kernels", "any")  # fmt: skip
    assert code == 0 and "with what you know" in out and "need not have the values" in out
    assert "kernels with known norms are kept" in out


def test_pictures_shade_what_is_beyond_the_limits():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    seq = kb.ConfidenceSequence(kb.kernels.kernel_from_text("RBF(0.5)"), 2.0, 0.1)
    seq.update([[0.2], [0.8]], [0.3, 0.4])
    ax = kb.plot.band(seq, kb.Box([0.0], [1.0]), limits=(0.0, None), resolution=20)
    assert "beyond the limits" in ax.get_legend_handles_labels()[1]
    pyplot.close("all")


@pytest.mark.usefixtures("few_functions")
def test_assume_does_not_replace_a_problem_with_other_facts(run):
    said = ("assume", "--input", "x=0:1", "--output", "y=0:10", "--noise", 0.1)
    assert run(*said, "--limits", "0:10", "--kernels", "any")[0] == 0
    assert "kept" in run(*said, "--limits", "0:10", "--kernels", "any")[1]
    code, _, err = run(*said, "--kernels", "any")
    assert code == 1 and "with limits = 0:10 and not nothing" in err
    code, _, err = run(*said, "--limits", "0:10", "--increasing", "x", "--kernels", "any")
    assert code == 1 and "already exists" in err


def test_assume_says_which_shapes_are_too_rare(run, monkeypatch):
    monkeypatch.setattr(random_functions, "MOST_TRIES", 1)
    _, out, _ = run("assume", "--input", "x=0:1", "--output", "y=0:10", "--noise", 0.1,
                    "--convex", "x", "--limits", "0:")  # fmt: skip
    assert "satisfy what you know of the output: y at least 0. B" in out
    assert "For too few random functions it is true that y is convex along x" in out


@pytest.mark.usefixtures("few_functions")
def test_plan_says_what_facts_buy(run):
    small = ("--input", "x=0:1", "--input", "y=0:1", "--output", "z=0:10", "--noise", 0.3,
             "--turns", 0, "--experiments", 6, "--most", 6, "--no-compare")  # fmt: skip
    facts = ("--limits", "0:10", "--increasing", "x", "--known", "x=0 & y=1 -> z=3",
             "--known", "x=0 -> z=3 +- 3")  # fmt: skip
    code, out, _ = run("plan", *small, *facts)
    assert code == 0 and "What you know buys" in out
    assert "If z rises with x: " in out and "With all that you know: " in out
    assert "Not simulated, because random functions do not satisfy it: z = 3 ± 3 where x=0." in out
    assert "What you know buys" not in run("plan", *small, *facts, "--no-facts")[1]


def test_facts_never_make_the_simulated_band_wider():
    stated = problem("x=0:1", limits="0:60", increasing=["x"], experiments=10)
    calls = []
    worth = worth_of_facts(assume(stated, 20), 10, lambda: calls.append(1))
    assert len(calls) == worth_steps(stated, 10)
    nothing, *others = worth.half_width.values()
    assert len(others) == 3 and all(np.all(one <= nothing + 1e-9) for one in others)
    assert np.all(others[-1] <= np.minimum(*others[:2]) + 1e-3)
    assert worth.experiments(ALL, nothing[-1]) < worth.counts[-1]

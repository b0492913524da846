"""How objects look in a terminal and in a notebook: useful, escaped, quick, and never an error."""

from __future__ import annotations

import math
import time
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, strategies as st
from problems import BOUNDS
from sklearn.gaussian_process.kernels import RBF, Matern

import kernelbounds as kb
from kernelbounds.display import cards as notebook
from kernelbounds.display.numbers import at_least, at_most, interval
from kernelbounds.problem import Input, Plan, assume
from kernelbounds.problem.plans import counts_up_to
from kernelbounds.sequence import overview
from kernelbounds.study.trial import Trial

NASTY = "<script>alert('1')</script> & \"x\""


def parsed(html):
    """The card; it is well-formed, has nothing that runs, and loads nothing."""
    root = ElementTree.fromstring(html)
    for one in root.iter():
        assert one.tag.rpartition("}")[2] not in ("script", "style", "link", "img", "iframe")
        assert not any(name.startswith("on") or name == "href" for name in one.attrib)
        assert "NaN" not in one.attrib.get("d", "") and "nan" not in one.attrib.get("d", "")
    return root


def words(html):
    return " ".join("".join(parsed(html).itertext()).split())


def pictures(html):
    return [one for one in parsed(html).iter() if one.tag.endswith("}svg")]


def one_line(thing):
    text = repr(thing)
    assert "\n" not in text
    return text


# ---- numbers

FLOATS = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e100, max_value=1e100)


@given(FLOATS, FLOATS)
def test_intervals_are_rounded_outwards(a, b):
    lower, upper = min(a, b), max(a, b)
    low, high = map(float, interval(lower, upper)[1:-1].split(", "))
    assert low <= lower and upper <= high
    # By less than one in a hundred of the width, or of what can be told apart.
    assert (lower - low) + (high - upper) <= 0.021 * (upper - lower) + 1e-4 * max(abs(a), abs(b))


@given(FLOATS)
def test_bounds_are_rounded_to_the_safe_side(value):
    assert float(at_least(value)) <= value <= float(at_most(value))
    assert float(at_most(value)) - float(at_least(value)) <= 0.011 * abs(value)


def test_what_is_no_number_is_written():
    assert at_most(math.inf) == "inf" and at_least(math.nan) == "nan"
    assert interval(-math.inf, 1.0) == "[-inf, 1.00000]"
    assert interval(2.0, 2.0) == "[2.00000, 2.00000]" and interval(0.0, 0.0) == "[0, 0]"


# ---- sequences


def sequence(count, dim=1, **options):
    rng = np.random.default_rng(count)
    new = kb.ConfidenceSequence(Matern(0.3, nu=2.5), 5.0, 0.3, **options)
    if count:
        X = rng.random((count, dim))
        new.update(X, np.sin(6 * X[:, 0]) + 0.3 * rng.standard_normal(count))
    return new


def refuted():
    new = kb.ConfidenceSequence(RBF(0.5), 0.1, 0.01)
    new.update(np.linspace(0, 1, 9)[:, None], 5 * np.sin(20 * np.linspace(0, 1, 9)))
    return new


def sparse():
    box = kb.Box([0], [1])
    new = kb.ConfidenceSequence(RBF(0.3), 2.0, 0.1, engine=kb.Sparse(box.filling(16)))
    new.update(np.linspace(0, 1, 300)[:, None], np.sin(np.linspace(0, 6, 300)))
    return new


def test_a_sequence_in_a_terminal():
    text = one_line(sequence(20))
    assert text.startswith("ConfidenceSequence(Matern(length_scale=0.3, nu=2.5), norm_bound=5, ")
    assert text.endswith("with 20 observations of 1 input") and "mixture" not in text
    assert "mixture=Single" in one_line(sequence(0, mixture_scale=1.0))
    assert one_line(sequence(1, 3)).endswith("with 1 observation of 3 inputs")


@pytest.mark.parametrize("bound", BOUNDS.values(), ids=BOUNDS)
def test_the_band_of_a_sequence_is_that_of_its_bound(bound, monkeypatch):
    drawn = []
    monkeypatch.setattr(notebook, "band_picture", lambda *given: drawn.append(given) or "")
    seq = sequence(12, bound=bound)
    seq._repr_html_()
    [(x, lower, upper, points, outcomes)] = drawn
    assert points == seq.points[:, 0].tolist() and outcomes == seq.outcomes.tolist()
    expected = seq.bounds(np.array(x)[:, None])
    np.testing.assert_allclose([lower, upper], expected, rtol=1e-9, atol=1e-9)


def test_a_fixed_design_is_not_looked_at(recwarn):
    """Looks at it are counted, and one at a notebook must not be one of them."""
    seq = sequence(5, bound=kb.FixedDesign())
    assert "band of CMM" in words(seq._repr_html_())
    seq.update([0.5], 0.1)
    seq._repr_html_()
    seq.bounds([0.5])
    assert not recwarn.list


def test_cards_of_sequences():
    assert "none yet" in words(sequence(0)._repr_html_()) and not pictures(
        sequence(0)._repr_html_()
    )
    assert len(pictures(sequence(1)._repr_html_())) == 1
    assert "order" in pictures(sequence(30, 2)._repr_html_())[0].attrib["aria-label"]
    assert "refute" in words(refuted()._repr_html_())
    assert "300, of 1 input, kept as sums" in words(sparse()._repr_html_())
    level = words(sequence(5, offset=kb.Offset(1.0, within=3.0))._repr_html_())
    assert "within=3.0" in level and "1**2" not in level
    parts = kb.Parts([(RBF(0.3), 2.0), (Matern(0.2), 1.0)])
    two = words(kb.ConfidenceSequence(parts, noise_scale=0.1)._repr_html_())
    assert "with B = 2, Matern" in two


def test_many_observations_are_thinned_out():
    seq = sequence(5 * overview.MOST_FOR_BAND)
    [picture] = pictures(seq._repr_html_())
    dots = [one for one in picture.iter() if one.tag.endswith("}circle")]
    assert 0 < len(dots) <= notebook.MOST_DOTS


@pytest.mark.parametrize(
    "make",
    [
        lambda: sequence(overview.MOST_FOR_BAND),
        lambda: sequence(overview.MOST_FOR_BAND, offset=kb.Offset(0.0, within=2.0)),
        lambda: sequence(1500, 2),
        refuted,
        sparse,
    ],
    ids=["most", "parts", "many", "refuted", "sparse"],
)
def test_a_glance_is_quick(make):
    """About 50 ms at most; twice that is allowed, for a busy computer."""
    spent = []
    for _ in range(3):
        fresh = make()
        start = time.thread_time()
        fresh._repr_html_()
        spent.append(time.thread_time() - start)
    assert min(spent) < 0.1


# ---- bounds, suggestions and certificates


@pytest.mark.parametrize("bound", [*BOUNDS.values(), kb.FixedDesign()], ids=repr)
def test_bounds(bound):
    text = words(bound._repr_html_())
    assert text.startswith(f"Bound {type(bound).__name__}") and str(bound.guarantee) in text
    assert "None" not in text


class Mine(kb.Bound):
    def extremes(self, known, points, signs):
        raise RuntimeError


def test_a_bound_of_ones_own():
    assert "Bound Mine" in words(Mine()._repr_html_())
    assert len(pictures(sequence(3, bound=Mine())._repr_html_())) == 1, "that of CMM"


def test_a_certificate():
    one = kb.Certificate(np.array([0.41234]), 1.2341, 1.4563, 1.5011, None, 0.26001, index=7)
    assert one_line(one) == (
        "Certificate(x=[0.4123], index=7, value in [1.234, 1.457], maximum <= 1.502, "
        "regret <= 0.261)"
    )
    card = one._repr_html_()
    assert "within 0.261 of the best possible" in words(card) and len(pictures(card)) == 1
    least = kb.Certificate(np.array([1.0, 2.0]), 1.0, 2.0, None, 0.5, 1.5, None, {NASTY: 3.0})
    assert "minimum >= 0.5000" in one_line(least)
    assert NASTY in words(least._repr_html_()), "as text, and not as markup"


def test_a_certificate_of_nothing():
    one = kb.Certificate(np.array([0.0]), -math.inf, math.inf, math.inf, None, math.inf)
    assert "regret <= inf" in one_line(one) and not pictures(one._repr_html_())


@pytest.mark.parametrize(
    ("limit", "said"),
    [(4.0, "maximum <= 4.000)"), (-1.0, "minimum >= -1.000)"), (math.inf, "[1.00, 3.00])")],
)
def test_a_suggestion(limit, said):
    one = kb.Suggestion(np.array([0.5]), 1.0, 3.0, limit, None, {"temperature": 200.0})
    assert one_line(one).startswith("Suggestion(temperature=200, value in [1.00, 3.00]")
    assert one_line(one).endswith(said)
    assert "temperature=200" in words(one._repr_html_())


# ---- problems, plans and studies

INPUTS = ("temperature[°C]=180:220", "time[s]=1:1000:log", "count=1:5:integer:turns=1")


def problem(**changes):
    known = {"noise": 0.5, "kernel": "Matern(0.8, nu=2.5)", "norm_bound": 80.0}
    return kb.Problem(INPUTS, "yield[%]=0:100", **(known | changes))


def test_a_problem_is_written_as_it_may_be_made():
    for one in (problem(), problem(kernel=None, norm_bound=None), problem(turns=1, delta=0.05)):
        again = eval(one_line(one), {"Problem": kb.Problem})
        assert again.as_data() == one.as_data()
    assert [Input.parse(text).text for text in INPUTS] == list(INPUTS)


def test_a_problem_in_a_notebook():
    text = words(problem()._repr_html_())
    assert "180 to 220 °C" in text and "1 to 1000 s, logarithmic" in text
    assert "1 to 5, whole numbers, turns at most 1" in text and "0 to 100 %" in text
    nasty = kb.Problem([Input(NASTY, 0, 1, "<b>")], "y=0:1")
    assert NASTY in words(nasty._repr_html_()) and "to be chosen" in words(nasty._repr_html_())


class Own(RBF):
    pass


def test_a_problem_with_a_kernel_of_ones_own():
    assert "Own(length_scale=1)" in one_line(problem(kernel=Own()))


def test_a_plan():
    assumed = assume(kb.Problem(["x=0:1"], "y[mm]=-1:1", 0.1, 1, experiments=10), functions=8)
    counts = counts_up_to(40)
    width = 2.0 / counts
    plan = Plan(assumed, counts, width, width, width, width, width)
    assert one_line(plan) == (
        "Plan(y [mm] at most ±0.400 after 5, ±0.182 after 11, ±0.0800 after 25, "
        "±0.0500 after 40 experiments)"
    )
    assert len(pictures(plan._repr_html_())) == 1
    assert "8 random functions" in one_line(assumed)


def test_a_trial():
    one = Trial(3, {"temperature": 201.5, NASTY: 1.0}, 60.0, 57.0, 62.25, 5.251)
    assert one_line(one).startswith("Trial(3: temperature=201.5, ") and "5.26)" in one_line(one)
    assert NASTY in words(one._repr_html_())
    assert "nan" in one_line(Trial(1, {}, math.nan, math.nan, math.nan, math.nan))


def test_a_study(tmp_path):
    simple = problem(turns=1).replace(inputs=["x=0:9:integer"])  # certified in no time
    simple = simple.replace(kernel="Matern(0.8, nu=2.5)", norm_bound=80.0)
    with kb.Study.create(tmp_path / "<b>.db", simple, stop_within=5.0) as study:
        assert one_line(study).endswith("<b>.db') with 0 observations of yield [%] over x")
        assert "ask for a trial" in words(study._repr_html_())
        for x, y in ((1, 40.0), (9, 60.0)):
            study.tell([x], y)
            study.certificate(0.2)
        study.ask()
        card = study._repr_html_()
        assert len(pictures(card)) == 1 and "logarithmic" in pictures(card)[0].attrib["aria-label"]
        assert "trial 3 pending" in words(card) and "aimwithin 5 %" in words(card)
        status = study.status(0.2)
        assert repr(status) == str(status)
        card = status._repr_html_()
        assert len(pictures(card)) == 1 and "Go on" in words(card)
    assert one_line(study).endswith("over x, closed") and "closed" in words(study._repr_html_())


# ---- whatever happens


def test_nothing_that_fails_stops_a_notebook():
    class Broken:
        def __repr__(self):
            raise RuntimeError(NASTY)

    def fail():
        raise RuntimeError

    assert words(notebook.shown(NASTY, fail)) == repr(NASTY)
    assert words(notebook.shown(Broken(), fail)) == "<Broken>"


def test_pictures_of_odd_numbers():
    odd = [math.nan, math.inf, -math.inf, 1e308, -1e308, 0.0]
    parsed(notebook.band_picture(odd, odd, odd, odd, odd))
    parsed(notebook.order_picture(odd))
    parsed(notebook.order_picture([]))
    parsed(notebook.line_picture(range(6), odd, "odd", log=True, aim=1.0))
    assert notebook.line_picture([], [], "none") == ""
    parsed(notebook.interval_picture(-1e308, 1e308, math.nan, NASTY))

"""The public face: the confidence sequence, the functions, saving."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest
from problems import BOUNDS, KERNELS, observe, sequence, truth
from sklearn.gaussian_process.kernels import RBF, DotProduct, Kernel, Matern
from typer.testing import CliRunner

import kernelbounds as kb
from kernelbounds import cli
from kernelbounds.functionals import Derivative, Difference


@pytest.fixture
def seq():
    return sequence(Matern(0.5, nu=2.5), np.random.default_rng(0), 20)[0]


@pytest.mark.parametrize("bound", BOUNDS.values(), ids=BOUNDS)
def test_without_data_the_bound_is_the_prior(bound):
    kernel = KERNELS["scaled sum"]
    empty = kb.ConfidenceSequence(kernel, 3.0, 0.1, bound=bound)
    X = np.random.default_rng(0).random((4, 2))
    lower, upper = empty.bounds(X)
    prior = 3.0 * np.sqrt(kernel.diag(X))  # which bounds are rounded up from
    assert np.all((prior <= upper) & (upper <= prior * (1 + 1e-14)))
    np.testing.assert_array_equal(lower, -upper)
    assert empty.norm_lower_bound == 0
    assert len(empty) == 0


def test_radius_without_data():
    empty = kb.ConfidenceSequence(RBF(), 2.0, 0.5, delta=0.1, mixture_scale=1.0)
    assert empty.radius == pytest.approx(0.5 * np.sqrt(2 * np.log(10)))
    assert empty.ridge_radius(4.0) == pytest.approx(np.sqrt(empty.radius**2 + 16))


def test_one_observation_in_any_shape():
    answers = []
    for x, y in (([0.2, 0.3], 1.0), ([[0.2, 0.3]], [1.0]), ([[0.2, 0.3]], 1.0)):
        one = kb.ConfidenceSequence(RBF(), 2.0, 0.1)
        one.update(x, y)
        answers.append(one.bounds([[0.5, 0.5]]))
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], answers[2])


def test_the_callers_kernel_is_not_shared():
    kernel = RBF(0.5)
    seq = kb.ConfidenceSequence(kernel, 2.0, 0.1)
    kernel.length_scale = 99.0
    assert seq.kernel.length_scale == 0.5


def test_zero_variance_points():
    """k(x,x) = 0 pins f(x) to zero."""
    seq = kb.ConfidenceSequence(DotProduct(sigma_0=0.0), 2.0, 0.1)
    seq.update([[0.0, 0.0], [1.0, 0.0]], [0.05, 1.0])
    for bound in BOUNDS.values():
        lower, upper = seq.bounds([[0.0, 0.0], [1.0, 1.0]], bound)
        assert lower[0] == upper[0] == 0
        assert lower[1] < upper[1]


def test_zero_norm_bound():
    seq = kb.ConfidenceSequence(RBF(), 0.0, 0.5)
    seq.update([[0.1], [0.2]], [0.1, -0.2])
    np.testing.assert_array_equal(seq.bounds([[0.15]]), [[0.0], [0.0]])


def test_far_away_the_data_still_use_up_some_of_the_norm(seq):
    """Where no observation reaches, max f(x)^2 = (B^2 - B_min^2) k(x,x)."""
    lower, upper = seq.bounds([[1e6, 1e6]])
    left = np.sqrt(25.0 - seq.norm_lower_bound**2)
    np.testing.assert_allclose([lower[0], upper[0]], [-left, left], rtol=1e-6)
    np.testing.assert_allclose(seq.bounds([[1e6, 1e6]], kb.AY()), [[-5.0], [5.0]])


@pytest.mark.parametrize("bound", [kb.CMM(), kb.DMM()])
def test_refuted_assumptions(bound):
    seq = kb.ConfidenceSequence(RBF(0.5), 1.0, 0.1, bound=bound)
    rng = np.random.default_rng(0)
    X = rng.random((30, 1))
    seq.update(X, 8 * np.sin(9 * X[:, 0]))
    least = seq.norm_lower_bound
    assert least > 1
    with pytest.raises(kb.EmptyConfidenceSetError, match="norm_bound must be at least") as caught:
        seq.bounds([[0.5]])
    assert caught.value.norm_lower_bound == least
    for word in ("noise_scale", "kernel"):
        assert word in str(caught.value)


def test_contradictory_outcomes_without_noise_refute_every_norm():
    seq = kb.ConfidenceSequence(RBF(0.5), 10.0, 0.0)
    seq.update([[0.5]] * 40, np.tile([-3.0, 3.0], 20))
    assert seq.norm_lower_bound == np.inf
    with pytest.raises(kb.EmptyConfidenceSetError, match="however large"):
        seq.bounds([[0.1]])


# Of these, 14, 51, 66 and 76 need the values between the ridges that are tried.
@pytest.mark.parametrize("seed", [0, 1, 2, 3, 14, 51, 66, 76])
@pytest.mark.parametrize("missing", [0.3, 1e-2, 1e-4, 1e-8])
def test_every_query_of_cmm_notices_that_no_function_is_left(seed, missing):
    seq, x = refuted(seed, missing, kb.CMM())
    queries = (
        lambda: seq.bounds([x]),
        lambda: seq.upper([x]),
        lambda: seq.lower([[50.0, 50.0]]),
        lambda: seq.bounds_of(Difference(x, seq.points[0])),
        lambda: seq.bounds_of(Derivative(x, axis=0)),
        lambda: seq.gradients([x]),
        lambda: seq.surface(1).ceilings(x[None], np.full((1, 2), 0.1)),
        lambda: kb.KernelUCB(seq).ask(actions=seq.points),
    )
    for query in queries:
        with pytest.raises(kb.EmptyConfidenceSetError):
            query()


@pytest.mark.parametrize("seed", range(8))
def test_ellipsoids_notice_what_their_own_ridges_tell(seed):
    seq, x = refuted(seed, 0.05, kb.AMM())
    c = seq.known.reference_ridge
    for bound, ridges in ((kb.AMM(), [c]), (kb.DMM([c, 8 * c]), [c, 8 * c]), (kb.AY(), [])):
        if np.isnan([seq.ridge_radius(ridge) for ridge in ridges]).any():
            with pytest.raises(kb.EmptyConfidenceSetError):
                seq.bounds_of(Difference(x, seq.points[0]), bound)
        else:
            seq.upper([x], bound)
    assert seq.norm_lower_bound > seq.assumptions.norm_bound  # which always tells


def refuted(seed, missing, bound):
    """Data that need a norm which B is below, by a relative difference, and a place."""
    rng = np.random.default_rng(seed)
    kernel = [Matern(0.5, nu=2.5), RBF(0.3), Matern(0.3, nu=1.5), RBF(1.0)][rng.integers(4)]
    t = int(rng.choice([2, 5, 20, 60, 100]))
    X = rng.random((t, 2))
    f = kb.RKHSFunction(kernel, rng.random((10, 2)), rng.standard_normal(10)).rescaled(4.0)
    noise_scale = 10.0 ** -rng.integers(0, 5)
    y = f(X) + noise_scale * rng.standard_normal(t)

    def of_norm(norm_bound):
        mixture = kb.mixtures.Hybrid(relative_scale=0.03 / norm_bound**2)
        seq = kb.ConfidenceSequence(kernel, norm_bound, noise_scale, mixture=mixture, bound=bound)
        seq.update(X, y)
        return seq

    seq = of_norm((1 - missing) * of_norm(1.0).norm_lower_bound)
    assert seq.norm_lower_bound > seq.assumptions.norm_bound > 0
    return seq, rng.random(2)


def test_an_outlier_is_noticed_at_once():
    seq = kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1)
    rng = np.random.default_rng(0)
    for _ in range(40):
        seq.update(rng.random(1), 0.1 * rng.standard_normal())
        seq.bounds([[0.5]])
    seq.update([0.5], 50.0)
    with pytest.raises(kb.EmptyConfidenceSetError):
        seq.bounds([[0.5]])


def test_norm_lower_bound_approaches_the_norm():
    rng = np.random.default_rng(0)
    kernel = RBF(0.3)
    function = truth(kernel, rng, 7.0, dim=1)
    seq = kb.ConfidenceSequence(kernel, 20.0, 0.01)
    seq.update(*observe(function, rng, 200, 0.01, dim=1))
    assert 4.0 < seq.norm_lower_bound <= 7.0


def test_contains(seq):
    function = kb.RKHSFunction(seq.kernel, [[0.2, 0.1]], [1.0])
    assert not seq.contains(function)
    assert not seq.contains(function.rescaled(100.0))
    with pytest.raises(kb.InputError, match="kernel"):
        seq.contains(kb.RKHSFunction(RBF(0.3), [[0.2, 0.1]], [1.0]))
    with pytest.raises(kb.InputError, match="RKHSFunction"):
        seq.contains(lambda x: x)


def test_rkhs_function():
    rng = np.random.default_rng(0)
    kernel = KERNELS["product"]
    centres, weights = rng.random((5, 2)), rng.standard_normal(5)
    f = kb.RKHSFunction(kernel, centres, weights)
    X = rng.random((3, 2))
    np.testing.assert_allclose(f(X), kernel(X, centres) @ weights)
    assert f.norm == pytest.approx(np.sqrt(weights @ kernel(centres) @ weights))
    assert f.rescaled(2.5).norm == pytest.approx(2.5)
    np.testing.assert_allclose(f.rescaled(2 * f.norm)(X), 2 * f(X))


def test_mixture_scale():
    assert kb.mixture_scale(RBF(), dim=3, horizon=1000) == 1
    assert kb.mixture_scale(Matern(nu=2.5), 3, 1000) == pytest.approx(1000 ** (-3 / 11))
    assert kb.mixture_scale(4.0 * Matern(nu=1.5), 2, 50) == pytest.approx(50 ** (-2 / 7))
    with pytest.raises(kb.InputError, match="smoothness"):
        kb.mixture_scale(DotProduct(), 1, 10)


class Brownian(Kernel):
    """A user's own kernel: min(x, y) on the half line."""

    def __init__(self):
        pass

    def __call__(self, X, Y=None, eval_gradient=False):
        Y = X if Y is None else Y
        return np.minimum(np.asarray(X), np.asarray(Y).T)

    def diag(self, X):
        return np.asarray(X)[:, 0].copy()

    def is_stationary(self):
        return False


@pytest.mark.parametrize("t", [0, 1, 30, 300])
@pytest.mark.parametrize("name", ["matern 5/2", "scaled sum", "matern 1/2, anisotropic"])
def test_saved_and_loaded(tmp_path, name, t):
    rng = np.random.default_rng(0)
    original, function = sequence(KERNELS[name], rng, 0, bound=kb.DMM(ridges=[0.1, 2.0]))
    X, y = observe(function, rng, t + 40, 0.1)
    for i in range(t):  # one by one, as an experiment would
        original.update(X[i], y[i])
    file = tmp_path / "state.npz"
    original.save(file)
    loaded = kb.ConfidenceSequence.load(file)
    assert loaded.bound == original.bound
    assert loaded.assumptions == original.assumptions
    assert loaded.kernel == original.kernel
    Q = rng.random((6, 2))
    for more in (0, 40):
        for s in (original, loaded):
            if more:
                s.update(X[t : t + more], y[t : t + more])
        for bound in (None, kb.CMM(), kb.AMM()):
            np.testing.assert_array_equal(original.bounds(Q, bound), loaded.bounds(Q, bound))
    assert list(tmp_path.iterdir()) == [file]


def test_a_kernel_of_ones_own(tmp_path):
    seq = kb.ConfidenceSequence(Brownian(), 2.0, 0.1)
    seq.update([[0.5], [1.0]], [0.3, 0.4])
    lower, upper = seq.bounds([[0.7]])
    assert lower[0] < 0.4 < upper[0]
    seq.save(tmp_path / "own.npz")
    with pytest.raises(kb.InputError, match="kernel="):
        kb.ConfidenceSequence.load(tmp_path / "own.npz")
    with pytest.raises(kb.InputError, match="kernel must be"):
        kb.ConfidenceSequence.load(tmp_path / "own.npz", kernel="Brownian")
    loaded = kb.ConfidenceSequence.load(tmp_path / "own.npz", kernel=Brownian())
    np.testing.assert_array_equal(loaded.bounds([[0.7]]), (lower, upper))


def test_files_that_cannot_be_read(tmp_path, seq):
    good = tmp_path / "good.npz"
    seq.save(good)
    content = good.read_bytes()
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "truncated.npz").write_bytes(content[: len(content) // 2])
    (tmp_path / "text.npz").write_text("hello")
    np.savez(tmp_path / "foreign.npz", a=np.arange(3))
    np.save(tmp_path / "array.npy", np.arange(3))
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]
    (tmp_path / "flipped.npz").write_bytes(flipped)
    with np.load(good) as file:
        arrays = dict(file)
    header = json.loads(bytes(arrays["header"]))
    for name, change in {
        "version": {"header": _packed({**header, "version": 99})},
        "other format": {"header": _packed({**header, "format": "else"})},
        "bad bound": {"header": _packed({**header, "bound": {"name": "open"}})},
        "bad kernel": {"header": _packed({**header, "kernel": {"class": "Pickle", "params": {}}})},
        "kernel 3": {"header": _packed({**header, "kernel": 3})},
        "no kernel": {"header": _packed({**header, "kernel": {}})},
        "short": {"outcomes": arrays["outcomes"][:-1]},
        "nan": {"outcomes": arrays["outcomes"] * np.nan},
    }.items():
        np.savez(tmp_path / f"{name}.npz", **{**arrays, **change})
    for file in sorted({*tmp_path.iterdir(), tmp_path / "absent.npz"} - {good}):
        with pytest.raises(kb.KernelBoundsError) as caught:
            kb.ConfidenceSequence.load(file)
        assert "\n" not in str(caught.value).strip(), file
    assert zipfile.is_zipfile(good)


def _packed(header):
    return np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)


def test_a_failed_save_leaves_the_old_file(tmp_path, seq, monkeypatch):
    file = tmp_path / "state.npz"
    seq.save(file)
    content = file.read_bytes()

    def interrupted(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        seq.save(file)
    assert file.read_bytes() == content
    assert list(tmp_path.iterdir()) == [file]


def test_the_extra_to_install_is_named(capsys, monkeypatch):
    def missing(**_):
        raise kb.MissingExtraError("Drawing", "plot")

    monkeypatch.setattr(cli, "app", missing)
    with pytest.raises(SystemExit):
        cli.main()
    assert "kernelbounds[plot]" in capsys.readouterr().err


def test_help_and_version():
    assert "demo" in CliRunner().invoke(cli.app, ["--help"]).output
    assert kb.__version__ in CliRunner().invoke(cli.app, ["--version"]).output


@pytest.mark.parametrize("name", ["norm_bound", "noise_scale", "delta", "bound", "facts"])
def test_what_was_stated_cannot_be_changed(name):
    seq = kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1)
    with pytest.raises(AttributeError, match="make another ConfidenceSequence"):
        setattr(seq, name, 3.0)

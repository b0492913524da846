"""The door to BoTorch: bounds as acquisition functions, and the beta of a model's own."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

import kernelbounds as kb
from kernelbounds.bandits.batches import with_imagined_outcomes

torch = pytest.importorskip("torch")
pytest.importorskip("botorch")

from botorch.acquisition import UpperConfidenceBound  # noqa: E402
from botorch.models import SingleTaskGP  # noqa: E402
from botorch.models.transforms.input import Normalize, Warp  # noqa: E402
from botorch.optim import optimize_acqf  # noqa: E402
from gpytorch.kernels import (  # noqa: E402
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    RBFKernel,
    ScaleKernel,
)
from gpytorch.likelihoods import GaussianLikelihoodWithMissingObs  # noqa: E402
from gpytorch.means import ConstantMean, LinearMean, ZeroMean  # noqa: E402
from gpytorch.settings import max_cholesky_size  # noqa: E402

from kernelbounds.integrations.botorch import ConfidenceBound, valid_beta  # noqa: E402

SQUARE = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
KERNEL = Matern(length_scale=0.5, nu=2.5)


def sequence(count=30, kernel=KERNEL, seed=0, **options):
    rng = np.random.default_rng(seed)
    truth = kb.RKHSFunction(KERNEL, rng.random((8, 2)), rng.standard_normal(8)).rescaled(2.0)
    X = rng.random((count, 2))
    seq = kb.ConfidenceSequence(kernel, 3.0, 0.1, **options)
    if count:
        seq.update(X, truth(X) + 0.1 * rng.standard_normal(count))
    return seq


def points(count=20, seed=1):
    return torch.tensor(np.random.default_rng(seed).random((count, 1, 2)))


SEQUENCES = {
    "CMM": {},
    "AMM": {"bound": kb.AMM()},
    "DMM": {"bound": kb.DMM()},
    "AY": {"bound": kb.AY()},
    "no data": {"count": 0},
    "level": {"offset": kb.Offset(1.0, within=2.0)},
    "a fact": {"facts": [kb.facts.Between(-2.5, 2.5)]},
    "classes": {"kernel": kb.AnyOf([(RBF(0.4), 3.0), (KERNEL, 2.5)])},
    "sparse": {"engine": kb.Sparse()},
}


def made(name):
    options = dict(SEQUENCES[name])
    if "kernel" in options:
        rng, seq = np.random.default_rng(0), kb.ConfidenceSequence(options["kernel"], None, 0.1)
        X = rng.random((30, 2))
        seq.update(X, np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(30))
        return seq
    return sequence(**options)


@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.parametrize("smooth", [False, True], ids=["values", "with gradients"])
def test_values_are_those_of_the_sequence(name, smooth):
    seq, X = made(name), points().requires_grad_(smooth)
    lower, upper = seq.bounds(points().numpy()[:, 0])
    for side, expected in (("lower", lower), ("upper", upper)):
        for minimise, sign in ((False, 1), (True, -1)):
            found = ConfidenceBound(seq, side, minimise=minimise)(X)
            assert found.shape == (20,) and found.dtype == torch.double
            np.testing.assert_allclose(found.detach(), sign * expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", ["CMM", "AMM", "level", "a fact", "sparse"])
@pytest.mark.parametrize("side", ["upper", "lower"])
def test_gradients_are_those_of_the_values(name, side):
    acquisition = ConfidenceBound(made(name), side, minimise=side == "lower")
    X = points(4).requires_grad_()
    # CMM's search for the best ridge is good to about 1e-9, so steps must not be tiny.
    assert torch.autograd.gradcheck(acquisition, (X,), eps=1e-4, atol=1e-4, rtol=1e-4)


def test_shapes_of_batches():
    acquisition, X = ConfidenceBound(sequence()), points(6)
    assert acquisition(X.reshape(2, 3, 1, 2)).shape == (2, 3)
    torch.testing.assert_close(acquisition(X.reshape(2, 3, 1, 2)).ravel(), acquisition(X))
    assert acquisition(X[0]).shape == (1,)  # as BoTorch's own functions have it
    with pytest.raises(AssertionError, match="q=1"):
        acquisition(X.reshape(3, 2, 2))


def test_the_bound_follows_the_sequence():
    seq, X = sequence(), points()
    acquisition = ConfidenceBound(seq)
    before = acquisition(X)
    seq.update([[0.5, 0.5]], seq.estimate([[0.5, 0.5]]))
    assert acquisition(X).ne(before).any()
    np.testing.assert_allclose(acquisition(X), seq.upper(X[:, 0].numpy()), atol=1e-8)


def search(acquisition, **options):
    torch.manual_seed(0)
    return optimize_acqf(
        acquisition, SQUARE, **{"q": 1, "num_restarts": 4, "raw_samples": 64, **options}
    )


@pytest.mark.parametrize("minimise", [False, True])
def test_optimize_acqf_finds_the_choice_of_kernel_ucb(minimise):
    seq = sequence()
    own = kb.KernelUCB(seq, kb.Box([0, 0], [1, 1]), minimise=minimise).ask()
    side = "lower" if minimise else "upper"
    x, value = search(ConfidenceBound(seq, side, minimise=minimise))
    expected = -own.lower if minimise else own.upper
    assert abs(float(value) - expected) < 1e-5
    np.testing.assert_allclose(x[0], own.x, atol=1e-3)


def test_constraints_and_fixed_features():
    seq = sequence()
    acquisition, grid = ConfidenceBound(seq), np.linspace(0, 1, 51)
    # x0 + x1 <= 0.8, which is -x0 - x1 >= -0.8 to BoTorch
    line = (torch.tensor([0, 1]), -torch.ones(2, dtype=torch.double), -0.8)
    x, value = search(acquisition, inequality_constraints=[line])
    assert x.sum() <= 0.8 + 1e-6
    pairs = np.array([[a, b] for a in grid for b in grid if a + b <= 0.8])
    assert float(value) >= seq.upper(pairs).max() - 1e-4
    x, value = search(acquisition, fixed_features={1: 0.25})
    assert float(x[0, 1]) == 0.25
    assert float(value) >= seq.upper(np.column_stack([grid, np.full(51, 0.25)])).max() - 1e-4


def test_pending_points_have_imagined_outcomes():
    seq, X = sequence(5), points()
    acquisition = ConfidenceBound(seq)
    acquisition.set_X_pending(X[:2, 0])
    imagined = with_imagined_outcomes(seq, X[:2, 0].numpy())
    np.testing.assert_allclose(acquisition(X), imagined.upper(X[:, 0].numpy()), atol=1e-8)


def test_several_points_are_chosen_in_turn():
    seq = sequence(5)
    acquisition = ConfidenceBound(seq)
    x, _ = search(acquisition, q=3, sequential=True)
    assert torch.pdist(x).min() > 0.2  # none is chosen twice, as the best would be
    assert acquisition.X_pending is None and len(seq) == 5  # nothing imagined is left behind
    np.testing.assert_allclose(acquisition(x[:, None]), seq.upper(x.numpy()), atol=1e-8)


def test_pending_points_are_imagined_anew_when_outcomes_arrive():
    seq, X = sequence(5), points()
    acquisition = ConfidenceBound(seq)
    acquisition.set_X_pending(X[0])
    seq.update(X[1].numpy(), [0.2])
    fresh = ConfidenceBound(seq)
    fresh.set_X_pending(X[0])
    torch.testing.assert_close(acquisition(X), fresh(X))


def test_a_kernel_without_gradients():
    class Own(Matern):
        """A kernel of which only values are known."""

    acquisition = ConfidenceBound(sequence(kernel=Own(0.5, nu=2.5)))
    assert acquisition(points()).shape == (20,)
    with pytest.raises(kb.InputError, match="with_grad"):
        acquisition(points().requires_grad_())
    x, _ = search(acquisition, num_restarts=1, raw_samples=8,
                  options={"with_grad": False, "maxiter": 3})  # fmt: skip
    assert x.shape == (1, 2)


def test_what_is_no_acquisition_is_refused():
    seq = sequence()
    with pytest.raises(kb.InputError, match="side must be 'upper' or 'lower', got 'both'"):
        ConfidenceBound(seq, "both")
    with pytest.raises(kb.InputError, match="ConfidenceSequence, got 3"):
        ConfidenceBound(3)
    with pytest.raises(kb.InputError, match="minimise must be True or False"):
        ConfidenceBound(seq, minimise=1)
    with pytest.raises(kb.InputError, match=r"torch\.float32"):
        ConfidenceBound(seq)(points().float())
    with pytest.raises(kb.InputError, match="bound must be"):
        ConfidenceBound(seq, bound="CMM")


def test_a_refutation_is_raised():
    seq = kb.ConfidenceSequence(KERNEL, 1.0, 0.1)
    seq.update([[0.1, 0.1], [0.5, 0.5], [0.9, 0.9]], [9.0, -9.0, 9.0])
    for smooth in (False, True):
        with pytest.raises(kb.EmptyConfidenceSetError):
            ConfidenceBound(seq)(points().requires_grad_(smooth))


def double(value):
    return torch.tensor(value, dtype=torch.double)  # GPyTorch rounds numbers to single precision


def model(kernel=None, scale=None, noise=0.02, mean=None, X=None, y=None, fixed=True, **options):
    """A model of 25 observations on a square of sides 2 and 4, with nothing left to fit."""
    rng = np.random.default_rng(3)
    X = torch.tensor(rng.random((25, 2)) * [2.0, 4.0]) if X is None else X
    y = torch.sin(X.sum(-1, keepdim=True)) + 1 if y is None else y
    if kernel is None:
        kernel = RBFKernel(ard_num_dims=2).double()
        kernel.lengthscale = double([0.7, 1.1])
    if scale is not None:
        kernel = ScaleKernel(kernel).double()
        kernel.outputscale = double(scale)
    mean = ZeroMean() if mean is None else mean
    given = {"outcome_transform": None, "covar_module": kernel, "mean_module": mean, **options}
    found = SingleTaskGP(X, y, **given)
    if "likelihood" not in options and "train_Yvar" not in options:
        found.likelihood.noise = double(noise)
    return found.requires_grad_(not fixed)


def matern():
    kernel = MaternKernel(nu=1.5).double()
    kernel.lengthscale = double(0.8)
    return kernel


def constant(value):
    mean = ConstantMean().double()
    mean.constant = double(value)
    return mean


def posterior_of(found, X):
    posterior = found.posterior(X)
    return posterior.mean.numpy()[:, 0], posterior.variance.sqrt().numpy()[:, 0]


MODELS = {
    "RBF": (lambda: model(), RBF([0.7, 1.1]), 1.0, 0.0, 0.02),
    "scaled": (lambda: model(scale=7.0), RBF([0.7, 1.1]), 7.0, 0.0, 0.02),
    "scaled Matern": (lambda: model(matern(), 0.3), Matern(0.8, nu=1.5), 0.3, 0.0, 0.02),
    "mean": (lambda: model(mean=constant(0.9), noise=0.5), RBF([0.7, 1.1]), 1.0, 0.9, 0.5),
    "known noise": (
        lambda: model(train_Yvar=torch.full((25, 1), 0.04, dtype=torch.double)),
        RBF([0.7, 1.1]), 1.0, 0.0, 0.04,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_beta_gives_the_bounds_of_amm(name):
    make, kernel, scale, level, variance = MODELS[name]
    found, X = make(), points(50)[:, 0] * torch.tensor([2.0, 4.0])
    beta = valid_beta(found, 4.0, 0.1, delta=0.05)
    amm = kb.AMM(ridge=variance / scale)
    seq = kb.ConfidenceSequence(kernel, 4.0, 0.1, 0.05, offset=level, bound=amm)
    seq.update(found.train_inputs[0].numpy(), found.train_targets.numpy())
    upper, lower = (s * seq.surface(s).values(X.numpy()) for s in (1, -1))  # before clipping
    acquisition = UpperConfidenceBound(found, beta=beta)
    np.testing.assert_allclose(acquisition(X[:, None]).numpy(), upper, rtol=0, atol=1e-6)
    middle, deviation = posterior_of(found, X)
    half = beta**0.5 * deviation
    np.testing.assert_allclose(middle - half, lower, rtol=0, atol=1e-6)
    # Never narrower, but for rounding errors, of which ours are on the safe side.
    assert (2 * half >= upper - lower - 1e-9).all()


def test_beta_on_normalised_inputs():
    stated = Normalize(2, bounds=torch.tensor([[0.0, 0.0], [2.0, 4.0]], dtype=torch.double))
    found = model(input_transform=stated)
    before = valid_beta(found, 8.0, 0.1)
    found.posterior(points(3)[:, 0])  # which leaves transformed inputs in the model
    assert found._has_transformed_inputs and valid_beta(found, 8.0, 0.1) == before
    plain = model(X=found.train_inputs[0], y=found.train_targets[:, None])
    assert valid_beta(plain, 8.0, 0.1) == pytest.approx(before, rel=1e-12)


def test_bounds_with_beta_hold_at_all_times():
    """In 20 runs of 6 rounds at delta = 0.2, where x maximises the model's own bound on a grid."""
    grid, failures = np.linspace(0, 1, 21)[:, None], 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = kb.RKHSFunction(RBF(0.3), rng.random((5, 1)), rng.standard_normal(5)).rescaled(1.0)
        X, y, values, wrong = grid[:1], truth(grid[:1]), truth(grid), False
        for _ in range(6):
            kernel = RBFKernel().double()
            kernel.lengthscale = double(0.3)
            found = model(kernel, 2.0, 0.3, X=torch.tensor(X), y=torch.tensor(y)[:, None])
            middle, deviation = posterior_of(found, torch.tensor(grid))
            half = valid_beta(found, 1.0, 0.5, delta=0.2) ** 0.5 * deviation
            wrong |= bool((np.abs(values - middle) > half + 1e-9).any())
            at = int((middle + half).argmax())
            X = np.concatenate([X, grid[[at]]])
            y = np.append(y, values[at] + 0.5 * rng.standard_normal())
        failures += wrong
    assert failures <= 10  # exceeded with a probability of 0.0006 at a failure rate of 0.2


def test_only_the_scale_and_the_noise_may_be_left_free():
    found = model(scale=2.0, mean=constant(0.5), fixed=False)
    with pytest.warns(UserWarning, match=r"base_kernel\.raw_lengthscale and mean_module"):
        first = valid_beta(found, 4.0, 0.1)
    found.covar_module.base_kernel.requires_grad_(False)
    found.mean_module.requires_grad_(False)
    assert valid_beta(found, 4.0, 0.1) == first  # without a warning, which would be an error


def two_outputs():
    X = points(5)[:, 0]
    return SingleTaskGP(X, X, outcome_transform=None)


def single_precision():
    X = points(5)[:, 0].float()
    return SingleTaskGP(X, X[:, :1], outcome_transform=None)


def unequal():
    return torch.linspace(0.1, 0.2, 25, dtype=torch.double)[:, None]


class OwnGP(SingleTaskGP):
    """A model whose posterior may be anything."""


REFUSED = {
    "SingleTaskGP, got OwnGP": lambda: OwnGP(points()[:, 0], points()[:, 0, :1]),
    "SingleTaskGP, got int": lambda: 3,
    "outcomes have the shape": two_outputs,
    "float32": single_precision,
    "outcome transform Standardize": lambda: SingleTaskGP(points()[:, 0], points()[:, 0, :1]),
    "input transform Normalize": lambda: model(input_transform=Normalize(2)),
    "input transform Warp": lambda: model(
        input_transform=Warp(2, indices=[0], bounds=4 * SQUARE), X=points(25)[:, 0]
    ),
    "covariance is PeriodicKernel": lambda: model(PeriodicKernel()),
    "covariance is AdditiveKernel": lambda: model(RBFKernel() + LinearKernel()),
    "on all inputs": lambda: model(RBFKernel(active_dims=[0])),
    "noise variances are between 0.1 and 0.2": lambda: model(train_Yvar=unequal()),
    "likelihood is a GaussianLikelihoodWithM": lambda: model(
        likelihood=GaussianLikelihoodWithMissingObs()
    ),
    "mean is LinearMean": lambda: model(mean=LinearMean(2)),
}


@pytest.mark.parametrize("sentence", REFUSED)
@pytest.mark.filterwarnings("ignore::UserWarning")  # BoTorch's, of inputs that are not scaled
def test_models_without_a_valid_beta_are_refused(sentence):
    with pytest.raises(kb.InputError, match=sentence):
        valid_beta(REFUSED[sentence](), 4.0, 0.1)


def test_approximate_posteriors_are_refused():
    with max_cholesky_size(10), pytest.raises(kb.InputError, match="more than 10 GPyTorch's"):
        valid_beta(model(), 4.0, 0.1)


def test_beta_of_refuted_assumptions():
    with pytest.raises(kb.EmptyConfidenceSetError):
        valid_beta(model(), 0.01, 0.001)


def test_the_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "botorch.acquisition", None)
    monkeypatch.delitem(sys.modules, "kernelbounds.integrations.botorch")
    wanted = r"needs an optional dependency: pip install 'kernelbounds\[botorch\]'"
    with pytest.raises(kb.MissingExtraError, match=wanted):
        importlib.import_module("kernelbounds.integrations.botorch")

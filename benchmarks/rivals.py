"""Gaussian processes that a user would pick, each told the kernel's family and the noise.

Amplitude and length scale are fitted by maximum likelihood, from 1, as their documentation does. A
rival returns a mean and a standard deviation of f at points. Its intervals, mean +- 2 standard
deviations, are posterior ones: they hold for 95 % of functions drawn from the prior that was
fitted, not for each function.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import kernelbounds as kb
from benchmarks.problem import Array

Intervals = Callable[[Array, Array, Array], tuple[Array, Array]]

NORM, NOISE, DIM, LENGTH_SCALE = 10.0, 0.1, 3, 0.5
# As in GPyTorch's tutorial on stochastic variational regression, but for the number of inducing
# points, of which we use as many ourselves; with few data there are more epochs, so that there are
# as many steps.
MINIBATCH, LEARNING_RATE, EPOCHS, LEAST_STEPS = 1024, 0.01, 4, 400


def kernel_of(name: str) -> RBF | Matern:
    return RBF(LENGTH_SCALE) if name == "rbf" else Matern(LENGTH_SCALE, nu=2.5)


def exact_gp(name: str) -> Intervals:
    """scikit-learn's GaussianProcessRegressor."""

    def intervals(X: Array, y: Array, queries: Array) -> tuple[Array, Array]:
        shape = RBF(1.0) if name == "rbf" else Matern(1.0, nu=2.5)
        process = GaussianProcessRegressor(ConstantKernel(1.0) * shape, alpha=NOISE**2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            process.fit(X, y)
        mean, deviation = process.predict(queries, return_std=True)
        return mean - 2 * deviation, mean + 2 * deviation

    return intervals


def sparse_gp(name: str, inducing: int, double: bool = False) -> Intervals:
    """GPyTorch's SVGP."""
    import gpytorch
    import torch

    torch.set_num_threads(1)

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self, points: torch.Tensor) -> None:
            distribution = gpytorch.variational.CholeskyVariationalDistribution(len(points))
            super().__init__(
                gpytorch.variational.VariationalStrategy(
                    self, points, distribution, learn_inducing_locations=True
                )
            )
            shape = (
                gpytorch.kernels.RBFKernel()
                if name == "rbf"
                else gpytorch.kernels.MaternKernel(nu=2.5)
            )
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(shape)

        def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    def intervals(X: Array, y: Array, queries: Array) -> tuple[Array, Array]:
        kind = torch.float64 if double else torch.float32
        torch.manual_seed(0)
        inputs, outputs = (torch.as_tensor(part, dtype=kind) for part in (X, y))
        chosen = torch.randperm(len(inputs))[: min(inducing, len(inputs))]
        model = Model(inputs[chosen].clone()).to(kind)
        likelihood = gpytorch.likelihoods.GaussianLikelihood().to(kind)
        likelihood.noise = NOISE**2
        likelihood.raw_noise.requires_grad_(False)
        objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(outputs))
        optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
        size = min(MINIBATCH, len(outputs))
        steps = max(EPOCHS * len(outputs) // size, LEAST_STEPS)
        order = torch.randperm(len(outputs))
        model.train()
        for step in range(steps):
            start = step * size % (len(outputs) - size + 1)
            rows = order[start : start + size]
            optimiser.zero_grad()
            loss = -objective(model(inputs[rows]), outputs[rows])
            loss.backward()
            optimiser.step()
        model.eval()
        with torch.no_grad(), gpytorch.settings.fast_pred_var():
            found = model(torch.as_tensor(queries, dtype=kind))
            mean, deviation = found.mean.double().numpy(), found.stddev.double().numpy()
        return mean - 2 * deviation, mean + 2 * deviation

    return intervals


def ours(name: str, inducing: int) -> Intervals:
    """A sparse confidence sequence with 99 %, at all points and times together."""

    def intervals(X: Array, y: Array, queries: Array) -> tuple[Array, Array]:
        engine = kb.Sparse.filling([0.0] * DIM, [1.0] * DIM, inducing)
        sequence = kb.ConfidenceSequence(kernel_of(name), NORM, NOISE, engine=engine)
        sequence.update(X, y)
        return sequence.bounds(queries)

    return intervals


def missing() -> str:
    """What has to be installed for the sparse process; nothing where it is there."""
    try:
        import gpytorch  # noqa: F401
    except ImportError:
        return (
            "GPyTorch is not installed; pip install torch gpytorch (of torch the build for CPUs)."
        )
    return ""

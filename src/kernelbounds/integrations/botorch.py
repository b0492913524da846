"""BoTorch: our bounds as acquisition functions, and the beta with which a model's own are valid.

Both need the extra ``botorch``. Tensors must be in double precision.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

from kernelbounds.arrays import EPS, Array, as_flag, brief
from kernelbounds.bandits.batches import with_imagined_outcomes
from kernelbounds.bounds import AMM, Bound
from kernelbounds.confidence.diagnosis import refute_if_empty
from kernelbounds.errors import InputError, MissingExtraError
from kernelbounds.noise import Noise
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.surface import Clipped, in_chunks

try:
    import torch
    from botorch.acquisition import AcquisitionFunction
    from botorch.models import SingleTaskGP
    from botorch.models.transforms.input import Normalize
    from botorch.utils.transforms import t_batch_mode_transform
    from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
    from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
    from gpytorch.means import ConstantMean, ZeroMean
    from gpytorch.settings import max_cholesky_size
except ImportError as error:
    raise MissingExtraError("Working with BoTorch", "botorch") from error
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

__all__ = ["ConfidenceBound", "valid_beta"]

SIGNS = {"upper": 1, "lower": -1}


class ConfidenceBound(AcquisitionFunction):
    """The upper or lower bound of a confidence sequence as a BoTorch acquisition function.

    Its values are those of ``sequence.upper`` or ``sequence.lower``, with exact gradients, for
    ``optimize_acqf`` and everything else that takes an acquisition function. It follows the
    sequence: after ``sequence.update`` it is the bound of the new data. There is no model behind
    it, and its attribute ``model`` is None.

    Pending points, such as those that ``optimize_acqf(..., q=3, sequential=True)`` sets, are given
    outcomes in the middle of their bounds, as :class:`~kernelbounds.KernelUCB` does in a batch.
    The values then say where to look next, and are no bounds on f*.

    Parameters
    ----------
    sequence : ConfidenceSequence
        The sequence is not copied.
    side : "upper" or "lower"
        Which bound. Where the upper bound is largest, f* may be largest; where the lower bound is
        largest, f* is certain to be large.
    minimise : bool
        Whether the bound is to be minimised. BoTorch always maximises, so the values are negated:
        ``side="lower", minimise=True`` looks for small values of f* as ``KernelUCB`` does.
    bound : bound, optional
        None: the one of the sequence.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from botorch.optim import optimize_acqf
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.0], [1.0]], [0.3, -0.2])
    >>> box = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    >>> x, value = optimize_acqf(
    ...     ConfidenceBound(seq), box, q=1, num_restarts=2, raw_samples=16
    ... )
    >>> bool(abs(value - seq.upper(x.numpy())[0]) < 1e-8)
    True
    """

    def __init__(
        self,
        sequence: ConfidenceSequence,
        side: Literal["upper", "lower"] = "upper",
        *,
        minimise: bool = False,
        bound: Bound | None = None,
    ) -> None:
        super().__init__(model=None)
        if not isinstance(sequence, ConfidenceSequence):
            raise InputError(
                f"sequence must be a kernelbounds.ConfidenceSequence, got {brief(sequence)}."
            )
        if side not in SIGNS:
            raise InputError(f"side must be 'upper' or 'lower', got {brief(side)}.")
        self._sequence, self._side, self._bound = sequence, SIGNS[side], bound
        self._sign = -1.0 if as_flag(minimise, "minimise") else 1.0
        self._imagined: tuple[int, ConfidenceSequence] | None = None
        self.X_pending: torch.Tensor | None = None
        sequence.surface(self._side, bound)  # which refuses a bound that cannot be had here

    def set_X_pending(self, X_pending: torch.Tensor | None = None) -> None:  # noqa: N802
        """Say which points (n, d) are being evaluated; None for none."""
        super().set_X_pending(X_pending)
        self._imagined = None

    @t_batch_mode_transform(expected_q=1)  # type: ignore[untyped-decorator]
    def forward(self, X: torch.Tensor) -> torch.Tensor:
        """Compute the bounds at points of shape (..., 1, d); (...)."""
        if X.dtype != torch.double:
            raise InputError(
                f"X is of type {X.dtype}, in which a bound could be rounded to a value that is too "
                "tight; use torch.double."
            )
        values: torch.Tensor = _AtPoints.apply(X, self)
        return values

    def values(self, points: Array) -> Array:
        """Compute values (m,) at points (m, d)."""
        sequence = self._looked_at()
        ask = sequence.upper if self._side == 1 else sequence.lower
        return self._sign * ask(points, self._bound)

    def values_and_gradients(self, points: Array) -> tuple[Array, Array]:
        """Compute values (m,) and gradients (m, d) at points (m, d)."""
        sequence = self._looked_at()
        with sequence.lock:
            surface = Clipped(sequence.surface(self._side, self._bound))
            if not surface.smooth:
                raise InputError(
                    f"the gradient in x of {surface.surface.bound} with {sequence.kernel} is not "
                    'known; pass options={"with_grad": False} to optimize_acqf.'
                )
            found = [surface.values_and_gradients(chunk) for chunk in in_chunks(points)]
        values, gradients = (np.concatenate(parts) for parts in zip(*found, strict=True))
        # The surface is an upper bound on s f*, for the sign s of the side.
        sign = self._sign * self._side
        return sign * values, sign * gradients

    def _looked_at(self) -> ConfidenceSequence:
        """Return the sequence, or a copy of it in which pending points have imagined outcomes."""
        if self.X_pending is None or not len(self.X_pending):
            return self._sequence
        if self._imagined is None or self._imagined[0] != len(self._sequence):
            pending = self.X_pending.cpu().numpy().astype(float)
            imagined = with_imagined_outcomes(self._sequence, pending)
            self._imagined = len(self._sequence), imagined
        return self._imagined[1]


class _AtPoints(torch.autograd.Function):
    """The bounds at points as a step of automatic differentiation."""

    @staticmethod
    def forward(ctx: Any, X: torch.Tensor, bound: ConfidenceBound) -> torch.Tensor:
        points = X.detach().cpu().numpy().reshape(-1, X.shape[-1])
        if ctx.needs_input_grad[0]:
            values, gradients = bound.values_and_gradients(points)
            ctx.save_for_backward(torch.as_tensor(gradients, device=X.device).reshape(X.shape))
        else:
            values = bound.values(points)
        return torch.as_tensor(values, device=X.device).reshape(X.shape[:-2])

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, *outer: torch.Tensor) -> tuple[torch.Tensor, None]:
        (gradients,) = ctx.saved_tensors
        return outer[0][..., None, None] * gradients, None


def valid_beta(
    model: SingleTaskGP, norm_bound: float, noise_scale: float | Noise, delta: float = 0.01
) -> float:
    """Compute the beta with which the posterior mean +- sqrt(beta) std of a model is valid.

    It is the beta of BoTorch's ``UpperConfidenceBound``: the bounds mean - sqrt(beta) std and
    mean + sqrt(beta) std of ``model.posterior(X)`` hold at every x, together with those of all
    earlier data, with probability at least 1 - delta. Compute it again when the data change.

    The model's covariance is s k for an outputscale s and a kernel k, its likelihood has the
    variance v and its mean is the constant m. Its posterior mean is m + mu(x) and its variance is
    s rho^2(x), where mu and rho are those of ridge regression on y - m with the kernel k at the
    ridge alpha = v/s, because s K + v I = s (K + alpha I). By the bound of
    :class:`~kernelbounds.AMM`,

        |f*(x) - m - mu(x)| <= R~_alpha rho(x) / sqrt(alpha) = R~_alpha / sqrt(alpha s) * std(x),

    so that beta = R~_alpha^2 / v, with R~_alpha^2 = R_t^2 + alpha B^2 - E_alpha.

    **It is void once the length scales or the mean are fitted to the same data**: k and m are part
    of what is assumed of f*, and must be known before the outcomes. From the model nobody can tell
    whether they were; parameters among them that may still be fitted, because they require
    gradients, cause a warning. The outputscale and the variance v may be fitted: the bound holds at
    all ridges at once. Standard deviations are as precise as GPyTorch's, which are not rounded to
    the safe side as those of :class:`ConfidenceBound` are.

    Parameters
    ----------
    model : SingleTaskGP
        With an RBF or Matern kernel, alone or in a ScaleKernel, a constant mean, equal noise for
        all observations, ``outcome_transform=None``, and no input transform but a ``Normalize``
        with stated bounds. Its training data are in the order in which they were observed.
    norm_bound : float
        B, the largest norm of f* - m in the space of k, which is the kernel without the
        outputscale, on normalised inputs where there is a ``Normalize``.
    noise_scale : float or one of :mod:`kernelbounds.noise`
        sigma, of the real noise; sqrt(v) may be another number.
    delta : float
        The failure probability.

    Examples
    --------
    >>> X = torch.tensor([[0.1], [0.5], [0.9]], dtype=torch.double)
    >>> Y = torch.tensor([[0.3], [0.9], [-0.2]], dtype=torch.double)
    >>> kernel = RBFKernel()
    >>> kernel.lengthscale = 0.5
    >>> model = SingleTaskGP(X, Y, covar_module=kernel, mean_module=ZeroMean(),
    ...                      outcome_transform=None).requires_grad_(False)
    >>> valid_beta(model, norm_bound=2.0, noise_scale=0.1) > 1.0
    True
    """
    _refuse_other_models(model)
    kernel, outputscale = _kernel_of(model.covar_module)
    variance, level = _noise_variance(model.likelihood), _level_of(model.mean_module)
    _warn_of_free_parameters(model)
    points, outcomes = model.train_inputs[0], model.train_targets
    if hasattr(model, "input_transform") and not model._has_transformed_inputs:
        points = model.input_transform.transform(points)
    ridge = variance / outputscale
    sequence = ConfidenceSequence(
        kernel, norm_bound, noise_scale, delta, bound=AMM(ridge), offset=level
    )
    sequence.update(points.detach().cpu().numpy(), outcomes.detach().cpu().numpy())
    radius = sequence.ridge_radius(ridge)
    if np.isnan(radius):  # the data refute the assumptions, or do so within rounding errors
        refute_if_empty(sequence.known)
        radius = 0.0
    # Three operations, each rounded by at most half of EPS.
    return float(radius**2 / variance * (1 + 2 * EPS))


def _refuse_other_models(model: Any) -> None:
    """Refuse models whose posterior is not that of ridge regression on the outcomes."""
    if type(model) is not SingleTaskGP:
        raise InputError(
            f"model must be a SingleTaskGP, got {type(model).__name__}; for others use "
            "ConfidenceBound with a sequence of your own."
        )
    if model.train_targets.ndim != 1 or model.train_inputs[0].ndim != 2:
        raise InputError(
            f"the model's outcomes have the shape {tuple(model.train_targets.shape)}, where one "
            "for each point is expected; make a model for each output, without batches."
        )
    if model.train_targets.dtype != torch.double:
        raise InputError(
            f"the model's data are of type {model.train_targets.dtype}, in which its posterior is "
            "not precise enough for a bound; use torch.double."
        )
    if hasattr(model, "outcome_transform"):
        raise InputError(
            f"the model has the outcome transform {type(model.outcome_transform).__name__}, and "
            "one that is fitted to the outcomes voids the bound; make the model with "
            "outcome_transform=None."
        )
    scaling = getattr(model, "input_transform", None)
    if scaling is not None and not (
        type(scaling) is Normalize
        and not scaling.learn_coefficients
        and scaling.transform_on_train
        and scaling.transform_on_eval
    ):
        raise InputError(
            f"the model has the input transform {type(scaling).__name__}, which is not known to be "
            "fixed before the data; use Normalize(d, bounds=...), whose bounds are stated."
        )
    if len(model.train_targets) > max_cholesky_size.value():
        raise InputError(
            f"the model has {len(model.train_targets)} observations, and with more than "
            f"{max_cholesky_size.value()} GPyTorch's posterior is an approximation; set "
            "gpytorch.settings.max_cholesky_size higher, here and wherever the model is used."
        )


def _kernel_of(module: Any) -> tuple[Kernel, float]:
    """Return the kernel k and the outputscale s of a covariance s k."""
    outputscale, base = 1.0, module
    if type(module) is ScaleKernel:
        outputscale, base = module.outputscale.item(), module.base_kernel
    plain = all(one.active_dims is None and not one.batch_shape for one in (module, base))
    if not plain or type(base) not in (RBFKernel, MaternKernel):
        raise InputError(
            f"the model's covariance is {brief(module)}, where an RBFKernel or a MaternKernel on "
            "all inputs is expected, alone or in a ScaleKernel; for other kernels use "
            "ConfidenceBound with a sequence of your own."
        )
    lengths = base.lengthscale.detach().cpu().numpy().ravel()
    scale = float(lengths[0]) if len(lengths) == 1 else lengths
    return (RBF(scale) if type(base) is RBFKernel else Matern(scale, nu=base.nu)), outputscale


def _noise_variance(likelihood: Any) -> float:
    """Return the variance v of a likelihood with the same noise for all observations."""
    if type(likelihood) not in (GaussianLikelihood, FixedNoiseGaussianLikelihood):
        raise InputError(
            f"the model's likelihood is a {type(likelihood).__name__}, where a GaussianLikelihood "
            "or a FixedNoiseGaussianLikelihood is expected."
        )
    variances = likelihood.noise.detach().cpu().numpy().ravel()
    if variances.min() != variances.max():
        raise InputError(
            f"the model's noise variances are between {variances.min():g} and "
            f"{variances.max():g}, where one for all observations is expected; use "
            "ConfidenceBound, with sequence.update(X, y, noise_scale=...)."
        )
    return float(variances[0])


def _level_of(mean: Any) -> float:
    """Return the constant m of a constant mean."""
    if type(mean) is ZeroMean:
        return 0.0
    if type(mean) is ConstantMean and not mean.batch_shape:
        return float(mean.constant.item())
    raise InputError(
        f"the model's mean is {brief(mean)}, where a ConstantMean or a ZeroMean is expected; use "
        "ConfidenceBound, and a sequence with offset=kernelbounds.Offset(function)."
    )


def _warn_of_free_parameters(model: SingleTaskGP) -> None:
    """Warn of parameters of k and m that fitting the model would change."""
    scale = getattr(model.covar_module, "raw_outputscale", None)
    modules = {"covar_module": model.covar_module, "mean_module": model.mean_module}
    free = [
        f"{name}.{parameter}"
        for name, module in modules.items()
        for parameter, value in module.named_parameters()
        if value.requires_grad and value is not scale
    ]
    if free:
        warnings.warn(
            f"fitting the model would change {' and '.join(free)}, and beta holds only if they "
            "were chosen before the data; if they were, call requires_grad_(False) on them.",
            stacklevel=3,
        )

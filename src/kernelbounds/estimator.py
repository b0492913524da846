"""The confidence sequence as a scikit-learn regressor."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.gaussian_process.kernels import Kernel, Matern
from sklearn.utils.validation import check_is_fitted, validate_data

from kernelbounds.arrays import Array, as_floats, as_vector, brief, refuse_masked
from kernelbounds.bounds import Bound
from kernelbounds.errors import InputError
from kernelbounds.facts import Fact
from kernelbounds.mixtures import Mixture
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.structure.classes import Classes
from kernelbounds.structure.offset import Offset
from kernelbounds.structure.parts import Parts
from kernelbounds.surface import unlimited_estimate

# Square roots of weights are ratios of noise scales, which a sequence takes up to 1e50.
LEAST_WEIGHT, LARGEST_WEIGHT = 1e-90, 1e90


class KernelConfidenceRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # no types
    """Kernel ridge regression with confidence bounds, as a scikit-learn regressor.

    ``predict`` estimates f*, and ``predict_interval`` bounds it as
    :class:`~kernelbounds.ConfidenceSequence` does: with probability at least 1 - delta, f*(x) is in
    its interval at every x after every number of observations. The interval is for f*, not for the
    next outcome, which has noise besides.

    The guarantee is as good as the parameters. They are assumptions and are not fitted; the
    defaults are only a place to start from: **set norm_bound and noise_scale** to what is known
    of f* and of the noise. Parameters that were chosen by looking at the outcomes, by a grid search
    for instance, may predict well, but their intervals have no guarantee on these outcomes.

    Parameters
    ----------
    kernel : scikit-learn kernel, Parts, AnyOf or AllOf, optional
        Its hyperparameters are used as they stand. None is ``Matern(length_scale=1.0, nu=2.5)``,
        for inputs that are standardised or of about that size.
    norm_bound : float, default 10
        B, the largest norm that f* may have; None with Parts, AnyOf and AllOf, which have bounds of
        their own. Under the default kernel, 10 is enough for a function between -1 and 1 that makes
        about one wave over standardised inputs, and not for two.
    noise_scale : float, default 1
        sigma: the noise is sigma-sub-Gaussian, as a normal distribution with that standard
        deviation is. 1 is for outcomes whose own standard deviation is about 1, and usually much
        too large for them. Zero is the noiseless setting.
    delta : float, default 0.01
        Failure probability in (0, 1].
    mixture_scale : float, optional
        Short for ``mixture=kernelbounds.mixtures.Single(mixture_scale)``.
    bound : bound, optional
        The bound of ``predict_interval``; None is ``CMM()``.
    mixture : mixture, optional
        How the radius is made, see :mod:`kernelbounds.mixtures`; None is ``Hybrid()``.
    offset : Offset or float, optional
        What is known of the level of f*. Without one it is 0; there is no intercept.
    facts : list of :mod:`kernelbounds.facts`, optional
        What is known of f* besides: limits, shape, values.

    Attributes
    ----------
    sequence_ : ConfidenceSequence
        The sequence with all observations, for its other methods, such as
        ``sequence_.norm_lower_bound``.
    n_features_in_ : int
        The number of inputs.
    feature_names_in_ : array of str
        Their names, where X had some, as data frames do.

    Notes
    -----
    ``predict`` is the estimate of the sequence, ``sequence_.estimate``, before that is moved into
    the interval: kernel ridge regression at the ridge under which the outcomes are likeliest
    (``docs/mathematics/estimate.md``), which is the mean of a Gaussian process. It does not depend
    on the order of observations, and takes a weight of 2 for two of them. As a rule it is within
    the interval; it may be outside when the data come close to refuting the assumptions, or with
    facts. When they do refute them, there is still an estimate, but there are no intervals.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-2, 2, 40)[:, None]
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(40)
    >>> model = KernelConfidenceRegressor(norm_bound=5.0, noise_scale=0.1).fit(X, y)
    >>> lower, upper = model.predict_interval([[0.5]])
    >>> bool(lower[0] < np.sin(1.0) < upper[0])
    True
    >>> round(model.score(X, y), 2)
    0.99
    """

    def __init__(
        self,
        kernel: Kernel | Parts | Classes | None = None,
        norm_bound: float | None = 10.0,
        noise_scale: float = 1.0,
        delta: float = 0.01,
        mixture_scale: float | None = None,
        bound: Bound | None = None,
        *,
        mixture: Mixture | None = None,
        offset: Offset | float | None = None,
        facts: Sequence[Fact] | None = None,
    ) -> None:
        self.kernel = kernel
        self.norm_bound = norm_bound
        self.noise_scale = noise_scale
        self.delta = delta
        self.mixture_scale = mixture_scale
        self.bound = bound
        self.mixture = mixture
        self.offset = offset
        self.facts = facts

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Take observations, in the order they were made, and forget those of earlier calls.

        Parameters
        ----------
        X : array (n, d)
            The inputs, a row for each observation.
        y : array (n,)
            The outcomes.
        sample_weight : array (n,), optional
            An observation with weight w has the noise scale sigma / sqrt(w), as the mean of w
            outcomes has; it must be known before the outcome is. Those with weight 0 are left out.
            For ``predict``, weight 2 is the same as the observation twice. For
            ``predict_interval`` it is not: two observations bring two noises, and one with weight 2
            a smaller one.
        """
        points, outcomes = self._observations(X, y, reset=True)
        sequence = self._new_sequence()
        _update(sequence, points, outcomes, sample_weight)
        self.sequence_, self._fitted_with = sequence, self._parameters()
        return self

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Add observations that were made after those of earlier calls; see :meth:`fit`.

        Intervals hold at all times at once, so that later inputs may depend on earlier outcomes and
        intervals. Parameters must stay the same: the guarantee is for one set of assumptions.
        """
        if not hasattr(self, "sequence_"):
            return self.fit(X, y, sample_weight)
        if self._parameters() != self._fitted_with:
            raise InputError(
                "parameters have changed since the first observations; fit() starts anew with them."
            )
        points, outcomes = self._observations(X, y, reset=False)
        _update(self.sequence_, points, outcomes, sample_weight)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Estimate f* at points (m, d) by kernel ridge regression; (m,).

        The ridge is that of the notes above; the guarantee does not cover the estimate.
        """
        points = self._points(X)
        known = self.sequence_.known
        with known.evidence.lock:
            return unlimited_estimate(known.with_fixed_shares(), points, by_points=True)

    def predict_interval(self, X: ArrayLike, bound: Bound | None = None) -> tuple[Array, Array]:
        """Compute lower and upper bounds on f* at points (m, d); two arrays (m,).

        ``bound`` takes the place of the regressor's. Raises
        :class:`~kernelbounds.EmptyConfidenceSetError` when the data refute the assumptions.
        """
        points = self._points(X)
        sequence: ConfidenceSequence = self.sequence_
        return sequence.bounds(points, bound)

    def _new_sequence(self) -> ConfidenceSequence:
        if isinstance(self.kernel, Parts | Classes) and self.norm_bound is not None:
            name = type(self.kernel).__name__
            raise InputError(f"{name} has norm bounds of its own; pass norm_bound=None with it.")
        return ConfidenceSequence(
            Matern(length_scale=1.0, nu=2.5) if self.kernel is None else self.kernel,
            self.norm_bound,
            self.noise_scale,
            self.delta,
            self.mixture_scale,
            self.bound,
            mixture=self.mixture,
            offset=self.offset,
            facts=self.facts,
        )

    def _parameters(self) -> dict[str, Any]:
        """A copy of the parameters, since set_params may change a kernel in place."""
        return {**self.get_params(deep=False), "kernel": copy.deepcopy(self.kernel)}

    # Numbers keep their types while scikit-learn checks shapes and names, so that the sequence can
    # refuse those that floats cannot hold.

    def _observations(self, X: ArrayLike, y: ArrayLike, reset: bool) -> tuple[Array, Array]:
        refuse_masked(X, "X")
        refuse_masked(y, "y")
        points, outcomes = validate_data(
            self, X, y, reset=reset, dtype="numeric", y_numeric=True, multi_output=False
        )
        return points, outcomes

    def _points(self, X: ArrayLike) -> Array:
        check_is_fitted(self, "sequence_")
        refuse_masked(X, "X")
        return as_floats(validate_data(self, X, reset=False, dtype="numeric"), "X")


def _update(
    sequence: ConfidenceSequence, points: Array, outcomes: Array, sample_weight: ArrayLike | None
) -> None:
    """Add observations, with sigma / sqrt(w) for each where there are weights."""
    if sample_weight is None:
        sequence.update(points, outcomes)
        return
    weights = as_floats(sample_weight, "sample_weight")
    if weights.ndim == 0:
        weights = np.full(len(points), weights)
    weights = as_vector(weights, "sample_weight", len(points))
    present = weights != 0
    if not np.any(present):
        raise InputError("sample_weight is zero for all observations, so that none is left.")
    if np.any((weights[present] < LEAST_WEIGHT) | (weights[present] > LARGEST_WEIGHT)):
        raise InputError(
            f"sample_weight must be 0, or between {LEAST_WEIGHT:g} and {LARGEST_WEIGHT:g}, for "
            f"each observation, got {brief(sample_weight)}."
        )
    law = sequence.assumptions.noise
    if not law.averages_out and np.any(weights[present] != 1):
        raise InputError(
            "sample_weight stands for means of several outcomes, and a mean need not have less "
            f"noise than one outcome with {law}; leave it out, or use weights of 0 and 1."
        )
    scales = law.unit / np.sqrt(weights[present])
    sequence.update(points[present], outcomes[present], noise_scale=scales)

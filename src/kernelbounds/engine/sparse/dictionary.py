"""Inducing points, and the features that they make of others."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import Array
from kernelbounds.errors import InputError
from kernelbounds.functionals import Functionals, Targets, squared_norms

# Added to the diagonal of K_mm, relative to its largest entry. The factor then has a condition
# number of at most a few times 1e5, and features errors of 1e-8 at most, relatively; the residuals
# that it adds are of its own size.
JITTER = 1e-8
# What is added to residuals, relative to k(x,x), for those errors.
FEATURE_ERROR = 2e-8


class Dictionary:
    """Inducing points and the features that they make."""

    def __init__(self, kernel: Kernel, inducing: Array) -> None:
        self.kernel, self.inducing = kernel, inducing
        gram = kernels.cross(kernel, inducing, inducing)
        gram = 0.5 * (gram + gram.T)
        gram.flat[:: len(gram) + 1] += JITTER * float(gram.diagonal().max())
        try:
            self.factor = np.linalg.cholesky(gram)
        except np.linalg.LinAlgError:
            raise InputError(
                f"{kernel} is not a kernel: its matrix on the inducing points is not positive "
                "semi-definite."
            ) from None

    def __len__(self) -> int:
        return len(self.inducing)

    def features(self, targets: Targets, accuracy: float) -> tuple[Array, Array, Array]:
        """phi (m, n), residuals rounded up (n,) and k(x,x) (n,), of points or other functionals."""
        size = None
        if isinstance(targets, Functionals):
            vectors = targets.vectors(self.kernel, self.inducing)
            size = targets.magnitudes(self.kernel)
        else:
            vectors = kernels.vectors(self.kernel, targets, self.inducing)
        prior = squared_norms(self.kernel, targets, accuracy)
        phi = solve_triangular(self.factor, vectors.T, lower=True, check_finite=False)
        rest = np.maximum(prior - np.einsum("mn,mn->n", phi, phi), 0.0)
        return phi, rest + FEATURE_ERROR * (prior if size is None else size), prior

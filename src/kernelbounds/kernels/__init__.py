"""The library's kernels are scikit-learn's kernel objects; here is what we make of them.

A kernel is any positive semi-definite ``sklearn.gaussian_process.kernels.Kernel``: RBF, Matern,
RationalQuadratic, ExpSineSquared, DotProduct, ConstantKernel, their sums, products and powers,
``OnInputs`` of them, and user-defined subclasses. Its hyperparameters are taken as they stand;
nothing is fitted.

Of scikit-learn's kernels only the hyperparameters are used. Their values are computed here, because
confidence bounds need to know how precise they are (``precision.py``).

==================  =========================================================================
file                idea
==================  =========================================================================
``on_inputs.py``    a kernel on some of the inputs
``checks.py``       which kernels are taken
``distances.py``    differences of points, in length scales or modulo a period
``stationary.py``   kernels as functions of the distance; ``matern.py`` and ``periodic.py`` too
``values.py``       kernel matrices, vectors and diagonals
``precision.py``    how far those values are from the exact ones
``gradients.py``    derivatives in x
``derivatives.py``  the functionals f -> df/dx_a, and how precise their values are
``features.py``     how far features move within a box
``smoothness.py``   nu, and the paper's mixture scale
``data.py``         kernels as JSON
``text.py``         kernels as text, which people write and read
==================  =========================================================================
"""

from kernelbounds.kernels.checks import checked_kernel
from kernelbounds.kernels.derivatives import (
    Features,
    derivative_cross,
    derivative_diagonal,
    derivative_error,
    diagonal_gradient,
    differentiable,
    features_in_boxes,
    has_derivatives,
    pull_back,
)
from kernelbounds.kernels.on_inputs import OnInputs
from kernelbounds.kernels.stationary import mixture_scale, smoothness
from kernelbounds.kernels.text import from_data, kernel_from_text, kernel_to_text, to_data
from kernelbounds.kernels.values import (
    UNKNOWN,
    cross,
    diagonal,
    evaluation_error,
    measured_error,
    vectors,
)

__all__ = [
    "UNKNOWN",
    "Features",
    "OnInputs",
    "checked_kernel",
    "cross",
    "derivative_cross",
    "derivative_diagonal",
    "derivative_error",
    "diagonal",
    "diagonal_gradient",
    "differentiable",
    "evaluation_error",
    "features_in_boxes",
    "from_data",
    "has_derivatives",
    "kernel_from_text",
    "kernel_to_text",
    "measured_error",
    "mixture_scale",
    "pull_back",
    "smoothness",
    "to_data",
    "vectors",
]

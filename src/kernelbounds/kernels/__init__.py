"""Everything the library computes with scikit-learn's kernel objects.

A kernel is any positive semi-definite ``sklearn.gaussian_process.kernels.Kernel``: RBF, Matern,
RationalQuadratic, ExpSineSquared, DotProduct, ConstantKernel, their sums, products and powers,
``OnInputs`` of them, ``Levels`` for categories, and user-defined subclasses. Its hyperparameters
are used as they stand; nothing is fitted.

From scikit-learn's kernels only the hyperparameters are used. The values are computed here, because
confidence bounds need to know how precise they are (``values.py``).

==================  =========================================================================
file                idea
==================  =========================================================================
``on_inputs.py``    a kernel on some of the inputs
``levels.py``       the kernel of a category
``stationary.py``   kernels as functions of the distance, and distances
``matern.py``       the Matern kernels among them
``values.py``       kernel matrices, vectors and diagonals, and how precise they are
``derivatives.py``  derivatives in x, how precise they are, and how far features move in a box
``portable.py``     the same values and derivatives in NumPy, PyTorch, JAX and others
``text.py``         kernels as text, which people write and read, and as JSON
``rkhs.py``         the space of a kernel: which kernels have one, its smoothness, its functions
==================  =========================================================================
"""

from kernelbounds.kernels.derivatives import (
    Features,
    category_inputs,
    derivative_cross,
    derivative_diagonal,
    derivative_error,
    diagonal_gradient,
    differentiable,
    features_in_boxes,
    has_derivatives,
    pull_back,
)
from kernelbounds.kernels.levels import Levels
from kernelbounds.kernels.on_inputs import OnInputs
from kernelbounds.kernels.rkhs import checked_kernel, mixture_scale, smoothness
from kernelbounds.kernels.text import from_data, kernel_from_text, kernel_to_text, to_data
from kernelbounds.kernels.values import (
    UNKNOWN_KERNEL_ERROR,
    cross,
    diagonal,
    evaluation_error,
    measured_error,
    vectors,
)

__all__ = [
    "UNKNOWN_KERNEL_ERROR",
    "Features",
    "Levels",
    "OnInputs",
    "category_inputs",
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

"""Anytime-valid confidence bounds for sequential kernel regression.

Every name is imported when it is first used, so that a line of help need not wait for SciPy and
scikit-learn. The names are listed three times: for type checkers and documentation, for the import
itself, and as the public ones. A test compares the lists.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from kernelbounds.version import __version__ as __version__

if TYPE_CHECKING:
    from kernelbounds import functionals, mixtures, plot
    from kernelbounds.bandits import (
        Ascent,
        Box,
        BranchAndBound,
        Certificate,
        Finite,
        Grid,
        KernelLUCB,
        KernelUCB,
        RandomPolicy,
        Suggestion,
        SyntheticProblem,
        simulate,
    )
    from kernelbounds.bounds import AMM, AY, CMM, DMM, IGP, Assumptions, Bound, FixedDesign
    from kernelbounds.checking import check_bound
    from kernelbounds.errors import (
        EmptyConfidenceSetError,
        InputError,
        KernelBoundsError,
        MissingExtraError,
        StoredFileError,
    )
    from kernelbounds.estimator import KernelConfidenceRegressor
    from kernelbounds.kernels import OnInputs, mixture_scale
    from kernelbounds.offset import Offset
    from kernelbounds.parts import Parts
    from kernelbounds.problem import Problem
    from kernelbounds.rkhs import RKHSFunction
    from kernelbounds.sequence import ConfidenceSequence
    from kernelbounds.sparse import Sparse
    from kernelbounds.study import Study

# The names that each module has.
_NAMES = {
    "bandits": (
        "Ascent Box BranchAndBound Certificate Finite Grid KernelLUCB KernelUCB RandomPolicy "
        "Suggestion SyntheticProblem simulate"
    ),
    "bounds": "AMM AY CMM DMM IGP Assumptions Bound FixedDesign",
    "checking": "check_bound",
    "errors": (
        "EmptyConfidenceSetError InputError KernelBoundsError MissingExtraError StoredFileError"
    ),
    "estimator": "KernelConfidenceRegressor",
    "kernels": "OnInputs mixture_scale",
    "offset": "Offset",
    "parts": "Parts",
    "problem": "Problem",
    "rkhs": "RKHSFunction",
    "sequence": "ConfidenceSequence",
    "sparse": "Sparse",
    "study": "Study",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "AMM",
    "AY",
    "CMM",
    "DMM",
    "IGP",
    "Ascent",
    "Assumptions",
    "Bound",
    "Box",
    "BranchAndBound",
    "Certificate",
    "ConfidenceSequence",
    "EmptyConfidenceSetError",
    "Finite",
    "FixedDesign",
    "Grid",
    "InputError",
    "KernelBoundsError",
    "KernelConfidenceRegressor",
    "KernelLUCB",
    "KernelUCB",
    "MissingExtraError",
    "Offset",
    "OnInputs",
    "Parts",
    "Problem",
    "RKHSFunction",
    "RandomPolicy",
    "Sparse",
    "StoredFileError",
    "Study",
    "Suggestion",
    "SyntheticProblem",
    "check_bound",
    "functionals",
    "mixture_scale",
    "mixtures",
    "plot",
    "simulate",
]

if not TYPE_CHECKING:  # else every attribute would seem to exist

    def __getattr__(name):
        """A public name, or a module of the package."""
        if name in _HOMES:
            found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
            globals()[name] = found  # not looked for again
            return found
        if name.startswith("_") or find_spec(f"{__name__}.{name}") is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")

    def __dir__():
        return sorted({*globals(), *__all__})

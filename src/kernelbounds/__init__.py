"""Anytime-valid confidence bounds for sequential kernel regression."""

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
from kernelbounds.version import __version__ as __version__

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

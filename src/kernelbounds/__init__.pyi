"""What the package exports; ``__init__.py`` imports each name when it is first used.

A stub exports only what it imports under its own name: hence ``X as X``.
"""

from . import (
    bandits as bandits,
    bounds as bounds,
    checking as checking,
    facts as facts,
    functionals as functionals,
    mixtures as mixtures,
    noise as noise,
    paper as paper,
    plot as plot,
    problem as problem,
    study as study,
    theory as theory,
)
from .bandits import (
    Ascent as Ascent,
    Box as Box,
    BranchAndBound as BranchAndBound,
    Certificate as Certificate,
    Finite as Finite,
    Grid as Grid,
    KernelLUCB as KernelLUCB,
    KernelUCB as KernelUCB,
    RandomPolicy as RandomPolicy,
    SafeUCB as SafeUCB,
    Suggestion as Suggestion,
    SyntheticProblem as SyntheticProblem,
    simulate as simulate,
)
from .bounds import (
    AMM as AMM,
    AY as AY,
    CMM as CMM,
    DMM as DMM,
    IGP as IGP,
    Assumptions as Assumptions,
    Bound as Bound,
    FixedDesign as FixedDesign,
)
from .categories import Categories as Categories
from .checking import check_bound as check_bound
from .errors import (
    EmptyConfidenceSetError as EmptyConfidenceSetError,
    FactRefutedError as FactRefutedError,
    InputError as InputError,
    KernelBoundsError as KernelBoundsError,
    MissingExtraError as MissingExtraError,
    StoredFileError as StoredFileError,
)
from .estimator import KernelConfidenceRegressor as KernelConfidenceRegressor
from .kernels import Levels as Levels, OnInputs as OnInputs, mixture_scale as mixture_scale
from .kernels.rkhs import RKHSFunction as RKHSFunction
from .problem import Problem as Problem
from .sequence import ConfidenceSequence as ConfidenceSequence
from .sequence.sparse import Sparse as Sparse
from .structure.classes import AllOf as AllOf, AnyOf as AnyOf
from .structure.offset import Offset as Offset
from .structure.parts import Parts as Parts
from .study import Study as Study
from .surface.frozen import Frozen as Frozen
from .surface.frozen_outputs import FrozenOutputs as FrozenOutputs
from .theory.comparison import compare as compare

__version__: str

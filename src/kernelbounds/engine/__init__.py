"""The engine: mean, variance, energy and log-determinant of kernel ridge regression at any ridge.

Only this package factorises matrices. A bound asks it for a path (energies and the
log-determinant, which depend on the data alone) or for a query (means and variances at points
too), and says which ridges it is going to use.
"""

from kernelbounds.engine.exact import Engine
from kernelbounds.engine.observations import Outcomes
from kernelbounds.engine.path_query import WITHOUT_ROUNDING, Estimators, PathQuery, Predictions
from kernelbounds.engine.ridge_fit import Forecasts
from kernelbounds.engine.ridge_path import RidgePath, dot_error
from kernelbounds.engine.ridge_search import (
    Largest,
    largest_by_ceilings,
    largest_minimum,
    minimise_over_ridge,
    vertex,
)
from kernelbounds.engine.rows import Representers
from kernelbounds.engine.sparse import Approximation, DualMaximiser, Growth, SparseEngine

__all__ = [
    "WITHOUT_ROUNDING",
    "Approximation",
    "DualMaximiser",
    "Engine",
    "Estimators",
    "Forecasts",
    "Growth",
    "Largest",
    "Outcomes",
    "PathQuery",
    "Predictions",
    "Representers",
    "RidgePath",
    "SparseEngine",
    "dot_error",
    "largest_by_ceilings",
    "largest_minimum",
    "minimise_over_ridge",
    "vertex",
]

"""The engine: mean, variance, energy and log-determinant of kernel ridge regression at any ridge.

``base`` has the interface, ``exact`` and ``sparse`` the two engines behind it.
"""

from kernelbounds.engine.base import Approximation, Engine
from kernelbounds.engine.exact import ExactEngine, with_single_observations
from kernelbounds.engine.observations import Outcomes
from kernelbounds.engine.path_query import ROUNDED_DOWN, Estimators, PathQuery, Predictions
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
from kernelbounds.engine.sparse import DualMaximiser, Growth, SparseEngine
from kernelbounds.engine.whitening import NoiseBlock, Whitening

__all__ = [
    "ROUNDED_DOWN",
    "Approximation",
    "DualMaximiser",
    "Engine",
    "Estimators",
    "ExactEngine",
    "Forecasts",
    "Growth",
    "Largest",
    "NoiseBlock",
    "Outcomes",
    "PathQuery",
    "Predictions",
    "Representers",
    "RidgePath",
    "SparseEngine",
    "Whitening",
    "dot_error",
    "largest_by_ceilings",
    "largest_minimum",
    "minimise_over_ridge",
    "vertex",
    "with_single_observations",
]

"""Confidence bounds as functions of x."""

from kernelbounds.surface.at_points import POINTS_AT_ONCE, binding_facts, extremes, in_chunks
from kernelbounds.surface.estimate import (
    Covariances,
    deviations,
    estimate_gradients,
    estimate_with_bounds,
    unlimited_estimate,
)
from kernelbounds.surface.freezing import freeze
from kernelbounds.surface.frozen import Frozen
from kernelbounds.surface.frozen_outputs import FrozenOutputs
from kernelbounds.surface.surface import Clipped, Surface

__all__ = [
    "POINTS_AT_ONCE",
    "Clipped",
    "Covariances",
    "Frozen",
    "FrozenOutputs",
    "Surface",
    "binding_facts",
    "deviations",
    "estimate_gradients",
    "estimate_with_bounds",
    "extremes",
    "freeze",
    "in_chunks",
    "unlimited_estimate",
]

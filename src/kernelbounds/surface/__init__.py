"""Confidence bounds as functions of x."""

from kernelbounds.surface.at_points import POINTS_AT_ONCE, binding_facts, extremes, in_chunks
from kernelbounds.surface.estimate import (
    deviations,
    estimate_gradients,
    estimate_with_bounds,
    unlimited_estimate,
)
from kernelbounds.surface.surface import Clipped, Surface, surface_of

__all__ = [
    "POINTS_AT_ONCE",
    "Clipped",
    "Surface",
    "binding_facts",
    "deviations",
    "estimate_gradients",
    "estimate_with_bounds",
    "extremes",
    "in_chunks",
    "surface_of",
    "unlimited_estimate",
]

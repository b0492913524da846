"""Confidence bounds as functions of x."""

from kernelbounds.surface.clipping import POINTS_AT_ONCE, extremes, in_parts, limited
from kernelbounds.surface.surface import Clipped, Surface

__all__ = ["POINTS_AT_ONCE", "Clipped", "Surface", "extremes", "in_parts", "limited"]

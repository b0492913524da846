"""Bounds for points that were fixed before the outcomes, at one moment in time.

=======================  ====================================================================
file                     idea
=======================  ====================================================================
``fixed_design.py``      FixedDesign, the smaller of the bounds of the other two files
``projection.py``        the bound for all x: noise along the leading directions of the points
``linear_estimate.py``   the bound for one x: a linear estimate, its bias and its noise
=======================  ====================================================================
"""

from kernelbounds.bounds.fixed_designs.fixed_design import FixedDesign

__all__ = ["FixedDesign"]

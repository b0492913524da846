"""Linear functionals of f*, which are bounded as values are.

==================  =========================================================================
file                idea
==================  =========================================================================
``functional.py``   what users ask for: differences, sums, averages and derivatives
``targets.py``      the interface of all that is bounded: values at points, and functionals
==================  =========================================================================
"""

from kernelbounds.functionals.functional import Average, Derivative, Difference, Functional, Sum

__all__ = ["Average", "Derivative", "Difference", "Functional", "Sum"]

"""Linear functionals of f*: differences, sums, averages and derivatives, one class each.

:meth:`kernelbounds.ConfidenceSequence.bounds_of` bounds them, exactly where it bounds values so.
"""

from kernelbounds.functionals.functional import Average, Derivative, Difference, Functional, Sum

__all__ = ["Average", "Derivative", "Difference", "Functional", "Sum"]

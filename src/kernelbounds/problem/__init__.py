"""From a problem in the user's own words to bounds: ranges, turns, noise; no look at the data."""

from kernelbounds.problem.problem import Problem
from kernelbounds.problem.quantities import Input, Output

__all__ = ["Input", "Output", "Problem"]

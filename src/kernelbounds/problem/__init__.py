"""From a problem in the user's own words to bounds: ranges, turns, noise; no look at the data.

=======================  ===============================================================
file                     idea
=======================  ===============================================================
``quantities.py``        inputs and outputs with ranges and units
``problem.py``           :class:`Problem`, what follows from it, and what data refute
``random_functions.py``  random functions with a given range and number of turns
``assuming.py``          :func:`assume`: the kernel and B from the norms of such functions
``plans.py``             :func:`plan`: how many experiments it takes
``calibration.py``       :func:`calibrate`: what pilot data suggest
=======================  ===============================================================
"""

from kernelbounds.problem.assuming import Assumed, Candidate, assume
from kernelbounds.problem.calibration import Calibration, calibrate
from kernelbounds.problem.plans import Plan, plan
from kernelbounds.problem.problem import Problem
from kernelbounds.problem.quantities import Input, Output

__all__ = [
    "Assumed",
    "Calibration",
    "Candidate",
    "Input",
    "Output",
    "Plan",
    "Problem",
    "assume",
    "calibrate",
    "plan",
]

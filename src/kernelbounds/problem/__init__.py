"""From a problem in the user's own words to bounds: ranges, turns, noise; no look at the data.

======================  ================================================================
file                    what
======================  ================================================================
``quantities.py``       inputs and outputs with ranges and units
``problem.py``          :class:`Problem`, and what follows from it
``random_functions.py``  functions of a given range with so many turns
``norms.py``            norms of such functions, from their values on grids
``assuming.py``         :func:`assume`: the kernel and B from the norms of those functions
``widths.py``           how wide the band will be
``plans.py``            :func:`plan`: how many experiments it takes
``calibration.py``      :func:`calibrate`: what pilot data suggest
``doubts.py``           what data say against the way in which they are about to be used
======================  ================================================================
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

"""From a problem in the user's own words to bounds: ranges, turns, noise; no look at the data.

=======================  ===============================================================
file                     idea
=======================  ===============================================================
``quantities.py``        inputs and outputs with ranges and units
``outcomes.py``          noise, percentages, and successes out of tries
``problem.py``           :class:`Problem`, and what follows from it alone
``facts_in_words.py``    what is known of the output: limits, shape, known values
``random_functions.py``  random functions with a given range and number of turns
``assuming.py``          :func:`assume`: the kernel and B from the norms of such functions
``plans.py``             :func:`plan`: how many experiments it takes
``calibration.py``       tables of runs; :func:`calibrate`: what pilot data suggest; doubts
``pictures.py``          the functions that a problem admits, drawn
=======================  ===============================================================
"""

from kernelbounds.problem.assuming import Assumed, Candidate, assume
from kernelbounds.problem.calibration import Calibration, calibrate
from kernelbounds.problem.inputs import Input
from kernelbounds.problem.outputs import Output
from kernelbounds.problem.plans import Plan, plan
from kernelbounds.problem.problem import Problem

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

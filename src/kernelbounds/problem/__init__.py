"""From a problem in the user's own words to bounds: ranges, turns, noise; no look at the data.

=========================  ===================================================================
file                       idea
=========================  ===================================================================
``problem.py``             :class:`Problem`: all that is stated
``problem_file.py``        a problem as plain data, and in a JSON file
``quantities.py``          names, ranges and units
``inputs.py``              :class:`Input`, and :class:`Inputs`: points in units and in the unit cube
``outputs.py``             :class:`Output`: its scale in the model
``outcomes.py``            outcomes of runs: numbers, or successes out of tries
``noise_in_words.py``      what is stated of the noise
``facts_in_words.py``      what is known of the output: limits, shape, known values
``model.py``               the confidence sequence of a problem, and the widths that it predicts
``random_functions.py``    random functions with a given range and number of turns
``waves.py``               the terms of which these functions are sums
``norms.py``               the norms of such functions
``candidate_kernels.py``   kernels that suit how often the output may turn
``assuming.py``            :func:`assume`: the kernel and B from these norms
``drawings.py``            pictures of the functions that it admits, of plans and of bounds
``plans.py``               :func:`plan`: how many experiments it takes
``worth.py``               what it is worth to know facts, or the noise, by simulation
``runs.py``                tables of runs, and doubts about them
``checked.py``             what the data say of the norm bound, the noise and several kernels
``refutation.py``          which assumption the data refute, where, and by which row
``calibration.py``         :func:`calibrate`: what pilot data suggest
=========================  ===================================================================

Whatever users state in words (an :class:`Input`, an :class:`Output`, limits, a known value, noise,
columns of successes) is a value of a class of its own, whose ``parse`` reads and checks it, and
which can say it back: as ``parse`` reads it again (``text``; ``said`` of noise) and to people
(``description``, ``sentence``, ``clause``). The model gets it as a ``fact`` or a ``law``.
"""

from kernelbounds.problem.assuming import Assumed, Candidate, assume
from kernelbounds.problem.calibration import Calibration, calibrate
from kernelbounds.problem.inputs import Input, Inputs
from kernelbounds.problem.outputs import Output
from kernelbounds.problem.plans import Plan, plan
from kernelbounds.problem.problem import Problem

__all__ = [
    "Assumed",
    "Calibration",
    "Candidate",
    "Input",
    "Inputs",
    "Output",
    "Plan",
    "Problem",
    "assume",
    "calibrate",
    "plan",
]

"""Bounds over the functions of the confidence set that satisfy facts.

=========================  ==================================================================
file                       idea
=========================  ==================================================================
``normal_facts.py``        the inequalities of facts, as a confidence set has them
``multipliers.py``         the best multipliers of inequalities, at given ridges
``constrained_bounds.py``  bounds with facts, why they are valid, and what data say against facts
=========================  ==================================================================
"""

from kernelbounds.bounds.with_facts.constrained_bounds import (
    ConstrainedMinimum,
    constrained,
    least_norm_with_facts,
    refute_by_facts,
)
from kernelbounds.bounds.with_facts.normal_facts import NormalFacts, inequalities, limits_in_boxes

__all__ = [
    "ConstrainedMinimum",
    "NormalFacts",
    "constrained",
    "inequalities",
    "least_norm_with_facts",
    "limits_in_boxes",
    "refute_by_facts",
]

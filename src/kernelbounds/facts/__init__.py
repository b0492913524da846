"""Facts about f* that people know: limits, shape, and values at certain places.

A fact is a set of linear inequalities for f*, such as 0 <= f*(x) <= 60 for all x. Given to a
:class:`~kernelbounds.ConfidenceSequence` with the assumptions, before the data, facts cost nothing
in delta, and bounds are those over the functions that satisfy them at finitely many places
(``docs/mathematics/facts.md``). A fact that is false of f* voids the guarantee, unless the data
happen to refute it.
"""

from kernelbounds.facts.as_json import fact_from_data, fact_to_data
from kernelbounds.facts.fact import Constraints, Fact, Region
from kernelbounds.facts.limits import AtLeast, Between, Value
from kernelbounds.facts.shape import Concave, Convex, Decreasing, Increasing, Slope

__all__ = [
    "AtLeast",
    "Between",
    "Concave",
    "Constraints",
    "Convex",
    "Decreasing",
    "Fact",
    "Increasing",
    "Region",
    "Slope",
    "Value",
    "fact_from_data",
    "fact_to_data",
]

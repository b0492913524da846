"""The confidence bounds, and the confidence set, evidence and radius that they look at.

Each of the paper's bounds has a file of its own, to be read beside its theorem; most of those of
the literature share ``rivals.py``.
"""

from kernelbounds.bounds.amm import AMM
from kernelbounds.bounds.ay import AY
from kernelbounds.bounds.bound import Bound, DualBound, DualMinimum, Guarantee
from kernelbounds.bounds.cmm import CMM
from kernelbounds.bounds.dmm import DMM
from kernelbounds.bounds.ellipsoids import EllipsoidBound, Ellipsoids
from kernelbounds.bounds.fixed_design import FixedDesign
from kernelbounds.bounds.forecast_sets import Emmenegger, OnlineToSet
from kernelbounds.bounds.igp import IGP
from kernelbounds.bounds.rivals import RIVALS, Fiedler, Neiswanger, Srinivas, Vakili
from kernelbounds.confidence.assumptions import Assumptions
from kernelbounds.confidence.confidence_set import ConfidenceSet
from kernelbounds.confidence.radius import Radius

__all__ = [
    "AMM",
    "AY",
    "CMM",
    "DMM",
    "IGP",
    "RIVALS",
    "Assumptions",
    "Bound",
    "ConfidenceSet",
    "DualBound",
    "DualMinimum",
    "EllipsoidBound",
    "Ellipsoids",
    "Emmenegger",
    "Fiedler",
    "FixedDesign",
    "Guarantee",
    "Neiswanger",
    "OnlineToSet",
    "Radius",
    "Srinivas",
    "Vakili",
]

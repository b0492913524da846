"""The confidence bounds: one file a method, each to be read beside its theorem."""

from kernelbounds.assume.assumptions import Assumptions
from kernelbounds.bounds.amm import AMM
from kernelbounds.bounds.ay import AY
from kernelbounds.bounds.bound import Attained, Bound, DualBound, Guarantee
from kernelbounds.bounds.cmm import CMM
from kernelbounds.bounds.dmm import DMM
from kernelbounds.bounds.ellipsoids import EllipsoidBound, Ellipsoids
from kernelbounds.bounds.fixed_design import FixedDesign
from kernelbounds.bounds.igp import IGP
from kernelbounds.bounds.knowledge import Knowledge
from kernelbounds.bounds.radius import Radius

__all__ = [
    "AMM",
    "AY",
    "CMM",
    "DMM",
    "IGP",
    "Assumptions",
    "Attained",
    "Bound",
    "DualBound",
    "EllipsoidBound",
    "Ellipsoids",
    "FixedDesign",
    "Guarantee",
    "Knowledge",
    "Radius",
]

"""The confidence bounds: one file a method, each to be read beside its theorem."""

from kernelbounds.bounds.amm import AMM
from kernelbounds.bounds.assumptions import Assumptions
from kernelbounds.bounds.ay import AY
from kernelbounds.bounds.bound import (
    TIE,
    Attained,
    Bound,
    DualBound,
    as_upper_bounds,
    checked_extremes,
    fault_of,
)
from kernelbounds.bounds.cmm import CMM
from kernelbounds.bounds.dmm import DMM
from kernelbounds.bounds.fixed_design import FixedDesign
from kernelbounds.bounds.guarantee import Guarantee, require_sequential
from kernelbounds.bounds.igp import IGP
from kernelbounds.bounds.knowledge import Knowledge
from kernelbounds.bounds.radius import Radius

__all__ = [
    "AMM",
    "AY",
    "CMM",
    "DMM",
    "IGP",
    "TIE",
    "Assumptions",
    "Attained",
    "Bound",
    "DualBound",
    "FixedDesign",
    "Guarantee",
    "Knowledge",
    "Radius",
    "as_upper_bounds",
    "checked_extremes",
    "fault_of",
    "require_sequential",
]

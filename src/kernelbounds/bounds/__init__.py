"""The confidence bounds, one file each, to be read beside its theorem.

====================  ======================================================================
place                 idea
====================  ======================================================================
``bound.py``          the interface of every bound, and what its guarantee covers
``ellipsoids.py``     the interface of those that are intervals around ridge estimates
``cmm.py``            CMM, the exact bound (Eq. 9)
``dual_function.py``  the dual of it, by which it is computed (Thm. 4.5)
``dmm.py``            DMM, on a grid of ridges
``amm.py``            AMM, at one ridge
``rivals/``           AY, IGP and the other bounds of the literature
``fixed_designs/``    FixedDesign, for points that nobody chose by looking at outcomes
``with_facts/``       any dual bound over the functions that satisfy facts
``by_name.py``        bounds of users' own, by where they are imported from
====================  ======================================================================
"""

from kernelbounds.bounds.amm import AMM
from kernelbounds.bounds.bound import Bound, DualBound, DualMinimum, Guarantee
from kernelbounds.bounds.cmm import CMM
from kernelbounds.bounds.dmm import DMM
from kernelbounds.bounds.ellipsoids import EllipsoidBound, Ellipsoids
from kernelbounds.bounds.fixed_designs import FixedDesign
from kernelbounds.bounds.rivals import (
    AY,
    IGP,
    RIVALS,
    Emmenegger,
    Fiedler,
    Neiswanger,
    OnlineToSet,
    Srinivas,
    Vakili,
)
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

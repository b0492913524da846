"""All experiments of ``kernelbounds reproduce``, by name; ``specs.TITLES`` says what each is.

==========================  =======================================================================
``figure1.py``              the bands on one function
``table1.py``               Table 1, with the numbers that the paper prints
``figures.py``              the paper's other figures
``proved_regret.py``        ``theory``: the regret of AMM under its proved bounds
``regret_by_radius.py``     ``tightness``: regret with several radii
``certified_rounds.py``     ``certificates``: one policy on one known function
``design_rates.py``         ``designs``: some data sets of one way of collecting
``scale.py``                ``scale``: one engine with a number of observations
``bounds_compared.py``      ``rivals``: one bound of the literature, or of ours, on one problem
``optimisers.py``           ``optimisers``: one optimiser on one function
==========================  =======================================================================

Those of tables, regret and radii consist of cells (``cells.py``): one method on one random problem
of a setting. Experiments that share cells share their results.
"""

from __future__ import annotations

from typing import Any

from kernelbounds.paper import (
    bounds_compared,
    certified_rounds,
    design_rates,
    figure1,
    figures,
    optimisers,
    proved_regret,
    regret_by_radius,
    scale,
    table1,
)
from kernelbounds.paper.specs import Experiment

EXPERIMENTS: dict[str, Experiment[Any, Any]] = {
    "table1": table1.EXPERIMENT,
    "figure1": figure1.EXPERIMENT,
    **figures.EXPERIMENTS,
    "theory": proved_regret.EXPERIMENT,
    "tightness": regret_by_radius.EXPERIMENT,
    "certificates": certified_rounds.EXPERIMENT,
    "designs": design_rates.EXPERIMENT,
    "scale": scale.EXPERIMENT,
    "rivals": bounds_compared.EXPERIMENT,
    "optimisers": optimisers.EXPERIMENT,
}

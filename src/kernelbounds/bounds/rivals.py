"""The bounds of the literature with their published settings, by name."""

from __future__ import annotations

from collections.abc import Callable

from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.assume.assumptions import Assumptions
from kernelbounds.bounds.ay import AY
from kernelbounds.bounds.bound import Bound
from kernelbounds.bounds.fiedler import Fiedler
from kernelbounds.bounds.forecast_sets import Emmenegger, OnlineToSet
from kernelbounds.bounds.igp import IGP
from kernelbounds.bounds.neiswanger import Neiswanger
from kernelbounds.bounds.srinivas import Srinivas
from kernelbounds.bounds.vakili import Vakili
from kernelbounds.kernels.rkhs import mixture_scale

Rival = Callable[[int, Kernel, int, Assumptions], Bound]

# From the number of rounds, the kernel, the dimension of points and the assumptions to a bound.
# Where a paper leaves a ridge to the user, it is the one that its experiments or rates use;
# docs/mathematics/rivals.md has the theorems.
RIVALS: dict[str, Rival] = {
    "Srinivas 2010": lambda horizon, kernel, dim, a: Srinivas(),
    "AY 2012": lambda horizon, kernel, dim, a: AY(),
    "OnlineToSet 2012": lambda horizon, kernel, dim, a: OnlineToSet(),
    "IGP 2017": lambda horizon, kernel, dim, a: IGP(eta=2 / horizon),
    "Durand 2018": lambda horizon, kernel, dim, a: AY(ridge=(a.noise_scale / a.norm_bound) ** 2),
    "Fiedler 2021": lambda horizon, kernel, dim, a: Fiedler(ridge=a.noise_scale**2),
    "Neiswanger 2021": lambda horizon, kernel, dim, a: Neiswanger(),
    "Vakili 2021": lambda horizon, kernel, dim, a: Vakili(),
    "Emmenegger 2023": lambda horizon, kernel, dim, a: Emmenegger(),
    "Whitehouse 2023": lambda horizon, kernel, dim, a: AY(
        ridge=1 / mixture_scale(kernel, dim, horizon)
    ),
}

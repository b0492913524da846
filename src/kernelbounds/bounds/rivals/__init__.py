"""The bounds of the literature, and all of them by name.

AY and IGP are those that the paper compares with. ``docs/mathematics/rivals.md`` has the theorems.
"""

from collections.abc import Callable

from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.bounds.bound import Bound
from kernelbounds.bounds.rivals.ay import AY
from kernelbounds.bounds.rivals.fiedler import Fiedler
from kernelbounds.bounds.rivals.forecast_set import Emmenegger, OnlineToSet
from kernelbounds.bounds.rivals.igp import IGP
from kernelbounds.bounds.rivals.neiswanger import Neiswanger
from kernelbounds.bounds.rivals.srinivas import Srinivas
from kernelbounds.bounds.rivals.vakili import Vakili
from kernelbounds.confidence.assumptions import Assumptions
from kernelbounds.kernels.rkhs import mixture_scale

__all__ = [
    "AY",
    "IGP",
    "RIVALS",
    "Emmenegger",
    "Fiedler",
    "Neiswanger",
    "OnlineToSet",
    "Srinivas",
    "Vakili",
]

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

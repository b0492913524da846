"""Random problems for the tests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    RationalQuadratic,
)

import kernelbounds as kb

KERNELS = {
    "rbf": RBF(0.5),
    "matern 3/2": Matern(length_scale=0.3, nu=1.5),
    "matern 5/2": Matern(length_scale=0.5, nu=2.5),
    "matern 1/2, anisotropic": Matern(length_scale=(0.3, 0.8), nu=0.5),
    "matern 2.2": Matern(length_scale=0.4, nu=2.2),
    "rational quadratic": RationalQuadratic(length_scale=0.4, alpha=1.5),
    "linear": DotProduct(sigma_0=0.5),
    "scaled sum": ConstantKernel(3.0) * RBF(0.4) + ConstantKernel(0.5) * Matern(0.2, nu=1.5),
    "product": RBF(0.6) * (DotProduct(0.3) + ConstantKernel(2.0)),
}
BOUNDS = {
    "CMM": kb.CMM(),
    "DMM": kb.DMM(),
    "AMM": kb.AMM(),
    "AMM at 0.5": kb.AMM(0.5),
    "AY": kb.AY(),
    "IGP": kb.IGP(eta=0.02),
    "Fiedler": kb.bounds.Fiedler(ridge=2.0),
}


class Own(RBF):
    """A kernel of one's own, of which only the values are known."""


def too_many(failures, runs, delta):
    """Whether so many failures, each of probability at most delta, have one below 1e-4."""
    return binom.sf(failures - 1, runs, delta) < 1e-4


def band_fails(seq, grid, values, noise) -> bool:
    """Whether the truth, ``values`` on a grid, leaves the band at any time, or is refuted.

    Each point is the bandit's choice, which is as adaptive as it gets, and has one of ``noise``.
    """
    for error in noise:
        try:
            lower, upper = seq.bounds(grid)
        except kb.EmptyConfidenceSetError:
            return True
        if np.any(values < lower) or np.any(values > upper):
            return True
        x = int(np.argmax(upper))
        seq.update(grid[x], values[x] + error)
    return False


def one_line(error) -> str:
    """The message of an error, which must be one line for people, with a full stop at its end."""
    message = str(error)
    assert message.endswith(".") and len(message.splitlines()) == 1 and len(message) < 400
    return message


def refused(make, match=None, kind=kb.InputError) -> str:
    """The message with which make() is refused."""
    with pytest.raises(kind, match=match) as caught:
        make()
    return one_line(caught.value)


def refusal(make, *arguments, **options) -> str | None:
    """The message with which something is refused, and None where it is taken."""
    try:
        make(*arguments, **options)
    except kb.InputError as error:
        return one_line(error)
    return None


def noisy_only(name, noise_scale):
    """Skip what AY, IGP and Fiedler are not for: data without noise."""
    if noise_scale == 0 and name in ("AY", "IGP", "Fiedler"):
        pytest.skip("these bounds are for noisy data")


def truth(kernel, rng, norm, dim=2, centres=8) -> kb.RKHSFunction:
    function = kb.RKHSFunction(kernel, rng.random((centres, dim)), rng.standard_normal(centres))
    return function.rescaled(norm)


def observe(function, rng, t, noise_scale, dim=2):
    X = rng.random((t, dim))
    return X, function(X) + noise_scale * rng.standard_normal(t)


def sequence(kernel, rng, t, norm=5.0, noise_scale=0.1, dim=2, **options):
    """A confidence sequence with t observations of a function of 0.8 times the norm bound."""
    function = truth(kernel, rng, 0.8 * norm, dim)
    seq = kb.ConfidenceSequence(kernel, norm, noise_scale, **options)
    if t:
        seq.update(*observe(function, rng, t, noise_scale, dim))
    return seq, function


# For hypothesis: a kernel and points; and with a ridge.
data_sets = {
    "name": st.sampled_from(sorted(KERNELS)),
    "seed": st.integers(0, 10**6),
    "t": st.integers(1, 60),
}
instances = st.fixed_dictionaries(
    {
        **data_sets,
        "ridge": st.floats(1e-3, 10.0),
        "repeats": st.booleans(),
    }
)

# For policies.
KERNEL = Matern(length_scale=0.4, nu=2.5)
POINTS = np.random.default_rng(7).random((60, 2))
DOMAINS = {
    "box": kb.Box([0, 0], [1, 1]),
    "named box": kb.Box.named(a=(0, 1), b=(-1, 1)),
    "finite": kb.Finite(POINTS),
    "once": kb.Finite(POINTS, once=True),
}
# Domains, and whether to minimise. Searches of a box are slow, and names do not change them: one of
# the two is enough for each aim.
AIMS = [
    ("box", False), ("named box", True),
    ("finite", False), ("finite", True), ("once", False), ("once", True),
]  # fmt: skip


def policy_on(cls, domain, *, bound=None, minimise=False, t=0, noise_scale=0.1, kernel=KERNEL):
    """A policy after t rounds on a random function, the function, and the generator."""
    rng = np.random.default_rng(3)
    function = truth(kernel, rng, 4.0)
    policy = cls(
        kb.ConfidenceSequence(kernel, 5.0, noise_scale, bound=bound), domain, minimise=minimise
    )
    for _ in range(t):
        s = policy.ask()
        policy.tell(s.x, function(s.x[None])[0] + noise_scale * rng.standard_normal())
    return policy, function, rng

"""B and the kernel by example: norms of random functions that have the stated range and turns.

==================  ====================================================================
code                meaning
==================  ====================================================================
``scales``          length scales for inputs scaled to [0, 1]: ``reach`` / (turns + 1)
``norms``           of the functions, less the best constant, (number of functions,)
``width``           half of the predicted width of the band, mean over points
==================  ====================================================================

The norm of a function in the space of a kernel is at least that of its interpolant on n points,

    N_n^2 = min over c of (f - c)^T K^{-1} (f - c),

which rises with n towards it. How much is still to come is judged by the last doubling of n:
where the increments of N_n^2 fall by half with every doubling, or faster, the rest is at most the
last of them, and so much is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

from kernelbounds import kernels
from kernelbounds.arrays import Array, shortened
from kernelbounds.errors import InputError
from kernelbounds.kernels import OnInputs
from kernelbounds.problem.problem import SUGGESTED, Problem
from kernelbounds.problem.random_functions import RandomFunction, subsets_of
from kernelbounds.problem.widths import predicted_half_widths

# The 0.9 quantile of so many functions is that of 0.86 to 0.94 of all, 19 times of 20.
FUNCTIONS = 200
# Points on which norms are computed, by the number of inputs that act together. With these the norm
# still rises by less than a tenth up to three inputs, see `docs/how-to/own-data.md`.
POINTS = {1: 256, 2: 512, 3: 1024}
MOST_POINTS = 2048
# A kernel whose norms rise by more than this, relative to themselves, with the last doubling of
# the number of points, does not have the functions in its space, or one cannot tell.
SETTLED = 0.15
# Rounding in K, relative to k(x, x): norms are those of functions that pass within its root, and
# so lower ones.
JITTER = 1e-10
# Kernels, and length scales relative to the range of an input over its turns + 1. Those between
# are predicted to be narrower by less than 3 per cent, in 36 cases of up to six inputs, and
# Matérn-7/2 by less than 4. RBF is there for comparison: most functions have an infinite norm.
KERNELS: tuple[tuple[str, Callable[[Array], Kernel], float], ...] = (
    ("Matérn-3/2", lambda scales: Matern(scales, nu=1.5), 0.75),
    ("Matérn-3/2", lambda scales: Matern(scales, nu=1.5), 1.5),
    ("Matérn-3/2", lambda scales: Matern(scales, nu=1.5), 3.0),
    ("Matérn-5/2", lambda scales: Matern(scales, nu=2.5), 0.75),
    ("Matérn-5/2", lambda scales: Matern(scales, nu=2.5), 1.5),
    ("Matérn-5/2", lambda scales: Matern(scales, nu=2.5), 3.0),
    ("RBF", RBF, 0.75),
)
# Noise for the choice of a kernel where none is given, relative to the range of the output.
DEFAULT_NOISE = 0.01


@dataclass(frozen=True)
class Candidate:
    """A kernel, the norms of the functions in its space and the band to be expected.

    Attributes
    ----------
    name : str
    kernel : kernel
    norms : array
        Of the functions, in their order, in units of the output.
    norm_bound : float
        That of which the stated share is smaller.
    settled : bool
        Whether the norms are known: if not, those of finer and finer sets of points do not settle.
    width : float
        Mean half-width predicted after the planned number of experiments; infinite if not settled.
    """

    name: str
    kernel: Kernel
    norms: Array
    norm_bound: float
    settled: bool
    width: float


@dataclass(frozen=True)
class Assumed:
    """What was found: a problem with kernel and norm bound, and from what they were chosen.

    Attributes
    ----------
    problem : Problem
    candidates : tuple of Candidate
    chosen : Candidate
    functions : tuple of RandomFunction
        On the unit cube, with values in [-1, 1].
    noise : float
        With which widths were predicted.
    """

    problem: Problem
    candidates: tuple[Candidate, ...]
    chosen: Candidate
    functions: tuple[RandomFunction, ...]
    noise: float

    @property
    def share_covered(self) -> float:
        """The share of the functions whose norm is at most the norm bound."""
        bound = self.problem.norm_bound or 0.0
        return float(np.mean(self.chosen.norms <= bound))

    def values(self, function: RandomFunction, unit: Array) -> Array:
        """Of one of the functions, at points (m, d) of the unit cube, in units of the output."""
        out = self.problem.output
        return out.low + out.range * (function(unit) + 1) / 2


def assume(
    problem: Problem, functions: int = FUNCTIONS, seed: int = 0, step: Callable[[], object] = bool
) -> Assumed:
    """Suggest a kernel and a norm bound for a problem, before any data.

    Random functions are drawn that go through the whole range of the output and turn at most as
    often as stated, see :mod:`kernelbounds.problem.random_functions`. For each kernel, B is the
    ``quantile`` of their norms. The kernel is the one whose band is then predicted to be the
    narrowest. What the problem says of kernel and norm bound already is kept.

    ``step`` is called after each function and each kernel, for a progress bar; that is
    :func:`steps` times.

    Examples
    --------
    >>> from kernelbounds.problem import Problem
    >>> found = assume(Problem(["x=0:1"], "y=-1:1", noise=0.02, turns=1), functions=40)
    >>> found.chosen.name, 5 < found.problem.norm_bound < 20
    ('Matérn-5/2, ℓ = 0.75', True)
    """
    rng = np.random.default_rng(seed)
    noise = problem.noise if problem.noise is not None else DEFAULT_NOISE * problem.output.range
    subsets = subsets_of(problem.dim, problem.interactions)
    drawn = []
    for _ in range(functions):
        drawn.append(RandomFunction(rng, problem.turns_of_inputs, subsets))
        step()
    if problem.kernel is not None:
        pieces = [_Values.of(drawn, tuple(range(problem.dim)), None)]
    else:
        pieces = [_Values.of(drawn, inputs, part) for part, inputs in enumerate(subsets)]
    candidates = []
    for name, kernel, parts in _candidates(problem, subsets):
        norms, settled = _norms(pieces, parts, problem.quantile)
        norms = norms * problem.output.range / 2
        bound = float(np.quantile(norms, problem.quantile))
        filled = problem.replace(kernel=kernel, norm_bound=problem.norm_bound or bound, noise=noise)
        width = predicted_half_widths(filled, problem.experiments)[0] if settled else np.inf
        candidates.append(Candidate(name, kernel, norms, bound, settled, width))
        step()
    chosen = min(candidates, key=lambda one: one.width)
    if not chosen.settled and problem.norm_bound is None:
        raise InputError(_cannot_be_told(problem))
    bound = problem.norm_bound or chosen.norm_bound
    suggested = [name for name in SUGGESTED if getattr(problem, name) is None]
    found = problem.replace(kernel=chosen.kernel, norm_bound=bound, suggested=suggested)
    return Assumed(found, tuple(candidates), chosen, tuple(drawn), noise)


def _cannot_be_told(problem: Problem) -> str:
    """Why there is no suggestion, and what to do."""
    if problem.kernel is not None:
        return (
            f"norms under {shortened(kernels.kernel_to_text(problem.kernel), 100)} of functions "
            "with so many turns are infinite, or cannot be told: give norm_bound too, or leave the "
            "kernel to be chosen."
        )
    fewer = "say interactions='pairs' or 'none' if that is true, or " if problem.dim > 1 else ""
    return (
        f"how large the norms of functions of {problem.dim} input{'s' * (problem.dim > 1)} with so "
        f"many turns are cannot be told from {MOST_POINTS} points: {fewer}allow fewer turns, or "
        "give norm_bound."
    )


def steps(problem: Problem, functions: int = FUNCTIONS) -> int:
    """How often :func:`assume` calls ``step``."""
    return functions + (1 if problem.kernel is not None else len(KERNELS))


def _candidates(
    problem: Problem, subsets: list[tuple[int, ...]]
) -> Iterator[tuple[str, Kernel, list[Kernel]]]:
    """Their names, the kernels, and those of the parts."""
    everything = tuple(range(problem.dim))
    if problem.kernel is not None:
        yield "the kernel given", problem.kernel, [problem.kernel]
        return
    for name, make, reach in KERNELS:
        scales = reach / (problem.turns_of_inputs + 1)
        parts = [make(scales[list(inputs)]) for inputs in subsets]
        kernel = parts[0]
        if subsets != [everything]:
            on_inputs = [OnInputs(one, inputs) for one, inputs in zip(parts, subsets, strict=True)]
            kernel = sum(on_inputs[1:], on_inputs[0])
        yield f"{name}, ℓ = {_briefly(scales)}", kernel, parts


def _briefly(scales: Array) -> str:
    """Length scales, or their range."""
    low, high = f"{scales.min():.2g}", f"{scales.max():.2g}"
    return low if low == high else f"{low} to {high}"


@dataclass(frozen=True)
class _Values:
    """Values of parts of the functions at points of some inputs: (n, |S|), (n, functions)."""

    points: Array
    values: Array

    @classmethod
    def of(
        cls, functions: list[RandomFunction], inputs: tuple[int, ...], part: int | None
    ) -> _Values:
        """Of a part of theirs, or of them all."""
        dim = len(inputs)
        points = qmc.Sobol(dim, rng=np.random.default_rng(2)).random(POINTS.get(dim, MOST_POINTS))
        everywhere = np.full((len(points), functions[0].dim), 0.5)
        everywhere[:, inputs] = points
        found = [f(everywhere) if part is None else f.of_part(part, everywhere) for f in functions]
        return cls(points, np.stack(found, axis=1))


def _norms(
    pieces: list[_Values], kernels_of_pieces: list[Kernel], quantile: float
) -> tuple[Array, bool]:
    """Norms of functions with values in [-1, 1], and whether they are settled.

    The norm in the space of a sum of kernels is at most the root of the sum of the squares for the
    parts.
    """
    total = of_half = np.zeros(pieces[0].values.shape[1])
    for piece, kernel in zip(pieces, kernels_of_pieces, strict=True):
        half = len(piece.points) // 2
        total = total + _squared_norms(kernel, piece.points, piece.values)
        of_half = of_half + _squared_norms(kernel, piece.points[:half], piece.values[:half])
    risen = np.maximum(total - of_half, 0.0)
    at_quantile = np.quantile(np.sqrt(total), quantile) / np.quantile(np.sqrt(of_half), quantile)
    return np.sqrt(total + risen), bool(at_quantile <= 1 + SETTLED)


def _squared_norms(kernel: Kernel, points: Array, values: Array) -> Array:
    """min over c of (f - c)^T K^{-1} (f - c), for each column of values."""
    matrix = kernels.cross(kernel, points, points)
    matrix.flat[:: len(points) + 1] *= 1 + JITTER
    ones = np.ones((len(points), 1))
    solved = cho_solve(cho_factor(matrix), np.concatenate([ones, values], axis=1))
    energy = np.einsum("nj,nj->j", values, solved[:, 1:])
    constant = solved[:, :1].sum()
    return np.asarray(np.maximum(energy - (ones.T @ solved[:, 1:])[0] ** 2 / constant, 0.0))

"""Functions of the unit cube as one meets them, made otherwise than those of the library."""

from __future__ import annotations

import numpy as np
from numpy.polynomial.polynomial import polyval
from scipy.stats import qmc

from kernelbounds.problem.random_functions import with_corners


def bumps(rng, dim):
    count = rng.integers(1, 5)
    centres, widths = rng.random((count, dim)), rng.uniform(0.2, 0.7, count)
    heights = rng.standard_normal(count)

    def f(x):
        squares = ((x[:, None] - centres) ** 2).sum(-1)
        return np.exp(-squares / (2 * widths**2)) @ heights

    return f


def polynomials(rng, dim):
    degree = rng.integers(1, 5)
    directions, coefficients = rng.standard_normal((4, dim)), rng.standard_normal((4, degree + 1))
    pairs = list(zip(directions / np.sqrt(dim), coefficients))
    return lambda x: sum(polyval((2 * x - 1) @ one, terms) for one, terms in pairs)


def gaussian_processes(rng, dim):
    """Draws with an RBF kernel, nearly."""
    waves = rng.standard_normal((100, dim)) / rng.uniform(0.3, 1.0)
    phases, heights = rng.uniform(0, 2 * np.pi, 100), rng.standard_normal(100)
    return lambda x: np.cos(x @ waves.T + phases) @ heights


def steps(rng, dim):
    direction = rng.standard_normal(dim)
    direction /= np.abs(direction).sum()
    at, steepness = (rng.uniform(0.2, 0.8, dim) * direction).sum(), rng.uniform(1, 6)
    slopes = 0.2 * rng.standard_normal(dim)
    return lambda x: np.tanh(steepness * (x @ direction - at)) + x @ slopes


def rational_peaks(rng, dim):
    centre, widths = rng.random(dim), rng.uniform(0.3, 1, dim)
    return lambda x: 1 / (1 + (((x - centre) / widths) ** 2).sum(1))


def kinetics(rng, dim):
    """Products of saturating effects, to a power."""
    rates, signs, power = rng.uniform(0.5, 4, dim), rng.choice([-1, 1], dim), rng.uniform(0.5, 2)
    return lambda x: np.prod(1 - 0.8 * signs * np.exp(-rates * x), axis=1) ** power


FAMILIES = (bumps, polynomials, gaussian_processes, steps, rational_peaks, kinetics)


def with_range(f, dim, rng):
    """The same from -1 to 1, on points that fill the cube and its corners."""
    values = f(with_corners(qmc.Sobol(dim, rng=rng).random(2048)))
    low, high = values.min(), values.max()
    return lambda x: 2 * (f(x) - low) / (high - low) - 1


def along_lines(f, dim, axis, rng, lines=64, points=201):
    """Values on random lines along one input, (lines, points)."""
    x = np.repeat(rng.random((lines, dim)), points, axis=0)
    x[:, axis] = np.tile(np.linspace(0, 1, points), lines)
    return f(x).reshape(lines, points)


def turns_of(values):
    """How often each row turns, from rising to falling or back."""
    rises = np.diff(values, axis=1) > 0
    return np.count_nonzero(np.diff(rises, axis=1), axis=1)


def most_turns(f, dim, rng):
    """The most turns along any input, on 64 random lines each."""
    return max(int(turns_of(along_lines(f, dim, axis, rng)).max()) for axis in range(dim))

"""KernelUCB as plainly as it can be written: every formula from scratch in every round."""

from __future__ import annotations

import numpy as np

import kernelbounds as kb

GOLDEN = (np.sqrt(5) - 1) / 2


def upper_bounds(bound, kernel, X, y, candidates, B, sigma, delta, c):
    """Upper confidence bounds at the candidates, by dense solves (CMM: a search over ridges)."""
    K, k, prior = kernel(X), kernel(X, candidates), kernel.diag(candidates)
    t, reference = len(y), sigma**2 / c

    def fit(ridge):
        solved = np.linalg.solve(K + ridge * np.eye(t), np.column_stack([k, y]))
        variance = np.maximum(prior - np.sum(k * solved[:, :-1], axis=0), 0.0)
        log_det = np.linalg.slogdet(np.eye(t) + K / ridge)[1]
        return k.T @ solved[:, -1], np.sqrt(variance), ridge * (y @ solved[:, -1]), log_det

    if isinstance(bound, kb.AY):
        mean, deviation, _, log_det = fit(reference)
        width = sigma * np.sqrt((log_det + 2 * np.log(1 / delta)) / reference) + B
        return mean + width * deviation
    if isinstance(bound, kb.IGP):
        mean, deviation, _, log_det = fit(1 + bound.eta)
        return mean + deviation * (
            sigma * np.sqrt(log_det + t * bound.eta + 2 * np.log(1 / delta)) + B
        )
    _, _, energy, log_det = fit(reference)
    radius = energy + sigma**2 * (log_det + 2 * np.log(1 / delta))

    def analytic(ridge):
        mean, deviation, energy, _ = fit(ridge)
        return mean + np.sqrt((radius + ridge * B**2 - energy) / ridge) * deviation

    if isinstance(bound, kb.AMM):
        return analytic(reference)
    if isinstance(bound, kb.DMM):
        return np.min([analytic(f * reference) for f in (0.1, 0.3, 1.0, 3.0, 10.0)], axis=0)
    return _exact(K, k, prior, y, radius, B)


def _exact(K, k, prior, y, radius, B):
    """The minimum over log ridge: a grid for the bracket, then golden-section search."""
    values, vectors = np.linalg.eigh(K)
    u, z = vectors.T @ k, vectors.T @ y

    def at(log_ridge):
        """One ridge for each candidate."""
        ridge = np.exp(log_ridge)
        inverse = 1 / (np.maximum(values, 0)[:, None] + ridge)
        variance = np.maximum(prior - np.sum(inverse * u**2, axis=0), 0.0)
        energy = ridge * np.sum(inverse * z[:, None] ** 2, axis=0)
        squared = np.maximum(radius + ridge * B**2 - energy, 0.0)
        return np.sum(inverse * u * z[:, None], axis=0) + np.sqrt(squared / ridge * variance)

    grid = np.linspace(np.log(1e-6), np.log(1e8), 60)
    best = np.argmin([at(np.full(len(prior), point)) for point in grid], axis=0)
    low, high = grid[np.maximum(best - 1, 0)], grid[np.minimum(best + 1, len(grid) - 1)]
    for _ in range(50):
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        smaller = at(left) < at(right)
        low, high = np.where(smaller, low, left), np.where(smaller, right, high)
    return at((low + high) / 2)


def play(bound, problem, rounds, rng, delta=0.01):
    """The indices that KernelUCB plays on the random numbers that `simulate` would use."""
    of_actions, of_noise = rng.spawn(2)
    kernel, B, sigma = problem.function.kernel, problem.function.norm, problem.noise_scale
    c = kb.mixture_scale(kernel, problem.function.centres.shape[1], rounds)
    X, y, chosen = [], [], []
    for _ in range(rounds):
        candidates = problem.actions(of_actions)
        if X:
            upper, opposite = (
                upper_bounds(
                    bound, kernel, np.array(X), s * np.array(y), candidates, B, sigma, delta, c
                )
                for s in (1, -1)
            )
            # CMM has ties, at the trivial bound: the widest interval wins, or else the first.
            tied = upper >= upper.max() - 1e-7 * B
            widest = opposite >= opposite[tied].max() - 1e-7 * B
            chosen.append(int(np.argmax(tied & widest)))
        else:
            chosen.append(0)
        X.append(candidates[chosen[-1]])
        y.append(problem.values(candidates)[chosen[-1]] + problem.noise(of_noise))
    return chosen

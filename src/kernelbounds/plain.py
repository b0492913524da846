"""Read this first: the paper's bounds, R_t and KernelUCB in plain NumPy.

These are the paper's radius, bounds and algorithm, from scratch at every call: no certificates
against rounding, no data that grow. The rest of the package computes the same numbers, fast and
rounded so that bounds stay valid; the tests compare the two. Equations are numbered as in Flynn and
Reeb, "Tighter Confidence Bounds for Sequential Kernel Regression".

==========================  =========================  =============================================
code                        paper                      meaning
==========================  =========================  =============================================
``X``, ``y``                x_1 .. x_t, y_t            the points (t, d) and the outcomes (t,)
``x``                       x                          where the bounds are wanted, (m, d)
``B``, ``sigma``, ``delta`` B, sigma, delta            norm bound, noise scale, failure probability
``ridge``                   alpha, lambda              the regularisation of ridge regression
``c``                       c                          the scale of the mixture N(0, c K_t)
``radius``                  R_t^2                      the squared radius of the data constraint
``energy``                  E_alpha                    y' (I + K_t / alpha)^-1 y
``log_det``                 l_alpha                    ln det(I + K_t / alpha)
==========================  =========================  =============================================

Bounds are upper ones; a lower bound is minus the upper bound for the outcomes -y.

Examples
--------
>>> from sklearn.gaussian_process.kernels import RBF
>>> X, y = np.array([[0.1], [0.5], [0.9]]), np.array([0.8, 1.1, 0.3])
>>> fit = Ridge(RBF(0.5), X, y, np.array([[0.3]]))
>>> radius = squared_radius(fit, sigma=0.1, delta=0.01, c=1.0)
>>> exact, analytic = cmm(fit, radius, B=2.0), amm(fit, radius, B=2.0, ridge=0.01)
>>> bool(exact[0] <= analytic[0])
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import Array

GOLDEN = (np.sqrt(5) - 1) / 2


class FourQuantities(NamedTuple):
    """The four quantities from which every bound is made.

    Each has shape (m,), but energy and log_det have (1,) where one ridge serves all x.
    """

    mean: Array
    deviation: Array
    energy: Array
    log_det: Array


class Ridge:
    """Kernel ridge regression on all data, for the points ``x``, in the eigenbasis of K_t.

    With K_t = Q diag(values) Q', u = Q' k_t(x) and z = Q' y_t, every formula that contains
    (K_t + alpha I)^-1 is a sum over eigenvalues.
    """

    def __init__(self, kernel: Kernel, X: Array, y: Array, x: Array) -> None:
        values, Q = np.linalg.eigh(kernel(X))
        self.values = np.maximum(values, 0.0)[:, None]
        self.u, self.z = Q.T @ kernel(X, x), (Q.T @ y)[:, None]
        self.prior, self.count = kernel.diag(x), len(y)  # k(x, x) and t

    def at(self, ridge: float | Array) -> FourQuantities:
        """mu (Eq. 2), rho (Eq. 3), energy and log-determinant at a ridge, or at one for each x."""
        inverse = 1 / (self.values + ridge)
        mean = np.sum(inverse * self.u * self.z, axis=0)
        variance = self.prior - np.sum(inverse * self.u**2, axis=0)
        energy = ridge * np.sum(inverse * self.z**2, axis=0)
        log_det = np.sum(np.log1p(self.values / ridge), axis=0)
        return FourQuantities(mean, np.sqrt(np.maximum(variance, 0.0)), energy, log_det)


def squared_radius(fit: Ridge, sigma: float, delta: float, c: float) -> float:
    """R_t^2 = E + sigma^2 l + 2 sigma^2 ln(1/delta) at the ridge sigma^2/c (Eq. 8)."""
    if sigma == 0:  # without noise R_t = 0 (Sec. 6.3)
        return 0.0
    _, _, energy, log_det = fit.at(sigma**2 / c)
    return float(energy[0] + sigma**2 * log_det[0] + 2 * sigma**2 * np.log(1 / delta))


def amm(fit: Ridge, radius: float, B: float, ridge: float | Array) -> Array:
    """mu + R~ rho / sqrt(alpha), with R~^2 = R_t^2 + alpha B^2 - E (Cor. 4.3, Eq. 14)."""
    mean, deviation, energy, _ = fit.at(ridge)
    squared = radius + ridge * B**2 - energy
    if np.any(squared < 0):
        raise ValueError("The confidence set is empty: the data refute B, sigma or the kernel.")
    return np.asarray(mean + np.sqrt(squared / ridge) * deviation)


def dmm(fit: Ridge, radius: float, B: float, ridges: Array) -> Array:
    """The least of AMM over a grid of ridges (Sec. 5.4)."""
    return np.asarray(np.min([amm(fit, radius, B, ridge) for ridge in ridges], axis=0))


def cmm(fit: Ridge, radius: float, B: float) -> Array:
    """max f(x) over ||f|| <= B and ||f_t - y_t|| <= R_t (Eq. 9): the least AMM of all (Eq. 12).

    AMM is quasiconvex in the ridge (``docs/mathematics/exact-bound.md``), so a golden-section
    search around the best point of a grid finds the minimum. Every ridge gives a valid bound.
    """

    def bound(log_ridge: Array) -> Array:
        return amm(fit, radius, B, np.exp(log_ridge))

    grid = np.linspace(np.log(1e-6), np.log(1e8), 60)
    best = np.argmin([bound(np.full(len(fit.prior), log)) for log in grid], axis=0)
    low, high = grid[np.maximum(best - 1, 0)], grid[np.minimum(best + 1, len(grid) - 1)]
    for _ in range(50):
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        smaller = bound(left) < bound(right)
        low, high = np.where(smaller, low, left), np.where(smaller, right, high)
    return bound((low + high) / 2)


def ay(fit: Ridge, sigma: float, delta: float, B: float, ridge: float) -> Array:
    """The bound of AY-GP-UCB (Abbasi-Yadkori 2012, Thm. 3.11; App. C)."""
    mean, deviation, _, log_det = fit.at(ridge)
    width = sigma * np.sqrt((log_det + 2 * np.log(1 / delta)) / ridge) + B
    return np.asarray(mean + width * deviation)


def igp(fit: Ridge, sigma: float, delta: float, B: float, eta: float) -> Array:
    """The bound of IGP-UCB (Chowdhury and Gopalan 2017, Thm. 2; App. C)."""
    mean, deviation, _, log_det = fit.at(1 + eta)
    width = sigma * np.sqrt(log_det + fit.count * eta + 2 * np.log(1 / delta)) + B
    return np.asarray(mean + width * deviation)


def kernel_ucb(
    upper: Callable[[Array, Array, Array], Array],
    actions: Callable[[], Array],
    outcome: Callable[[Array], float],
    rounds: int,
) -> list[int]:
    """Algorithm 1: in each round, play the action with the largest upper bound; their indices.

    ``actions()`` gives the actions of the next round (n, d), ``upper(X, y, x)`` upper bounds at x
    from the data so far, and ``outcome(x)`` a noisy value of f*. The first round plays the first.
    """
    X: list[Array] = []
    y: list[float] = []
    played: list[int] = []
    for _ in range(rounds):
        choices = actions()
        best = int(np.argmax(upper(np.array(X), np.array(y), choices))) if X else 0
        X.append(choices[best])
        y.append(outcome(choices[best]))
        played.append(best)
    return played

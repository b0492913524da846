"""Assumptions in parts: f* = sum_i g_i, with a kernel and a norm bound for each part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel

from kernelbounds import kernels
from kernelbounds.arrays import EPS, LARGEST, Array, as_scalar, brief
from kernelbounds.errors import InputError

# A bound enters the kernel by its square, over a share: that must not overflow, nor vanish.
SMALLEST_BOUND, LARGEST_BOUND = 1e-100, 1e45
# Shares are chosen from this number of points at least, and at most, because that takes the cube of
# their number. They change little after that.
FEWEST_POINTS, MOST_POINTS = 8, 256
# Steps of the alternating minimisation, each of which lowers what is minimised; after ten the width
# of the bounds changes by less than a percent.
SHARE_STEPS = 10
# A part that the data determine has nearly no share. This is the least, relative to the largest:
# it enlarges the bounds on the others by half a percent, and smaller ones would cost digits.
LEAST_SHARE = 1e-2


class Parts:
    """f* = sum_i g_i with ||g_i|| <= B_i in the function space of k_i: what is known of f*.

    Whatever the shares s_i > 0 with sum_i s_i = 1, all such functions have norm at most 1 in the
    space of the kernel sum_i (B_i^2 / s_i) k_i: its square is at most sum_i s_i ||g_i||^2 / B_i^2.
    Shares are chosen from the points observed, and not from outcomes, so that bounds at such
    points are narrow (``docs/how-to/structure.md``).

    Parameters
    ----------
    parts : sequence of (kernel, bound)
        A kernel for each part, and a bound on the norm of that part.

    Examples
    --------
    Effects of two inputs that are large each for itself, and a small remainder:

    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import Matern
    >>> smooth = Matern(length_scale=1.0, nu=2.5)
    >>> parts = Parts(
    ...     [(kb.OnInputs(smooth, [0]), 3.0), (kb.OnInputs(smooth, [1]), 3.0), (smooth, 0.5)]
    ... )
    >>> seq = kb.ConfidenceSequence(parts, noise_scale=0.1)
    """

    def __init__(self, parts: Sequence[tuple[Kernel, float]]) -> None:
        given: object = parts
        if not isinstance(given, Iterable) or isinstance(given, str | bytes):
            raise InputError(f"parts must be a sequence of (kernel, bound), got {brief(parts)}.")
        pairs = []
        for part in given:
            if not isinstance(part, tuple | list) or len(part) != 2:
                raise InputError(f"each of parts must be (kernel, bound), got {brief(part)}.")
            kernel = kernels.checked_kernel(part[0])
            bound = as_scalar(part[1], "each bound", least=0.0, most=LARGEST_BOUND)
            if 0 < bound < SMALLEST_BOUND:
                raise InputError(
                    f"each bound must be 0 or at least {SMALLEST_BOUND:g}, got {bound:g}."
                )
            pairs.append((kernel, bound))
        if not any(bound > 0 for _, bound in pairs):
            raise InputError("parts must have at least one with a bound above 0.")
        self.pairs = tuple(pairs)

    def __repr__(self) -> str:
        return f"Parts([{', '.join(f'({kernel}, {bound:g})' for kernel, bound in self.pairs)}])"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parts) and self.pairs == other.pairs

    __hash__ = None  # type: ignore[assignment]

    @property
    def _present(self) -> list[tuple[Kernel, float]]:
        return [(kernel, bound) for kernel, bound in self.pairs if bound > 0]

    @property
    def equal_shares(self) -> tuple[float, ...]:
        """1 / n for the n parts whose bound is not 0."""
        return _adding_up(np.ones(len(self._present)))

    def kernel(self, shares: Sequence[float]) -> Kernel:
        """sum_i (B_i^2 / s_i) k_i, in which f* has norm at most 1."""
        scaled = [
            ConstantKernel(bound**2 / share) * kernel
            for (kernel, bound), share in zip(self._present, shares, strict=True)
        ]
        return sum(scaled[1:], scaled[0])

    def shares(
        self,
        points: Array,
        whitened: Callable[[Array], Array],
        ridge: float,
        slack: float = 0.0,
    ) -> tuple[float, ...]:
        """The shares that make the variances at the points small, given observations there.

        ``whitened`` makes M K M' of the kernel matrix of the points, as their noise scales ask for.

        The variance at x is the least, over a, of

            sum_i (B_i^2 / s_i) |phi_i(x) - sum_s a_s phi_i(x_s)|^2 + ridge |a|^2.

        For given a the best shares are proportional to the square roots of B_i^2 |..|^2, here
        summed over x = x_1 .. x_n. So a and the shares are chosen in turn.

        An engine adds ``slack`` times the trace, sum_i (B_i^2 / s_i) tr K_i, to the ridge, for
        rounding errors. A part that is larger than the others by orders of magnitude, as a level
        of which little is known, drowns them in that if its share is small. So slack tr K_i |a|^2
        is added to |..|^2, relative to what |..|^2 would be if x had not been observed: at such
        points more is unknown, and rounding errors matter less.
        """
        grams = [
            bound**2 * whitened(kernels.cross(kernel, points, points))
            for kernel, bound in self._present
        ]
        shares, identity = np.array(self.equal_shares), np.eye(len(points))
        rounding = slack * np.array([np.trace(gram) for gram in grams])
        for _ in range(SHARE_STEPS):
            matrix = sum(gram / share for gram, share in zip(grams, shares, strict=True))
            alpha = ridge + float((rounding / shares).sum())
            # The best a leave phi(x) - sum a phi with the coefficients alpha (K + alpha I)^-1.
            left = alpha * np.linalg.inv(matrix + alpha * identity)
            rest = np.array([np.vdot(left, gram @ left) for gram in grams])
            # Had x not been observed, that of phi(x) would be 1, and the others in proportion.
            apart = left / np.diagonal(left)
            unseen = sum(
                np.vdot(apart, gram @ apart) / s for gram, s in zip(grams, shares, strict=True)
            )
            seen = float((rest / shares).sum()) / max(float(unseen), 1e-300)
            rest += seen * rounding * np.vdot(identity - apart, identity - apart)
            roots = np.sqrt(np.maximum(rest, 0.0))
            shares = np.maximum(roots, LEAST_SHARE * roots.max())
            if not (np.isfinite(shares).all() and shares.max() > 0):
                return self.equal_shares
            shares /= shares.sum()
        return _adding_up(shares)


def _adding_up(shares: Array) -> tuple[float, ...]:
    """Scale shares to a sum below 1, by n roundings of the sum and 4 of (B_i^2 / s_i) k_i."""
    return tuple(map(float, shares / shares.sum() * (1 - (len(shares) + 4) * EPS)))


def count_for_shares(count: int) -> int:
    """The number of first points that decide on the shares: a power of two, to change seldom."""
    if count < FEWEST_POINTS:
        return 0
    return int(min(2 ** (count.bit_length() - 1), MOST_POINTS))


def as_parts(kernel: Any, norm_bound: Any, within: float) -> tuple[Parts | None, Kernel, Any]:
    """The parts, if there are several, and the kernel and norm bound of their sum."""
    if isinstance(kernel, Parts):
        if norm_bound is not None:
            raise InputError("norm_bound is in the parts already; pass Parts without it.")
        pairs = list(kernel.pairs)
    elif norm_bound is None:
        raise InputError("norm_bound is missing; only Parts have bounds of their own.")
    elif within == 0:
        return None, kernels.checked_kernel(kernel), norm_bound
    else:
        pairs = [(kernel, as_scalar(norm_bound, "norm_bound", least=0.0, most=LARGEST))]
    if within > 0:
        pairs.append((ConstantKernel(1.0), within))
    parts = Parts(pairs)
    return parts, parts.kernel(parts.equal_shares), 1.0

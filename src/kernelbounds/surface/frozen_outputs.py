"""Frozen bounds on several outputs as one function."""

from __future__ import annotations

import math
from collections.abc import Iterable
from os import PathLike
from typing import Any

from numpy.typing import ArrayLike

from kernelbounds.arrays import Array, brief
from kernelbounds.errors import InputError
from kernelbounds.io import archive
from kernelbounds.kernels import portable
from kernelbounds.surface.frozen import ARRAYS, Frozen

FORMAT, VERSION = "kernelbounds.FrozenOutputs", 1


class FrozenOutputs:
    """Frozen bounds on n outputs as one function, such as on all states of a system.

    By the union bound, all bounds on all outputs hold together with probability at least
    1 - ``delta``, the sum of those of the outputs: give each sequence delta/n. Outputs may differ
    in everything but the dimension of the points.

    Parameters
    ----------
    outputs : iterable of Frozen
        The frozen bounds on each output.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> sequences = [kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1, delta=0.005) for _ in range(2)]
    >>> for seq, y in zip(sequences, ([0.3, 0.1, -0.2], [0.0, 0.1, 0.5])):
    ...     seq.update([[0.0], [0.5], [1.0]], y)
    >>> outputs = kb.FrozenOutputs(seq.frozen() for seq in sequences)
    >>> lower, upper = outputs.bounds([[0.2], [0.4], [0.7]])
    >>> lower.shape, outputs.delta
    ((2, 3), 0.01)
    """

    def __init__(self, outputs: Iterable[Frozen]) -> None:
        self._outputs = tuple(outputs)
        wrong = [one for one in self._outputs if not isinstance(one, Frozen)]
        if wrong or not self._outputs:
            raise InputError(
                "outputs must be one or more frozen bounds, as seq.frozen() returns them, got "
                f"{brief(wrong[0]) if wrong else 'none'}."
            )
        dims = [one.dim for one in self._outputs]
        if len(set(dims)) > 1:
            raise InputError(
                f"outputs must be functions of the same inputs, got points of dimensions {dims}; "
                "pass all inputs to all sequences, and let kernels choose with OnInputs."
            )

    def __repr__(self) -> str:
        return f"FrozenOutputs of {len(self._outputs)} outputs in {self.dim} dimensions"

    @property
    def outputs(self) -> tuple[Frozen, ...]:
        """The frozen bounds on each output."""
        return self._outputs

    @property
    def dim(self) -> int:
        """The dimension of points."""
        return self._outputs[0].dim

    @property
    def delta(self) -> float:
        """The probability that some bound on some output is wrong."""
        return math.fsum(one.delta for one in self._outputs)

    def bounds(self, X: Any) -> tuple[Any, Any]:
        """Lower and upper bounds at points (m, d); two arrays of shape (n, m)."""
        return _stacked([one.bounds(X) for one in self._outputs])

    def gradients(self, X: Any) -> tuple[Any, Any]:
        """Gradients in x of the lower and upper bounds at points (m, d); both (n, m, d)."""
        return _stacked([one.gradients(X) for one in self._outputs])

    def bounds_and_gradients(self, X: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        """Both :meth:`bounds` and :meth:`gradients` at points (m, d), in the time of the latter."""
        found = [one.bounds_and_gradients(X) for one in self._outputs]
        return _stacked([bounds for bounds, _ in found]), _stacked([of for _, of in found])

    def bounds_in_boxes(self, lower: ArrayLike, upper: ArrayLike) -> tuple[Array, Array]:
        """Bounds throughout boxes with corners ``lower`` and ``upper``, (m, d); (n, m) each.

        See :meth:`Frozen.bounds_in_boxes <kernelbounds.Frozen.bounds_in_boxes>`.
        """
        return _stacked([one.bounds_in_boxes(lower, upper) for one in self._outputs])

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one npz file, without pickle; see :meth:`load`."""
        headers, arrays = zip(*(one._packed() for one in self._outputs), strict=True)
        archive.write(
            path,
            {"format": FORMAT, "version": VERSION, "outputs": headers},
            {f"{name}_{i}": one[name] for i, one in enumerate(arrays) for name in ARRAYS},
        )

    @classmethod
    def load(cls, path: str | PathLike[str]) -> FrozenOutputs:
        """Read what :meth:`save` wrote; it gives the same bounds."""
        header, arrays = archive.read(path, FORMAT, VERSION, "a file of frozen outputs")
        with archive.damage_reported(path):
            return cls(
                Frozen._unpacked(one, {name: arrays[f"{name}_{i}"] for name in ARRAYS})
                for i, one in enumerate(header["outputs"])
            )


def _stacked(pairs: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Stack the lower parts of all outputs, and the upper ones, along a new first axis."""
    xp = portable.namespace(pairs[0][0])
    return xp.stack([one for one, _ in pairs]), xp.stack([one for _, one in pairs])

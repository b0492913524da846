"""Copy objects that several threads use, so that a copy is of one moment between two updates."""

from __future__ import annotations

import copy
import threading
from abc import ABC, abstractmethod
from typing import Any, Self


class CopiedWhole(ABC):
    """A base class of objects that are copied and pickled while their ``lock`` is held.

    A shallow copy shares its attributes with the original, and is made for readers who hold the
    lock anyway.
    """

    @property
    @abstractmethod
    def lock(self) -> threading.RLock:
        """The lock that is held while the object changes."""

    def __copy__(self) -> Self:
        new = type(self).__new__(type(self))
        new.__setstate__(self._parts())
        return new

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        new = memo[id(self)] = type(self).__new__(type(self))
        with self.lock:
            new.__setstate__(copy.deepcopy(self._parts(), memo))
        return new

    def __getstate__(self) -> dict[str, Any]:
        """Return a copy for pickle, which writes it after the lock has been given back."""
        with self.lock:
            return copy.deepcopy(self._parts())

    def __setstate__(self, parts: dict[str, Any]) -> None:
        vars(self).update(parts)

    def _parts(self) -> dict[str, Any]:
        """The attributes that copies have."""
        return dict(vars(self))

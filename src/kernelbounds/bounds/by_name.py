"""Users' own bounds, named by where they are imported from: ``package.module:Name``."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from kernelbounds.arrays import brief, shortened
from kernelbounds.bounds.bound import Bound
from kernelbounds.errors import InputError, said


def imported_bound(place: str) -> Bound:
    """The bound at a place; of a class of bounds, one that is made without arguments."""
    try:
        with _current_directory_first():
            found = pkgutil.resolve_name(place)
        bound = found() if isinstance(found, type) else found
    except Exception as error:
        raise InputError(
            f"{brief(place)} cannot be used as a bound, {type(error).__name__}: "
            f"{shortened(said(error), 200)}; write package.module:Name, of a module in the current "
            "directory or one that is installed, and name a bound or a class that needs no "
            "arguments."
        ) from error
    if not isinstance(bound, Bound):
        raise InputError(f"{place} is not a kernelbounds.Bound, but {brief(bound)}.")
    return bound


@contextmanager
def _current_directory_first() -> Iterator[None]:
    """Find modules of the current directory first, as a script there does; in workers too."""
    here = os.getcwd()
    sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(here)

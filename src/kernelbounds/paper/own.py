"""Bounds of a user's own as methods, by where they are imported from: ``package.module:Name``."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import kernelbounds as kb
from kernelbounds.arrays import brief, shortened
from kernelbounds.errors import InputError, said


def is_own(method: str) -> bool:
    """Whether a method is a place to import a bound from, and not a name of the paper's."""
    return ":" in method


def label(method: str) -> str:
    """For tables and figures."""
    place, _, name = method.partition(":")
    return f"{name} ({place})"


def bound_of(method: str) -> kb.Bound:
    """The bound, or one made by the class without arguments."""
    bound = _imported(method)
    kb.bounds.guarantee.require_sequential(bound)
    return bound


def _imported(method: str) -> kb.Bound:
    place, _, name = method.partition(":")
    if not name.isidentifier() or not all(part.isidentifier() for part in place.split(".")):
        raise InputError(
            f"a method of your own is written package.module:Name, got {brief(method)}."
        )
    found = getattr(_module(place, method), name, None)
    if found is None:
        raise InputError(f"the module {place} has no {name}, which the method {method} names.")
    if not isinstance(found, type):
        if isinstance(found, kb.Bound):
            return found
        raise InputError(f"{method} is not a kernelbounds.Bound, but {brief(found)}.")
    if not issubclass(found, kb.Bound):
        raise InputError(f"{method} is a class that is not derived from kernelbounds.Bound.")
    try:
        return found()
    except Exception as error:
        raise InputError(
            f"{method} cannot be made without arguments ({said(error)}); name an object of the "
            "class in the module and give the name of that."
        ) from error


def fingerprint(method: str) -> str:
    """What the results of a method depend on, as far as one can tell: its class and settings.

    A change of what the class uses from elsewhere is not seen.
    """
    bound = bound_of(method)
    try:
        source = inspect.getsource(type(bound))
    except (OSError, TypeError):  # a class that was not read from a file
        source = ""
    settings = sorted((name, repr(value)) for name, value in vars(bound).items())
    return hashlib.sha256(f"{source}{settings}".encode()).hexdigest()[:16]


def _module(place: str, method: str) -> ModuleType:
    try:
        with _current_directory_first():
            return importlib.import_module(place)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if place == missing or place.startswith(f"{missing}."):
            raise InputError(
                f"there is no module {missing} for the method {method}; it must be in the current "
                "directory or be installed."
            ) from None
        raise InputError(f"the module {place} cannot be imported: {said(error)}.") from error
    except Exception as error:
        raise InputError(
            f"the module {place} cannot be imported: {type(error).__name__}: "
            f"{shortened(said(error))}."
        ) from error


@contextmanager
def _current_directory_first() -> Iterator[None]:
    """As for a script that is run there, for worker processes too."""
    here = os.getcwd()
    sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(here)

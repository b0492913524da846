"""Find columns of tables by the names that users ask for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernelbounds.arrays import brief, shortened
from kernelbounds.errors import InputError, did_you_mean


def position(name: str, names: Sequence[str], source: str) -> int:
    """Find the place of the column with this name among all columns of a source.

    A unit may follow the name there, ``temperature [K]`` or ``temperature (K)``.
    """
    count = names.count(name)
    if count == 1:
        return names.index(name)
    with_unit = re.compile(re.escape(name.strip()) + r"\s*(\[[^][]*\]|\([^()]*\))")
    places = [at for at, one in enumerate(names) if with_unit.fullmatch(one)]
    if not count and len(places) == 1:
        return places[0]
    if count:
        raise InputError(
            f"{source} has {count} columns named {brief(name)}; give each a name of its own."
        )
    found = shortened(", ".join(map(brief, names)), 120) or "none"
    raise InputError(
        f"{source} has no column {brief(name)}{did_you_mean(name, names)}; its columns are {found}."
    )


def check_names(columns: Sequence[str]) -> None:
    """Raise where columns are not a list of different names."""
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise InputError(f"columns must be a list of names, got {brief(columns)}.")
    asked = [name.strip() for name in columns]
    for name in asked:
        if asked.count(name) > 1:
            raise InputError(f"the column {brief(name)} is asked for twice; name it once.")

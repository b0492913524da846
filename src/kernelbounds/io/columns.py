"""Find columns of tables by the names that users ask for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernelbounds.arrays import brief, shortened
from kernelbounds.errors import InputError, did_you_mean


def positions(asked: Sequence[str], names: Sequence[str], source: str) -> list[int]:
    """Find the places of the columns asked for among all columns of a source.

    A unit may follow a name there, ``temperature [K]`` or ``temperature (K)``.
    """
    places = [_position(name, names, source) for name in asked]
    missing = [name for name, at in zip(asked, places, strict=True) if at is None]
    if not missing:
        return [at for at in places if at is not None]
    wanted = ", ".join(f"{brief(name)}{did_you_mean(name, names)}" for name in missing)
    found = shortened(", ".join(map(brief, names)), 120) or "none"
    title = ""
    if names and len(missing) == len(asked) and "did you mean" not in wanted:
        title = " The names must be in the first line that is not blank: remove a title above them."
    raise InputError(
        f"{source} has no column{'s' * (len(missing) > 1)} {shortened(wanted, 160)}; "
        f"its columns are {found}.{title}"
    )


def unit_in_header(name: str, header: str) -> str:
    """Return the unit that follows the name in the header of a column, or an empty text.

    >>> unit_in_header("temperature", "temperature [K]"), unit_in_header("yield", "yield")
    ('K', '')
    """
    return header.strip()[len(name.strip()) :].strip()[1:-1].strip()


def _position(name: str, names: Sequence[str], source: str) -> int | None:
    count = names.count(name)
    if count == 1:
        return names.index(name)
    if count:
        raise InputError(
            f"{source} has {count} columns named {brief(name)}; give each a name of its own."
        )
    with_unit = re.compile(re.escape(name.strip()) + r"\s*(\[[^][]*\]|\([^()]*\))")
    places = [at for at, one in enumerate(names) if with_unit.fullmatch(one)]
    return places[0] if len(places) == 1 else None


def check_names(columns: Sequence[str]) -> None:
    """Raise where columns are not a list of different names."""
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise InputError(f"columns must be a list of names, got {brief(columns)}.")
    asked = [name.strip() for name in columns]
    for name in asked:
        if asked.count(name) > 1:
            raise InputError(f"the column {brief(name)} is asked for twice; name it once.")

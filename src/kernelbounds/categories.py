"""Categories: inputs whose values are names, such as oil, water and air.

Points stay arrays of numbers: a category is one coordinate, whose values are the numbers of its
levels, 0 to n - 1, in the order in which they are given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from kernelbounds.arrays import Array, as_floats, brief, shortened
from kernelbounds.errors import InputError, did_you_mean

MOST_LEVELS = 1000
# Longer names would not fit into messages and pictures.
LONGEST_NAME = 80


class Categories:
    """The levels of an input that is a category, for a side of a :class:`~kernelbounds.Box`.

    Parameters
    ----------
    *names : str
        The names of two levels or more.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> box = kb.Box.named(temperature=(20, 80), quench=kb.Categories("oil", "water", "air"))
    >>> box.point({"temperature": 50, "quench": "air"})
    array([50.,  2.])
    >>> box.named_values([50.0, 2.0])
    {'temperature': 50.0, 'quench': 'air'}
    """

    def __init__(self, *names: str) -> None:
        for name in names:
            line = isinstance(name, str) and name.isprintable() and len(name) <= LONGEST_NAME
            if not line or not name.strip() or set(name) & set("|:="):
                raise InputError(
                    f"the name of a level must be a line of text, of at most {LONGEST_NAME} "
                    f"letters and without '|', ':' and '=', got {brief(name)}."
                )
        self.names = tuple(name.strip() for name in names)
        if not 2 <= len(names) <= MOST_LEVELS:
            raise InputError(
                f"a category needs two levels or more, and at most {MOST_LEVELS}, got "
                f"{brief(list(self.names))}."
            )
        seen: dict[str, str] = {}
        for name in self.names:
            other = seen.get(name.casefold())
            if other == name:
                raise InputError(f"the level {name!r} is given twice; name it once.")
            if other is not None:
                raise InputError(
                    f"the levels {other!r} and {name!r} differ only in case: are they the same? If "
                    "so, write both in one way, and otherwise give one another name."
                )
            seen[name.casefold()] = name

    def __repr__(self) -> str:
        return f"Categories({', '.join(map(repr, self.names))})"

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Categories) and self.names == other.names

    def __hash__(self) -> int:
        return hash(self.names)

    def number(self, given: Any, what: str = "a level") -> float:
        """Return the number of a level, which is given by its name or by its number."""
        if isinstance(given, str):
            if given.strip() in self.names:
                return float(self.names.index(given.strip()))
        elif isinstance(given, int | float | np.number) and given in range(len(self)):
            return float(given)
        raise InputError(f"{what} = {brief(given)} {self.why_not(given)}.")

    def numbers(self, column: Any, what: str) -> Array:
        """Return the numbers of the levels in a column of a table, (n,).

        Levels may be called 1, 2 and 3: numbers that are names are taken for these.
        """
        values = np.atleast_1d(np.asarray(column, dtype=object))
        named = [f"{v:g}" if isinstance(v, int | float | np.number) else "" for v in values.flat]
        both = zip(values.flat, named, strict=True)
        found = [self.number(text if text in self.names else one, what) for one, text in both]
        return np.array(found).reshape(values.shape)

    def name(self, number: float) -> str:
        """Return the name of a level, by its number."""
        if number not in range(len(self)):
            raise InputError(f"{brief(number)} {self.why_not(number)}, numbered from 0.")
        return self.names[int(number)]

    def names_of(self, numbers: Iterable[float]) -> list[str]:
        """Return the names of levels, by their numbers."""
        return [self.name(float(one)) for one in as_floats(list(numbers), "levels")]

    def why_not(self, given: Any) -> str:
        """Say why a value is not a level, and which level may have been meant."""
        listed = shortened(", ".join(self.names), 120)
        if isinstance(given, str):
            for name in self.names:
                if name.casefold() == given.strip().casefold():
                    return (
                        f"differs from the level {name!r} only in case; is that meant? Then write "
                        f"it as {name!r}"
                    )
            return f"is not one of the levels {listed}{did_you_mean(given.strip(), self.names)}"
        return f"is not one of the levels {listed}"

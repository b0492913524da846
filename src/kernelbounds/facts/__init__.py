"""Facts about f* that people know: limits, shape, and values at certain places.

A fact is a set of linear inequalities for f*, such as 0 <= f*(x) <= 60 for all x. Given to a
:class:`~kernelbounds.ConfidenceSequence` with the assumptions, before the data, facts cost nothing
in delta, and bounds are those over the functions that satisfy them at finitely many places
(``docs/mathematics/facts.md``). A fact that is false of f* voids the guarantee, unless the data
happen to refute it.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from kernelbounds.errors import InputError
from kernelbounds.facts.fact import Constraints, Fact, Region
from kernelbounds.facts.limits import AtLeast, Between, Value
from kernelbounds.facts.shape import Concave, Convex, Decreasing, Increasing, Slope
from kernelbounds.functionals import Derivative, Sum

__all__ = [
    "AtLeast",
    "Between",
    "Concave",
    "Constraints",
    "Convex",
    "Decreasing",
    "Fact",
    "Increasing",
    "Region",
    "Slope",
    "Value",
    "fact_from_data",
    "fact_to_data",
]

# The facts that a file can hold, by name.
KINDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (Between, Value, AtLeast, Increasing, Decreasing, Slope, Convex, Concave)
}


def fact_to_data(fact: Fact) -> dict[str, Any]:
    """Convert a fact to data that JSON can hold; facts of a user's own class are refused.

    Examples
    --------
    >>> from kernelbounds.facts import Between, fact_from_data, fact_to_data
    >>> data = fact_to_data(Between(0.0, 60.0))
    >>> data
    {'fact': 'Between', 'low': 0.0, 'high': 60.0}
    >>> fact_from_data(data)
    Between(low=0.0, high=60.0, region=None)
    """
    kind = type(fact)
    if KINDS.get(kind.__name__) is not kind:
        raise InputError(f"a fact of your own cannot be saved: {fact!r}.")
    if isinstance(fact, AtLeast):
        one = fact.functional
        about = (
            {"point": one.point.tolist(), "axis": one.axis}
            if isinstance(one, Derivative)
            else {"points": one.points.tolist(), "weights": one.weights.tolist()}
        )
        return {"fact": "AtLeast", **about, "value": fact.value}
    data: dict[str, Any] = {"fact": kind.__name__}
    for name, value in vars(fact).items():
        if isinstance(value, Region):
            value = [list(part) for part in dataclasses.astuple(value) if part]
        if value not in (None, math.inf, -math.inf):
            data[name] = list(value) if isinstance(value, tuple) else value
    if "x" in data:
        del data["region"]  # A point is its own region.
    return data


def fact_from_data(data: dict[str, Any]) -> Fact:
    """Make a fact from what :func:`fact_to_data` returned.

    Examples
    --------
    >>> from kernelbounds.facts import fact_from_data
    >>> fact_from_data({"fact": "Increasing", "axis": 0})
    Increasing(axis=0, region=None)
    """
    settings = dict(data)
    kind = settings.pop("fact", None)
    if kind not in KINDS:
        raise InputError(f"{kind!r} is not a fact; facts are {', '.join(KINDS)}.")
    if kind == "AtLeast":
        about: Sum | Derivative = (
            Derivative(settings["point"], settings["axis"])
            if "axis" in settings
            else Sum(settings["points"], settings["weights"])
        )
        return AtLeast(about, settings["value"])
    if "where" in settings:
        settings["where"] = dict(map(tuple, settings["where"]))
    try:
        made: Fact = KINDS[kind](**settings)
    except TypeError as error:
        raise InputError(f"{kind} has other settings than {', '.join(settings)}.") from error
    return made

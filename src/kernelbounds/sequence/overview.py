"""A confidence sequence at a glance: its card in a notebook."""

from __future__ import annotations

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.assume.offset import Offset
from kernelbounds.bounds import AMM, AY, CMM, DMM, IGP, Bound, ConfidenceSet
from kernelbounds.display import cards as notebook
from kernelbounds.errors import EmptyConfidenceSetError
from kernelbounds.surface import extremes

# A glance must not take long. Up to so many observations the band is computed, in at most about
# 20 ms; beyond, there are the data alone.
MOST = 120
PLACES = 60  # of the band, over the range of the data and a little beyond
BEYOND = 0.05


def card(known: ConfidenceSet, bound: Bound) -> notebook.Html:
    """What is assumed, what is observed and, over one input, the band."""
    a, count = known.assumptions, known.count
    facts: list[tuple[object, object]] = [("kernel", known.radius_engine.data.kernel)]
    if known.parts is None:
        facts.append(("norm bound B", f"{a.norm_bound:.4g}"))
    else:
        # An unknown level is the last of them, and is said below.
        own = known.parts.pairs[:-1] if known.offset.within > 0 else known.parts.pairs
        facts[0] = ("kernel", ", ".join(f"{one} with B = {b:.4g}" for one, b in own))
    facts.append(("noise scale σ", f"{a.noise_scale:.4g}" if a.noise_scale else "0, no noise"))
    if a.misspecification:
        facts.append(("misspecification", f"{a.misspecification:.4g}"))
    if known.offset != Offset():
        facts.append(("offset", known.offset))
    facts += [("bound", bound), ("observations", _observed(known))]
    note = f"Bounds hold with probability {1 - a.delta:g}, if these assumptions do."
    picture = None
    if count and known.radius_engine.approximation() is None:
        try:
            picture = _picture(known, bound)
            drawn = known.points.shape[1] == 1 and count <= MOST
            if drawn and type(_quick(bound)) is not type(bound):
                note += " The picture has the band of CMM."
        except EmptyConfidenceSetError:
            picture = notebook.order_picture(known.observed.tolist())
            note = (
                "The data refute the assumptions: the norm bound, the noise scale or the kernel "
                "is wrong, and there are no bounds."
            )
    return notebook.card("Confidence sequence", facts, picture, note)


def _observed(known: ConfidenceSet) -> str:
    if not known.count:
        return "none yet"
    exact = known.radius_engine.approximation() is None
    kept = "" if exact else ", kept as sums by a sparse engine"
    inputs = known.radius_engine.data.dim or known.radius_engine.dim
    return f"{known.count}, of {inputs} input{'' if inputs == 1 else 's'}{kept}"


def _picture(known: ConfidenceSet, bound: Bound) -> notebook.Html:
    if known.count <= MOST:
        known.refute_if_empty()
    points, outcomes = known.points, known.observed
    if points.shape[1] > 1:
        return notebook.order_picture(outcomes.tolist())
    x, lower, upper = np.empty(0), np.empty(0), np.empty(0)
    if known.count <= MOST:
        x = _around(points[:, 0])
        drawn = _quick(bound)
        upper, below = extremes(drawn.view_of(known), drawn, x[:, None], (1, -1))
        lower = -below
    return notebook.band_picture(
        x.tolist(), lower.tolist(), upper.tolist(), points[:, 0].tolist(), outcomes.tolist()
    )


def _around(places: Array) -> Array:
    """The range of the data and a little beyond; of a single point, what is near it."""
    low, high = float(places.min()), float(places.max())
    more = BEYOND * (high - low) or 1.0
    return np.linspace(low - more, high + more, PLACES)


def _quick(bound: Bound) -> Bound:
    """The bound of the picture: CMM where the own one may be slow, or holds at one time only."""
    if isinstance(bound, DMM | AMM | AY | IGP) and type(bound).__module__.startswith(
        "kernelbounds."
    ):
        return bound
    return CMM()

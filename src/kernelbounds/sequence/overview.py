"""Describe a confidence sequence at a glance: in a line of text, and on a card in a notebook."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.bounds import AMM, AY, CMM, DMM, IGP, Bound, ConfidenceSet, Fiedler
from kernelbounds.confidence.diagnosis import is_refuted, noise_upper_bound, refute_if_empty
from kernelbounds.display import cards
from kernelbounds.display.numbers import confidence
from kernelbounds.errors import EmptyConfidenceSetError
from kernelbounds.mixtures import Hybrid
from kernelbounds.noise import Noise, SubGaussian
from kernelbounds.structure.offset import Offset
from kernelbounds.structure.parts import Parts
from kernelbounds.surface import extremes

# A glance must not take long. Up to this number of observations the band is drawn, in at most about
# 20 ms; beyond it, the data alone.
MOST_FOR_BAND = 120
BAND_PLACES = 60  # where the band is computed: over the data's range, and this share beyond
BAND_MARGIN = 0.05


def summary(known: ConfidenceSet, bound: Bound) -> str:
    """Describe a sequence in a line of text, its repr."""
    a, count = known.stated, known.count
    kernel = f"{known.radius_engine.data.kernel}, norm_bound={a.norm_bound:g}"
    if known.evidence.classes is not None:
        kernel = f"{known.evidence.classes}"
    elif known.evidence.parts is not None:
        pairs = _own_parts(known)
        kernel = (
            f"{pairs[0][0]}, norm_bound={pairs[0][1]:g}" if len(pairs) == 1 else f"{Parts(pairs)}"
        )
    more = "" if known.evidence.offset == Offset() else f"offset={known.evidence.offset}, "
    more += f"misspecification={a.misspecification:g}, " if a.misspecification else ""
    more += "" if a.mixture == Hybrid() else f"mixture={a.mixture}, "
    more += f"facts=[{', '.join(map(str, known.stated_facts))}], " if known.stated_facts else ""
    seen = f"{count} observation{'' if count == 1 else 's'}"
    seen += f" of {_inputs(known)}" if count else ""
    return (
        f"ConfidenceSequence({kernel}, noise_scale={_noise(a.noise)}, delta={a.delta:g}, "
        f"{more}bound={bound}) with {seen}"
    )


def _noise(law: Noise) -> str:
    """Describe a law of noise: by a number, as users pass it, where it is sub-Gaussian."""
    return f"{law.scale:g}" if isinstance(law, SubGaussian) else str(law)


def _own_parts(known: ConfidenceSet) -> Sequence[tuple[Kernel, float]]:
    """The parts of f* without an unknown level, which is the last of them."""
    parts = known.evidence.parts
    assert parts is not None
    return parts.pairs[:-1] if known.evidence.offset.within > 0 else parts.pairs


def card(known: ConfidenceSet, bound: Bound) -> cards.Html:
    """Draw a card with what is assumed, what is observed and, over one input, the band."""
    delta, count = known.stated.delta, known.count
    likely = f"with probability {confidence(delta)}" if delta else "for certain"
    note = f"Bounds hold {likely}, if these assumptions do."
    picture = None
    if count and known.radius_engine.approximation() is None:
        # CMM is drawn where the bound of the sequence may be slow, or holds at one time only.
        drawn = bound if type(bound) in (DMM, AMM, AY, IGP, Fiedler) else CMM()
        try:
            picture = _picture(known, drawn)
            has_band = known.points.shape[1] == 1 and count <= MOST_FOR_BAND
            if has_band and type(bound) is not type(drawn):
                note += " The picture has the band of CMM."
        except EmptyConfidenceSetError:
            picture = cards.order_picture(known.data.observed.tolist())
            note = (
                "The data refute the assumptions: the norm bound, the noise scale or the kernel "
                "is wrong, and there are no bounds."
            )
    observed = "none yet"
    if count:
        sparse = known.radius_engine.approximation() is not None
        observed = f"{count}, of {_inputs(known)}"
        observed += ", kept as sums by a sparse engine" if sparse else ""
    rows = [*_assumed(known), ("bound", bound), ("observations", observed)]
    return cards.card("Confidence sequence", rows, picture, note)


def _assumed(known: ConfidenceSet) -> list[tuple[object, object]]:
    """The rows of a card that say what is assumed."""
    a, classes, offset = known.stated, known.evidence.classes, known.evidence.offset
    rows: list[tuple[object, object]] = []
    if classes is not None:
        rows.append((type(classes).__name__, classes))
    elif known.evidence.parts is not None:
        parts = (f"{one} with B = {b:.4g}" for one, b in _own_parts(known))
        rows.append(("kernel", ", ".join(parts)))
    else:
        kernel = known.radius_engine.data.kernel
        rows += [("kernel", kernel), ("norm bound B", f"{a.norm_bound:.4g}")]
    if isinstance(a.noise, SubGaussian):
        rows.append(("noise scale σ", f"{a.noise_scale:.4g}" if a.noise_scale else "0, no noise"))
    elif a.noise.scale_is_stated:
        rows.append(("noise", a.noise))
    else:
        found = noise_upper_bound(known) if known.count else math.inf
        so_far = f"at most {found:.4g} so far" if math.isfinite(found) else "not known yet"
        rows.append(("noise", f"{a.noise}, σ {so_far}"))
    if a.misspecification:
        rows.append(("misspecification", f"{a.misspecification:.4g}"))
    if offset != Offset():
        rows.append(("offset", offset))
    if classes is not None and known.count:
        refuted = [str(at) for at, one in enumerate(known.in_classes()) if is_refuted(one)]
        rows.append(("refuted by the data", ", ".join(refuted) or "none of them"))
    return rows + [("known", fact) for fact in known.stated_facts]


def _inputs(known: ConfidenceSet) -> str:
    dim = known.radius_engine.dim
    return f"{dim} input{'' if dim == 1 else 's'}"


def _picture(known: ConfidenceSet, bound: Bound) -> cards.Html:
    """Draw the outcomes and, over one input, the band; raise where the confidence set is empty."""
    points, outcomes = known.points, known.data.observed
    x, lower, upper = np.empty(0), np.empty(0), np.empty(0)
    if known.count <= MOST_FOR_BAND:
        refute_if_empty(known)
    if points.shape[1] > 1:
        return cards.order_picture(outcomes.tolist())
    if known.count <= MOST_FOR_BAND:
        low, high = float(points.min()), float(points.max())
        more = BAND_MARGIN * (high - low) or 1.0
        x = np.linspace(low - more, high + more, BAND_PLACES)
        seen = bound.view_of(known)
        upper, negative_lower = extremes(seen, bound, x[:, None], (1, -1))
        lower = -negative_lower
    return cards.band_picture(
        x.tolist(), lower.tolist(), upper.tolist(), points[:, 0].tolist(), outcomes.tolist()
    )

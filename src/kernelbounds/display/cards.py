"""How objects look in a notebook: a small card of HTML, with an inline picture where it helps.

Everything that is text is escaped here, in one place. Colours are those of the page around the
card, so that it can be read on light and on dark ones; there are no scripts, no style sheets and no
fonts. Nothing here raises when it is asked for by :func:`shown`, which falls back to the repr.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape

WIDTH, HEIGHT = 280, 96  # of a picture, in pixels
MARGIN, LABELS = 6, 12  # around it, and below and above it for the ends of the axes
LEFT = 50  # for numbers on the left
SHORT = 26  # letters of a name that is not broken into lines
DOTS = 200  # in a picture, at most: more cannot be told apart
# A blue and an orange that stand out from white and from black alike.
BAND, ACCENT = "#3f7fd0", "#d9731f"
CARD = (
    "display:inline-block;max-width:100%;box-sizing:border-box;padding:0.6em 0.9em;"
    "border:1px solid rgba(128,128,128,.45);border-radius:6px;font-size:0.92em;line-height:1.45"
)
TABLE = "border-collapse:collapse;margin:0.35em 0 0;background:none;color:inherit"
CELL = "padding:0.05em 0;border:0;background:none;text-align:left;vertical-align:top"
SOFT = "opacity:.72;"


class Html(str):
    """Text that is HTML already, and is not escaped again."""

    __slots__ = ()


def shown(thing: object, make: Callable[[], Html]) -> str:
    """What ``_repr_html_`` returns: what ``make`` does or, where it fails, the repr.

    To look at an object must not stop a notebook, whatever state it is in.
    """
    try:
        return make()
    except Exception:
        try:
            text = repr(thing)
        except Exception:
            text = f"<{type(thing).__name__}>"
        return f"<pre>{escape(text)}</pre>"


def card(
    title: object,
    facts: Iterable[tuple[object, object]] = (),
    picture: Html | None = None,
    note: object = "",
) -> Html:
    """A title, facts with their names, a picture and a sentence; empty parts are left out."""
    rows = "".join(
        f'<tr style="background:none"><td style="{CELL};{SOFT}padding-right:1em;'
        f'{"white-space:nowrap" if len(str(name)) <= SHORT else ""}">'
        f'{_escaped(name)}</td><td style="{CELL}">{_escaped(value)}</td></tr>'
        for name, value in facts
    )
    table = f'<table style="{TABLE}"><tbody>{rows}</tbody></table>' if rows else ""
    said = _escaped(note)
    below = f'<div style="{SOFT}margin-top:0.35em;max-width:34em">{said}</div>' if said else ""
    return Html(f'<div style="{CARD}"><b>{_escaped(title)}</b>{table}{picture or ""}{below}</div>')


def band_picture(
    x: Sequence[float],
    lower: Sequence[float],
    upper: Sequence[float],
    points: Sequence[float],
    outcomes: Sequence[float],
) -> Html:
    """A band over one input, with the data: the points of a band where ``x`` is empty."""
    across = _axis([*x, *points], LEFT, WIDTH - MARGIN)
    up = _axis([*lower, *upper, *outcomes], HEIGHT - LABELS - MARGIN, MARGIN)
    path = [(across(a), up(b)) for a, b in zip(x, upper, strict=True)]
    back = [(across(a), up(b)) for a, b in zip(x, lower, strict=True)]
    shape = _path([*path, *reversed(back)], f'fill="{BAND}" fill-opacity=".3" stroke="none"', "Z")
    what = "The band over the input, and the data." if len(x) else "The data over the input."
    ends = _ends([*x, *points], [*lower, *upper, *outcomes])
    return _picture(shape + _dots(points, outcomes, across, up) + ends, what)


def order_picture(outcomes: Sequence[float]) -> Html:
    """Outcomes in the order in which they were observed."""
    order = list(range(len(outcomes)))
    across = _axis(order, LEFT, WIDTH - MARGIN)
    up = _axis(outcomes, HEIGHT - LABELS - MARGIN, MARGIN)
    ends = _ends([one + 1 for one in order], outcomes)
    return _picture(_dots(order, outcomes, across, up) + ends, "Outcomes in the order observed.")


def line_picture(
    x: Sequence[float],
    y: Sequence[float],
    what: str,
    *,
    log: bool = False,
    aim: float | None = None,
) -> Html:
    """A falling curve, such as a certificate over time; with a dashed line at an aim."""
    scale = (lambda value: math.log(max(value, 1e-300))) if log else float
    pairs = [(scale(a), scale(b)) for a, b in zip(x, y, strict=True) if math.isfinite(b)]
    if not pairs:
        return Html("")
    marked = [] if aim is None else [scale(aim)]
    across = _axis([a for a, _ in pairs], LEFT, WIDTH - MARGIN)
    up = _axis([*(b for _, b in pairs), *marked], HEIGHT - LABELS - MARGIN, MARGIN)
    places = [(across(a), up(b)) for a, b in pairs]
    drawn = _path(places, f'fill="none" stroke="{BAND}" stroke-width="1.6"')
    drawn += "".join(_dot(a, b, BAND) for a, b in places[-DOTS:])
    for one in marked:
        ends = [(float(LEFT), up(one)), (float(WIDTH), up(one))]
        drawn += _path(ends, 'stroke="currentColor" stroke-opacity=".5" stroke-dasharray="4 3"')
    return _picture(drawn + _ends(x, [*y, *([] if aim is None else [aim])]), what)


def interval_picture(lower: float, upper: float, limit: float, what: str) -> Html:
    """An interval as a bar, and how far away the best possible is: a mark, and the gap to it."""
    ends = [end for end in (lower, upper, limit) if math.isfinite(end)]
    if not (math.isfinite(lower) and math.isfinite(upper)):
        return Html("")
    height, middle = 34, 17
    across = _axis(ends, 2 * MARGIN, WIDTH - 2 * MARGIN)
    left, right = across(lower), across(upper)
    drawn = (
        f'<rect x="{left:.1f}" y="{middle - 7}" width="{max(right - left, 1.5):.1f}" height="14" '
        f'rx="2" fill="{BAND}" fill-opacity=".45" stroke="{BAND}"/>'
    )
    if math.isfinite(limit):
        at, sure = across(limit), left if limit >= upper else right
        drawn = (
            _path([(sure, middle), (at, middle)], f'stroke="{ACCENT}" stroke-width="2"')
            + drawn
            + _path([(at, 3), (at, height - 3)], f'stroke="{ACCENT}" stroke-width="2.5"')
        )
    return _picture(drawn, what, height)


# --- within a picture


def _picture(drawn: str, what: str, height: int = HEIGHT) -> Html:
    return Html(
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(what)}" '
        f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'style="display:block;max-width:100%;margin-top:0.45em">'
        f"<title>{escape(what)}</title>{drawn}</svg>"
    )


def _axis(values: Sequence[float], start: float, end: float) -> Callable[[float], float]:
    """From values to pixels; what is no number is in the middle."""
    known = [float(value) for value in values if math.isfinite(value)]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    middle = (start + end) / 2
    # Halves, because the difference of the two may overflow.
    half = high / 2 - low / 2

    def place(value: float) -> float:
        if not half > 0 or not math.isfinite(value):
            return middle
        return start + (end - start) * min(max((value / 2 - low / 2) / half, 0.0), 1.0)

    return place


def _ends(x: Sequence[float], y: Sequence[float]) -> str:
    """The ends of both axes, in numbers."""
    across, up = ([float(one) for one in axis if math.isfinite(one)] for axis in (x, y))
    if not across or not up:
        return ""
    bottom = HEIGHT - LABELS - MARGIN
    texts = [
        (LEFT - 6, MARGIN + 6, "end", max(up)),
        (LEFT - 6, bottom + 2, "end", min(up)),
        (LEFT, HEIGHT - 3, "start", min(across)),
        (WIDTH - MARGIN, HEIGHT - 3, "end", max(across)),
    ]
    return "".join(
        f'<text x="{at}" y="{height}" text-anchor="{anchor}" font-size="10" fill="currentColor" '
        f'fill-opacity=".72">{value:.3g}</text>'
        for at, height, anchor, value in texts
    )


def _path(places: Sequence[tuple[float, float]], style: str, close: str = "") -> str:
    if not places:
        return ""
    steps = "L".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return f'<path d="M{steps}{close}" {style}/>'


def _dots(
    x: Sequence[float],
    y: Sequence[float],
    across: Callable[[float], float],
    up: Callable[[float], float],
) -> str:
    """At most so many as can be told apart, spread over all of them."""
    every = max(1, math.ceil(len(x) / DOTS))
    return "".join(
        _dot(across(a), up(b), "currentColor") for a, b in zip(x[::every], y[::every], strict=True)
    )


def _dot(x: float, y: float, colour: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.8" fill="{colour}"/>'


def _escaped(text: object) -> str:
    return text if isinstance(text, Html) else escape(str(text))

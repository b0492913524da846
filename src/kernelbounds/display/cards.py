"""Cards, which show objects in a notebook: a little HTML, with an inline picture where it helps.

Everything that is text is escaped here, in one place. Colours are those of the page around the
card, so that it can be read on light and on dark ones; there are no scripts, no style sheets and no
fonts. Nothing here raises when it is asked for by :func:`shown`, which falls back to the repr.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape

WIDTH, HEIGHT = 280, 96  # of a picture, in pixels
MARGIN, LABEL_HEIGHT = 6, 12  # around what is drawn, and below it for the ends of the axis
LABEL_WIDTH = 50  # on the left, for the ends of the axis
LINE_LETTERS = 26  # a name of at most this many letters is not broken into lines
MOST_DOTS = 200  # in a picture: more cannot be told apart
# A blue and an orange that stand out from white and from black alike.
BAND_COLOUR, ACCENT_COLOUR = "#3f7fd0", "#d9731f"
CARD_STYLE = (
    "display:inline-block;max-width:100%;box-sizing:border-box;padding:0.6em 0.9em;"
    "border:1px solid rgba(128,128,128,.45);border-radius:6px;font-size:0.92em;line-height:1.45"
)
TABLE_STYLE = "border-collapse:collapse;margin:0.35em 0 0;background:none;color:inherit"
CELL_STYLE = "padding:0.05em 0;border:0;background:none;text-align:left;vertical-align:top"
SOFT_STYLE = "opacity:.72;"


class Html(str):
    """Text that is HTML already, and is not escaped again."""

    __slots__ = ()


def shown(thing: object, make: Callable[[], Html]) -> str:
    """Return the card that ``make`` makes or, where that fails, the repr, for ``_repr_html_``.

    To look at an object must not stop a notebook, whatever state the object is in.
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
    """Make a card of a title, facts with their names, a picture and a sentence.

    Parts that are empty are left out.
    """
    rows = ""
    for name, value in facts:
        wrap = "white-space:nowrap" if len(str(name)) <= LINE_LETTERS else ""
        rows += (
            f'<tr style="background:none"><td style="{CELL_STYLE};{SOFT_STYLE}padding-right:1em;'
            f'{wrap}">{_escaped(name)}</td><td style="{CELL_STYLE}">{_escaped(value)}</td></tr>'
        )
    table = f'<table style="{TABLE_STYLE}"><tbody>{rows}</tbody></table>' if rows else ""
    style = f"{SOFT_STYLE}margin-top:0.35em;max-width:34em"
    below = f'<div style="{style}">{_escaped(note)}</div>' if note else ""
    return Html(
        f'<div style="{CARD_STYLE}"><b>{_escaped(title)}</b>{table}{picture or ""}{below}</div>'
    )


def band_picture(
    x: Sequence[float],
    lower: Sequence[float],
    upper: Sequence[float],
    points: Sequence[float],
    outcomes: Sequence[float],
) -> Html:
    """Draw a band over one input, with the data; the data alone where ``x`` is empty."""
    frame = _Frame([*x, *points], [*lower, *upper, *outcomes])
    outline = [*zip(x, upper, strict=True), *reversed([*zip(x, lower, strict=True)])]
    style = f'fill="{BAND_COLOUR}" fill-opacity=".3" stroke="none"'
    shape = _path([frame.place(a, b) for a, b in outline], style, "Z")
    what = "The band over the input, and the data." if len(x) else "The data over the input."
    return _picture(shape + frame.dots(points, outcomes) + frame.ends, what)


def order_picture(outcomes: Sequence[float]) -> Html:
    """Draw outcomes in the order in which they were observed."""
    order = range(1, len(outcomes) + 1)
    frame = _Frame(order, outcomes)
    return _picture(frame.dots(order, outcomes) + frame.ends, "Outcomes in the order observed.")


def line_picture(
    x: Sequence[float],
    y: Sequence[float],
    what: str,
    *,
    log: bool = False,
    aim: float | None = None,
) -> Html:
    """Draw a falling curve, such as a certificate over time, with a dashed line at an aim."""
    pairs = [(a, b) for a, b in zip(x, y, strict=True) if math.isfinite(b)]
    if not pairs:
        return Html("")
    aims = [] if aim is None else [aim]
    frame = _Frame([a for a, _ in pairs], [*(b for _, b in pairs), *aims], log)
    places = [frame.place(a, b) for a, b in pairs]
    drawn = _path(places, f'fill="none" stroke="{BAND_COLOUR}" stroke-width="1.6"')
    drawn += "".join(_dot(a, b, BAND_COLOUR) for a, b in places[-MOST_DOTS:])
    for one in aims:
        height = frame.place(pairs[0][0], one)[1]
        style = 'stroke="currentColor" stroke-opacity=".5" stroke-dasharray="4 3"'
        drawn += _path([(LABEL_WIDTH, height), (WIDTH, height)], style)
    return _picture(drawn + frame.ends, what)


def interval_picture(lower: float, upper: float, limit: float, what: str) -> Html:
    """Draw an interval as a bar, a mark at the best possible, and the gap to it."""
    if not (math.isfinite(lower) and math.isfinite(upper)):
        return Html("")
    height, middle = 34, 17
    across = _axis([lower, upper, limit], 2 * MARGIN, WIDTH - 2 * MARGIN)
    left, right = across(lower), across(upper)
    drawn = (
        f'<rect x="{left:.1f}" y="{middle - 7}" width="{max(right - left, 1.5):.1f}" height="14" '
        f'rx="2" fill="{BAND_COLOUR}" fill-opacity=".45" stroke="{BAND_COLOUR}"/>'
    )
    if math.isfinite(limit):
        at, sure = across(limit), left if limit >= upper else right
        gap = _path([(sure, middle), (at, middle)], f'stroke="{ACCENT_COLOUR}" stroke-width="2"')
        mark = _path([(at, 3), (at, height - 3)], f'stroke="{ACCENT_COLOUR}" stroke-width="2.5"')
        drawn = gap + drawn + mark
    return _picture(drawn, what, height)


# --- within a picture


class _Frame:
    """The axes of a picture: the way from values to pixels, and the numbers at the ends."""

    def __init__(self, x: Sequence[float], y: Sequence[float], log: bool = False) -> None:
        self._scale = (lambda value: math.log(max(value, 1e-300))) if log else float
        bottom = HEIGHT - LABEL_HEIGHT - MARGIN
        self._across = _axis([*map(self._scale, x)], LABEL_WIDTH, WIDTH - MARGIN)
        self._up = _axis([*map(self._scale, y)], bottom, MARGIN)
        across, up = ([float(one) for one in axis if math.isfinite(one)] for axis in (x, y))
        self.ends = ""
        if across and up:
            self.ends = (
                _text(LABEL_WIDTH - 6, MARGIN + 6, "end", max(up))
                + _text(LABEL_WIDTH - 6, bottom + 2, "end", min(up))
                + _text(LABEL_WIDTH, HEIGHT - 3, "start", min(across))
                + _text(WIDTH - MARGIN, HEIGHT - 3, "end", max(across))
            )

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Return the place of a point, in pixels."""
        return self._across(self._scale(x)), self._up(self._scale(y))

    def dots(self, x: Sequence[float], y: Sequence[float]) -> str:
        """Draw at most ``MOST_DOTS`` of the points, spread over all of them."""
        every = max(1, math.ceil(len(x) / MOST_DOTS))
        pairs = zip(x[::every], y[::every], strict=True)
        return "".join(_dot(*self.place(a, b), "currentColor") for a, b in pairs)


def _axis(values: Sequence[float], start: float, end: float) -> Callable[[float], float]:
    """Return a function from values to pixels; values that are not finite are in the middle."""
    known = [float(value) for value in values if math.isfinite(value)]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    # Halves, because the difference of the two may overflow.
    half = high / 2 - low / 2

    def place(value: float) -> float:
        if not half > 0 or not math.isfinite(value):
            return (start + end) / 2
        return start + (end - start) * min(max((value / 2 - low / 2) / half, 0.0), 1.0)

    return place


def _picture(drawn: str, what: str, height: int = HEIGHT) -> Html:
    return Html(
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(what)}" '
        f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'style="display:block;max-width:100%;margin-top:0.45em">'
        f"<title>{escape(what)}</title>{drawn}</svg>"
    )


def _text(x: float, y: float, anchor: str, value: float) -> str:
    return (
        f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="10" fill="currentColor" '
        f'fill-opacity=".72">{value:.3g}</text>'
    )


def _path(places: Sequence[tuple[float, float]], style: str, close: str = "") -> str:
    steps = "L".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return f'<path d="M{steps}{close}" {style}/>' if places else ""


def _dot(x: float, y: float, colour: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.8" fill="{colour}"/>'


def _escaped(text: object) -> str:
    return text if isinstance(text, Html) else escape(str(text))

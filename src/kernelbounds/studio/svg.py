"""Pictures of a study as SVG that follows the colours of the page, light or dark."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import partial
from html import escape
from io import StringIO
from typing import Any

import numpy as np

from kernelbounds import plot
from kernelbounds.arrays import Array
from kernelbounds.plot import canvas
from kernelbounds.problem.drawings import axes_of
from kernelbounds.study import Study
from kernelbounds.study.pictures import estimate_with_bounds, observed

# The colours of pictures, and those of the page in their place; black is the colour of its text.
PAGE_COLOURS = {"#000000": "currentColor", canvas.NO_GUARANTEE: "var(--two)"} | {
    colour: f"var(--{name})"
    for colour, name in zip(canvas.COLOURS, ("one", "three", "four", "five", "six"), strict=False)
}
STYLE: Any = {
    "svg.fonttype": "none",  # Letters stay letters, in the font of the page.
    "svg.hashsalt": "kernelbounds",
    "font.family": "sans-serif",
    "axes.facecolor": "none",
    "figure.facecolor": "none",
}
CAPTIONS = {
    "history": "Outcomes in the order told, and what was known of the best settings",
    "certificate": "How far from the best possible the best settings are at most",
    "noise": "What the data say of the noise",
}
BAND_POINTS, MAP_SIDE = 121, 33
# Only one thread at a time may use matplotlib's pyplot, which makes the figures.
_drawing = threading.RLock()


def as_svg(draw: Callable[[], Any], what: str) -> str:
    """Return the picture that ``draw`` makes, as an SVG element; ``what`` says what is seen."""
    canvas.require_matplotlib()
    import matplotlib
    from matplotlib import pyplot

    with _drawing, matplotlib.rc_context(STYLE):
        if matplotlib.get_backend().lower() != "agg":
            pyplot.switch_backend("agg")
        figure = np.ravel(np.asarray(draw(), dtype=object))[0].figure
        try:
            written = StringIO()
            figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
        finally:
            pyplot.close(figure)
    text = written.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    # Groups have the same names in all pictures, and the page decides on the size.
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    view = re.search(r'viewBox="[^"]*"', text)
    # Elements without a colour are black, by the rules of SVG.
    label = f'class="picture" fill="currentColor" role="img" aria-label="{escape(what)}"'
    label = f"{label} {view[0] if view else ''}"
    text = re.sub(r"<svg [^>]*>", f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" {label}>', text)
    for colour, on_page in PAGE_COLOURS.items():
        text = text.replace(colour, on_page)
    return text


def bands(study: Study, at: Array) -> list[tuple[str, str]]:
    """Draw bounds along each number, through the settings ``at`` (d,): names and pictures."""
    problem, found = study.problem, []
    box = canvas.drawable(problem.inputs.box, at)
    for axis in problem.inputs.numbers:
        name = problem.inputs[axis].name
        line = box.fixed({i: float(at[i]) for i in problem.inputs.numbers if i != axis})
        draw = partial(
            plot.band, estimate_with_bounds(study), line, data=observed(study),
            limits=problem.limits, resolution=BAND_POINTS, **axes_of(problem),
        )  # fmt: skip
        found.append((name, as_svg(draw, f"Bounds on {problem.output.name} along {name}")))
    return found


def map_of(
    study: Study, quantity: str, words: str, axes: tuple[str, str], at: Array
) -> tuple[str, str]:
    """Draw a map of one quantity over two inputs, at the other settings of ``at`` (d,)."""
    problem = study.problem
    box = problem.inputs.box.fixed({i: float(at[i]) for i in problem.inputs.categories})
    draw = partial(
        plot.maps, estimate_with_bounds(study), box, data=observed(study), at=at, inputs=axes,
        show=(quantity,), resolution=MAP_SIDE, **axes_of(problem),
    )  # fmt: skip
    return words, as_svg(draw, f"{words} over {axes[0]} and {axes[1]}")


def over_time(study: Study, seconds: float) -> list[tuple[str, str]]:
    """Draw the history of a study, its certificates, and an unknown noise as it closes in."""
    drawn = study.drawings(seconds)
    return [(CAPTIONS[name], as_svg(draw, CAPTIONS[name])) for name, draw in drawn.items()]

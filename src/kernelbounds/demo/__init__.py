"""The demonstration: a tour of the library in five chapters, as one page for a browser.

Each chapter is a file of its own: it runs the library and returns numbers, ready for JSON. The page
is ``tour.html`` with the style of ``tour.css``, and ``tour.js`` draws the numbers.
"""

from kernelbounds.demo.tour import FULL, QUICK, Size, Tour, as_html, steps, take

__all__ = ["FULL", "QUICK", "Size", "Tour", "as_html", "steps", "take"]

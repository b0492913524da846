"""The demonstration: a tour of the library in five chapters, as one page for a browser.

``tour.py`` runs the library and makes a page of the numbers: ``tour.html`` with the style of
``tour.css``, after that of all pages, and ``tour.js`` draws the numbers.
"""

from kernelbounds.demo.tour import FULL, QUICK, Size, Tour, as_html, steps, take

__all__ = ["FULL", "QUICK", "Size", "Tour", "as_html", "steps", "take"]

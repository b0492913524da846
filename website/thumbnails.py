"""Make the small pictures of the gallery: one panel of each figure, at the size of a card.

python website/thumbnails.py      # after a figure in docs/images has been redrawn
"""

from __future__ import annotations

from pathlib import Path

from PIL import Image

IMAGES = Path(__file__).parent.parent / "docs" / "images"
# Twice the size of a card, for sharp screens.
SIZE = (560, 350)
# The panel to show, from where to where in per cent of the figure's width.
PANELS = {
    "gallery-textbook": (35.0, 67.5),
    "gallery-calibration": (0, 100),
    "own-data-bounds": (0, 35.2),
    "pendulum-bounds": (46.8, 100),
    "gallery-hyperparameters": (55, 100),
    "gallery-simulation": (0, 45.7),
    "gallery-contexts": (0, 54.4),
    "gallery-batches": (0, 52.5),
    "gallery-long-log": (36, 68),
    "structure": (0, 100),
    "functionals": (0, 49.5),
    "own-bounds": (0, 50.7),
    "how-wrong": (0, 33.4),
}


def thumbnail(name: str) -> Image.Image:
    """Return one panel of a figure, on a white ground of the size of a card."""
    figure = Image.open(IMAGES / f"{name}.png").convert("RGBA")
    left, right = (round(share / 100 * figure.width) for share in PANELS[name])
    panel = figure.crop((left, 0, right, figure.height))
    panel.thumbnail(SIZE, Image.Resampling.LANCZOS)
    card = Image.new("RGBA", SIZE, "white")
    card.alpha_composite(panel, tuple((a - b) // 2 for a, b in zip(SIZE, panel.size, strict=True)))
    return card.convert("RGB").quantize(64, dither=Image.Dither.NONE)


if __name__ == "__main__":
    for name in PANELS:
        thumbnail(name).save(IMAGES / "small" / f"{name}.png", optimize=True)

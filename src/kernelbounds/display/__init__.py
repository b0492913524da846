"""How things are shown: cards in notebooks, numbers as text, progress on the terminal."""

"""Files: written whole or not at all, and tables of numbers read from them."""

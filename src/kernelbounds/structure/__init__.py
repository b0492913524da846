"""The structure of f*: a level, parts, and classes that it may be in."""

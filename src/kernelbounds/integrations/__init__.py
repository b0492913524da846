"""Doors to the tools that people already use: Optuna, BoTorch, Ax.

Each needs the extra of its name, and is imported by its own name alone:
``from kernelbounds.integrations.optuna import ...``.
"""

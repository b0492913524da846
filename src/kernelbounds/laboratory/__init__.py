"""The laboratory: how often any bound is wrong, at all times and points at once."""

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from kernelbounds.laboratory.measuring import Coverage as Coverage, Run as Run, coverage
    from kernelbounds.laboratory.programme import Programme as Programme

__all__ = ["Coverage", "Programme", "Run", "coverage"]

# The help of the command line imports this package, and needs none of SciPy.
__getattr__, _, _ = lazy_loader.attach(
    __name__,
    submod_attrs={"measuring": ["Coverage", "Run", "coverage"], "programme": ["Programme"]},
)

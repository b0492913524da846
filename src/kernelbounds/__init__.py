"""Anytime-valid confidence bounds for sequential kernel regression.

Every name is imported when it is first used, so that a line of help need not wait for SciPy and
scikit-learn. ``__init__.pyi`` says what the names are.
"""

import lazy_loader

from kernelbounds.version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

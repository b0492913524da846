"""Anytime-valid confidence bounds for sequential kernel regression.

Every name is imported when it is first used, so that a line of help need not wait for SciPy and
scikit-learn. ``__init__.pyi`` says what the names are.
"""

import lazy_loader

from kernelbounds.version import __version__ as __version__

_imported, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name):
    if name in __all__:
        return _imported(name)
    from kernelbounds.errors import did_you_mean

    raise AttributeError(f"kernelbounds has no {name!r}{did_you_mean(name, __all__)}.", name=name)

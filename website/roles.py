"""For the reference pages: the Sphinx roles of the docstrings become links of the site."""

from __future__ import annotations

import re
from typing import Any

from griffe import Docstring, Extension, Object

ROLE = re.compile(r":(?:class|meth|func|attr|mod|exc|data):`(~?)([\w.]+)`")
# Names without a dot are looked up here, in this order.
PACKAGE = "kernelbounds"


def _linked(found: re.Match[str]) -> str:
    short, name = found[1], found[2]
    return f"`{name.rsplit('.', 1)[-1] if short else name}`"


class Roles(Extension):
    """``:class:`~kernelbounds.Box``` reads `Box`."""

    def on_instance(self, *, obj: Object, **kwargs: Any) -> None:
        """Called for every module, class, function and attribute."""
        if isinstance(obj.docstring, Docstring):
            obj.docstring.value = ROLE.sub(_linked, obj.docstring.value)

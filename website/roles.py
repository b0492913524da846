"""For the reference pages: what docstrings say in the words of Sphinx becomes Markdown.

Roles such as ``:class:`~kernelbounds.Box``` become code, pages of the site become links, simple
tables become tables, and the star of f* stays a star.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Docstring, Extension, Object

ROLE = re.compile(r":(?:class|meth|func|attr|mod|exc|data):`(~?)([\w.]+)`")
PAGE = re.compile(r"``docs/([\w/-]+\.md)``")
# The type of a parameter is set as code already.
TYPE = re.compile(r"^( *[\w, ]+ : )(.*`.*)$", re.MULTILINE)
# In Markdown two stars in a paragraph would set what is between them in italics.
STAR = re.compile(r"^(?!\s*>>>)(.*)$", re.MULTILINE)
RULE = re.compile(r"=+(?: +=+)+")


def _code(found: re.Match[str]) -> str:
    return f"`{found[2].rsplit('.', 1)[-1] if found[1] else found[2]}`"


def _cells(line: str, rule: str) -> list[str]:
    starts = [found.start() for found in re.finditer(r"=+", rule)]
    ends = [*starts[1:], None]
    return [line[start:end].strip() for start, end in zip(starts, ends, strict=True)]


def _tables(text: str) -> str:
    """Translate simple tables: a head between two rules of =, then rows, then a third rule."""
    lines, rules = [], 0
    rule = ""
    for line in text.splitlines():
        if RULE.fullmatch(line.strip()):
            rule, rules = line, rules + 1
            if rules % 3 == 2:
                lines.append("|" + "---|" * len(rule.split()))
        elif rules % 3 and line.strip():
            lines.append("| " + " | ".join(_cells(line, rule)) + " |")
        else:
            lines.append(line)
    return "\n".join(lines)


class Roles(Extension):
    """The extension that reads every docstring once, when it is found."""

    def on_instance(self, *, obj: Object, **kwargs: Any) -> None:
        """Translate the docstring of a module, class, function or attribute."""
        if isinstance(obj.docstring, Docstring):
            text = STAR.sub(lambda line: line[1].replace("f*", "f∗"), obj.docstring.value)
            text = PAGE.sub(r"[\1](../\1)", ROLE.sub(_code, text))
            text = TYPE.sub(lambda line: line[1] + line[2].replace("`", ""), text)
            obj.docstring.value = _tables(text)

"""Strip the end of a user's query so that it can be embedded in another one.

The tokenizer of sqlglot could find it, but the lab has no other use for that package, and importing it takes 0.4 s.
"""

from __future__ import annotations

import re

DOLLARS = r"(?<!\w)(?P<tag>\$(?:[A-Za-z_]\w*)?\$).*?(?P=tag)"  # $$ or $name$ around a string
_COMMENT = re.compile(r"/\*|\*/")


def without_end(query: str, quoted: str, *, nested: bool, to_line_end: str = "--") -> str:
    """Return a query without trailing semicolons, comments and white space, and with a final line break.

    `quoted` is the pattern of quoted parts in its SQL, `nested` whether comments nest. `to_line_end` is the pattern
    that starts a comment up to the end of the line.
    """
    token = re.compile(rf"(?P<quoted>{quoted})|(?P<line>(?:{to_line_end})[^\n]*)|(?P<comment>/\*)|[;\s]+|.", re.DOTALL)
    place = end = 0
    while found := token.match(query, place):
        place = found.end()
        if found["comment"]:
            place = _comment_end(query, place, nested)
        elif not found["line"] and found[0].strip("; \t\r\n\f\v"):
            end = place
    return f"{query[:end]}\n"


def _comment_end(query: str, place: int, nested: bool) -> int:
    """Return the end of a comment that began just before an offset; the query's end if the comment is open."""
    depth = 1
    for mark in _COMMENT.finditer(query, place):
        depth += (1 if nested else 0) if mark[0] == "/*" else -1
        if not depth:
            return mark.end()
    return len(query)

"""The tables of a report for a terminal, fitted to its width: columns are left out before a name or figure is cut."""

import re
from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.console import Group
from rich.table import Table as RichTable
from rich.text import Text

from harness.model import printable as harmless
from harness.report.beside import beside
from harness.report.summary import Summary
from harness.report.table import Table
from harness.report.text_tables import text_tables
from harness.suites.suite import PublishedFigure

_NAMES = (24, 18, 12)  # columns that a transport's name gets at least: the first of these with which a table fits
_HEAD = 9  # a line of a head that is longer is broken at its spaces


def tables(summaries: Sequence[Summary], width: int = 200, published: Iterable[PublishedFigure] = ()) -> list[Group]:
    """Return all tables of a run for rich to print, each with its title and notes, `width` columns wide at most."""
    return [printable(table, width) for table in (*text_tables(summaries), *beside(summaries, published))]


_BEST = "bold"


def printable(table: Table, width: int) -> Group:
    """Return one table for rich to print, with its title and notes, `width` columns wide at most."""
    shown, widths = _fitted(table, width)
    left_out = [head.replace("\n", " ") for place, head in enumerate(table.head) if place not in shown]
    notes = [*([f"no room here for: {'; '.join(left_out)}"] if left_out else []), *table.notes]
    # Not the table's own title and caption: those would be as narrow as it is.
    title = Text(f"\n{harmless(table.title)}", style="bold")
    return Group(title, _rich(table, shown, widths), *(Text(harmless(note)) for note in notes))


def _rich(table: Table, shown: list[int], widths: dict[int, int]) -> RichTable:
    result = RichTable(header_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for place in shown:
        wide = place in table.wide
        # As Text: a bracket in a name is no markup.
        head = Text(harmless(_head(table.head[place]), keep="\n"))
        result.add_column(head, justify="left" if wide else "right", overflow="fold", width=widths[place])
    for number, row in enumerate(table.rows):
        result.add_row(
            *(
                Text(
                    _broken(harmless(row[place]), widths[place]), style="bold" if (number, place) in table.best else ""
                )
                for place in shown
            )
        )
    return result


def _fitted(table: Table, width: int) -> tuple[list[int], dict[int, int]]:
    """Return the columns that are shown and the width of each: figures are whole, words get what is left."""
    longest = {place: _longest(table, place) for place in range(len(table.head))}
    shown, least = next(
        (found for found in _narrower(table, longest) if _total(*found) <= width), list(_narrower(table, longest))[-1]
    )
    room = width - _total(shown, least)
    widths = dict(least)
    for place in sorted(table.wide & set(shown)):
        more = max(0, min(room, longest[place] - least[place]))
        widths[place] += more
        room -= more
    return shown, widths


def _narrower(table: Table, longest: dict[int, int]) -> Iterator[tuple[list[int], dict[int, int]]]:
    """Yield ever fewer columns with the least width of each, then ever narrower names."""
    shown = list(longest)
    for group in ((), *table.droppable):
        shown = [place for place in shown if place not in group]
        yield shown, {place: _least(table, place, longest[place], _NAMES[0]) for place in shown}
    for name in _NAMES[1:]:
        yield shown, {place: _least(table, place, longest[place], name) for place in shown}


def _total(shown: list[int], widths: dict[int, int]) -> int:
    """Return how wide a table is with these columns: each has a space of padding and one of the box on its right."""
    return sum(widths[place] + 2 for place in shown) + 1


def _texts(table: Table, place: int) -> list[str]:
    return [_head(table.head[place]), *(row[place] for row in table.rows)]


def _longest(table: Table, place: int) -> int:
    return max(len(line) for text in _texts(table, place) for line in text.split("\n"))


def _least(table: Table, place: int, longest: int, name: int) -> int:
    if place not in table.wide:
        return longest
    if table.head[place] == "transport" or place in table.names:
        return min(longest, name)
    return max(len(word) for text in _texts(table, place) for word in (text.split() or [""]))


def _head(text: str) -> str:
    """Return a head with its parts one below the other, and long parts broken at their spaces."""
    lines = text.replace(", ", "\n").split("\n")
    return "\n".join(part for line in lines for part in ([line] if len(line) <= _HEAD else _words(line)))


def _words(line: str) -> list[str]:
    """Break a line into pieces no longer than a head may be, at spaces only."""
    pieces = [""]
    for word in line.split(" "):
        if pieces[-1] and len(pieces[-1]) + 1 + len(word) > _HEAD:
            pieces.append(word)
        else:
            pieces[-1] = f"{pieces[-1]} {word}".strip()
    return pieces


def _broken(text: str, width: int) -> str:
    """Break a text that is too long after a space, dot, underscore or comma, so that ids stay readable."""
    if len(text) <= width:
        return text
    lines = [""]
    for piece in re.findall(r"[^ ._,]*[ ._,]?", text):
        if len(lines[-1]) + len(piece.rstrip()) > width and lines[-1]:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)

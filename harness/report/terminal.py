"""Tables and answers on a terminal: as wide as it is, and the answers of a run on one screen."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from textwrap import wrap

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from harness.model import printable as harmless
from harness.report import recommendation
from harness.report.figures import numbered
from harness.report.recommendation import Recommendation
from harness.report.table import Table, ever_smaller

# The characters after which an id may break: its dots, and also its underscores if a table without its droppable
# columns would still be too wide. All other strings break only at spaces.
_IN_IDS, _IN_LONG_IDS = " .", " ._"
_HEAD = 9  # a longer line of a head breaks at its spaces


def printable(table: Table, width: int) -> Group:
    """Return one table for rich to print, with its title and notes, `width` columns wide at most."""
    shown, widths, breaks = _fitted(table, width)
    left_out = [head.replace("\n", " ") for place, head in enumerate(table.head) if place not in shown]
    notes = [*([f"too narrow to show: {'; '.join(left_out)}"] if left_out else []), *table.notes]
    # Not the table's own title and caption: those would be as narrow as it is.
    titled = [Sentence(f"\n{table.title}", "bold")] if table.title else []
    return Group(*titled, _rich(table, shown, widths, breaks), *(Sentence(note) for note in notes))


@dataclass(frozen=True)
class Sentence:
    """A sentence for rich to print: a word longer than a line, such as a path, stays whole on a separate line."""

    text: str
    style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Yield parts that rich may break at their spaces, and words that it may not break."""
        for line in harmless(self.text, keep="\n").split("\n"):
            for too_long, words in groupby(line.split(" "), lambda word: cell_len(word) > options.max_width):
                if too_long:
                    yield from (Text(word, self.style, no_wrap=True, overflow="ignore") for word in words)
                else:
                    yield Text(" ".join(words), self.style)


def _rich(table: Table, shown: list[int], widths: dict[int, int], breaks: str) -> RichTable:
    result = RichTable(header_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for place in shown:
        wide = place in table.wide
        # As Text: a bracket in a name is no markup.
        head = Text(harmless(_broken_head(table.head[place]), keep="\n"))
        result.add_column(head, justify="left" if wide else "right", overflow="fold", width=widths[place])
    for number, row in enumerate(table.rows):
        result.add_row(
            *(
                Text(
                    _broken(harmless(row[place]), widths[place], breaks if _is_name(table, place) else " "),
                    style="bold" if (number, place) in table.best else "",
                )
                for place in shown
            )
        )
    return result


def _fitted(table: Table, width: int) -> tuple[list[int], dict[int, int], str]:
    """Return the shown columns, the width of each, and the characters after which ids may be broken.

    Words get the width that figures leave. If no further column can be dropped, figures and intervals take two lines.
    """
    longest = {place: _longest(table, place) for place in range(len(table.head))}
    shapes = list(_narrower(table, longest))
    fitting = (found for found in shapes if _total(*found[:2]) <= width)
    shown, least, breaks = next(fitting, None) or shapes[-1]
    room = width - _total(shown, least)
    widths = dict(least)
    for place in sorted(shown, key=lambda place: (place not in table.wide, place)):
        more = max(0, min(room, longest[place] - least[place]))
        widths[place] += more
        room -= more
    return shown, widths, breaks


def fits(table: Table, width: int) -> bool:
    """Say whether a table fits with all of its columns and no id broken."""
    whole = {place: _least(table, place, " ") for place in range(len(table.head)) if place in table.wide}
    figures = {place: _longest(table, place) for place in range(len(table.head)) if place not in table.wide}
    return _total(list(range(len(table.head))), whole | figures) <= width


def _narrower(table: Table, longest: dict[int, int]) -> Iterator[tuple[list[int], dict[int, int], str]]:
    """Yield ever fewer columns with the least width of each, then ever narrower names and figures."""
    shown = list(longest)

    def least(breaks: str, figures: bool = False) -> dict[int, int]:
        whole = frozenset() if figures else frozenset(longest) - table.wide
        return {p: longest[p] if p in whole else _least(table, p, breaks if _is_name(table, p) else " ") for p in shown}

    for group in ((), *table.droppable):
        shown = [place for place in shown if place not in group]
        yield shown, least(_IN_IDS), _IN_IDS
    yield shown, least(_IN_IDS, figures=True), _IN_IDS
    yield shown, least(_IN_LONG_IDS), _IN_LONG_IDS
    while len(shown) > 2:  # the last ones say the least
        yield shown, least(_IN_LONG_IDS, figures=True), _IN_LONG_IDS
        shown = shown[:-1]
    yield shown, least(_IN_LONG_IDS, figures=True), _IN_LONG_IDS


def _is_name(table: Table, place: int) -> bool:
    return table.head[place] == "transport" or place in table.names


def _total(shown: list[int], widths: dict[int, int]) -> int:
    """Return how wide a table is with these columns: each has a space of padding and one of the box on its right."""
    return sum(widths[place] + 2 for place in shown) + 1


def _strings(table: Table, place: int) -> list[str]:
    return [_broken_head(table.head[place]), *(row[place] for row in table.rows)]


def _longest(table: Table, place: int) -> int:
    return max(len(line) for text in _strings(table, place) for line in text.split("\n"))


def _least(table: Table, place: int, breaks: str) -> int:
    return max(len(piece.rstrip()) for text in _strings(table, place) for piece in _pieces(text, f"{breaks}\n"))


def _pieces(text: str, breaks: str) -> list[str]:
    """Return a string in pieces, each with the character after which it may be broken."""
    return re.findall(f"[^{re.escape(breaks)}]*[{re.escape(breaks)}]|.+$", text) or [""]


def _broken_head(text: str) -> str:
    """Return a head with its parts one below the other, and long parts broken at their spaces."""
    lines = text.replace(", ", "\n").split("\n")
    return "\n".join(
        part for line in lines for part in wrap(line, _HEAD, break_long_words=False, break_on_hyphens=False)
    )


def _broken(text: str, width: int, breaks: str) -> str:
    """Break a string that is too long, only at these characters: a word is never broken."""
    if len(text) <= width:
        return text
    lines = [""]
    for piece in _pieces(text, breaks):
        if len(lines[-1]) + len(piece.rstrip()) > width and lines[-1]:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


LINES = 40  # of one screen
_INDENT, _GOES_ON = "     ", " \\"
_LEAST = 6  # lines of a table of one row


@dataclass(frozen=True)
class Closing:
    """Tables for rich to print, and the sentences below them."""

    tables: list[Group]
    sentences: list[str]


def fitting(
    said: Sequence[str],
    whole: Sequence[Table],
    shapes: Sequence[Table],
    width: int,
    room: int = LINES,
    answers_first: bool = False,
) -> Closing:
    """Return as many tables as fit into `room` lines of `width` columns, and the answers in any case.

    `shapes` are the answers in ever smaller shapes. Where all of the `whole` tables fit, they come first. With
    `answers_first` no sentence takes the room of an answer, and a shape whose cells take one line each is preferred.
    """
    unbroken = [one for one in shapes if answers_first and _whole(one, width)]
    drawn = [printable(one, width) for one in unbroken or [one for one in shapes if fits(one, width)] or shapes[-1:]]
    # A table has a title and a head: hundreds of rows need not be laid out to know that they do not fit.
    if whole and sum(5 + len(table.rows) for table in (*whole, *shapes[:1])) <= room:
        every = [*(printable(table, width) for table in whole), *drawn[:1]]
        if _heights(every, width) + lines_of(said, width) <= room:
            return Closing(every, list(said))
    left = room - (len(said[:1]) if answers_first else min(lines_of(said, width), room // 2))
    found = (shape for least in (left, room - 1) for shape in drawn if _heights([shape], width) <= least)
    kept = [next(found, None) or _shortened(shapes[-1], width, left)] if shapes else []
    return Closing(kept, _cut(said, width, room - _heights(kept, width), "report.md"))


def recommended(found: Recommendation, width: int, room: int = LINES) -> Closing:
    """Return the screen of a race: the answer, its table, and as many further notes as fit."""
    answer, pip, *more = recommendation.opening(found)
    title = Sentence(recommendation.title(found), "bold")
    opened = [title, Sentence(""), Sentence(answer, "bold"), Sentence(_pasted(pip, width)), *map(Sentence, more)]
    shapes = ever_smaller(recommendation.table(found))
    table = next((one for one in shapes if _whole(one, width)), shapes[-1])
    beyond = [] if table is shapes[0] else recommendation.installs(found)
    shown = Group(*opened, printable(table, width), *map(Sentence, beyond))
    said = _cut(list(recommendation.sentences(found)), width, room - _heights([shown], width), "report.md")
    left = room - _heights([shown], width) - lines_of(said, width)
    known = [_shortened(one, width, left) for one in recommendation.so_far(found) if left >= _LEAST]
    return Closing([shown, *known], said)


def _whole(table: Table, width: int) -> bool:
    """Say whether a table fits with every cell on one line."""
    every = range(len(table.head))
    return _total(list(every), {place: _longest(table, place) for place in every}) <= width


def _pasted(command: str, width: int) -> str:
    """Indent a command, and end its lines so that a shell takes a copy of all of them as one."""
    lines = wrap(command, width - len(_INDENT) - len(_GOES_ON), break_long_words=False, break_on_hyphens=False)
    return f"{_GOES_ON}\n".join(f"{_INDENT}{line}" for line in lines)


def _shortened(table: Table, width: int, room: int) -> Group:
    """Return the first rows of a table, as many as fit, and one at least."""
    count = len(table.rows)
    while True:
        cut = f": {count} of {len(table.rows)} lines, all are in report.md" if count < len(table.rows) else ""
        title = f"{table.title}{cut}"
        shown = printable(replace(table, title=title, rows=table.rows[:count]), width)
        if count == 1 or _heights([shown], width) <= room:
            return shown
        count -= 1


def _heights(tables: Sequence[RenderableType], width: int) -> int:
    console = Console(width=width, file=io.StringIO())
    return sum(len(console.render_lines(table, pad=False)) for table in tables)


def lines_of(sentences: Sequence[str], width: int) -> int:
    """Return how many lines of a terminal some sentences take."""
    return _heights([Sentence(text) for text in sentences], width)


def _cut(sentences: Sequence[str], width: int, room: int, file: str) -> list[str]:
    """Return as many sentences as fit, and how many are left out."""
    if lines_of(sentences, width) <= max(room, 0):
        return list(sentences)
    fit = max((count for count in range(len(sentences)) if lines_of(sentences[:count], width) < room), default=0)
    return [*sentences[:fit], f"what else this run shows, in {numbered(len(sentences) - fit, 'sentence')}: {file}"]

"""Winners: a map of who is the fastest, one line and one column a value of the axes; faded where nothing is shown."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.colors import to_hex, to_rgb
from matplotlib.patches import Patch

from harness.report import style
from harness.report.pictures.grid import MARGIN, Ink, draw_cell, frame, in_lines
from harness.report.pictures.sheet import Entry, Sheet, sheet, width
from harness.report.pictures.winners import WinnerCell, WinnersMap, by_winner
from harness.suites.suite import Picture

_GAP = 0.12  # inches between a line's name and its cells
_LEFT = 2.2  # inches that the names of lines take at most
_LINE, _AROUND = 0.145, 0.2  # inches a line of a cell's text takes, and those above and below all of them
_BOLD = 1.15  # how much wider bold letters are
_SHOWN, _FADED = 0.42, 0.10  # how much of a winner's colour is in its cell, the rest is white
_COLOURS = style.COLOURS[:-1]  # but black, whose lighter shade is grey
_DASH = (0, (3, 2))
WINNER = "each cell names the fastest transport whose values came back exact, and its median"
SHOWN = "shown to be faster than all others"
FADED = "faded: not shown to be faster; alone: no other is exact; ?: few runs, or a gap beside"


def draw_map(picture: Picture, second: str, found: WinnersMap) -> Sheet:
    """Draw the cells of a map, each with its winner and the median; each says all figures when it is pointed at."""
    labels = [in_lines(name, _LEFT) for name in found.lines]
    left = max((width(label, style.SMALL) for label in labels), default=0.0) + 0.15 + _GAP
    wide = (style.WIDTH - left - 0.15) / max(len(found.columns), 1)
    room = wide - 6 * MARGIN
    texts = [[_text(cell, room) for cell in line] for line in found.cells]
    heads = [_in_words(head, room / _BOLD) for head in found.columns]
    heights = [
        max(text.count("\n") + 1 for text in (label, *row)) * _LINE + _AROUND
        for label, row in zip(labels, texts, strict=True)
    ]
    above = max((head.count("\n") + 1 for head in heads), default=1) * _LINE + 0.06
    whole = above + sum(heights)
    drawn = sheet(picture.title, second, _legend(found), left, 0.15, whole, lines_below=0)
    frame(drawn, len(found.columns), whole)
    for column, head in enumerate(heads):
        drawn.axes.text(column + 0.5, above - 0.06, head, ha="center", va="bottom", size=style.SMALL, weight="bold")
    tops = [above + sum(heights[:number]) for number in range(len(heights))]
    middles = [top + height / 2 for top, height in zip(tops, heights, strict=True)]
    drawn.axes.set_yticks(middles, labels, size=style.SMALL, linespacing=1.1)
    colours = {name: _COLOURS[place % len(_COLOURS)] for place, name in enumerate(by_winner(found))}
    for line, row, top, height in zip(found.cells, texts, tops, heights, strict=True):
        for column, (cell, text) in enumerate(zip(line, row, strict=True)):
            if cell:
                ink = _ink(cell, colours.get(cell.name, "white"))
                draw_cell(drawn, ink, text, cell.says, (column, top), height, wide)
    return drawn


def caption(conditions: Sequence[str]) -> str:
    """Return the caption: how to read the cells, and the conditions."""
    return f"{WINNER[:1].upper()}{WINNER[1:]}. {FADED[:1].upper()}{FADED[1:]}. Conditions: {', '.join(conditions)}."


def _text(cell: WinnerCell | None, room: float) -> str:
    if cell is None:
        return ""
    return "\n".join(part for part in (_in_words(cell.name, room), in_lines(cell.figure, room)) if part)


def _in_words(name: str, room: float) -> str:
    """Return a name in lines; one that is longer than a column is wide also between the words of an id, and in them."""
    words = [part for word in name.replace("_", "_ ").split() for part in _narrow(word, room + 5 * MARGIN)]
    return in_lines(" ".join(words), room).replace("_ ", "_")


def _narrow(word: str, room: float) -> list[str]:
    """Return a word in pieces that a column has room for."""
    size = len(word)
    while size > 1 and width(word[:size], style.SMALL) > room:
        size -= 1
    return [word] if size == len(word) else [word[:size], *_narrow(word[size:], room)]


def _legend(found: WinnersMap) -> list[Entry]:
    cells = [cell for line in found.cells for cell in line if cell]
    entries = []
    if any(cell.shown for cell in cells):
        entries.append(Entry(Patch(facecolor=_tint(style.QUIET, _SHOWN), edgecolor=style.QUIET), SHOWN))
    if any(cell.fastest and not cell.shown for cell in cells):
        faded = Patch(facecolor=_tint(style.QUIET, _FADED), edgecolor=style.QUIET, linestyle=_DASH)
        entries.append(Entry(faded, FADED))
    return entries


def _tint(colour: str, share: float) -> str:
    red, green, blue = (1 - share * (1 - part) for part in to_rgb(colour))
    return to_hex((red, green, blue))


def _ink(cell: WinnerCell, colour: str) -> Ink:
    shown = cell.shown
    face, edge = _tint(colour, _SHOWN if shown else _FADED), colour if cell.fastest else style.LINES
    return Ink(face, edge, style.INK if shown else style.QUIET, dash="-" if shown else _DASH)

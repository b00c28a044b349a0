"""Grid: a table as a picture, one line a transport, one column a value of a parameter, told by colour and by mark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.patches import Patch, Rectangle

from harness.report import style
from harness.report.pictures.bars import in_even_lines
from harness.report.pictures.outcomes import Outcomes, Verdict
from harness.report.pictures.sheet import Entry, Sheet, sheet, width
from harness.suites.suite import Picture

CELL = "each cell is the worst of a transport's runs"
_GAP = 0.12  # inches between a line's name and its cells
_LINE, _AROUND = 0.145, 0.17  # inches a line of a cell's text takes, and those above and below all of them
MARGIN = 0.035  # inches on each side of a cell
_BOLD = 1.1  # how much wider bold letters are


@dataclass(frozen=True)
class Ink:
    """How a cell is drawn: dark, light and empty ones are told apart without any colour, too."""

    face: str
    edge: str
    text: str
    weight: str = "normal"
    dash: Any = "-"


_INKS = {
    Verdict.RIGHT: Ink("#cfeadf", "#009E73", style.INK),
    Verdict.WRONG: Ink("#a33c00", "#a33c00", "white", "bold"),  # 6.6:1
    Verdict.GAVE_UP: Ink("white", "#0072B2", style.INK, dash=(0, (4, 2))),
    Verdict.UNTRIED: Ink("white", style.LINES, style.QUIET),
}


def grid(picture: Picture, second: str, found: Outcomes) -> Sheet:
    """Draw the cells of a grid, each with its text; every cell says all of its runs when it is pointed at."""
    labels = [in_even_lines(line.name) for line in found.lines]
    left = max((width(label, style.SMALL) for label in labels), default=0.0) + 0.15 + _GAP
    wide = (style.WIDTH - left - 0.15) / max(len(found.values), 1)  # inches of a column
    room = (wide - 6 * MARGIN) / _BOLD
    texts = [[in_lines(cell.marked if cell else "", room) for cell in line.cells] for line in found.lines]
    heads = [in_lines(head, room) for head in found.heads]
    heights = [
        max(text.count("\n") + 1 for text in (label, *row)) * _LINE + _AROUND
        for label, row in zip(labels, texts, strict=True)
    ]
    above = max((head.count("\n") + 1 for head in heads), default=1) * _LINE + 0.06
    drawn = sheet(picture.title, second, _legend(found), left, 0.15, sum(heights) + above, lines_below=0)
    places = [above + sum(heights[:number]) for number in range(len(heights))]
    frame(drawn, len(found.values), above + sum(heights))
    for column, head in enumerate(heads):
        drawn.axes.text(column + 0.5, above - 0.06, head, ha="center", va="bottom", size=style.SMALL, weight="bold")
    middles = [place + height / 2 for place, height in zip(places, heights, strict=True)]
    drawn.axes.set_yticks(middles, labels, size=style.SMALL, linespacing=1.1)
    for line, row, top, height in zip(found.lines, texts, places, heights, strict=True):
        for column, (cell, text) in enumerate(zip(line.cells, row, strict=True)):
            if cell:
                draw_cell(drawn, _INKS[cell.verdict], text, cell.says, (column, top), height, wide)
    return drawn


def caption(found: Outcomes, conditions: Sequence[str]) -> str:
    """Return the caption: how to read the marks, and the conditions."""
    marks = "; ".join(
        f"{one.mark} {one.meaning}" if one.mark else f"without a mark: {one.meaning}" for one in found.verdicts
    )
    return f"{CELL[:1].upper()}{CELL[1:]}: {marks}. Conditions: {', '.join(conditions)}."


def in_lines(text: str, room: float) -> str:
    """Break a text at spaces where it is wider than so many inches."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if width(longer, style.SMALL) <= room or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return "\n".join(lines)


def _legend(found: Outcomes) -> list[Entry]:
    entries = []
    for verdict in found.verdicts:
        ink = _INKS[verdict]
        patch = Patch(facecolor=ink.face, edgecolor=ink.edge, linestyle=ink.dash, linewidth=1.0)
        entries.append(Entry(patch, f"{verdict.mark} {verdict.meaning}".strip()))
    return entries


def frame(drawn: Sheet, columns: int, height: float) -> None:
    """Make the axes what the cells are placed in: a column is 1 wide, heights are inches from above."""
    axes = drawn.axes
    axes.set_xlim(0, max(columns, 1))
    axes.set_ylim(height, 0)
    axes.grid(visible=False)
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0, pad=_GAP * 72)
    for side in axes.spines.values():
        side.set_visible(False)


def draw_cell(
    drawn: Sheet, ink: Ink, text: str, says: str, corner: tuple[int, float], height: float, wide: float
) -> None:
    """Draw a cell of a column so many inches wide, with its text; it says `says` when it is pointed at."""
    (column, top), gap = corner, MARGIN / wide
    box = Rectangle(
        (column + gap, top + MARGIN),
        1 - 2 * gap,
        height - 2 * MARGIN,
        facecolor=ink.face,
        edgecolor=ink.edge,
        linestyle=ink.dash,
        linewidth=1.0,
    )
    drawn.axes.add_patch(box)
    written = drawn.axes.text(
        column + 0.5,
        top + height / 2,
        text,
        ha="center",
        va="center",
        size=style.SMALL,
        color=ink.text,
        weight=ink.weight,
        linespacing=1.15,
    )
    drawn.says(says, box, written)

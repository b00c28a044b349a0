"""The sheet a picture is drawn on: title, second line and legend above the axes, in inches, so nothing collides."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from harness.report import style
from harness.report.pictures.cases import printable

_EDGE = 0.15  # inches kept free around everything
_LINE = 1.35 / 72  # inches a line of text takes for each point of its size
_BELOW = 0.5  # inches below the axes for ticks and the name of the axis
_LONGEST = 100  # characters of a text in the legend
_HANDLE = 0.6  # inches of a legend's mark with the room around it
_INCHES_PER_MARK = 0.21  # of a row of the legend
_HINTING = 1.03  # how much wider than its outlines a text may come out in a PNG


@dataclass(frozen=True)
class Sheet:
    """A figure with its axes, and what the marks in it say when they are pointed at (by the id they get in the SVG)."""

    figure: Figure
    axes: Axes
    sayings: dict[str, str] = field(default_factory=dict)

    @property
    def has_published(self) -> bool:
        """Tell whether there is a mark of an author's figure."""
        return any(name.startswith("published") for name in self.sayings)

    def says(self, text: str, *artists: Artist, published: bool = False) -> None:
        """Let these marks, ours or an author's, say a text when they are pointed at."""
        for artist in artists:
            name = f"{'published' if published else 'mark'}-{len(self.sayings) + 1}"
            artist.set_gid(name)
            self.sayings[name] = printable(text)


@dataclass(frozen=True)
class Entry:
    """One line of the legend: its mark and what it stands for; quiet where there is nothing of it in the picture."""

    mark: Artist
    text: str
    quiet: bool = False


def width(text: str, size: float) -> float:
    """Return how wide a text is in inches at a size in points, at its widest line."""
    font = FontProperties(family="DejaVu Sans", size=size)
    widths = [text_to_path.get_text_width_height_descent(line, font, False)[0] for line in text.split("\n")]
    return max(widths, default=0.0) * _HINTING / 72


def sheet(
    title: str, second: str, legend: Sequence[Entry], left: float, right: float, height: float, lines_below: int = 1
) -> Sheet:
    """Return a sheet whose axes are `height` inches high with `left` and `right` inches beside them for labels.

    `lines_below` is the number of lines that the labels of the x axis have.
    """
    under = _BELOW + (lines_below - 1) * style.TEXT * _LINE
    lines = textwrap.wrap(title, 86) or [""]
    notes = textwrap.wrap(second, 140)
    columns = _columns(legend)
    rows = -(-len(legend) // columns)
    top = _EDGE + len(lines) * style.TITLE * _LINE + len(notes) * style.SMALL * _LINE + 0.08
    above = top + rows * _INCHES_PER_MARK + 0.2
    whole = above + height + under
    figure = Figure(figsize=(style.WIDTH, whole), dpi=style.DPI)
    figure.text(
        *_at(_EDGE, _EDGE, whole), "\n".join(lines), size=style.TITLE, weight="bold", va="top", linespacing=1.25
    )
    below = _EDGE + len(lines) * style.TITLE * _LINE + 0.02
    figure.text(
        *_at(_EDGE, below, whole), "\n".join(notes), size=style.SMALL, color=style.QUIET, va="top", linespacing=1.25
    )
    axes = figure.add_axes(
        (left / style.WIDTH, under / whole, 1 - (left + right) / style.WIDTH, height / whole)  # of the figure's size
    )
    if legend:
        _draw_legend(figure, legend, columns, _at(_EDGE, top, whole))
    return Sheet(figure, axes)


def _at(right: float, down: float, whole: float) -> tuple[float, float]:
    """Return a place in fractions of the figure from inches from its upper left corner."""
    return right / style.WIDTH, 1 - down / whole


def _columns(legend: Sequence[Entry]) -> int:
    widest = max((width(text, style.SMALL) for text in _cut(legend)), default=0.0)
    return max(1, min(len(legend), int((style.WIDTH - 2 * _EDGE) / (widest + _HANDLE))))


def _cut(legend: Sequence[Entry]) -> list[str]:
    """Return the texts of the legend, cut where one would not fit the sheet; the marks say the whole name."""
    return [entry.text if len(entry.text) <= _LONGEST else f"{entry.text[: _LONGEST - 1]}…" for entry in legend]


def _draw_legend(figure: Figure, legend: Sequence[Entry], columns: int, place: tuple[float, float]) -> None:
    drawn = figure.legend(
        [entry.mark for entry in legend],
        # matplotlib leaves out what begins with an underscore.
        [f" {text}" if text.startswith("_") else text for text in _cut(legend)],
        loc="upper left",
        bbox_to_anchor=place,
        ncols=columns,
        borderpad=0.0,
        borderaxespad=0.0,
        handlelength=2.8,
        handletextpad=0.6,
        columnspacing=1.4,
        labelspacing=_INCHES_PER_MARK * 72 / style.SMALL - 1.25,
    )
    for text, entry in zip(drawn.get_texts(), legend, strict=True):
        if entry.quiet:
            text.set_color(style.QUIET)

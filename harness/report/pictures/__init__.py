"""The pictures of a report, drawn from the rows of runs.csv alone."""

from dataclasses import dataclass
from pathlib import Path

from harness.model import Origin
from harness.report import style
from harness.report.pictures.bars import bars
from harness.report.pictures.bounds import bounds
from harness.report.pictures.captions import caption, conditions, joined, second_line
from harness.report.pictures.cases import cases_of, chosen, has_mark, value
from harness.report.pictures.changes import changes
from harness.report.pictures.costs import WHAT, draw_costs, found_costs
from harness.report.pictures.files import save_png, save_svg
from harness.report.pictures.grid import CELL, grid
from harness.report.pictures.grid import caption as grid_caption
from harness.report.pictures.lines import lines
from harness.report.pictures.outcomes import outcomes
from harness.report.pictures.scatter import scatter
from harness.report.pictures.sheet import Sheet
from harness.report.pictures.traces import draw_traces
from harness.report.pictures.winners import map_of
from harness.report.pictures.winners_map import WINNER, draw_map
from harness.report.pictures.winners_map import caption as map_caption
from harness.results.row import Row
from harness.suites.suite import Picture, PublishedFigure

_FORMS = {"bars": bars, "scatter": scatter}


@dataclass(frozen=True)
class Drawn:
    """A picture on disk, as PNG and SVG, with the text that says what its marks are and how they were obtained."""

    name: str
    title: str
    caption: str
    png: Path
    svg: Path


def draw(picture: Picture, rows: list[Row], published: tuple[PublishedFigure, ...], folder: Path) -> Drawn | None:
    """Draw one picture of all `rows` of a run into `folder`; None when no ok run fits it.

    Raises LabError where the picture is of columns that there are not, or sets two cases at one place of a line.
    """
    if picture.form == "traces":
        return _draw_traces(picture, rows, folder)
    if picture.form == "grid":
        return _draw_grid(picture, rows, folder)
    if picture.form == "winners":
        return _draw_winners(picture, rows, folder)
    if picture.form == "costs":
        return _draw_costs(picture, rows, folder)
    about = chosen(picture, rows)
    found = cases_of(picture, about)
    if not any(has_mark(picture, case) for case in found):
        return None
    with style.applied():
        drawn = compose(picture, rows, published)
        return _saved(picture, drawn, caption(picture, about, found, drawn.has_published), folder)


def _draw_traces(picture: Picture, rows: list[Row], folder: Path) -> Drawn | None:
    """Draw the traces that lie beside the folder of pictures."""
    with style.applied():
        if (found := draw_traces(picture, rows, folder.parent)) is None:
            return None
        return _saved(picture, *found, folder)


def _draw_grid(picture: Picture, rows: list[Row], folder: Path) -> Drawn | None:
    """Draw the cells of a grid, also where no run is ok: that is what it tells."""
    found = outcomes(picture, rows)
    if not found.lines:
        return None
    with style.applied():
        text = grid_caption(found, conditions(chosen(picture, rows)))
        return _saved(picture, compose(picture, rows, ()), text, folder)


def _draw_winners(picture: Picture, rows: list[Row], folder: Path) -> Drawn | None:
    """Draw the cells of a map of winners; None where nobody competes."""
    if not map_of(picture, rows).cells:
        return None
    with style.applied():
        return _saved(picture, compose(picture, rows, ()), map_caption(conditions(chosen(picture, rows))), folder)


def _draw_costs(picture: Picture, rows: list[Row], folder: Path) -> Drawn | None:
    """Draw what calls and rows cost; None where no transport has enough numbers of rows."""
    if not found_costs(picture, rows):
        return None
    with style.applied():
        text = f"{WHAT[:1].upper()}{WHAT[1:]}. Conditions: {', '.join(conditions(chosen(picture, rows)))}."
        return _saved(picture, compose(picture, rows, ()), text, folder)


def _saved(picture: Picture, drawn: Sheet, text: str, folder: Path) -> Drawn:
    png, svg = folder / f"{picture.name}.png", folder / f"{picture.name}.svg"
    save_png(drawn, png)
    save_svg(drawn, svg, picture.name, picture.title)
    return Drawn(picture.name, picture.title, text, png, svg)


def compose(picture: Picture, rows: list[Row], published: tuple[PublishedFigure, ...]) -> Sheet:
    """Return a picture as a sheet in memory, in the style that is applied at the moment."""
    about = chosen(picture, rows)
    if picture.form == "grid":
        return grid(picture, joined([CELL, *conditions(about)]), outcomes(picture, rows))
    if picture.form == "winners":
        return draw_map(picture, joined([WINNER, *conditions(about)]), map_of(picture, rows))
    if picture.form == "costs":
        return draw_costs(picture, joined([WHAT, *conditions(about)]), found_costs(picture, rows))
    found = cases_of(picture, about)
    # Of all rows, not only those of this picture: a value looks the same in all pictures of a report. Those of the
    # published transports come first and so keep the clearest looks, however many others there are.
    first = {value(row, picture.colour) for row in rows if row.origin == Origin.PUBLISHED}
    looks = style.looks((value(row, picture.colour) for row in rows), first)
    theirs = published if picture.published else ()
    second = second_line(picture, about, found)
    if picture.form == "lines":
        return lines(picture, second, found, theirs, looks, bounds(picture, about, rows), changes(picture, about))
    return _FORMS[picture.form](picture, second, found, theirs, looks)

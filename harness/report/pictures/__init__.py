"""The pictures of a report, drawn from the rows of runs.csv alone."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.report import style
from harness.report.pictures.bars import bars
from harness.report.pictures.captions import caption, second_line
from harness.report.pictures.cases import chosen, points, value
from harness.report.pictures.files import save_png, save_svg
from harness.report.pictures.lines import lines
from harness.report.pictures.scatter import scatter
from harness.suites import Picture, PublishedFigure

_KINDS = {"bars": bars, "lines": lines, "scatter": scatter}


@dataclass(frozen=True)
class Drawn:
    """A picture on disk, as PNG and SVG, with the text that says what its marks are and how they were obtained."""

    name: str
    title: str
    caption: str
    png: Path
    svg: Path


def draw(
    picture: Picture, rows: list[dict[str, Any]], published: tuple[PublishedFigure, ...], folder: Path
) -> Drawn | None:
    """Draw one picture of all `rows` of a run into `folder`; None when no ok run fits it."""
    about = chosen(picture, rows)
    found = points(picture, about)
    if not any(point.y and (point.x or picture.kind != "scatter") for point in found):
        return None
    theirs = published if picture.published else ()
    looks = style.looks(value(row, picture.colour) for row in rows)
    with style.applied():
        sheet = _KINDS[picture.kind](picture, second_line(picture, about, found), found, theirs, looks)
        png, svg = folder / f"{picture.name}.png", folder / f"{picture.name}.svg"
        save_png(sheet, png)
        save_svg(sheet, svg, picture.name, picture.title)
    return Drawn(picture.name, picture.title, caption(picture, about, found, bool(theirs)), png, svg)

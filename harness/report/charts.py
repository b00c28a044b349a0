"""The charts of a report as Vega-Lite specifications, drawn by vl-convert without a network or a browser.

A specification is data. Each mark has a `description`, which the SVG has as `aria-label` and browsers show on hover.
No two values of a column share colour, shape and dash, so that greys tell them apart too.
"""

from __future__ import annotations

import json
import math
import re
import statistics
import textwrap
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from markupsafe import escape

from harness.model import LabError, Origin
from harness.report.answers import DEFAULT, FASTEST, HERO, PYPI, Lane
from harness.report.crossings import directions, ends, many, winners
from harness.report.figures import (
    Quantity,
    chosen,
    figure,
    in_common,
    in_order,
    is_number,
    natural,
    parameter_or_quantity,
    printable,
    quantity,
    significant,
    value,
    with_unit,
)
from harness.report.summary import is_about, summarise
from harness.report.table import Chart
from harness.results.folder import load_trace, trace_path
from harness.results.row import Row, by_case, ok_rows
from harness.suites.suite import STATISTICS, Picture, PublishedFigure

# Okabe & Ito, "Color Universal Design" (2008), distinct with every common colour vision; without its yellow, which is
# invisible on white.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#6a6f76")
_HEXAGON, _HOURGLASS = "M0,-1L0.87,-0.5V0.5L0,1L-0.87,0.5V-0.5Z", "M-0.9,-0.9H0.9L-0.9,0.9H0.9Z"
SHAPES = (
    *("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left"),
    *(_HEXAGON, _HOURGLASS),
)
DASHES = ((1, 0), (6, 3), (8, 3, 2, 3), (3, 2, 1, 2))
_FACES = {"filled": 1.0, "hollow": 0.1, "pale": 0.5}  # how opaque the face of a mark is
DOTTED = (1, 3)  # the author's figures, and where the fastest changes
INK, QUIET, LINES, GROUND = "#1f2328", "#59636e", "#d1d9e0", "#ffffff"  # as report.css has them, in its light scheme
DARK = {INK: "#e6edf3", QUIET: "#9aa4af", LINES: "#3d444d", GROUND: "#0d1117"}  # and in its dark one
PUBLISHED = "published figure (mean)"
CHANGES = "dotted upright: the fastest exact transport changes; shaded: the interval of that"
NO_CHANGES = "no change of the fastest exact transport is shown between these rows"
_WIDTH, _HEIGHT = 430, 320  # pixels: a telephone is wide enough for these
_LETTER, _LEADING = 6.2, 13  # pixels: the width of a letter, about, and the height of a line
_LABEL, _LONGEST = 46, 64  # letters of a line of a transport's name, and of the legend
_KEY = 14  # pixels: of the shape before a name
_BAR, _PANEL = 12, _WIDTH - 60  # pixels: the height of a bar, and the width between two axes
_TICKS = 13  # of a logarithmic axis, at most
_STEPS = 24  # points of a line between two marks that is straight in seconds, not in rates
_AXIS = {"domainColor": QUIET, "gridColor": LINES, "tickColor": QUIET, "labelColor": INK, "titleColor": INK}
Spec = dict[str, Any]
_Mark = Spec
_Looks = Mapping[str, tuple[str, str, Sequence[int]]]  # colour, shape and dash by value
_CONFIG: Spec = {
    "font": "Liberation Sans, Arial, Helvetica, sans-serif",
    "background": None,
    "aria": True,
    "axis": {**_AXIS, "aria": False, "labelFontSize": 11, "labelLimit": 0, "titleFontWeight": "normal"},
    "legend": {
        **{"aria": False, "labelColor": INK, "labelLimit": 0, "orient": "top", "title": None, "offset": 4},
        "layout": {"top": {"direction": "vertical", "anchor": "start", "margin": 4}},  # one below the other
    },
    "title": {
        "aria": False,
        "anchor": "start",
        "color": INK,
        "fontSize": 16,
        "subtitleColor": QUIET,
        "frame": "bounds",
    },
    "text": {"fontSize": 11, "lineBreak": "\n", "color": INK},
    "view": {"stroke": None},
    "rule": {"aria": False},
    "line": {"aria": False},
}


def _drawn(name: str, title: str, caption: str, spec: Spec) -> Chart:
    """Return a chart as SVG with unique ids, so that one page can have several charts."""
    import vl_convert  # not at the top: V8 comes with it

    svg = printable(vl_convert.vegalite_to_svg(spec))
    svg = re.sub(r'(id="|#)((?:clip|gradient)\w*)', rf"\1{name}-\2", svg)
    svg = _MARK.sub(_titled, _EMPTY.sub("", svg))
    named = svg.replace("<svg ", f'<svg role="group" aria-label="{escape(title)}" ', 1)
    return Chart(name, title, caption, spec, named)


# A layer without a mark says nothing.
_EMPTY = re.compile(r' role="graphics-\w+" aria-roledescription="[^"]*"(?=/>|></g>)')
_MARK = re.compile(r'<(path|text) aria-label="([^"]*)" role="graphics-symbol" aria-\w*="[^"]*"([^>]*?)(/?)>')


def _titled(found: re.Match[str]) -> str:
    """Return a mark whose description is a title, which browsers show without any script."""
    tag, says, rest, closed = found.groups()
    return f'<{tag} class="mark" role="img"{rest}><title>{says}</title>' + (f"</{tag}>" if closed else "")


def on_its_own(svg: str) -> str:
    """Return an SVG for a file, with a background; in a dark scheme it takes the greys of that scheme."""
    svg = svg.replace(">", f'><rect width="100%" height="100%" fill="{GROUND}"/>', 1)
    pairs = [(of, light, dark) for light, dark in DARK.items() for of in ("fill", "stroke") if f'{of}="{light}"' in svg]
    rules = "".join(f'[{of}="{light}"]{{{of}:{dark}}}' for of, light, dark in pairs)
    return svg.replace(">", f"><style>@media (prefers-color-scheme:dark){{{rules}}}</style>", 1)


def chart(picture: Picture, rows: Sequence[Row], published: Sequence[PublishedFigure], folder: Path) -> Chart | None:
    """Return one picture of all `rows` of a run whose traces are in `folder`; None when no ok run fits it.

    Raises LabError if the picture names unknown columns, or puts two cases at one place of a line.
    """
    about = chosen(picture, rows)
    if not about:
        return None
    if picture.form == "traces":
        found = _traces(picture, about, folder)
    else:
        found = _of_cases(picture, about, rows, published if picture.published else ())
    return _drawn(picture.name, picture.title, *found) if found else None


def _of_cases(
    picture: Picture, about: Sequence[Row], rows: Sequence[Row], published: Sequence[PublishedFigure]
) -> tuple[str, Spec] | None:
    changes: list[_Mark] = []
    if picture.crossings:
        changes, about = _changes(picture, about)
    cases = cases_of(picture, about)
    if not any(has_mark(picture, case) for case in cases):
        return None
    # Of all rows, not only those of this picture: a value looks the same in all charts of a report. Those of the
    # published transports come first and so keep the clearest looks, whatever the number of transports.
    first = {value(row, picture.colour) for row in rows if row.origin == Origin.PUBLISHED}
    looks = looks_of((value(row, picture.colour) for row in rows), first)
    notes = [sample(picture, cases), *conditions(about)]
    if picture.form == "bars":
        spec, authors = _bars(picture, cases, published, looks)
    elif picture.form == "scatter":
        spec, authors = _scatter(picture, cases, looks), False
        notes += [f"{face}: {dash}" for dash, face in _faces(cases).items()] if picture.dash else []
    else:
        spec, authors = _lines(picture, cases, published, looks, changes)
        notes += [CHANGES if changes else NO_CHANGES] if picture.crossings else []
    notes += [f"open marks: {PUBLISHED}"] if authors else []
    return caption(picture, about, cases, authors), _whole(picture.title, notes, spec)


def looks_of(values: Iterable[str], first: Collection[str] = ()) -> _Looks:
    """Give each different value its colour, shape and dash, in alphabetical order; those in `first` come first.

    No two of the first 70 share colour and shape.
    """
    ordered = sorted(set(values), key=lambda value: (value not in first, value))
    return {
        value: (COLOURS[place % 7], SHAPES[place % 10], DASHES[place // 7 % 4]) for place, value in enumerate(ordered)
    }


_ROLES = {  # colour and shape of a transport's role in a direction; the fastest is drawn last and smallest
    DEFAULT: ("#D55E00", "diamond", 110),
    PYPI: ("#009E73", "square", 130),
    FASTEST: ("#0072B2", "circle", 50),
}
_ROLES_SAID = {DEFAULT: "what most code does", PYPI: "fastest with packages of PyPI", FASTEST: "fastest of all"}
_LANE = 44  # pixels: the height of a direction
_HERO = 640  # pixels: the width on a page, if the page does not say another


def directions_chart(lanes: Sequence[Lane]) -> Chart | None:
    """Draw each direction as a line over log seconds: a dot for each role, a tick for the server alone, the factors."""
    marks: list[_Mark] = [
        {"y": number, "x": dot.seconds, "role": _ROLES_SAID[dot.role], "size": _ROLES[dot.role][2], "says": dot.says}
        for number, one in enumerate(lanes)
        for dot in one.dots
    ]
    if not marks:
        return None
    ticks: list[_Mark] = [
        {"y": number, "x": one.alone, "says": f"{one.name}\nthe server alone: {significant(one.alone)} s"}
        for number, one in enumerate(lanes)
        if one.alone
    ]
    reach = [
        {"y": number, "low": min(ends), "high": max(ends)}
        for number, one in enumerate(lanes)
        if (ends := [dot.seconds for dot in one.dots])
    ]
    words = [{"y": number, "name": one.name, "factors": one.factors} for number, one in enumerate(lanes)]
    x = _axis(Quantity("", "", "s", False), [mark["x"] for mark in (*marks, *ticks)], True)
    x["axis"] |= {"title": None, "labelFontSize": 12, "grid": False}
    # The grid is drawn below the words of each direction, not across them.
    grid: list[_Mark] = [{"y": number, "x": at} for number in range(len(lanes)) for at in x["axis"]["values"]]
    up = {"field": "y", "type": "ordinal", "axis": None, "scale": {"domain": list(range(len(lanes)))}}
    names = list(_ROLES_SAID.values())
    scales = ({"domain": names, "range": [_ROLES[role][part] for role in _ROLES_SAID]} for part in (0, 1))
    colour, shape = ({"field": "role", "type": "nominal", "scale": scale} for scale in scales)
    legend = {"direction": "vertical", "labelFontSize": 12, "symbolSize": 90}
    above = {"type": "text", "dy": -14, "baseline": "middle", "fontSize": 13}
    at = {"x": {"field": "x"} | x, "y": up}
    layers = [
        _layer(grid, {"type": "tick", "color": LINES, "thickness": 1, "size": 26, "yOffset": 7}, **at),
        _layer(words, above | {"align": "left"}, y=up, x={"value": 0}, text={"field": "name"}),
        _layer(words, above | {"align": "right"}, y=up, x={"value": "width"}, text={"field": "factors"}),
        _layer(
            reach,
            {"type": "rule", "stroke": LINES, "strokeWidth": 2, "yOffset": 6},
            y=up,
            x={"field": "low"} | x,
            x2={"field": "high"},
        ),
        _layer(ticks, {"type": "tick", "color": INK, "thickness": 2.5, "size": 18, "yOffset": 6}, True, **at),
        _layer(
            marks,
            {"type": "point", "filled": True, "opacity": 1, "yOffset": 6},
            True,
            **at,
            color=colour | {"legend": legend},
            shape=shape | {"legend": legend},
            size={"field": "size", "type": "quantitative", "scale": None, "legend": None},
        ),
    ]
    title = "How long each direction takes"
    notes = ["median seconds, logarithmic; upright: the server alone; right: how many times as fast as most code"]
    notes += ["*: values in other dtypes"] if any("*" in one.factors for one in lanes) else []
    spec = {"width": _WIDTH, "height": {"step": _LANE}, "layer": layers}
    says = f"{notes[0][:1].upper()}{notes[0][1:]}: first with packages of PyPI, then of all."
    drawn = _drawn(HERO, title, says, _whole(title, notes, spec))
    return replace(drawn, svg=re.sub(r' width="\d+" height="\d+"', f' width="{_HERO}"', drawn.svg, count=1))


def _whole(title: str, notes: Sequence[str], spec: Spec) -> Spec:
    """Return a specification with its title and the parts that all specifications share."""
    words = textwrap.wrap(printable(title), 45), textwrap.wrap(" · ".join(notes), 64)
    schema = "https://vega.github.io/schema/vega-lite/v6.json"
    said = dict(zip(("text", "subtitle"), words, strict=True))
    return {"$schema": schema, "title": said, "config": _CONFIG, "padding": 10, **spec}


def _layer(values: Sequence[_Mark], mark: str | _Mark, says: bool = False, /, **encoding: Any) -> Spec:
    if says:
        encoding["description"] = {"field": "says"}
    shown = {"type": mark} if isinstance(mark, str) else mark
    return {"data": {"values": list(values)}, "mark": shown | {"aria": says}, "encoding": encoding}


def _axis(what: Quantity, values: Sequence[float], log: bool, places: Sequence[float] = ()) -> Spec:
    """Return the axis of a figure: from zero, or logarithmic, with ticks at `places`; both can show a zero."""
    unit = what.unit if what.unit in ("s", "B", "B/s") else ""
    name = f"{what.name} ({what.unit})" if what.unit and not unit and what.unit != what.name else what.name
    prefixed = r"replace(format(datum.value, '.3~s'), /([a-zA-Zµ]?)$/, ' $1')"
    plain = "datum.value == 0 || datum.value >= 1" if unit == "s" else "datum.value < 1000"
    label = f"({plain} ? format(datum.value, ',.4~r') + ' ' : {prefixed}) + '{unit}'"
    axis: Spec = {"title": name, "labelExpr": label, "labelOverlap": True}
    positive = [one for one in values if one > 0]
    scale: Spec = {"zero": True, "nice": True}
    if log:
        low, high = (min(positive) / 1.3, max(positive) * 1.3) if positive else (0.1, 1.0)
        scale = {"type": "log", "domain": [low, high], "nice": False}
        axis["values"] = list(places) if 0 < len(places) < _TICKS else _ticks(low, high)
        if len(positive) < len(values):
            scale = {"type": "symlog", "constant": low, "domain": [0, high], "nice": False}
            axis["values"] = [0, *axis["values"]]
    return {"type": "quantitative", "scale": scale, "axis": axis}


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two ends: 1, 2 and 5 of each power of ten, or fewer where that is too many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    tries = ([float(f"{step}e{power}") for power in powers for step in steps] for steps in ((1, 2, 5), (1, 3), (1,)))
    fitting = ([one for one in ticks if low <= one <= high] for ticks in tries)
    return next((ticks for ticks in fitting if len(ticks) < _TICKS), [float(f"1e{power}") for power in powers])


def _looking(names: Sequence[str], looks: _Looks, field: str, part: int, **more: Any) -> Spec:
    """Return the encoding of a column by one part of its looks: colour, shape or dash."""
    scale = {"domain": list(names), "range": [looks[name][part] for name in names]}
    longest = min(max((len(name) for name in names), default=1), _LONGEST)
    columns = max(1, int(_WIDTH / (longest * _LETTER + 40)))
    label = f"datum.label == '' ? 'none' : truncate(datum.label, {_LONGEST})"
    legend = {"columns": columns, "labelExpr": label, "symbolLimit": 0}
    return {"field": field, "type": "nominal", "scale": scale, "legend": legend} | more


def _bars(
    picture: Picture, cases: Sequence[CaseMark], published: Sequence[PublishedFigure], looks: _Looks
) -> tuple[Spec, bool]:
    """Draw one bar for each case, the best on top; a case without a figure keeps its place and has the reason there.

    With `log` there is no bar, whose length would mean nothing, but a dot.
    """
    what = quantity(picture.y)

    def place(case: CaseMark) -> tuple[bool, float, str, tuple[tuple[str, float, str], ...]]:
        middle = case.y.middle if case.y else 0.0
        return case.y is None, -middle if what.more_is_better else middle, case.name, in_order(case.row.parameters)

    ordered = sorted(cases, key=place)
    marks: list[_Mark] = []
    authors: list[_Mark] = []
    for number, case in enumerate(ordered):
        says = saying(case, [(case.y, what)], picture.statistic)
        known = {"colour": case.colour, "middle": case.y.middle} | case.y.reach if case.y else {}
        marks.append({"y": number, "says": says, "text": _figure(case, what)} | known)
        sized = [one for one in figures_of(case, published) if one.rows in (None, case.row.rows) and one.bytes is None]
        for theirs in [found for one in sized if (found := author_says(one, what.column)) is not None][:1]:
            authors.append({"y": number, "x": theirs, "says": published_saying(case.name, "", theirs, what)})
    drawn = [mark for mark in marks if "middle" in mark]
    names = [name for name in looks if any(mark["colour"] == name for mark in drawn)]
    labels = [_broken(label) for label in _labels(ordered)]
    high = max(map(_height, labels)) + _BAR + 12  # names are above their bars
    low, above = {"yOffset": high / 2 - 11}, high / 2 - 25
    up = {"field": "y", "type": "ordinal", "axis": None, "scale": {"domain": list(range(len(ordered)))}}
    values = [
        *(mark["middle"] for mark in drawn),
        *(mark.get("high", 0) for mark in drawn),
        *(one["x"] for one in authors),
    ]
    lows = [mark["low"] for mark in drawn if mark.get("low", 0) > 0]
    along = _axis(what, [*values[: len(drawn)], *(one for one in values[len(drawn) :] if one), *lows], picture.log)
    along["axis"]["title"] += ": more is better" if what.more_is_better else ": less is better"
    colour = _looking(names, looks, "colour", 0)
    # Dark if another value has the same colour, like dashed lines.
    edges = [shade if dash == DASHES[0] else INK for shade, _, dash in (looks[name] for name in names)]
    edge = colour | {"scale": {"domain": names, "range": edges}}
    bar = {"type": "point", "filled": True, "size": 70} if picture.log else {"type": "bar", "height": _BAR}
    words = _LINE | {"align": "right", "dy": above}
    quiet = {"condition": {"test": "!isValid(datum.middle)", "value": QUIET}, "value": INK}
    # Greys do not tell colours apart: the shape of each is before the name of a bar.
    key = _layer(drawn, _DOT | {"yOffset": above}, y=up, x={"value": 5}, color=colour, stroke=edge)
    key["encoding"]["shape"] = _looking(names, looks, "colour", 1)
    several = len(names) > 1
    layers = [
        _named(labels, up, [not case.y for case in ordered], above, _KEY if several else 0),
        *([key] if several else []),
        _layer(drawn, bar | low, True, y=up, x={"field": "middle"} | along, color=colour, stroke=edge),
        *_whiskers(
            [mark for mark in drawn if "low" in mark], low, y=up, x={"field": "low"} | along, x2={"field": "high"}
        ),
        _layer(authors, _DIAMOND | low, True, y=up, x={"field": "x"} | along),
        _layer(drawn, words, y=up, x={"value": "width"}, text={"field": "text"}),
        _layer(
            [m for m in marks if "middle" not in m],
            words,
            True,
            y=up,
            x={"value": "width"},
            text={"field": "text"},
            color=quiet,
        ),
    ]
    return {"width": _WIDTH, "height": {"step": high}, "layer": layers}, bool(authors)


_DOT = {"type": "point", "filled": True, "size": 55, "opacity": 1}
_DIAMOND = {
    "type": "point",
    "shape": "diamond",
    "filled": True,
    "fill": GROUND,
    "stroke": INK,
    "strokeWidth": 1.3,
    "size": 70,
}


def _whiskers(marks: Sequence[_Mark], at: _Mark, **encoding: Any) -> list[Spec]:
    """Return the ranges of marks: white below dark, so that they are visible on a dark bar, too."""
    return [
        _layer(marks, {"type": "rule", "strokeWidth": wide, "stroke": colour} | at, **encoding)
        for wide, colour in ((3.2, GROUND), (1.3, INK))
    ]


def _figure(case: CaseMark, what: Quantity) -> str:
    """Return the label next to a bar; the unit of counts is at the axis only."""
    if case.y is None:
        return case.outcome
    figure = with_unit(case.y.middle, what.unit).removesuffix(what.unit if "/" in what.unit else "").strip()
    return f"{figure} ({case.failed})" if case.failed else figure


def _labels(cases: Sequence[CaseMark]) -> list[str]:
    """Name each case by its transport, and by its conditions too if the transport has several.

    A system at the beginning of all identifiers is skipped, because the title names it.
    """
    systems = {case.row.transport.partition(".")[0] for case in cases}
    prefix = f"{systems.pop()}." if len(systems) == 1 else ""
    names = [case.name.removeprefix(prefix) for case in cases]
    return [
        f"{name} [{case.row.experiment}: {case.row.label}]" if names.count(name) > 1 else name
        for name, case in zip(names, cases, strict=True)
    ]


def _broken(label: str, longest: int = _LABEL) -> str:
    """Break the lines of a label at their spaces, an identifier after a dot or underscore too."""
    lines = []
    for whole in label.split("\n"):
        lines.append("")
        for word in re.split(r"(?<=[._])(?=[A-Za-z])|(?<= )", whole):
            if lines[-1] and len(lines[-1] + word.rstrip()) > longest:
                lines.append("")
            lines[-1] += word
    return "\n".join(part for line in lines for part in textwrap.wrap(line, longest) or [""])


def _height(label: str) -> int:
    """Return the height in pixels of a string of one line or several."""
    return _LEADING * (label.count("\n") + 1)


def _named(labels: Sequence[str], axis: Spec, quiet: Sequence[bool], above: float, left: int) -> Spec:
    """Return the names of bars; the last line of each is this many pixels below the middle of its place."""
    names = [
        {"y": number, "text": label, "quiet": one}
        for number, (label, one) in enumerate(zip(labels, quiet, strict=True))
    ]
    colour = {"condition": {"test": "datum.quiet", "value": QUIET}, "value": INK}
    last = {"expr": f"{above} - {_LEADING} * (length(split(datum.text, '\\n')) - 1)"}
    words = _LINE | {"dy": last}
    return _layer(names, words, y=axis, x={"value": left}, text={"field": "text"}, color=colour)


_LINE = {"type": "text", "baseline": "middle", "align": "left"}


def _lines(
    picture: Picture,
    cases: Sequence[CaseMark],
    published: Sequence[PublishedFigure],
    looks: _Looks,
    changes: Sequence[_Mark],
) -> tuple[Spec, bool]:
    """Draw the cases of each line joined, the author's figures dotted and changes as upright lines.

    Raises LabError where two cases would be at one place of a line.
    """
    what, along = quantity(picture.y), parameter_or_quantity(picture.x)
    drawable = [case for case in cases if has_mark(picture, case)]
    numeric = all(isinstance(case.place, float) for case in drawable)
    marks: list[_Mark] = []
    authors: list[_Mark] = []
    paths: list[_Mark] = []
    for (named, dash), members in _members(drawable, picture).items():
        of_line = [_mark(case, what, picture.statistic, numeric) for case in members]
        marks += of_line
        key = {"colour": named, "dash": dash, "line": f"{named}\n{dash}"}
        paths += [key | point for point in (_bent(of_line) if picture.crossings else of_line)]
        theirs = _theirs(members, published, picture.x, what, along) if numeric else []
        authors += [key | one for one in theirs]
    names = [name for name in looks if any(mark["colour"] == name for mark in marks)]
    dashes = {dash: ("", "", DASHES[place % 4]) for place, dash in enumerate(sorted({case.dash for case in cases}))}
    dashed = _looking(list(dashes), dashes, "dash", 2) if picture.dash else _looking(names, looks, "colour", 2)
    colour, shape = (_looking(names, looks, "colour", part) for part in (0, 1))
    places = {case.place for case in drawable if case.place is not None}

    def panel(log: bool) -> Spec:
        heights = [mark[end] for mark in (*marks, *authors) for end in ("y", "low", "high") if end in mark]
        y = _axis(what, [one for one in heights if one >= 0], log)
        x = _along(along, places, [mark["x"] for mark in (*marks, *authors)], log)
        floor = y["scale"].get("domain", [-math.inf])[0]
        reaches = [
            mark | {"low": max(mark["low"], floor)} for mark in marks if mark.get("high", 0) > mark.get("low", 0)
        ]
        at = {"x": {"field": "x"} | x, "y": {"field": "y"} | y}
        joined = at | {"color": colour, "detail": {"field": "line"}}
        reach = {"x": at["x"], "y": {"field": "low"} | y, "y2": {"field": "high"}, "color": colour}
        open_mark = at | {"stroke": colour | {"legend": None}}
        layers = [
            *_change_layers(changes, x),
            _layer(paths, "line", **joined, strokeDash=dashed),
            _layer(reaches, "rule", **reach),
            _layer(marks, _DOT, True, **at, color=colour, shape=shape),
            *([_layer(authors, {"type": "line", "strokeDash": list(DOTTED)}, **joined)] if authors else []),
            *([_layer(authors, _DOT | {"fill": GROUND}, True, **open_mark)] if authors else []),
        ]
        return {"width": _PANEL, "height": _HEIGHT, "layer": layers}

    if picture.inset and numeric and not picture.log:
        small = panel(True) | {"title": {"text": "the same, both axes logarithmic", "fontSize": 11}}
        return {"vconcat": [panel(False), small]}, bool(authors)
    return panel(picture.log), bool(authors)


def _along(what: Quantity, places: Collection[str | float], found: Sequence[float], log: bool) -> Spec:
    """Return the axis of conditions: numbers, or names with line breaks so that they do not overlap."""
    numbers = sorted(place for place in places if isinstance(place, float))
    if len(numbers) < len(places):
        names = [_category(place) for place in sorted(places, key=_sorted_place)]
        room = int(_PANEL / len(names) / _LETTER)
        label = f"{json.dumps({name: _broken(name, room).split(chr(10)) for name in names})}[datum.label]"
        axis = {"title": what.name, "labelAngle": 0, "labelExpr": label}
        return {"type": "ordinal", "axis": axis, "scale": {"domain": names}}
    x = _axis(what, found, log, numbers)
    x["scale"] |= {} if log else {"zero": False}
    if what.column.endswith("mbit_per_s"):  # as in the tables, 0 is no limit
        x["axis"]["labelExpr"] = f"datum.value ? {x['axis']['labelExpr']} : 'unlimited'"
    return x


def _sorted_place(place: str | float) -> tuple[bool, str | float]:
    return isinstance(place, str), place


def _category(place: str | float) -> str:
    return place if isinstance(place, str) else f"{place:,.15g}"


def _members(cases: Sequence[CaseMark], picture: Picture) -> dict[tuple[str, str], list[CaseMark]]:
    """Return the cases of each line from left to right. Raises LabError for two at one place of a line."""
    members: dict[tuple[str, str], list[CaseMark]] = defaultdict(list)
    taken: dict[tuple[str, str, object], CaseMark] = {}
    for case in cases:
        place = (case.colour, case.dash, case.place)
        if (other := taken.setdefault(place, case)) is not case:
            both = " and ".join(f"{one.transport} [{one.experiment}: {one.label}]" for one in (other.row, case.row))
            raise LabError(
                f"picture {picture.name}: two cases have the same place on a line ({picture.x}): {both}; "
                "set `where`, `colour` or `dash` to tell them apart"
            )
        members[case.colour, case.dash].append(case)
    return {key: sorted(members[key], key=lambda case: _sorted_place(case.place or 0.0)) for key in sorted(members)}


def _mark(case: CaseMark, what: Quantity, statistic: str, numeric: bool) -> _Mark:
    assert case.y  # only such cases are drawn
    assert case.place is not None
    says = saying(case, [(case.y, what)], statistic)
    place = case.place if numeric else _category(case.place)
    return {"x": place, "y": case.y.middle, "colour": case.colour, "dash": case.dash, "says": says} | case.y.reach


def _bent(marks: Sequence[_Mark]) -> list[_Mark]:
    """Return the points of a line of rates over rows: between two marks, the seconds are straight over the rows.

    The lab finds crossings in these lines: straight lines between marks on logarithmic axes would cross elsewhere.
    """
    found = []
    for one, other in pairwise(marks):
        (first, took), (last, longer) = ((mark["x"], mark["x"] / mark["y"]) for mark in (one, other))
        for step in range(_STEPS):
            rows = first * (last / first) ** (step / (_STEPS - 1))
            found.append({"x": rows, "y": rows / (took + (longer - took) * (rows - first) / (last - first))})
    return found


def _theirs(
    members: Sequence[CaseMark], published: Sequence[PublishedFigure], column: str, what: Quantity, along: Quantity
) -> list[_Mark]:
    """Return the author's figures for the transports of a line, between our first and our last case of it."""
    places = [float(case.place) for case in members if isinstance(case.place, float)]
    found = {}
    for case in members:
        for theirs in figures_of(case, published) if column in ("rows", "bytes") else ():
            x, y = getattr(theirs, column), author_says(theirs, what.column)
            if x is not None and y is not None and min(places) <= x <= max(places):
                found[x] = {
                    "x": x,
                    "y": y,
                    "says": published_saying(theirs.description, with_unit(x, along.unit), y, what),
                }
    return [found[x] for x in sorted(found)]


def _changes(picture: Picture, about: Sequence[Row]) -> tuple[list[_Mark], list[Row]]:
    """Return the changes of the fastest transport over rows, if they have an interval, and the rows that are drawn.

    Of transports that did not run at one of the two largest sizes only the fastest are drawn. Raises LabError where a
    picture is about more than one direction, whose transports do not compete.
    """
    found = directions(summarise(about, ()), {row.experiment for row in about})
    if len(found) > 1:
        raise LabError(
            f"picture {picture.name}: its crossings have {len(found)} combinations of database, operation, frame and "
            "parameters; set `where` to choose one"
        )
    won = winners(found[0]) if found else None
    large = sorted({row.rows or 0 for row in about})[-2:]
    drawn = {row.transport for row in about if row.rows in large} | {
        span.transport for span in (won.spans if won else ())
    }
    made = []
    for one in won.crossings if won else ():
        if won and one.interval and one.rows and not math.isinf(one.rows):
            sure = f"95 % interval: {ends(one.interval, won)}"
            doubt = "" if one.shown else "\nwhich the runs do not show"
            says = f"{one.before}\ngives way to {one.after}\nat {many(one.rows, won)} ({sure}){doubt}"
            low, high = (
                min(max(end, won.sizes[0]), won.sizes[-1]) for end in one.interval
            )  # open ends: all that was run
            made.append({"x": one.rows, "low": low, "high": high, "name": f" {many(one.rows, won)}", "says": says})
    return made, [row for row in about if row.transport in drawn]


def _change_layers(changes: Sequence[_Mark], x: Spec) -> list[Spec]:
    if not changes:
        return []
    at = {"x": {"field": "x"} | x}
    words = {"type": "text", "align": "left", "baseline": "bottom", "dy": -3}
    return [
        _layer(
            changes,
            {"type": "rect", "color": LINES, "opacity": 0.4},
            True,
            x={"field": "low"} | x,
            x2={"field": "high"},
        ),
        _layer(changes, {"type": "rule", "strokeDash": list(DOTTED), "strokeWidth": 1.4, "color": INK}, **at),
        _layer(changes, words, **at, y={"value": {"expr": "height"}}, text={"field": "name"}),
    ]


def _scatter(picture: Picture, cases: Sequence[CaseMark], looks: _Looks) -> Spec:
    """Draw one mark for each case that has both figures, and thin bars from end to end."""
    across, up = quantity(picture.x), quantity(picture.y)
    marks: list[_Mark] = [
        {"colour": case.colour, "dash": case.dash, "x": case.x.middle, "y": case.y.middle}
        | {"left": case.x.low, "right": case.x.high, "low": case.y.low, "high": case.y.high}
        | {"says": saying(case, [(case.x, across), (case.y, up)], picture.statistic)}
        for case in cases
        if case.x and case.y
    ]
    x, y = (
        _axis(what, [mark[end] for mark in marks for end in ends if mark[end] >= 0], picture.log)
        for what, ends in ((across, ("x", "left", "right")), (up, ("y", "low", "high")))
    )
    floors = {"left": x["scale"].get("domain", [-math.inf])[0], "low": y["scale"].get("domain", [-math.inf])[0]}
    ranges = [mark | {end: max(mark[end], floor) for end, floor in floors.items()} for mark in marks]
    names = [name for name in looks if any(mark["colour"] == name for mark in marks)]
    colour, shape = (_looking(names, looks, "colour", part) for part in (0, 1))
    at = {"x": {"field": "x"} | x, "y": {"field": "y"} | y, "color": colour}
    faces = _faces(cases)
    opaque = {"domain": list(faces), "range": [_FACES[name] for name in faces.values()]}
    face = {"field": "dash", "type": "nominal", "scale": opaque, "legend": None}
    facing = {"stroke": colour, "fillOpacity": face} if picture.dash else {}
    layers = [
        _layer(ranges, {"type": "rule", "opacity": 0.7}, **at | {"y": {"field": "low"} | y, "y2": {"field": "high"}}),
        _layer(ranges, {"type": "rule", "opacity": 0.7}, **at | {"x": {"field": "left"} | x, "x2": {"field": "right"}}),
        _layer(marks, _DOT, True, **at, shape=shape, **facing),
    ]
    return {"width": _PANEL, "height": _HEIGHT, "layer": layers}


def _faces(cases: Sequence[CaseMark]) -> dict[str, str]:
    names = list(_FACES)
    return {dash: names[place % len(names)] for place, dash in enumerate(sorted({case.dash for case in cases}))}


def _traces(picture: Picture, about: Sequence[Row], folder: Path) -> tuple[str, Spec] | None:
    """Draw how many cores runs kept busy over time, one line for each run of the last pass that has a trace."""
    good = ok_rows(about)
    last = max((row.pass_number for row in good), default=0)
    wanted = [row for row in good if row.pass_number == last]
    marks: list[_Mark] = []
    traced = 0
    for row in sorted(wanted, key=lambda row: (row.transport, in_order(row.parameters))):
        series = load_trace(trace_path(folder, row.order, row.transport))
        traced += bool(series)
        says = "\n".join(part for part in (row.transport, row.label, f"{row.seconds:.3g} s") if part)
        marks += [
            {"colour": value(row, picture.colour), "x": x, "y": y, "line": row.order, "says": says} for x, y in series
        ]
    if not marks:
        return None
    names = sorted({mark["colour"] for mark in marks}, key=natural)
    looks = looks_of(names)
    x = _axis(Quantity("", "time since the start of the call", "s", False), [], False)
    y = _axis(Quantity("", "CPU cores in use", "", True), [], False)
    at = {"x": {"field": "x"} | x, "y": {"field": "y"} | y, "color": _looking(names, looks, "colour", 0)}
    dashed = _looking(names, looks, "colour", 2)
    layer = _layer(marks, "line", True, **at, detail={"field": "line"}, strokeDash=dashed)
    note = f"one run each of pass {last}; each point is the mean since the sample before it, some 50 ms earlier"
    more = " Runs too short for two samples have no line." if traced < len(wanted) else ""
    spec = _whole(picture.title, [note], {"width": _PANEL, "height": _HEIGHT} | layer)
    return f"CPU time of the worker process, sampled from outside; {note}.{more}", spec


_REACH = {
    STATISTICS[0]: "whiskers from minimum to maximum",
    STATISTICS[1]: "whiskers of one population standard deviation to both sides",
}
_NAMED = 6  # transports without a mark that are named one by one


@dataclass(frozen=True)
class Spread:
    """The middle of the figures of some runs, how far they reach to both sides, and how many they are."""

    middle: float
    low: float
    high: float
    n: int

    @property
    def reach(self) -> dict[str, float]:
        """Its ends, if it is of several runs."""
        return {"low": self.low, "high": self.high} if self.n > 1 else {}


@dataclass(frozen=True)
class CaseMark:
    """One case in a picture: `row` is its first run.

    `name` is the transport's, or the author's name for it if it reproduces a published one. `x`, `y` are None without
    an ok run that has the figure. `place` is x if it is a category, or a number that is a condition of the case.
    `failed` says how the runs without numbers ended, and `outcome` why there is no figure.
    """

    name: str
    row: Row
    colour: str
    dash: str
    place: str | float | None
    x: Spread | None
    y: Spread | None
    outcome: str
    failed: str
    error: str


def cases_of(picture: Picture, rows: Sequence[Row]) -> list[CaseMark]:
    """Return every case among the chosen rows, by name and conditions: the order of runs is a shuffled one."""
    found = [_marked(picture, runs) for runs in by_case(rows).values()]
    return sorted(found, key=lambda one: (one.name, *one.row.case[1::-1], in_order(one.row.parameters)))


def has_mark(picture: Picture, case: CaseMark) -> bool:
    """Say whether a case can be drawn: it has the figures, and a place on the axis if the picture has one."""
    placed = {"bars": True, "lines": case.place is not None, "scatter": case.x is not None}
    return case.y is not None and placed[picture.form]


def _marked(picture: Picture, runs: list[Row]) -> CaseMark:
    first, good = runs[0], ok_rows(runs)
    bad = Counter(str(row.status) for row in runs if not row.ok)
    counted = bool(good) or len(bad) > 1
    failed = ", ".join(f"{count} {name}" if counted else name for name, count in bad.items())
    return CaseMark(
        name=value(first, "transport"),
        row=first,
        colour=value(first, picture.colour),
        dash=value(first, picture.dash) if picture.dash else "",
        place=_place(first, picture.x) if picture.form == "lines" else None,
        x=_spread(good, picture.x, picture.statistic) if picture.form == "scatter" else None,
        y=_spread(good, picture.y, picture.statistic),
        outcome=failed or ("no figure" if good else ""),
        failed=failed,
        error=next((row.error for row in runs if not row.ok and row.error), ""),
    )


def _place(row: Row, column: str) -> str | float | None:
    """Return the place of a case on the x axis: a number, else a category, or None if unknown."""
    said = value(row, column)
    return float(said) if is_number(said) else said or None


def _spread(good: list[Row], column: str, statistic: str) -> Spread | None:
    figures = [found for row in good if (found := figure(row, column)) is not None]
    if not figures:
        return None
    if statistic == STATISTICS[0]:
        return Spread(statistics.median(figures), min(figures), max(figures), len(figures))
    mean, deviation = statistics.fmean(figures), statistics.pstdev(figures)
    return Spread(mean, mean - deviation, mean + deviation, len(figures))


def author_says(figure: PublishedFigure, column: str) -> float | None:
    """Return the author's figure for a column of runs.csv, a mean; None without one."""
    names = {"seconds": "mean_seconds", "rows_per_s": "mean_rows_per_s", "peak_rss_bytes": "peak_rss_bytes"}
    return getattr(figure, names[column]) if column in names else None


def figures_of(case: CaseMark, published: Sequence[PublishedFigure]) -> list[PublishedFigure]:
    """Return the author's figures for the transport of a case in its experiment and its parameters, at all sizes."""
    return [figure for figure in published if is_about(figure, case.row)]


def saying(case: CaseMark, figures: Sequence[tuple[Spread | None, Quantity]], statistic: str) -> str:
    """Return the text that a mark shows on hover: the transport, its conditions, values, ranges and sample size."""
    row = case.row
    conditions = ": ".join(part for part in (row.experiment, row.label) if part)
    lines = [case.name, row.transport if row.transport != case.name else "", conditions]
    lines += [_with_range(spread, what, statistic) for spread, what in figures if spread]
    ending = case.failed if len(lines) > 3 else case.outcome
    if ending:
        lines.append(": ".join(part for part in (ending, case.error) if part))
    return "\n".join(line for line in lines if line)


def _with_range(spread: Spread, what: Quantity, statistic: str) -> str:
    low, middle, high = (with_unit(value, what.unit) for value in (spread.low, spread.middle, spread.high))
    reach = f"{low} to {high}, " if spread.n > 1 else ""
    return f"{statistic.split()[0]} {what.name}: {middle} ({reach}n = {spread.n})"


def published_saying(name: str, conditions: str, value: float, what: Quantity) -> str:
    """Return the label of the mark of an author's figure."""
    return "\n".join(
        part for part in (name, conditions, f"published mean {what.name}: {with_unit(value, what.unit)}") if part
    )


def caption(picture: Picture, rows: Sequence[Row], cases: Sequence[CaseMark], published: bool) -> str:
    """Return a picture's caption: its content in sentences, how to read it, and every case without a mark."""
    said = sample(picture, cases)
    sentences = [f"{said[:1].upper()}{said[1:]}.", f"Conditions: {', '.join(conditions(rows))}."]
    if published:
        marks = "Open diamonds" if picture.form == "bars" else "Dotted lines with open marks"
        sentences.append(f"{marks}: the figures of the published benchmark, from its author's machine.")
    missing = [case for case in cases if not has_mark(picture, case)]
    if missing and picture.form == "bars":
        sentences.append("Transports in grey have no figure: how their runs ended is next to them.")
    elif missing:
        sentences.append(f"Without a mark: {_without_mark(picture, missing)}.")
    return " ".join(sentences)


def sample(picture: Picture, cases: Sequence[CaseMark]) -> str:
    """Explain a picture's marks: their statistic, the number of runs, and the whiskers."""
    sizes = sorted({case.y.n for case in cases if case.y})
    name = picture.statistic.split()[0]
    if sizes == [1]:
        return "one run each"
    runs = f"{sizes[0]} runs" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} runs"
    return f"{name} of {runs}, {_REACH[picture.statistic]}"


def conditions(rows: Sequence[Row]) -> list[str]:
    """Return the values that all rows of a picture share."""
    every = ({getattr(row, name) for row in rows} for name in ("rows", "dataset", "lab"))
    number, dataset, lab = (values.pop() if len(values) == 1 else None for values in every)
    parts = [
        f"{number:,} rows" if number else "",
        f"dataset {dataset}" if dataset else "",
        f"{lab} lab" if lab and lab != "local" else "",
        "experiment " + " and ".join(sorted({row.experiment for row in rows})),
        in_common([row.parameters for row in rows], but={"rows"}),
    ]
    return [part for part in parts if part]


def _without_mark(picture: Picture, missing: Sequence[CaseMark]) -> str:
    """Name the transports without a mark, the conditions, and the reasons."""
    places: dict[tuple[str, str], list[str]] = {}
    for case in missing:
        outcome = case.outcome or "no place on the axis"
        places.setdefault((case.name, outcome), []).append(_where(picture, case))
    named = [f"{name} at {' and '.join(found)} ({outcome})" for (name, outcome), found in places.items()]
    more = len(named) - _NAMED
    return "; ".join(named[:_NAMED]) + (f"; and {more} more, all listed under what did not run" if more > 0 else "")


def _where(picture: Picture, case: CaseMark) -> str:
    if not isinstance(case.place, float):
        return case.place or f"[{case.row.label}]"
    along = parameter_or_quantity(picture.x)
    return with_unit(case.place, along.unit) if along.unit else f"{case.place:,.15g} {along.name}"

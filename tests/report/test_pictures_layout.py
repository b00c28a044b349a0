"""The layout of pictures: no text on another text, none outside, no legend or inset on the data."""

from dataclasses import replace
from itertools import combinations

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.lines import Line2D

from harness.model import Status
from harness.report import style
from harness.report.pictures import compose
from harness.report.pictures.bars import in_even_lines
from harness.suites.suite import Picture, PublishedFigure
from tests.report.cases import row, scan

BARS = Picture("bars", "Rates", "bars", y="rows_per_s", colour="payload", published=True)
LINES = Picture("lines", "Time by size", "lines", y="seconds", x="bytes")
SCATTER = Picture("scatter", "Memory against time", "scatter", y="peak_rss_bytes", x="seconds", log=True)
FEW_PIXELS = 1.5  # of 150 to the inch: antialiasing and rounding


def laid_out(picture, rows, published=()):
    """Return the sheet, drawn once so that everything has its place."""
    with style.applied():
        drawn = compose(picture, rows, tuple(published))
        FigureCanvasAgg(drawn.figure).draw()
    return drawn


def shown_texts(drawn):
    """Every text that is seen, with its box in pixels."""
    texts = [*drawn.figure.texts, *(text for legend in drawn.figure.legends for text in legend.get_texts())]
    for axes in (drawn.axes, *drawn.axes.child_axes):
        texts += [*axes.texts, axes.xaxis.label, axes.yaxis.label, axes.title, axes._left_title]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            room = (high - low) * 1e-9
            texts += [tick.label1 for tick in axis.get_major_ticks() if low - room <= tick.get_loc() <= high + room]
    return [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text() and text.get_visible()]


def collisions(drawn):
    return [
        (one, other)
        for (one, a), (other, b) in combinations(shown_texts(drawn), 2)
        if min(a.x1, b.x1) - max(a.x0, b.x0) > FEW_PIXELS and min(a.y1, b.y1) - max(a.y0, b.y0) > FEW_PIXELS
    ]


def outside(drawn):
    width, height = drawn.figure.bbox.size
    return [
        text
        for text, box in shown_texts(drawn)
        if box.x0 < -FEW_PIXELS or box.y0 < -FEW_PIXELS or box.x1 > width + FEW_PIXELS or box.y1 > height + FEW_PIXELS
    ]


def ways(count, name="postgres.client{:02}.write_polars_with_a_long_name"):
    return [
        row(name.format(number), seconds=number * part, payload=f"payload {number % 9}", peak_rss_bytes=number * 10**6)
        for number in range(1, count + 1)
        for part in (0.9, 1.0, 1.2)
    ]


def ladders(count, points=(1, 2, 4, 8, 24)):
    return [
        scan(f"engine{number:02}", files, seconds=files * number * part, peak_rss_bytes=files * number * 10**6)
        for number in range(1, count + 1)
        for files in points
        for part in (0.9, 1.0, 1.2)
    ]


SENTENCE = "SQLAlchemy over the native driver, INSERT FORMAT CSV from a Polars frame as delimited text {:02}"
CASES = {
    "one bar": (BARS, ways(1)),
    "twenty bars": (BARS, ways(20)),
    "twenty bars with sentences": (BARS, ways(20, SENTENCE)),
    "sixty bars": (BARS, ways(60, "postgres.client.write_{:02}")),
    "bars with one endless name": (BARS, [*ways(2), *ways(1, "x" * 190)]),
    "bars of which most failed": (
        BARS,
        [*ways(3), *(row(f"bad {number}", status) for number, status in enumerate(Status) if status != "ok")],
    ),
    "logarithmic bars": (replace(BARS, log=True), ways(20)),
    "a long title": (replace(BARS, title="Everything about writing dataframes " * 5), ways(3)),
    "one line of one point": (LINES, ladders(1, (1,))),
    "ten lines": (LINES, ladders(10)),
    "ten lines, logarithmic": (replace(LINES, log=True), ladders(10)),
    "logarithmic lines over one decade in many steps": (replace(LINES, log=True), ladders(2, range(10, 31))),
    "sixty lines": (LINES, ladders(60, (1, 2))),
    "lines with an inset": (replace(LINES, inset=True), ladders(7, (1, 10, 100, 1000, 10_000, 1_000_000))),
    "lines of one decade with an inset": (replace(LINES, inset=True), ladders(3, (1, 2, 4))),
    "lines over categories": (
        replace(LINES, x="parameter:cache"),
        [row("a", seconds=1.0, parameters=f"cache={state}") for state in ("warm", "dropped", "as found")],
    ),
    "lines over categories with long names": (
        replace(LINES, x="parameter:network"),
        [row("a", seconds=1.0, parameters=f"network=link {count} ms 90 MB/s per connection") for count in range(7)],
    ),
    "lines over a parameter": (
        replace(LINES, x="parameter:rows", log=True),
        [row("a", seconds=1.0, parameters=f"rows={count}") for count in (4096, 122_880, 300_000)],
    ),
    "logarithmic rates, whose ticks are long": (
        replace(LINES, x="parameter:workers", y="rows_per_s", log=True),
        [row("a", seconds=20 / count, rows=10**7, parameters=f"workers={count}") for count in (1, 2, 4)],
    ),
    "scatter": (replace(SCATTER, colour="payload"), ways(50)),
    "scatter of one point": (SCATTER, ways(1)),
    "scatter on linear axes": (replace(SCATTER, log=False), ways(12)),
}


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_no_text_lies_on_another_or_outside_and_ticks_differ(case):
    drawn = laid_out(*CASES[case])
    assert collisions(drawn) == []
    assert outside(drawn) == []
    for axis in (drawn.axes.xaxis, drawn.axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        ticks = [tick.label1.get_text() for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
        assert len(ticks) >= 1
        assert len(set(ticks)) == len(ticks)


def test_the_test_above_sees_texts_that_collide_or_leave_the_sheet():
    drawn = laid_out(BARS, ways(3))
    title = drawn.figure.texts[0]
    title.set_position((title.get_position()[0], title.get_position()[1] - 0.1))
    assert collisions(drawn)
    title.set_position((0.95, 0.5))
    assert outside(drawn)


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_the_legend_stands_above_the_axes(case):
    drawn = laid_out(*CASES[case])
    for legend in drawn.figure.legends:
        assert legend.get_window_extent().y0 >= drawn.axes.get_window_extent().y1


SHAPES = {
    "rising": [1, 10, 100],
    "falling": [100, 10, 1],
    "level and high": [100, 99, 100],
    "bent to the upper left": [1, 90, 100],
}


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
def test_no_line_runs_through_the_inset(shape):
    rows = [
        scan("a", files, seconds=float(seconds)) for files, seconds in zip((1, 50, 100), SHAPES[shape], strict=True)
    ]
    rows += [scan("b", files, seconds=10.0) for files in (1, 50, 100)]
    drawn = laid_out(replace(LINES, inset=True), rows)
    (inset,) = drawn.axes.child_axes
    box = inset.get_tightbbox()
    for line in drawn.axes.lines:
        assert isinstance(line, Line2D)
        path = line.get_path().transformed(line.get_transform()).interpolated(200)
        assert not any(box.contains(*point) for point in path.vertices), line.get_label()


def test_bars_start_at_zero_and_every_range_and_published_figure_is_within_the_axes():
    figures = [PublishedFigure("The way", mean_rows_per_s=9_000.0)]
    drawn = laid_out(
        BARS, [row("a", seconds=s, published_row="The way", payload="p") for s in (0.5, 1.0, 2.0)], figures
    )
    low, high = drawn.axes.get_xlim()
    assert low == 0
    assert high > 9_000


def test_lines_on_linear_axes_start_at_zero_so_that_lengths_can_be_compared():
    drawn = laid_out(LINES, ladders(2, (20, 21, 22)))
    assert (drawn.axes.get_xlim()[0], drawn.axes.get_ylim()[0]) == (0, 0)


@pytest.mark.long
def test_a_value_has_one_colour_in_all_pictures_of_a_run():
    rows = [*ways(12), *ladders(3)]
    few = replace(BARS, where={"transport": ["postgres.client09.write_polars_with_a_long_name"]})
    for picture in (BARS, few):
        drawn = laid_out(picture, rows)
        found = {
            text.get_text(): patch.get_facecolor()
            for legend in drawn.figure.legends
            for text, patch in zip(legend.get_texts(), legend.get_patches(), strict=False)
        }
        assert "payload 0" in found
        if picture is BARS:
            colour = found["payload 0"]
        assert found["payload 0"] == colour


def test_a_published_line_is_dotted_and_open_and_ours_is_not():
    rows = [scan("a", files, seconds=files, published_row="Q") for files in (1, 2, 3)]
    figures = [PublishedFigure("Q", bytes=files * 10**8, mean_seconds=files * 2) for files in (1, 2, 3)]
    drawn = laid_out(replace(LINES, published=True), rows, figures)
    joined = [line for line in drawn.axes.lines if len(line.get_xdata()) == 3]
    assert [line.is_dashed() for line in joined] == [False, True]
    faces = [line.get_markerfacecolor() for line in drawn.axes.lines if len(line.get_xdata()) == 1]
    assert faces.count("white") == 3
    assert len(faces) == 6


def test_a_label_is_broken_between_words_and_an_identifier_after_a_dot_or_underscore():
    described = "psycopg pg_parquet COPY TO file.parquet -> Pandas dataframe"
    assert in_even_lines(described) == "psycopg pg_parquet COPY TO\nfile.parquet -> Pandas dataframe"
    identifier = "clickhouse_connect_read_raw.read_polars_raw_stream_arrow [profiles: profile=heap]"
    lines = in_even_lines(identifier).split("\n")
    assert len(lines) == 2
    assert all(line.endswith((".", "_", "]", " ", "arrow")) for line in lines)
    assert "".join(lines).replace(" ", "") == identifier.replace(" ", "")

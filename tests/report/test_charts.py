"""Charts: every case is in them, every mark describes itself, and odd figures neither crash nor mislead."""

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from harness.model import LabError, Status
from harness.report.charts import COLOURS, INK, QUIET, _broken, chart, looks_of
from harness.suites.suite import Picture, PublishedFigure
from tests.report.cases import changed, row, scan

pytestmark = pytest.mark.long

SVG = "{http://www.w3.org/2000/svg}"
BARS = Picture("bars", "Rates", "bars", y="rows_per_s", colour="payload", published=True)
LINES = Picture("lines", "Time by size", "lines", y="seconds", x="bytes")
SCATTER = Picture("scatter", "Memory against time", "scatter", y="peak_rss_bytes", x="seconds", log=True)
PICTURES = [BARS, LINES, SCATTER]


def three(make, *arguments, seconds=1.0, **more):
    """Three runs of a case: 10 % around its seconds."""
    return [make(*arguments, seconds=seconds * part, peak_rss_bytes=50_000_000, **more) for part in (0.9, 1.0, 1.1)]


def ladder(client, **more):
    return [one for files in (1, 2, 4) for one in three(scan, client, files, seconds=files / 2, **more)]


def drawn(picture, rows, folder=None, published=()):
    found = chart(picture, rows, tuple(published), folder or Path())
    return found, ET.fromstring(found.svg)


def composed(*arguments):
    return drawn(*arguments)[1]


def titles(root):
    """The label of each mark, from the first drawn to the last."""
    return [mark.find(f"{SVG}title").text for mark in root.iter() if mark.get("class") == "mark"]


def words(root):
    """The words of a chart, each whole: its lines may be several."""
    every = root.iter(f"{SVG}text")
    parts = ([text.text, *(part.tail or part.text for part in text)] for text in every)  # a title's tail are the words
    return [" ".join(" ".join(filter(None, of)).split()) for of in parts]


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.form)
def test_the_same_rows_give_the_same_small_svg_whatever_was_drawn_before(picture):
    rows = [*ladder("quick"), *ladder("slow")]
    first, root = drawn(picture, rows)
    assert root.tag == f"{SVG}svg"
    assert len(first.svg) < 50_000
    assert (first.name, first.title) == (picture.name, picture.title)
    assert first.path == f"pictures/{picture.name}.svg"
    drawn(replace(LINES, name="other"), rows)
    second, _ = drawn(picture, list(reversed(rows)))  # the order of runs is shuffled: it must not matter
    assert second.svg == first.svg


def test_an_svg_has_nothing_of_the_machine_or_the_day_and_no_style_for_others():
    found, root = drawn(BARS, ladder("quick"))
    assert not [element for element in root.iter() if element.tag.split("}")[1] in ("style", "metadata", "script")]
    assert "http" not in found.svg.replace("http://www.w3.org/", "")


@pytest.mark.parametrize(
    ("picture", "value"),
    [
        (BARS, "2 k rows/s (1.82 k rows/s to 2.22 k rows/s, n = 3)"),
        (LINES, "500 ms (450 ms to 550 ms, n = 3)"),
        (SCATTER, "50 MB (50 MB to 50 MB, n = 3)"),
    ],
    ids=[picture.form for picture in PICTURES],
)
def test_every_mark_says_way_point_value_range_and_sample_size(picture, value):
    said = titles(composed(picture, three(scan, "quick", 2, seconds=0.5, published_row="Quick")))
    assert said
    assert all(one.startswith("Quick\nparquet.quick.scan\nmany_files: scale=2; files=2\nmedian ") for one in said)
    assert value in said[-1]


LONG_NAME = "a_client_that_has_a_name_of_sixty_letters_at_the_very_least"


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.form)
def test_a_telephone_has_room_for_every_picture(picture):
    rows = [one for client in ("quick", LONG_NAME) for files in range(1, 13) for one in three(scan, client, files)]
    root = composed(picture, rows)
    assert float(root.get("width")) < 520


def test_a_rate_of_0_is_unlimited_on_the_axis():
    rows = [row("a", seconds=1.0, parameters=f"mbit_per_s={rate}") for rate in (0, 100)]
    assert "unlimited" in words(composed(replace(LINES, x="parameter:mbit_per_s", log=True), rows))


def test_bars_of_one_colour_differ_by_their_edge_and_by_a_shape_before_their_names():
    rows = [scan(f"c{place}", 1, seconds=1.0 + place, payload=f"payload {place}") for place in range(8)]
    found, root = drawn(BARS, rows)
    bars = [mark for mark in root.iter(f"{SVG}path") if mark.get("class") == "mark"]
    assert len({mark.get("fill") for mark in bars}) == 7
    assert len({(mark.get("fill"), mark.get("stroke")) for mark in bars}) == 8
    (shape,) = encoding(found.spec, "shape")
    assert len(set(shape["scale"]["range"])) == 8
    assert encoding(drawn(BARS, rows[:1])[0].spec, "shape") == []


def test_marks_tell_two_columns_apart_by_shape_and_face():
    rows = [row(name, seconds=1.0, payload=f"payload {name}", peak_rss_bytes=1) for name in "ab"]
    found, _ = drawn(replace(SCATTER, colour="payload", dash="transport"), rows)
    (shape,), (face,) = (encoding(found.spec, channel) for channel in ("shape", "fillOpacity"))
    assert (shape["field"], face["field"]) == ("colour", "dash")
    assert len(set(face["scale"]["range"])) == 2
    assert " ".join(found.spec["title"]["subtitle"]).endswith("filled: a · hollow: b")


def test_an_inset_shows_the_same_points_again():
    plain, inset = (composed(replace(LINES, inset=it), ladder("quick")) for it in (False, True))
    assert "the same, both axes logarithmic" in words(inset)
    assert set(titles(inset)) == set(titles(plain))
    assert len(titles(inset)) == 2 * len(titles(plain))


def test_bars_are_in_the_order_of_their_medians_and_the_best_is_on_top():
    rows = [*three(row, "b", seconds=1.0), *three(row, "c", seconds=2.0), *three(row, "a", seconds=3.0)]
    rates = [word for word in words(composed(BARS, rows)) if word in "abc"]
    assert rates == ["b", "c", "a"]
    memory = [changed(one, peak_rss_bytes=size) for one, size in zip(rows[::3], (3, 2, 1), strict=True)]
    less = composed(replace(BARS, y="peak_rss_bytes"), memory)
    assert [word for word in words(less) if word in "abc"] == ["a", "c", "b"]


@pytest.mark.parametrize("status", [Status.ERROR, Status.UNAVAILABLE])
def test_a_way_without_an_ok_run_is_among_the_bars_with_its_status_and_reason(status):
    rows = [*three(row, "good", seconds=1.0), row("bad", status, error="because & <why>")]
    found, root = drawn(BARS, rows)
    assert [word for word in words(root) if word in ("good", "bad")] == ["good", "bad"]
    assert str(status) in words(root)
    assert any(said == f"bad\nmatrix: rows=1000\n{status}: because & <why>" for said in titles(root))
    assert "Transports in grey have no figure" in found.caption


def test_a_way_with_some_failed_runs_says_so_next_to_its_figure():
    rows = [*three(row, "a", seconds=1.0), row("a", Status.TIMEOUT)]
    assert "1 k (1 timeout)" in words(composed(BARS, rows))


@pytest.mark.parametrize(
    ("picture", "rows"),
    [
        *((picture, rows) for picture in PICTURES for rows in ([], [scan("dead", 1, Status.KILLED)])),
        *((replace(picture, where={"system": ["nobody"]}), ladder("quick")) for picture in PICTURES),
        *(
            (picture, [changed(one, peak_rss_bytes=None) for one in ladder("quick")])
            for picture in (SCATTER, replace(LINES, y="peak_rss_bytes"))
        ),
    ],
)
def test_there_is_no_picture_where_no_ok_run_fits_and_has_its_figures(picture, rows):
    assert chart(picture, rows, (), Path()) is None


def test_a_case_without_memory_is_named_below_the_others():
    rows = [*ladder("quick"), scan("odd", 1, seconds=1.0)]
    assert "Without a mark: parquet.odd.scan at [scale=2; files=1] (no figure)." in drawn(SCATTER, rows)[0].caption


def test_two_cases_at_one_place_of_a_line_are_refused_and_both_named():
    rows = [*ladder("quick"), *ladder("quick", experiment="large_files")]
    with pytest.raises(
        LabError, match=r"picture lines: two cases have the same place .*\[large_files: .*\[many_files: .*`dash`"
    ):
        chart(LINES, rows, (), Path())
    both = composed(replace(LINES, dash="experiment"), rows)
    assert {"many_files", "large_files"} <= set(words(both))


def test_categories_are_in_order_with_numbers_first():
    rows = [
        one for threads in ("all", "16", "2") for one in three(row, "a", seconds=1.0, parameters=f"threads={threads}")
    ]
    root = composed(replace(LINES, x="parameter:threads"), rows)
    assert [word for word in words(root) if word in ("all", "16", "2")] == ["2", "16", "all"]


def test_the_authors_figure_is_next_to_our_bar_and_says_whose_it_is():
    figures = [
        PublishedFigure("The way", mean_rows_per_s=1500.0),
        PublishedFigure("The way", rows=7, mean_rows_per_s=9.0),
        PublishedFigure("Lost", mean_rows_per_s=200.0),
    ]
    rows = [*three(row, "a", seconds=1.0, published_row="The way"), row("b", Status.ERROR, published_row="Lost")]
    found, root = drawn(BARS, rows, None, figures)
    assert [said for said in titles(root) if "published" in said] == [
        "The way\npublished mean rate: 1.5 k rows/s",
        "Lost\npublished mean rate: 200 rows/s",  # although ours failed
    ]
    assert "Open diamonds: the figures of the published benchmark" in found.caption


def test_the_authors_line_is_drawn_as_far_as_ours_goes():
    figures = [PublishedFigure("Q", rows=count, mean_seconds=count / 1000) for count in (500, 1000, 2000, 4000, 10**9)]
    picture = replace(LINES, x="rows", published=True)
    found, root = drawn(picture, ladder("quick", published_row="Q"), None, figures)
    authors = [said for said in titles(root) if "published" in said]
    assert authors == [f"Q\n{size} k rows\npublished mean time: {size} s" for size in (1, 2, 4)]
    assert "Dotted lines with open marks" in found.caption


@pytest.mark.parametrize(
    ("picture", "figure"),
    [
        (replace(BARS, published=False), PublishedFigure("Q", mean_rows_per_s=1500.0)),
        (replace(LINES, published=True), PublishedFigure("Q", bytes=10**12, mean_seconds=60.0)),
    ],
    ids=["no figures wanted", "a figure at another size"],
)
def test_an_authors_figure_that_is_not_drawn_is_not_announced(picture, figure):
    found, root = drawn(picture, ladder("quick", published_row="Q"), None, [figure])
    assert not [said for said in titles(root) if "published" in said]
    assert "published" not in found.caption


NASTY = "<script>alert(1)</script> & $x^2$ \"'\x00\x1b[0m 名"


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.form)
def test_markup_and_mathematics_in_a_name_are_letters(picture):
    rows = ladder("quick", published_row=NASTY, payload="_" + NASTY, error=NASTY)
    rows.append(scan("bad", 1, Status.ERROR, published_row=NASTY, payload=NASTY, error=NASTY))
    root = composed(replace(picture, title=NASTY.replace("\x00", "").replace("\x1b", "")), rows)
    assert not list(root.iter(f"{SVG}script"))
    assert "<script>alert(1)</script> & $x^2$" in " ".join(words(root))
    assert all(said.startswith("<script>alert(1)</script> & $x^2$") for said in titles(root))


ODD = {
    "one point": [1.0],
    "equal values": [2.0, 2.0, 2.0],
    "a billionth": [1e-9, 2e-9],
    "a huge ratio": [1e-9, 1e6],
    "months": [1e7, 2e7],
}
ODD_EACH_DAY = ("one point", "a huge ratio")


@pytest.mark.parametrize("log", [False, True], ids=["linear", "logarithmic"])
@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.form)
@pytest.mark.parametrize(
    "odd", [pytest.param(name, marks=() if name in ODD_EACH_DAY else pytest.mark.long) for name in ODD]
)
def test_odd_figures_are_drawn_and_one_run_has_no_range(odd, picture, log):
    rows = [scan("a", place, seconds=seconds, peak_rss_bytes=7) for place, seconds in enumerate(ODD[odd], start=1)]
    root = composed(replace(picture, log=log, inset=True), rows)
    said = set(titles(root))
    assert len(said) == len(rows)
    assert all("n = 1" in text and "to" not in text.split("median")[1] for text in said)  # one run has no range


@pytest.mark.parametrize("log", [False, True], ids=["linear", "logarithmic"])
@pytest.mark.parametrize("picture", [replace(LINES, y="peak_file_bytes"), SCATTER, replace(BARS, y="peak_file_bytes")])
@pytest.mark.parametrize("sizes", [[0, 0], [0, 5_000_000]], ids=["all zero", "some zero"])
def test_a_zero_has_its_mark_on_every_axis(sizes, picture, log):
    rows = [
        scan("a", files, seconds=1.0, peak_file_bytes=size, peak_rss_bytes=size)
        for files, size in enumerate(sizes, start=1)
    ]
    root = composed(replace(picture, log=log), rows)
    assert sum("0 B" in said.split(": ")[-1] for said in set(titles(root))) == sizes.count(0)
    assert "0 B" in words(root) or "0" in words(root)


def test_a_deviation_below_zero_does_not_take_a_logarithmic_picture_down():
    rows = [scan("a", files, seconds=seconds) for files in (1, 2) for seconds in (0.01, 0.01, 5.0)]
    picture = replace(LINES, statistic="mean and deviation", log=True)
    assert len(set(titles(composed(picture, rows)))) == 2


def test_sixty_transports_make_a_tall_picture_that_is_still_small():
    names = [f"postgres.client{number:02}.write_polars_with_a_rather_long_name" for number in range(60)]
    rows = [one for place, name in enumerate(names, start=1) for one in three(row, name, seconds=place, payload="rows")]
    found, root = drawn(BARS, rows)
    assert len(set(titles(root))) == 60
    assert len(found.svg) < 100_000


def encoding(spec, channel):
    layers = [part for panel in spec.get("hconcat", [spec]) for part in panel["layer"]]
    return [layer["encoding"][channel] for layer in layers if "field" in layer["encoding"].get(channel, {})]


def test_bars_and_lines_on_linear_axes_start_at_zero_so_that_lengths_can_be_compared():
    bars, _ = drawn(BARS, three(row, "a", seconds=1.0))
    lines, _ = drawn(LINES, ladder("quick"))
    assert {one["scale"]["zero"] for one in (*encoding(bars.spec, "x"), *encoding(lines.spec, "y"))} == {True}


def test_a_value_has_one_colour_in_all_charts_of_a_run():
    rows = [one for name in "abcdef" for one in three(row, name, seconds=1.0, payload=f"payload {name}")]
    found = []
    for picture in (BARS, replace(BARS, where={"transport": ["e"]})):
        scale, *others = (one["scale"] for one in encoding(drawn(picture, rows)[0].spec, "color"))
        assert all(other == scale for other in others)
        found.append(dict(zip(scale["domain"], scale["range"], strict=True))["payload e"])
    assert found[0] == found[1]


def test_a_label_is_broken_between_words_and_an_identifier_after_a_dot_or_underscore():
    described = "psycopg pg_parquet COPY TO file.parquet -> Pandas dataframe"
    assert _broken(described).split("\n") == ["psycopg pg_parquet COPY TO file.parquet ->", "Pandas dataframe"]
    identifier = "clickhouse_connect_read_raw.read_polars_raw_stream_arrow [profiles: profile=heap]"
    lines = _broken(identifier).split("\n")
    assert len(lines) == 2
    assert lines[0].endswith("_")
    assert "".join(lines) == identifier.replace("arrow [", "arrow [")


def test_seventy_values_have_seventy_different_looks_however_they_are_given():
    names = [f"way {number:02}" for number in range(70)]
    looks = looks_of(reversed(names))
    assert list(looks) == names
    assert len({(colour, shape) for colour, shape, _ in looks.values()}) == 70
    assert looks == looks_of([*names, *names])


def light(colour):
    """Return the relative luminance of a colour: WCAG 2.2."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_words_can_be_read_and_no_mark_is_as_light_as_yellow():
    assert 1.05 / (light(INK) + 0.05) > 7
    assert 1.05 / (light(QUIET) + 0.05) > 4.5
    assert min(1.05 / (light(colour) + 0.05) for colour in COLOURS) > 2

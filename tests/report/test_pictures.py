"""Pictures on disk: every case is in them, every mark says what it is, and odd figures neither crash nor mislead."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from PIL import Image

from harness.model import LabError, Status
from harness.report import style
from harness.report.pictures import compose, draw
from harness.report.pictures.files import save_svg
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


def drawn(picture, rows, folder, published=()):
    found = draw(picture, rows, tuple(published), folder)
    assert found is not None
    return found, ET.parse(found.svg).getroot()


def composed(picture, rows, folder, published=()):
    """The SVG alone: quicker."""
    with style.applied():
        save_svg(compose(picture, rows, tuple(published)), folder / "x.svg", picture.name, picture.title)
    return ET.parse(folder / "x.svg").getroot()


def titles(root):
    """What each mark of a picture says, by its id."""
    return {mark.get("id"): mark.find(f"{SVG}title").text for mark in root.iter() if mark.get("class") == "mark"}


def words(root):
    return [text.text for text in root.iter(f"{SVG}text")]


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.form)
def test_a_picture_is_a_small_png_and_a_small_svg(picture, tmp_path):
    found, root = drawn(picture, [*ladder("quick"), *ladder("slow")], tmp_path)
    with Image.open(found.png) as image:
        assert image.format == "PNG"
        assert image.width == 1350
        assert image.info["dpi"] == pytest.approx((150, 150), abs=0.1)
        assert len(image.getcolors()) > 10
    assert root.tag == f"{SVG}svg"
    assert found.png.stat().st_size < 100_000
    assert found.svg.stat().st_size < 150_000
    assert (found.name, found.title) == (picture.name, picture.title)


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.form)
def test_the_same_rows_give_the_same_bytes_whatever_was_drawn_before(picture, tmp_path):
    rows = [*ladder("quick"), *ladder("slow")]
    first, _ = drawn(picture, rows, tmp_path)
    before = first.png.read_bytes(), first.svg.read_bytes()
    drawn(replace(LINES, name="other"), rows, tmp_path)
    second, _ = drawn(picture, list(reversed(rows)), tmp_path)  # the order of runs is shuffled: it must not matter
    assert (second.png.read_bytes(), second.svg.read_bytes()) == before


def test_an_svg_has_nothing_of_the_machine_or_the_day_and_no_style_for_others(tmp_path):
    found, root = drawn(BARS, ladder("quick"), tmp_path)
    assert not [element for element in root.iter() if element.tag.split("}")[1] in ("style", "metadata", "script")]
    assert "http" not in found.svg.read_text().replace("http://www.w3.org/", "")


def test_no_id_of_one_picture_is_in_another_and_every_reference_is_to_one_in_its_own(tmp_path):
    ids = []
    for picture in PICTURES:
        found, root = drawn(picture, ladder("quick"), tmp_path)
        own = [element.get("id") for element in root.iter() if element.get("id")]
        ids += own
        text = found.svg.read_text()
        referred = {part.split('"')[0] for part in text.split('href="#')[1:]}
        referred |= {part.split(")")[0] for part in text.split("url(#")[1:]}
        assert referred
        assert referred <= set(own)
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.form)
def test_every_mark_says_way_point_value_range_and_sample_size(picture, tmp_path):
    root = composed(picture, three(scan, "quick", 2, seconds=0.5, published_row="Quick"), tmp_path)
    assert titles(root)
    for said in titles(root).values():
        assert said.startswith("Quick\nparquet.quick.scan\nmany_files: scale=2; files=2\nmedian ")
    value = {"bars": "2 k rows/s (1.82 k rows/s to 2.22 k rows/s, n = 3)", "lines": "500 ms (450 ms to 550 ms, n = 3)"}
    value["scatter"] = "50 MB (50 MB to 50 MB, n = 3)"
    assert value[picture.form] in said


def test_every_case_has_a_mark_of_its_own(tmp_path):
    rows = [*ladder("quick"), *ladder("slow")]
    for picture in PICTURES:
        said = set(titles(composed(picture, rows, tmp_path)).values())
        assert len(said) == 6, picture.form


def test_an_inset_shows_the_same_points_again(tmp_path):
    plain, inset = (composed(replace(LINES, inset=it), ladder("quick"), tmp_path) for it in (False, True))
    assert "the same, both axes logarithmic" in words(inset)
    assert set(titles(inset).values()) == set(titles(plain).values())
    assert len(titles(inset)) == 2 * len(titles(plain))


def test_bars_stand_in_the_order_of_their_medians_and_the_best_is_on_top(tmp_path):
    rows = [*three(row, "b", seconds=1.0), *three(row, "c", seconds=2.0), *three(row, "a", seconds=3.0)]
    rates = [word for word in words(composed(BARS, rows, tmp_path)) if word in "abc"]
    assert rates == ["b", "c", "a"]
    memory = [changed(one, peak_rss_bytes=size) for one, size in zip(rows[::3], (3, 2, 1), strict=True)]
    less = composed(replace(BARS, y="peak_rss_bytes"), memory, tmp_path)
    assert [word for word in words(less) if word in "abc"] == ["a", "c", "b"]


@pytest.mark.parametrize("status", [Status.ERROR, Status.UNAVAILABLE])
def test_a_way_without_an_ok_run_stands_among_the_bars_with_its_status_and_reason(status, tmp_path):
    rows = [*three(row, "good", seconds=1.0), row("bad", status, error="because & <why>")]
    found, root = drawn(BARS, rows, tmp_path)
    assert [word for word in words(root) if word in ("good", "bad")] == ["good", "bad"]
    assert str(status) in words(root)
    assert any(said == f"bad\nmatrix: rows=1000\n{status}: because & <why>" for said in titles(root).values())
    assert "Transports in grey have no figure" in found.caption


def test_a_way_with_some_failed_runs_says_so_beside_its_figure(tmp_path):
    rows = [*three(row, "a", seconds=1.0), row("a", Status.TIMEOUT)]
    assert "1 k (1 timeout)" in words(composed(BARS, rows, tmp_path))


def test_a_line_without_an_ok_run_stands_in_the_legend_with_its_status(tmp_path):
    rows = [*ladder("quick"), scan("dead", 1, Status.KILLED)]
    assert "parquet.dead.scan: killed" in words(composed(LINES, rows, tmp_path))


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.form)
def test_there_is_no_picture_where_no_ok_run_fits(picture, tmp_path):
    none = replace(picture, where={"system": ["nobody"]})
    assert draw(picture, [], (), tmp_path) is None
    assert draw(picture, [scan("dead", 1, Status.KILLED)], (), tmp_path) is None
    assert draw(none, ladder("quick"), (), tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_there_is_no_picture_of_memory_where_none_was_measured(tmp_path):
    rows = [changed(one, peak_rss_bytes=None) for one in ladder("quick")]
    assert draw(SCATTER, rows, (), tmp_path) is None
    assert draw(replace(LINES, y="peak_rss_bytes"), rows, (), tmp_path) is None


def test_there_are_no_lines_over_bytes_where_no_bytes_are_known(tmp_path):
    assert draw(LINES, [changed(one, bytes=None) for one in ladder("quick")], (), tmp_path) is None


def test_a_case_without_memory_is_named_below_the_others(tmp_path):
    rows = [*ladder("quick"), scan("odd", 1, seconds=1.0)]
    assert (
        "Without a mark: parquet.odd.scan at [scale=2; files=1] (no figure)."
        in drawn(SCATTER, rows, tmp_path)[0].caption
    )


def test_two_cases_at_one_place_of_a_line_are_refused_and_both_named(tmp_path):
    rows = [*ladder("quick"), *ladder("quick", experiment="large_files")]
    with pytest.raises(LabError, match=r"picture lines: expected one case .*\[large_files: .*\[many_files: .*`dash`"):
        draw(LINES, rows, (), tmp_path)
    both = composed(replace(LINES, dash="experiment"), rows, tmp_path)
    assert {"many_files", "large_files"} <= set(words(both))


def test_categories_stand_in_order_with_numbers_first(tmp_path):
    rows = [
        one for threads in ("all", "16", "2") for one in three(row, "a", seconds=1.0, parameters=f"threads={threads}")
    ]
    root = composed(replace(LINES, x="parameter:threads"), rows, tmp_path)
    assert [word for word in words(root) if word in ("all", "16", "2")] == ["2", "16", "all"]


def test_the_authors_figure_stands_beside_our_bar_and_says_whose_it_is(tmp_path):
    figures = [
        PublishedFigure("The way", mean_rows_per_s=1500.0),
        PublishedFigure("The way", rows=7, mean_rows_per_s=9.0),
    ]
    rows = [*three(row, "a", seconds=1.0, published_row="The way"), row("b", Status.ERROR, published_row="Lost")]
    found, root = drawn(BARS, rows, tmp_path, [*figures, PublishedFigure("Lost", mean_rows_per_s=200.0)])
    authors = {name: said for name, said in titles(root).items() if "published" in name}
    assert list(authors.values()) == [
        "The way\npublished mean rate: 1.5 k rows/s",
        "Lost\npublished mean rate: 200 rows/s",  # although ours failed
    ]
    assert "Open diamonds: the figures of the published benchmark" in found.caption
    alone, root = drawn(replace(BARS, published=False), rows, tmp_path, figures)
    assert not [name for name in titles(root) if "published" in name]
    assert "published" not in alone.caption


def test_the_authors_line_is_drawn_as_far_as_ours_goes(tmp_path):
    figures = [PublishedFigure("Q", rows=count, mean_seconds=count / 1000) for count in (500, 1000, 2000, 4000, 10**9)]
    picture = replace(LINES, x="rows", published=True)
    found, root = drawn(picture, ladder("quick", published_row="Q"), tmp_path, figures)
    authors = [said for name, said in titles(root).items() if "published" in name]
    assert authors == [f"Q\n{size} k rows\npublished mean time: {size} s" for size in (1, 2, 4)]
    assert "Dotted lines with open marks" in found.caption


def test_an_authors_figure_at_another_size_is_not_announced(tmp_path):
    figures = [PublishedFigure("Q", bytes=10**12, mean_seconds=60.0)]
    found, root = drawn(replace(LINES, published=True), ladder("quick", published_row="Q"), tmp_path, figures)
    assert not [name for name in titles(root) if "published" in name]
    assert "published" not in found.caption


NASTY = "<script>alert(1)</script> & $x^2$ \"'\x00\x1b[0m 名"


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.form)
def test_markup_and_mathematics_in_a_name_are_letters(picture, tmp_path):
    rows = ladder("quick", published_row=NASTY, payload="_" + NASTY, error=NASTY)
    rows.append(scan("bad", 1, Status.ERROR, published_row=NASTY, payload=NASTY, error=NASTY))
    root = composed(replace(picture, title=NASTY.replace("\x00", "").replace("\x1b", "")), rows, tmp_path)
    assert not list(root.iter(f"{SVG}script"))
    assert "<script>alert(1)</script> & $x^2$" in " ".join(words(root))
    assert all(said.startswith("<script>alert(1)</script> & $x^2$") for said in titles(root).values())


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
def test_odd_figures_are_drawn_and_one_run_has_no_range(odd, picture, log, tmp_path):
    rows = [scan("a", place, seconds=seconds, peak_rss_bytes=7) for place, seconds in enumerate(ODD[odd], start=1)]
    root = composed(replace(picture, log=log, inset=True), rows, tmp_path)
    said = set(titles(root).values())
    assert len(said) == len(rows)
    assert all("n = 1" in text and "to" not in text.split("median")[1] for text in said)  # one run has no range


@pytest.mark.parametrize("log", [False, True], ids=["linear", "logarithmic"])
@pytest.mark.parametrize("picture", [replace(LINES, y="peak_file_bytes"), SCATTER, replace(BARS, y="peak_file_bytes")])
@pytest.mark.parametrize("sizes", [[0, 0], [0, 5_000_000]], ids=["all zero", "some zero"])
def test_a_zero_has_its_mark_on_every_axis(sizes, picture, log, tmp_path):
    rows = [
        scan("a", files, seconds=1.0, peak_file_bytes=size, peak_rss_bytes=size)
        for files, size in enumerate(sizes, start=1)
    ]
    root = composed(replace(picture, log=log), rows, tmp_path)
    assert sum("0 B" in said.split(": ")[-1] for said in set(titles(root).values())) == sizes.count(0)
    assert "0 B" in words(root) or "0" in words(root)


def test_a_deviation_below_zero_does_not_take_a_logarithmic_picture_down(tmp_path):
    rows = [scan("a", files, seconds=seconds) for files in (1, 2) for seconds in (0.01, 0.01, 5.0)]
    picture = replace(LINES, statistic="mean and deviation", log=True)
    assert len(set(titles(composed(picture, rows, tmp_path)).values())) == 2


def test_sixty_transports_make_a_tall_picture_that_is_still_small(tmp_path):
    names = [f"postgres.client{number:02}.write_polars_with_a_rather_long_name" for number in range(60)]
    rows = [one for place, name in enumerate(names, start=1) for one in three(row, name, seconds=place, payload="rows")]
    found, root = drawn(BARS, rows, tmp_path)
    assert len(set(titles(root).values())) == 60
    assert found.png.stat().st_size < 200_000
    assert found.svg.stat().st_size < 150_000

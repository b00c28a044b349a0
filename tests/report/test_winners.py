"""Maps of winners, pictures of costs and of crossings: their statements agree with the runs."""

from dataclasses import replace

import pytest

from harness.model import LabError
from harness.report.charts import NO_CHANGES, _bent, _changes
from harness.report.grids import map_of, winner_tables
from harness.suites.suite import Picture
from tests.report.cases import changed, suite
from tests.report.curves import line, runs
from tests.report.test_charts import composed, titles, words

SIZES = (1, 100, 10_000, 1_000_000)
QUICK, STRONG = "postgres.quick.write_polars_rows", "postgres.strong.write_polars_bulk_copy"
MAP = Picture("map", "Who is the fastest", "winners", y="direction", x="rows")
NETWORK = Picture("map", "Rows by network", "winners", x="parameter:rtt_ms + parameter:mbit_per_s", y="rows")
SHAPES = Picture("map", "Rows by shape", "winners", x="dataset", y="rows")
RATES = Picture("rates", "Rates", "lines", y="rows_per_s", x="rows", log=True, crossings=True)


def crossing(**more):
    return runs(QUICK, line(0.001, 1e-4, SIZES), **more) + runs(STRONG, line(0.021, 2e-6, SIZES), **more)


def named(found):
    return [[cell and cell.text.partition(": ")[0] for cell in one] for one in found.cells]


def test_each_cell_names_its_fastest_with_the_median():
    found = map_of(MAP, crossing())
    assert (found.columns, found.lines) == (
        ("1 row", "100 rows", "10,000 rows", "1,000,000 rows"),
        ("polars to Postgres",),
    )
    assert named(found) == [["quick rows"] * 2 + ["strong bulk_copy"] * 2]
    (cell, *_) = found.cells[0]
    assert (cell.shown, cell.text) == (True, "quick rows: 1.1 ms")


def test_a_cell_fades_where_no_difference_is_shown_and_where_there_are_too_few_runs():
    close = runs(QUICK, line(0.020, 0, SIZES, (0.9, 1, 1.1))) + runs(STRONG, line(0.021, 0, SIZES, (0.9, 1, 1.1)))
    (cell, *_) = map_of(MAP, close).cells[0]
    assert (cell.shown, cell.text) == (False, "quick rows: 20 ms, or 1 other")
    assert [one.transport for one in cell.alike] == [STRONG]
    once = [one for one in crossing() if one.pass_number == 1]
    (cell, *_) = map_of(MAP, once).cells[0]
    assert (cell.shown, cell.text, cell.alike) == (False, "quick rows: 1.08 ms ?", ())


def test_a_transport_alone_in_a_cell_is_not_shown_to_be_faster():
    (cell,) = map_of(MAP, runs(STRONG, line(0.021, 2e-6, SIZES[:1]))).cells[0]
    assert (cell.alone, cell.shown, cell.text.endswith("s, alone")) == (True, False, True)
    others = runs(QUICK, line(0.001, 1e-6, SIZES[:1])) + runs(STRONG, line(0.021, 2e-6, SIZES[:1]))
    (cell,) = map_of(MAP, others).cells[0]
    assert (cell.alone, cell.shown) == (False, True)


def test_a_cell_where_its_neighbours_winner_has_no_figure_is_not_sure():
    small, large = SIZES[:3], SIZES[3:]
    rows = runs(QUICK, line(0.001, 1e-6, small)) + runs(STRONG, line(0.021, 2e-6, SIZES))
    cells = map_of(MAP, rows).cells[0]
    assert [cell.shown for cell in cells] == [True, True, True, False]
    assert (cells[3].absent, cells[3].text) == ((QUICK,), "strong bulk_copy: 2.02 s, alone ?")
    below = runs("postgres.x.read_polars_y", line(1, 0, large))  # of another direction, which does not count
    assert [cell and cell.absent for cell in map_of(MAP, rows + below).cells[1]] == [None, None, None, ()]


def test_a_transport_that_is_not_exact_does_not_win():
    rows = [changed(one, fidelity="converted: a String") if one.transport == QUICK else one for one in crossing()]
    (cell, *_) = map_of(MAP, rows).cells[0]
    assert cell.text.startswith("strong bulk_copy: ")
    none = [changed(one, fidelity="converted: a String") for one in rows]
    (cell, *_) = map_of(MAP, none).cells[0]
    assert (cell.fastest, cell.text, cell.shown) == (None, "none is exact", False)


def network():
    """The quick one waits ten times for the network, the strong one once but sends more."""
    rows = []
    for delay in (0.2, 10, 50):
        for rate in (1000, 100):
            extra = f"; rtt_ms={delay}; mbit_per_s={rate}"
            rows += runs(QUICK, line(0.001 + delay / 100, 1e-6, SIZES), extra=extra)
            rows += runs(STRONG, line(0.01 + delay / 1000, 1e-3 / rate, SIZES), extra=extra)
    return rows


def test_a_map_is_of_any_parameters_in_the_order_of_their_numbers():
    found = map_of(NETWORK, network())
    assert found.columns[:3] == ("0.2 ms rtt, 100 Mbit/s", "0.2 ms rtt, 1,000 Mbit/s", "10 ms rtt, 100 Mbit/s")
    assert found.lines == ("1 row", "100 rows", "10,000 rows", "1,000,000 rows")
    assert named(found)[0] == ["quick rows"] * 2 + ["strong bulk_copy"] * 4


def test_a_map_is_of_datasets_too_and_is_empty_where_nothing_was_run():
    rows = crossing(dataset="narrow") + runs(STRONG, line(1, 0, SIZES[:2]), dataset="wide", experiment="shapes_wide")
    found = map_of(SHAPES, rows)
    assert found.columns == ("narrow", "wide")
    assert named(found)[0] == ["quick rows", "strong bulk_copy"]
    assert named(found)[3] == ["strong bulk_copy", None]


@pytest.mark.parametrize("picture", [MAP, replace(MAP, y="frame")], ids=lambda picture: picture.y)
def test_transports_that_do_not_compete_are_not_set_against_each_other(picture):
    rows = network() if picture is MAP else crossing() + runs("postgres.x.read_polars_y", line(1, 0, SIZES))
    with pytest.raises(LabError, match=r"picture map: cases at .* do not compete: .*set `where`"):
        map_of(picture, rows)


def test_a_map_is_a_table_with_the_sure_winners_set_off():
    (table,) = winner_tables(suite(pictures=[MAP]), crossing())
    cells = (
        "quick rows: 1.1 ms",
        "quick rows: 11 ms",
        "strong bulk_copy: 41 ms",
        "strong bulk_copy: 2.02 s",
    )
    assert table.rows == (("polars to Postgres", *cells),)
    assert table.best == {(0, place) for place in (1, 2, 3, 4)}


def test_a_picture_of_rates_marks_the_crossing_and_its_interval(tmp_path):
    (change,), _ = _changes(RATES, crossing())
    assert (change["x"], change["name"]) == (pytest.approx(0.02 / 9.8e-5), " 200 rows")
    root = composed(RATES, crossing(), tmp_path)
    said = [text for text in titles(root) if "gives way to" in text]
    assert len(said) == 1
    assert said[0] == f"{QUICK}\ngives way to {STRONG}\nat 200 rows (95 % interval: {' to '.join(ends(change))} rows)"
    assert NO_CHANGES not in " ".join(words(root))
    tied = composed(RATES, runs(QUICK, line(0.02, 0, SIZES)) + runs(STRONG, line(0.02, 0, SIZES)), tmp_path)
    assert NO_CHANGES in " ".join(words(tied))
    assert _changes(RATES, [one for one in crossing() if one.pass_number == 1])[0] == []  # one run shows nothing


def ends(change):
    return [f"{float(f'{end:.2g}'):,.0f}" for end in (change["low"], change["high"])]


def test_a_picture_of_rates_draws_of_transports_with_few_rows_alone_only_the_fastest():
    few = [one for one in crossing() if one.transport == QUICK and one.rows in SIZES[:2]]
    slow = [replace(one, transport="postgres.slow.write_polars_rows", seconds=2 * one.seconds) for one in few]
    many = [one for one in crossing() if one.transport == STRONG]
    changes, drawn = _changes(RATES, [*few, *slow, *many])
    assert {one.transport for one in drawn} == {QUICK, STRONG}
    assert changes == _changes(RATES, [*few, *many])[0]


def test_crossings_of_several_directions_in_one_picture_are_refused():
    both = crossing() + runs("postgres.x.read_polars_y", line(1, 0, SIZES))
    with pytest.raises(LabError, match=r"its crossings have 2 combinations of database, .*; set `where`"):
        _changes(RATES, both)


def test_between_two_marks_the_seconds_are_straight_over_the_rows():
    found = _bent([{"x": 100, "y": 100 / 1.1}, {"x": 10_000, "y": 10_000 / 11.0}])  # 1 s a call and 1 ms a row
    for one in found:
        assert one["x"] / one["y"] == pytest.approx(1 + 0.001 * one["x"])
    assert (found[0]["x"], found[-1]["x"]) == (pytest.approx(100), pytest.approx(10_000))

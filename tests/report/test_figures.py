"""Figures and parameters as strings."""

import pytest

from harness.model import strings
from harness.report.figures import (
    as_printed,
    described,
    gigabytes,
    in_common,
    in_order,
    megabytes,
    natural,
    significant,
    times,
    volume,
)
from harness.report.summary import Summary, points

THREE_DIGITS = [
    (None, ""),
    (0, "0"),
    (0.00040951, "0.000410"),
    (0.0123, "0.0123"),
    (1.234, "1.23"),
    (12.34, "12.3"),
    (123.4, "123"),
    (12345.6, "12,346"),
    (999.6, "1,000"),
    (1e-9, "0.00000000100"),
    (-1.5, "-1.50"),
]
RATIOS = [(None, ""), (0.577, "×0.58"), (1, "×1.0"), (13.07, "×13"), (2_345, "×2,345"), (0.00123, "×0.0012")]
# An author's figure gets no digits that it never had.
PRINTED = [(None, ""), (17_000.0, "17,000"), (45.0, "45"), (0.0332, "0.0332"), (1.5, "1.5")]
VOLUMES = [(0, "0 B"), (999, "999 B"), (2_048, "2.05 kB"), (210e6, "210 MB"), (5.04e9, "5.04 GB"), (2e12, "2.00 TB")]
MEGABYTES = [(81_600_000, "81.6"), (0, "<1"), (999_999, "<1"), (1e6, "1.00"), (None, "")]


@pytest.mark.parametrize(
    ("written", "value", "text"),
    [
        *((significant, *pair) for pair in THREE_DIGITS),
        *((times, *pair) for pair in RATIOS),
        *((as_printed, *pair) for pair in PRINTED),
        *((volume, *pair) for pair in VOLUMES),
        *((megabytes, *pair) for pair in MEGABYTES),
        *((gigabytes, *pair) for pair in [(5_040_000_000, "5.04"), (None, "")]),
    ],
)
def test_a_figure_is_written_with_its_digits_and_unit_and_a_missing_one_is_empty(written, value, text):
    assert written(value) == text


def case(label, rows=None, size=None):
    return Summary(parameters=strings(label), rows=rows, bytes=size)


def names(*cases):
    return [point.name for point in points(cases)]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("files", "8", "8 files"),
        ("files", "1", "1 file"),
        ("parts_per_file", "1", "1 part per file"),
        ("parts_per_file", "16", "16 parts per file"),
        ("row_group_rows", "300000", "300,000 row group rows"),
        ("rows", "1000000", "1,000,000 rows"),
        ("scale_factor", "24", "scale factor 24"),
        ("scale_factor", "0.2", "scale factor 0.2"),
        ("page_cache", "as found", "page cache as found"),
        ("memory_mb", "2000", "2,000 MB memory"),
        ("mbit_per_s", "100", "100 Mbit/s"),
        ("mbit_per_s", "0", "unlimited rate"),
    ],
)
def test_a_parameter_is_said_as_people_do(name, value, text):
    assert described(name, value) == text


def test_points_are_named_by_what_differs_and_by_their_volume_where_it_differs():
    assert names(case("scale=2; files=1", 5, 2_100_000), case("scale=2; files=8", 40, 1_680_000_000)) == [
        "1 file, 2.10 MB",
        "8 files, 1.68 GB",
    ]
    assert names(case("files=1", 5, 100), case("files=8", 5, 100)) == ["1 file", "8 files"]


def test_points_are_in_the_order_of_their_rows_and_then_of_their_numbers():
    assert names(case("rows=1000", 1_000), case("rows=20", 20), case("rows=3", 3)) == [
        "3 rows",
        "20 rows",
        "1,000 rows",
    ]
    # More files of fewer rows each: the rows decide.
    assert names(case("files=1; rows=9", 9), case("files=2; rows=1", 2)) == ["2 files, 1 row", "1 file, 9 rows"]
    assert names(case("groups=4096", 7), case("groups=300000", 7), case("groups=20000", 7)) == [
        "4,096 groups",
        "20,000 groups",
        "300,000 groups",
    ]


def test_numbers_are_before_strings_in_the_order_of_labels():
    assert sorted(["b", "10", "9", "0.5"], key=natural) == ["0.5", "9", "10", "b"]
    nine, ten, text = {"n": "9", "m": "a"}, {"n": "10", "m": "9"}, {"n": "10", "m": "a"}
    assert sorted([text, ten, nine], key=in_order) == [nine, ten, text]


def test_the_extent_of_a_point_is_what_all_its_cases_agree_on():
    (same,) = points([case("a=1", 5, 100), case("a=1", None, None), case("a=1", 5, 100)])
    assert (same.rows, same.bytes) == (5, 100)
    (different,) = points([case("a=1", 5, 100), case("a=1", 5, 120)])
    assert different.bytes is None  # such as stores, whose sizes on disk differ


def test_the_only_point_has_no_name():
    assert names(case("files=8; scale=2", 5, 100)) == [""]


def test_what_all_points_share_is_said_once():
    where = [{"scale": "2", "files": "1", "parts": "4"}, {"scale": "2", "files": "8", "parts": "4"}]
    assert in_common(where) == "scale 2, 4 parts"
    assert in_common(where, but={"scale"}) == "4 parts"
    assert in_common([]) == ""

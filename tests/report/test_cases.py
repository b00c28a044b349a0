"""The figures of pictures before they are drawn: their labels, units, spreads, looks and conditions."""

import re
from dataclasses import replace

import pytest

from harness.model import LabError, Status
from harness.report.charts import author_says, caption, cases_of, figures_of
from harness.report.figures import chosen, quantity, value, with_unit
from harness.results.row import COLUMNS
from harness.suites.suite import Picture, PublishedFigure
from tests.report.cases import changed, row, scan

TIME = Picture("time", "Time", "bars", y="seconds")
LINES = Picture("lines", "Lines", "lines", y="seconds", x="bytes")


@pytest.mark.parametrize(
    ("figure", "unit", "expected"),
    [
        (0.34432, "s", "344 ms"),
        (1.0, "s", "1 s"),
        (0.9996, "s", "1 s"),  # three digits of it are one second
        (4321.0, "s", "4,320 s"),
        (1e-9, "s", "1 ns"),
        (3.2e-12, "s", "0.0032 ns"),
        (0, "s", "0 s"),
        (87_400_000, "B", "87.4 MB"),
        (999_999, "B", "1 MB"),
        (12, "B", "12 B"),
        (0, "B", "0 B"),
        (2.5e15, "B", "2,500 TB"),
        (1_309_546, "rows/s", "1.31 M rows/s"),
        (0.5, "rows/s", "0.5 rows/s"),
        (100_000, "rows", "100 k rows"),
    ],
)
def test_a_figure_has_three_digits_and_a_unit(figure, unit, expected):
    assert with_unit(figure, unit) == expected


def test_every_column_with_a_unit_can_be_drawn_and_no_other():
    with_unit = [column.name for column in COLUMNS if column.parse in (int, float) and column.unit]
    assert {"seconds", "peak_file_bytes", "rows_per_s"} <= set(with_unit)
    assert all(quantity(name).name for name in with_unit)
    for name in {column.name for column in COLUMNS} - set(with_unit) | {"second"}:
        with pytest.raises(LabError, match=f'"{name}" has no unit'):
            quantity(name)


@pytest.mark.parametrize(
    ("picture", "rows", "figures", "said"),
    [
        (TIME, [row("a", seconds=one) for one in (3.0, 1.0, 1.5)], (1.5, 1.0, 3.0, 3), ""),
        (
            replace(TIME, statistic="mean and deviation"),
            [row("a", seconds=one) for one in (1.0, 3.0)],
            (2.0, 1.0, 3.0, 2),
            "",
        ),
        (  # what is not ok counts neither in the figure nor in the sample
            TIME,
            [row("a", seconds=1.0), row("a", Status.KILLED), row("a", seconds=2.0)],
            (1.5, 1.0, 2.0, 2),
            "1 killed",
        ),
        (TIME, [changed(row("a", Status.MISMATCH), seconds=0.001)], None, "mismatch"),
        (replace(TIME, y="peak_anon_bytes"), [row("a", seconds=1.0)], None, "no figure"),
    ],
    ids=["median", "mean", "a failed run", "a number of a failed run", "no figure"],
)
def test_figures_are_those_worked_out_by_hand_and_what_has_none_says_why(picture, rows, figures, said):
    (point,) = cases_of(picture, rows)
    found = point.y and (point.y.middle, point.y.low, point.y.high, point.y.n)
    assert (found, point.failed if point.y else point.outcome) == (figures, said)
    assert point.error == next((one.error for one in rows if not one.ok), "")


def test_cases_of_one_transport_under_several_conditions_are_never_mixed():
    rows = [scan("quick", files, seconds=float(files)) for files in (1, 2)]
    rows.append(scan("quick", 1, seconds=9.0, experiment="large_files"))
    assert sorted(point.y.middle for point in cases_of(LINES, rows)) == [1.0, 2.0, 9.0]


def test_a_picture_is_about_the_rows_that_have_all_the_wanted_values():
    rows = [scan("a", 1, seconds=1.0), scan("a", 2, seconds=1.0), scan("b", 2, seconds=1.0)]
    where = {"client": ["a"], "parameter:files": ["2", "3"]}
    assert chosen(Picture("x", "X", "bars", y="seconds", where=where), rows) == [rows[1]]


@pytest.mark.parametrize("wrong", [{"where": {"motor": ["a"]}}, {"colour": "motor"}])
def test_a_picture_of_a_column_that_there_is_not_is_refused_with_its_name(wrong):
    picture = replace(TIME, **wrong)
    with pytest.raises(LabError, match='no column "motor" for a picture'):
        cases_of(picture, chosen(picture, [row("a", seconds=1.0)]))


@pytest.mark.parametrize(
    ("parameters", "place"),
    [
        ("threads=4", 4.0),
        ("threads=0.5", 0.5),
        ("threads=all", "all"),
        ("threads=inf", "inf"),  # an infinite axis there is not
        ("rows=10", None),
    ],
)
def test_a_place_is_a_number_where_it_is_one_and_a_word_else(parameters, place):
    picture = Picture("x", "X", "lines", y="seconds", x="parameter:threads")
    (point,) = cases_of(picture, [row("a", seconds=1.0, parameters=parameters)])
    assert point.place == place


@pytest.mark.parametrize(
    ("one", "called"),
    [
        (row("postgres.x.y", seconds=1.0, published_row="The way"), "The way"),
        (row("postgres.x.y", seconds=1.0), "postgres.x.y"),
        (row("a\x00b\x1b[0m", seconds=1.0), "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}[0m"),
    ],
)
def test_a_way_is_called_as_its_author_calls_it_and_else_by_its_id_without_what_cannot_be_printed(one, called):
    assert value(one, "transport") == called


def test_the_authors_figures_of_a_way_hold_for_its_experiment_and_parameters():
    (point,) = cases_of(LINES, [scan("quick", 2, seconds=1.0, published_row="Quick")])
    wanted = [
        PublishedFigure("Quick", "many_files", mean_seconds=1),
        PublishedFigure("Quick", parameters={"files": "2"}),
    ]
    others = [
        PublishedFigure("Slow", "many_files", mean_seconds=1),
        PublishedFigure("Quick", "large_files", mean_seconds=1),
        PublishedFigure("Quick", "many_files", parameters={"files": "3"}, mean_seconds=1),
    ]
    assert figures_of(point, [*wanted, *others]) == wanted


def test_an_author_says_only_what_he_printed():
    figure = PublishedFigure("Quick", mean_seconds=2.0)
    assert (author_says(figure, "seconds"), author_says(figure, "rows_per_s"), author_says(figure, "bytes")) == (
        2.0,
        None,
        None,
    )


def test_the_caption_says_statistic_sample_size_and_conditions():
    rows = [
        scan(
            "quick",
            files,
            seconds=1.0 + files,
            dataset="lineitem",
            lab="embedded",
            parameters=f"files={files}; cache=warm",
        )
        for files in (1, 2)
        for _ in range(3)
    ]
    found = caption(LINES, rows, cases_of(LINES, rows), published=False)
    assert found == (
        "Median of 3 runs, whiskers from minimum to maximum. "
        "Conditions: dataset lineitem, embedded lab, experiment many_files, cache warm."
    )


@pytest.mark.parametrize(
    ("statistic", "seconds", "said"),
    [
        ("median and range", {"a": (1.0, 2.0), "b": (1.0,)}, "Median of 1 to 2 runs, "),
        ("median and range", {"a": (1.0,)}, "One run each. "),
        (
            "mean and deviation",
            {"a": (1.0, 2.0)},
            "Mean of 2 runs, whiskers of one population standard deviation to both sides. ",
        ),
    ],
)
def test_the_caption_says_the_statistic_the_sizes_of_samples_and_whose_other_figures_are(statistic, seconds, said):
    picture = replace(LINES, x="rows", statistic=statistic)
    rows = [row(name, seconds=one) for name, of in seconds.items() for one in of]
    found = caption(picture, rows, cases_of(picture, rows), published=True)
    assert found.startswith(said)
    assert found.endswith(
        "Dotted lines with open marks: the figures of the published benchmark, from its author's machine."
    )


def test_the_caption_names_what_has_no_mark_and_where_and_why():
    rows = [scan("quick", 1, seconds=1.0)]
    rows += [scan("broken", files, Status.KILLED) for files in (1, 2)] + [scan("late", 2, Status.TIMEOUT)]
    found = caption(LINES, rows, cases_of(LINES, rows), published=False)
    assert (
        "Without a mark: parquet.broken.scan at 100 MB and 200 MB (killed); parquet.late.scan at 200 MB (timeout)."
        in found
    )


def test_a_caption_with_many_transports_without_a_mark_names_some_and_counts_the_others():
    rows = [scan("quick", 1, seconds=1.0)] + [scan(f"broken{number}", 1, Status.ERROR) for number in range(9)]
    found = caption(LINES, rows, cases_of(LINES, rows), published=False)
    assert len(re.findall(r"at 100 MB \(error\)", found)) == 6
    assert "and 3 more, all listed under what did not run" in found

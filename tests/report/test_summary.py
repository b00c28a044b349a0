"""summary.csv by figures worked out by hand."""

import csv

import pytest

from harness import results
from harness.model import Status
from harness.report.summary import COLUMNS, summarise, write
from harness.suites import PublishedFigure

FIGURES = [name for name in COLUMNS if name.split("_")[0] in ("mean", "median", "min", "max", "peak", "ratio")]


def row(transport, status=Status.OK, seconds=None, **more):
    """A row as results.load returns it; 1,000 rows, so that the rate is 1000 / seconds."""
    known = dict.fromkeys(results.NAMES) | {
        "transport": transport,
        "system": "postgres",
        "direction": "write",
        "rows": 1_000,
        "status": status,
    }
    if status is Status.OK:
        known |= {
            "seconds": seconds,
            "rows_per_s": 1_000 / seconds,
            "connect_seconds": 0.01,
            "cpu_seconds": seconds / 2,
            "fidelity": "exact",
        }
    else:
        known["error"] = f"it was {status}"
    return known | more


def test_statistics_are_those_worked_out_by_hand():
    rows = [
        row("a", seconds=0.5, connect_seconds=0.3, peak_rss_bytes=10, peak_anon_bytes=0, peak_file_bytes=5),
        row("a", seconds=2.0, connect_seconds=0.1, peak_rss_bytes=30, peak_anon_bytes=0, peak_file_bytes=1),
        row("a", seconds=1.0, connect_seconds=0.2, peak_rss_bytes=20, peak_anon_bytes=0, peak_file_bytes=None),
    ]
    (summary,) = summarise(rows, {})
    assert summary["n"] == 3
    assert summary["mean_seconds"] == pytest.approx(3.5 / 3)
    assert (summary["median_seconds"], summary["min_seconds"], summary["max_seconds"]) == (1.0, 0.5, 2.0)
    assert summary["mean_rows_per_s"] == pytest.approx((2_000 + 500 + 1_000) / 3)
    assert summary["median_rows_per_s"] == 1_000
    assert (summary["min_rows_per_s"], summary["max_rows_per_s"]) == (500, 2_000)
    assert (summary["median_connect_seconds"], summary["median_cpu_seconds"]) == (0.2, 0.5)
    assert (summary["peak_rss_bytes"], summary["peak_anon_bytes"], summary["peak_file_bytes"]) == (30, 0, 5)


def test_the_median_of_two_runs_is_their_middle():
    (summary,) = summarise([row("a", seconds=1.0), row("a", seconds=2.0)], {})
    assert summary["median_seconds"] == 1.5


def test_transports_are_ranked_by_median_and_not_by_mean_time():
    steady = [row("steady", seconds=1.0)] * 3
    lucky = [row("lucky", seconds=value) for value in (0.9, 0.9, 9.0)]
    ranked = summarise([*steady, *lucky], {})
    assert [(summary["transport"], summary["rank"]) for summary in ranked] == [("lucky", 1), ("steady", 2)]


def test_ranks_are_counted_within_database_and_direction_with_postgres_and_writes_first():
    rows = [
        row("d", seconds=1.0, direction="read"),
        row("c", seconds=3.0),
        row("b", seconds=2.0),
        row("a", seconds=9.0, system="clickhouse", direction="read"),
    ]
    assert [(summary["transport"], summary["rank"]) for summary in summarise(rows, {})] == [
        ("b", 1),
        ("c", 2),
        ("d", 1),
        ("a", 1),
    ]


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
def test_a_transport_without_ok_runs_has_no_figures_and_no_rank_and_stands_last(status):
    bad = row("a", status, seconds=None)
    first, last = summarise([bad, bad, row("b", seconds=5.0)], {})
    assert first["transport"] == "b"
    assert (last["n"], last["rank"], last["status"], last["error"]) == (0, None, status, f"it was {status}")
    assert {last[name] for name in FIGURES} == {None}


def test_numbers_in_a_row_that_is_not_ok_are_never_counted():
    wrong = row("a", Status.MISMATCH) | {"seconds": 0.001, "rows_per_s": 1e6}
    (summary,) = summarise([wrong, row("a", seconds=1.0)], {})
    assert (summary["n"], summary["mean_seconds"], summary["max_rows_per_s"]) == (1, 1.0, 1_000)


def test_mixed_statuses_are_counted_and_the_first_reason_given():
    rows = [row("a", seconds=1.0), row("a", Status.TIMEOUT), row("a", Status.ERROR), row("a", seconds=2.0)]
    (summary,) = summarise(rows, {})
    assert summary["status"] == "ok 2, timeout 1, error 1"
    assert summary["error"] == "it was timeout"
    assert summary["n"] == 2


def test_different_fidelities_are_all_named_once():
    rows = [row("a", seconds=1.0, fidelity=text) for text in ("exact", "converted: k (Object)", "exact")]
    assert summarise(rows, {})[0]["fidelity"] == "converted: k (Object) | exact"


def test_the_published_figure_and_the_ratio_stand_beside_ours():
    published = {"the way": PublishedFigure("the way", 0.25, 4_000.0, 1.0, 2.0)}
    (summary,) = summarise([row("a", seconds=0.5, published_row="the way")], published)
    assert summary["published_mean_seconds"] == 0.25
    assert summary["published_mean_rows_per_s"] == 4_000
    assert summary["ratio_to_published"] == 0.5


def test_a_failed_published_way_keeps_the_authors_figure_and_has_no_ratio():
    published = {"the way": PublishedFigure("the way", 0.25, 4_000.0, 1.0, 2.0)}
    (summary,) = summarise([row("a", Status.ERROR, published_row="the way")], published)
    assert (summary["published_mean_rows_per_s"], summary["ratio_to_published"]) == (4_000, None)


def test_a_way_beyond_the_article_has_neither():
    published = {"the way": PublishedFigure("the way", 0.25, 4_000.0, 1.0, 2.0)}
    (summary,) = summarise([row("a", seconds=0.5)], published)
    assert (summary["published_mean_seconds"], summary["ratio_to_published"]) == (None, None)


def test_no_rows_are_no_summaries():
    assert summarise([], {}) == []


def test_every_summary_has_exactly_the_columns_of_the_file():
    for summary in summarise([row("a", seconds=1.0), row("b", Status.KILLED)], {}):
        assert list(summary) == list(COLUMNS)


def test_the_file_has_missing_figures_empty_and_keeps_the_authors_figures_as_printed(tmp_path):
    published = {"the way": PublishedFigure("the way", 0.0421, 2_375_691.94, 1.0, 2.0)}
    rows = [row("a", seconds=0.5, published_row="the way", peak_rss_bytes=0), row("b", Status.ERROR)]
    write(tmp_path / "summary.csv", summarise(rows, published))
    ours, failed = csv.DictReader((tmp_path / "summary.csv").open())
    assert ours["published_mean_rows_per_s"] == "2375691.94"
    assert (ours["peak_rss_bytes"], ours["peak_anon_bytes"]) == ("0", "")
    assert {failed[name] for name in FIGURES} == {""}
    assert (failed["rank"], failed["n"]) == ("", "0")

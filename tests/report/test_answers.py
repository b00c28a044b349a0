"""The answers of a run: the fastest exact transport of a system, operation and frame, and the default next to it."""

from dataclasses import replace

import pytest

from harness.model import Origin, Status
from harness.report import markdown
from harness.report.answers import (
    DEFAULT,
    FACTOR,
    FASTEST,
    HERO,
    NoContender,
    answers,
    by_frame,
    factor,
    in_one,
    lanes,
    no_contenders,
    shapes,
)
from harness.report.charts import directions_chart, on_its_own
from harness.report.page import page
from harness.report.sections import sections
from harness.report.summary import summarise
from harness.suites.suite import AnswersWanted
from tests.report.cases import environment, row, suite

SECONDS = {
    "postgres.quick.write_pandas": (1.0, 1.1, 1.2),
    "postgres.near.write_pandas": (1.15, 1.2, 1.3),
    "postgres.usual.write_pandas": (4.0, 4.4, 6.0),
    "postgres.usual.write_pandas_other": (8.0, 9.0, 9.5),
}


def runs(name, seconds, **more):
    about = {"frame": "pandas", "origin": Origin.BEYOND, "fidelity": "exact", "peak_rss_bytes": 9_000_000}
    return [row(name, seconds=taken, **{**about, "pass": number, **more}) for number, taken in enumerate(seconds, 1)]


def every(**more):
    return [run for name, seconds in SECONDS.items() for run in runs(name, seconds, **more)]


def answered(rows, *defaults):
    wanted = AnswersWanted(experiment="matrix", defaults=defaults or ("postgres.usual.*",))
    return answers(wanted, summarise(rows, ()))


def test_the_usual_transport_is_set_against_the_fastest_with_the_interval_of_their_ratio():
    (one,) = answered(every())
    assert (one.system, one.operation, one.frame, one.rows) == ("postgres", "write", "pandas", 1_000)
    assert one.fastest.transport == "postgres.quick.write_pandas"
    usual, other = one.defaults
    assert usual.case.transport == "postgres.usual.write_pandas"
    assert usual.factor == pytest.approx(4.0)
    assert 2.5 < usual.interval[0] < 4.0 < usual.interval[1] < 7.0
    assert usual.differs
    assert other.case.transport == "postgres.usual.write_pandas_other"


def test_ties_are_the_exact_ones_that_are_not_shown_to_be_slower():
    (one,) = answered(every())
    assert one.ties == 1
    (one,) = answered([run for run in every() if "near" not in run.transport])
    assert one.ties == 0


def test_the_first_pattern_that_a_run_has_is_the_usual_one():
    asked = ("postgres.nobody.*", "postgres.usual.write_pandas_other", "postgres.usual.*")
    (one,) = answered(every(), *asked)
    assert [beside.case.transport.rpartition(".")[2] for beside in one.defaults] == [
        "write_pandas_other",
        "write_pandas",
    ]


@pytest.mark.parametrize(
    "others",
    [
        *(
            runs("postgres.none.write_pandas", (0.1, 0.1, 0.1), **changed)
            for changed in (
                {"fidelity": "converted: a (object)"},
                {"origin": Origin.LIMIT},
                {"origin": Origin.CONTROL},
                {"frame": "table"},
                {"experiment": "profiles"},
            )
        ),
        *(
            [
                *runs("postgres.none.write_pandas", (0.1, 0.1)),
                row("postgres.none.write_pandas", status, frame="pandas", origin=Origin.BEYOND),
            ]
            for status in (Status.MISMATCH, Status.ERROR)
        ),
    ],
)
def test_only_what_is_exact_in_every_pass_of_the_experiment_and_no_bound_or_control_is_the_fastest(others):
    (one,) = answered([*every(), *others])
    assert one.fastest.transport == "postgres.quick.write_pandas"


def test_the_fastest_that_loses_nothing_is_reported_where_it_is_another_one():
    lossy = runs("postgres.lossy.write_pandas", (0.5, 0.5, 0.6), lossy="nulls=changed")
    (one,) = answered([*every(), *lossy])
    assert one.fastest.transport == "postgres.lossy.write_pandas"
    assert one.whole.case.transport == "postgres.quick.write_pandas"
    assert answered(every())[0].whole is None


def test_the_leanest_is_one_of_the_exact_ones():
    lean = runs("postgres.lean.write_pandas", (3.0, 3.0, 3.0), peak_rss_bytes=1)
    leaner = runs("postgres.leaner.write_pandas", (3.0, 3.0, 3.0), peak_rss_bytes=0, fidelity="converted: a (object)")
    (one,) = answered([*every(), *lean, *leaner])
    assert one.lowest_memory.case.transport == "postgres.lean.write_pandas"


def test_frames_come_one_after_the_other_and_the_largest_data_count():
    rows = [replace(run, transport=f"{run.transport}_polars") for run in every(frame="polars")]
    rows += [replace(run, system="clickhouse", transport=f"clickhouse.{run.transport}") for run in every()]
    rows += [*every(), *every(parameters="rows=10", rows=10)]
    found = [(one.frame, one.system, one.rows) for one in answered(rows)]
    assert found == [("pandas", "postgres", 1_000), ("pandas", "clickhouse", 1_000), ("polars", "postgres", 1_000)]


def test_without_an_exact_transport_there_is_no_fastest_and_no_factor():
    (one,) = answered(every(fidelity="converted: a (object)"))
    assert one.fastest is None
    assert one.defaults[0].factor is None
    (table,) = by_frame([one])
    assert table.rows[0][:3] == ("pandas to Postgres", "fastest", "no transport is exact")


def test_a_usual_transport_without_figures_has_its_status():
    failed = [row("postgres.usual.write_pandas", Status.ERROR, frame="pandas", origin=Origin.PUBLISHED)]
    (one,) = answered([*runs("postgres.quick.write_pandas", (1.0, 1.1, 1.2)), *failed])
    (table,) = by_frame([one])
    assert table.rows[-1][1:] == ("default", "postgres.usual.write_pandas", "", "", "", "", "", "", "error")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        ((1.15, 1.3, 1.4), ("1.2×", "0.83-1.6, no difference shown")),
        ((2.4, 2.4, 2.4), ("2.2×", "1.7-2.7")),
        ((2.4,), ("2.2×", "too few runs to tell")),
    ],
)
def test_a_factor_says_what_is_not_shown(seconds, said):
    rows = [*runs("postgres.quick.write_pandas", (1.0, 1.1, 1.2)), *runs("postgres.usual.write_pandas", seconds)]
    (one,) = answered(rows)
    assert factor(one.defaults[0]) == said


def test_of_several_runs_the_factor_is_its_range_and_the_interval_holds_it():
    later = [
        replace(one, run_id="later", seconds=one.seconds * (1.3 if "usual" in one.transport else 1.1))
        for one in every()
    ]
    (one,) = answered([*every(), *later])
    usual = one.defaults[0]
    assert factor(usual)[0] == "4.0× to 4.7×"
    assert usual.interval[0] < 4.0 < 4.7 < usual.interval[1]
    (table,) = by_frame([one])
    assert any("from the least to the most of the runs of the lab" in note for note in table.notes)


def test_one_in_several_roles_has_one_row_and_marks_are_explained():
    rows = every(lossy="nulls=changed")
    (table,) = by_frame(answered(rows))
    assert [line[1] for line in table.rows] == ["fastest, lowest memory", "default", "also default"]
    assert table.rows[0][2] == "postgres.quick.write_pandas †"
    assert table.rows[0][5:7] == ("", "1 not shown slower")
    assert table.rows[1][5:7] == ("4.0×", "3.0-6.1")
    assert any(note.startswith("† silently changes some kinds of values: these data have none") for note in table.notes)
    assert [line[1] for line in in_one(answered(rows), (FASTEST, DEFAULT)).rows] == ["fastest", "default"]


def test_the_smallest_shape_has_the_default_of_a_direction_above_the_fastest_and_the_fastest_from_pypi():
    wanted = AnswersWanted(experiment="matrix", defaults=["postgres.usual.*"], beyond_pypi=["*.quick.*"])
    table = shapes(replace(suite(), answers=wanted), summarise(every(), ()))[-1]
    assert [row[::3] for row in table.rows] == [
        ("pandas to Postgres", "4.0×"),
        ("  fastest", ""),
        ("  from PyPI", "1.1×"),
    ]
    assert table.notes[0] == "the first line of a direction is its default; seconds are medians"
    without = AnswersWanted(experiment="matrix", defaults=["postgres.none.*"], beyond_pypi=["*.quick.*"])
    table = shapes(replace(suite(), answers=without), summarise(every(), ()))[-1]
    assert [row[0] for row in table.rows] == ["pandas to Postgres", "  fastest", "  from PyPI"]


def test_reports_open_with_the_answers_frame_by_frame():
    rows = every() + [replace(run, transport=f"{run.transport}_polars") for run in every(frame="polars")]
    asked = replace(suite(), answers=AnswersWanted(experiment="matrix", defaults=["postgres.usual.*"]))
    summaries = summarise(rows, ())
    found = sections(asked, environment(), rows, summaries)
    text = markdown.report(asked, environment(), found)
    assert text.startswith("# An example\n\n**pandas: the fastest exact transport")
    assert text.index("**polars: the fastest exact transport") < text.index("8 cases in 3 passes")
    html = page(asked, environment(), rows, found, [])
    opening = html.index("pandas: the fastest exact transport")
    assert html.index('<h2 id="short">') < opening < html.index("8 cases in 3 passes")
    assert 'data-n="4"' in html[opening:]  # the factor is sorted as the number it is


def test_a_suite_about_something_else_opens_as_ever():
    rows = every()
    text = markdown.report(suite(), environment(), sections(suite(), environment(), rows, summarise(rows, ())))
    assert text.startswith("# An example\n\n**The fastest, and the lowest memory**")


def opened(rows):
    asked = AnswersWanted(experiment="matrix", defaults=["postgres.usual.*"], beyond_pypi=["*.quick.*"])
    return lanes(replace(suite(), answers=asked), summarise(rows, ()))


def test_the_picture_of_a_direction_has_the_usual_the_fastest_from_pypi_the_fastest_and_the_server_alone():
    bound = runs("postgres.alone.write", (0.5, 0.5, 0.5), origin=Origin.LIMIT, frame="")
    (lane,) = opened([*every(), *bound])
    assert [(dot.role, dot.seconds) for dot in lane.dots] == [("default", 4.4), ("from PyPI", 1.2), ("fastest", 1.1)]
    assert lane.alone == pytest.approx(0.5)
    assert lane.factors == "3.7× · 4.0×"
    svg = directions_chart([lane]).svg
    assert svg.count('class="mark"') == 4
    for said in ("pandas to Postgres", "3.7× · 4.0×", "the server alone: 0.500 s", "postgres.usual.write_pandas"):
        assert said in svg
    without = directions_chart([replace(lane, alone=None)]).svg
    assert "rect mark container" in svg
    assert "rect mark container" not in without  # an empty part has no role, so it needs no name


def test_a_factor_of_values_in_other_dtypes_is_marked_and_one_without_a_default_is_left_out():
    rows = [run for run in every() if "near" not in run.transport and "other" not in run.transport]
    rows += runs("postgres.near.write_pandas", (1.2, 1.2, 1.2), fidelity="converted: a (object)")
    (lane,) = opened(rows)
    assert lane.factors == "1.0× · 4.0×"  # exact before converted
    (lane,) = opened([run for run in rows if "usual" not in run.transport])
    assert (lane.factors, [dot.converted for dot in lane.dots]) == ("", [True, False])
    assert opened([]) == []
    assert directions_chart([]) is None


def test_a_picture_in_a_file_follows_a_dark_scheme():
    svg = on_its_own(directions_chart(opened(every())).svg)
    assert '@media (prefers-color-scheme:dark){[fill="#1f2328"]{fill:#e6edf3}' in svg
    assert '[fill="#ffffff"]{fill:#0d1117}' in svg


def test_a_report_opens_with_the_picture_and_what_did_not_run_comes_last():
    rows = every()
    asked = replace(suite(), answers=AnswersWanted(experiment="matrix", defaults=["postgres.usual.*"]))
    first = directions_chart(opened(rows))
    drawn = [first, replace(first, name="other")]
    found = sections(asked, environment(), rows, summarise(rows, ()), charts=drawn)
    assert [one.name for one in found[0].charts] == [HERO]
    assert [one.name for each in found[1:] for one in each.charts] == ["other"]
    assert found[-1].name == "not-ok"
    text = markdown.report(asked, environment(), found)
    assert text.startswith(f"# An example\n\n![How long each direction takes](pictures/{HERO}.svg)\n\n")
    assert "(#what-did-not-run-and-why)" in text


QUICKEST = runs("postgres.quick.write_pandas", (1.0, 1.1, 1.2), lossy="nulls=changed", peak_rss_bytes=5)
WHOLE = runs("postgres.whole.write_pandas", (1.8, 1.9, 2.0), peak_rss_bytes=6)
CONTENDING = AnswersWanted(experiment="matrix", defaults=["postgres.usual.write_pandas", "postgres.other_usual.*"])


def left_out_of(*rows):
    every = [*QUICKEST, *WHOLE, *rows]
    return no_contenders(CONTENDING, summarise(every, ()))


def ids(*rows):
    return [one.transport for one in left_out_of(*rows)]


@pytest.mark.parametrize(
    ("took", "lossy", "left_out"),
    [
        (1.5, "nulls=changed", False),
        (3.0, "nulls=changed", True),
        (2.6, "", False),  # a lossless transport is compared with the fastest lossless one
        (5.0, "", True),
    ],
)
def test_a_transport_shown_to_take_so_many_times_as_long_is_left_out(took, lossy, left_out):
    one = "postgres.one.write_pandas"
    assert ids(*runs(one, (took, 1.02 * took, took), lossy=lossy)) == [one] * left_out


def test_what_is_left_out_says_why():
    (one,) = left_out_of(*runs("postgres.one.write_pandas", (8.0, 9.0, 9.5), lossy="nulls=changed"))
    assert (one.transport, one.values) == ("postgres.one.write_pandas", "exact")
    assert FACTOR < one.at_least < 9.0 / 1.1
    (one,) = left_out_of(*runs("postgres.one.write_pandas", (0.1, 0.1, 0.1), fidelity=""))
    assert one == NoContender("postgres.one.write_pandas", "", None)


def test_what_converts_is_judged_by_the_same_factor_and_the_fastest_of_these_is_a_contender():
    converted = {"fidelity": "converted: a (object)", "lossy": "nulls=changed"}
    near = runs("postgres.near.write_pandas", (1.1, 1.2, 1.2), **converted)
    slow = runs("postgres.slow.write_pandas", (8.0, 9.0, 9.5), **converted)
    assert ids(*slow) == []
    (one,) = left_out_of(*near, *slow)
    assert (one.transport, one.values) == ("postgres.slow.write_pandas", "converted")
    assert FACTOR < one.at_least < 9.0 / 1.1


@pytest.mark.parametrize(("status", "expected"), [(Status.UNAVAILABLE, 0), (Status.UNSUPPORTED, 1), (Status.ERROR, 1)])
def test_what_the_lab_had_no_means_for_is_a_contender_and_what_failed_is_not(status, expected):
    failed = row("postgres.one.write_pandas", status, frame="pandas", origin=Origin.BEYOND)
    assert len(ids(failed)) == expected


def test_the_usual_one_the_leanest_and_the_published_ones_are_contenders_however_slow():
    slow = (90.0, 91.0, 92.0)
    usual = runs("postgres.usual.write_pandas", slow)
    lean = runs("postgres.lean.write_pandas", slow, peak_rss_bytes=1)
    published = runs("postgres.published.write_pandas", slow, origin=Origin.PUBLISHED)
    assert ids(*usual, *lean, *published) == []
    assert ids(*usual, *runs("postgres.other_usual.write_pandas", slow)) == ["postgres.other_usual.write_pandas"]


def test_the_fastest_from_pypi_and_those_near_it_are_contenders_however_slow():
    wanted = replace(CONTENDING, beyond_pypi=["postgres.quick.*"])
    times = {"installs": 90.0, "near": 110.0, "far": 120.0}
    slow = [
        run
        for name, took in times.items()
        for run in runs(f"postgres.{name}.write_pandas", (took,) * 3, lossy="nulls=changed")
    ]
    found = no_contenders(wanted, summarise([*QUICKEST, *slow], ()))
    assert [one.transport for one in found] == ["postgres.far.write_pandas"]

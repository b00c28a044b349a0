"""The screen of a race: its content, its cuts if it is too long, and its length of one screen."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from harness.cli.recommend import show
from harness.datasets.hostile.common_kinds import KINDS
from harness.report import recommendation
from harness.report.recommendation import Figure, Recommendation, RuledOut, share_lines
from harness.report.terminal import lines_of, recommended
from tests.report.cases import environment, printed, terminal

FASTEST = Figure(
    transport="postgres.psycopg.write_polars_tuned",
    how="Send columns as one binary COPY.",
    rows=1_000,
    runs=7,
    seconds=0.1,
    range=(0.09, 0.11),
    rows_per_s=10_000.0,
    peak_rss_bytes=50_000_000,
    factor=1.0,
    factor_interval=None,
    installs=("psycopg[binary]",),
    beyond=("arrow-wire (not on PyPI: make wheel)",),
    lines=90,
    lossy={},
)
SLOWER = replace(
    FASTEST,
    transport="postgres.sqlalchemy.write_polars_write_database",
    how="Append the frame to the table with polars.DataFrame.write_database over SQLAlchemy.",
    seconds=0.9,
    range=(0.8, 1.0),
    factor=9.0,
    factor_interval=(8.0, 10.0),
    installs=("pandas", "psycopg[binary]", "pyarrow", "sqlalchemy"),
    beyond=(),
    lossy={"decimals": "refused"},
)
PGPQ = replace(
    FASTEST,
    transport="postgres.pgpq.write_polars_copy_binary_sorted",
    seconds=0.125,
    range=(0.12, 0.15),
    factor=1.25,
    factor_interval=(1.2, 1.3),
    peak_rss_bytes=400_000,
    installs=("pgpq", "psycopg[binary]", "pyarrow"),
    beyond=(),
    lines=153,
    lossy={"nan": "changed", "arrays": "refused"},
)
BOUND = replace(
    FASTEST,
    transport="postgres.asyncpg.write_insert_select",
    how="Let the server copy an unlogged table, in its own order: no client, no wire.",
    seconds=0.2,
    range=(0.2, 0.2),
    lines=0,
)
FOUND = Recommendation(
    system="postgres",
    operation="write",
    frame="polars",
    lab="embedded",
    run_id="20260101T000000Z-host",
    rows=1_000,
    columns={"id": "int64", "note": "text"},
    values={},
    fastest=FASTEST,
    from_pypi=PGPQ,
    least_code=PGPQ,
    built_in=SLOWER,
    ties=(),
    default=SLOWER.transport,
    defaults=(SLOWER,),
    bound=None,
    ruled_out=(),
    ended="",
    seconds=60.0,
    budget=180.0,
)


def said(**more: object) -> list[str]:
    return list(recommendation.sentences(replace(FOUND, **more)))  # type: ignore[arg-type]


def excluded(**more: object) -> list[tuple[str, ...]]:
    return [row for table in recommendation.excluded(replace(FOUND, **more)) for row in table.rows]  # type: ignore[arg-type]


def opened(**more: object) -> list[str]:
    return recommendation.opening(replace(FOUND, **more))  # type: ignore[arg-type]


def rows(found: Recommendation) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in recommendation.table(found).rows]


def screen(found: Recommendation, width: int, last: Sequence[str] = ()) -> str:
    console = terminal(width)
    show(console, found, last)
    return console.file.getvalue()


def test_the_first_sentences_say_what_to_take_from_where_how_fast_and_what_the_fastest_would_need() -> None:
    assert opened() == [
        "Take pgpq copy_binary_sorted: 0.125 s, from PyPI, 7.2 times faster than write_database (the default).",
        'pip install pgpq "psycopg[binary]" pyarrow',
        "Need the last 20%? psycopg tuned: 0.100 s, with arrow-wire (not on PyPI: make wheel).",
    ]


def test_the_title_names_the_file_its_size_and_the_server_of_either_end() -> None:
    found = replace(FOUND, source="orders.parquet", server="18.4")
    assert recommendation.title(found) == "polars to Postgres 18.4 (embedded): orders.parquet, 1,000 rows × 2 columns"
    assert "orders.parquet, 1,000 of 20,000 rows × 2" in recommendation.title(replace(found, rows_of_data=20_000))
    read = replace(FOUND, operation="read")  # of a query, by an older lab
    assert recommendation.title(read) == "Postgres (embedded) to polars: 1,000 rows × 2 columns"


def test_the_kinds_of_values_in_the_data_are_named_where_they_are_said_to_arrive() -> None:
    values = {"nulls": ("a",), "null_text": ("a",), "backslash_n": ("a",), "newline": ("b",), "decimals": ("c",)}
    assert (
        r"Checked: all 1,000 rows arrived identical in every run (nulls, \N, newlines, decimals found in your data)."
    ) in said(values=values)
    assert "Checked: all 1,000 rows arrived identical in every run." in said()


def test_where_the_fastest_is_from_pypi_nothing_else_is_offered() -> None:
    assert opened(fastest=PGPQ) == opened()[:2]
    assert "against" not in opened(from_pypi=SLOWER, built_in=SLOWER)[0]


ADBC = replace(SLOWER, transport="postgres.adbc.write_polars_write_database", seconds=0.5)
TAKE_PGPQ = "Take pgpq copy_binary_sorted: 0.125 s, from PyPI"


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (
            {"from_pypi": None},
            "Take psycopg tuned: 0.100 s, with arrow-wire (not on PyPI: make wheel), 9.0 times faster than "
            "write_database (the default).",
        ),
        (
            {"from_pypi": ADBC},  # whose call has the name of the default's
            "Take adbc write_database: 0.500 s, from PyPI, 1.8 times faster than sqlalchemy write_database (the "
            "default).",
        ),
        ({"defaults": (), "built_in": ADBC}, f"{TAKE_PGPQ}, 4.0 times faster than adbc write_database."),
        ({"defaults": (), "built_in": None}, f"{TAKE_PGPQ}."),
        (
            {"defaults": (replace(SLOWER, rows=100),), "taken_there": replace(PGPQ, rows=100, seconds=0.02)},
            f"{TAKE_PGPQ}, 45 times faster than write_database (the default) at 100 rows.",
        ),
        ({"defaults": (replace(SLOWER, rows=100),)}, f"{TAKE_PGPQ}."),
    ],
)
def test_the_first_sentence_sets_what_to_take_against_the_default_or_what_is_built_in(
    known: dict[str, object], said: str
) -> None:
    assert opened(**known)[0] == said


def test_a_fastest_that_is_not_shown_to_be_faster_is_not_said_to_be() -> None:
    assert opened(ties=(PGPQ.transport,))[2].startswith("Not shown to be faster: psycopg tuned")
    once = replace(PGPQ, runs=1, factor_interval=None)
    assert opened(from_pypi=once)[2].startswith("Not shown to be faster: psycopg tuned")
    assert not [line for line in said(ties=(PGPQ.transport,)) if "No difference" in line]


def test_there_is_a_row_a_choice_at_most_six_and_one_for_a_transport_that_is_several() -> None:
    assert rows(FOUND) == [
        ("fastest", "psycopg tuned"),
        ("from PyPI, least code", "pgpq copy_binary_sorted †‡"),
        ("built in, default", "sqlalchemy write_database ‡"),
    ]
    four = [replace(PGPQ, transport=f"postgres.a.write_polars_{name}") for name in ("b", "c", "d", "e")]
    most = replace(FOUND, from_pypi=four[0], least_code=four[1], built_in=four[2], default=four[3].transport)
    assert [choice for choice, _ in rows(replace(most, defaults=(four[3], SLOWER), bound=BOUND))] == [
        *("fastest", "from PyPI", "least code", "built in", "default", "server alone")
    ]
    assert rows(replace(FOUND, defaults=(replace(SLOWER, rows=100),)))[-1][0] == "default, 100 rows"


def test_a_row_has_median_range_peak_lines_and_what_is_to_be_installed() -> None:
    table = recommendation.table(FOUND)
    assert table.head == ("choice", "call", "median s", "range", "peak MB", "lines", "install")
    assert [row[2:] for row in table.rows][:2] == [
        ("0.100", "0.0900-0.110", "50.0", "90", "psycopg[binary], arrow-wire (not on PyPI)"),
        ("0.125", "0.120-0.150", "<1", "153", "pgpq, psycopg[binary], pyarrow"),
    ]


def test_a_default_that_cannot_move_the_data_has_a_row_that_says_so_and_a_sentence_why() -> None:
    out = (RuledOut(SLOWER.transport, "refused: x", "decimals", True),)
    found = replace(FOUND, defaults=(), built_in=None, ruled_out=out)
    assert recommendation.table(found).rows[-1][:3] == ("default", "sqlalchemy write_database", "cannot")
    assert "sqlalchemy write_database, the default, cannot: refused: x" in recommendation.sentences(found)
    assert recommendation.table(replace(found, ruled_out=())).rows[-1][2] == "not timed"
    unwanted = replace(found, ruled_out=(RuledOut(SLOWER.transport, "its style is sync", is_default=True),))
    assert recommendation.table(unwanted).rows[-1][2] == "left out"
    assert "sqlalchemy write_database, the default, is left out: its style is sync" in recommendation.sentences(
        unwanted
    )


def test_a_server_alone_that_is_slower_than_the_fastest_is_explained_and_one_that_is_faster_is_not() -> None:
    because = "The server alone is slower: its own statement costs more than taking in these rows."
    assert said(bound=BOUND)[0] == because
    assert not [line for line in said(bound=replace(BOUND, seconds=0.05)) if "server alone" in line]


def test_marks_are_explained_where_a_row_has_one() -> None:
    assert "† silently changes, ‡ refuses some kinds of values: your data have none." in said()
    plain = replace(PGPQ, lossy={})
    assert "†" not in " ".join(said(from_pypi=plain, least_code=plain, built_in=None, defaults=()))


TIES = tuple(f"postgres.{name}.write_polars_copy" for name in "abcdefg")


@pytest.mark.parametrize(
    ("known", "last"),
    [
        (
            {"left_behind": ("postgres.a.b", "postgres.a.c")},
            "Not fully timed: 2 transports, maybe as fast (the race used 60 of 180 s; rerun with --budget 360).",
        ),
        ({"ties": TIES[:2]}, "No difference shown between psycopg tuned and a copy, b copy."),
        ({"ties": TIES}, "No difference shown between psycopg tuned and a copy, b copy, c copy and 4 more."),
    ],
)
def test_what_the_budget_did_not_do_for_is_counted_and_ties_are_named(known: dict[str, object], last: str) -> None:
    assert said(**known)[-1] == last


STYLES = [RuledOut("a", "without numba"), RuledOut("b", "its style is sync"), RuledOut("c", "its style is sync")]


@pytest.mark.parametrize(
    ("values", "out", "told"),
    [
        (  # those that rule out most first
            {"tab": ("b",), "nulls": ("a", "b", "c", "d")},
            [
                RuledOut("t", 'refused: tabs (column "b")', "tab"),
                *(RuledOut(f"n{place}", 'changed: null (column "a")', "nulls") for place in range(2)),
            ],
            [
                ("nulls (a, b, c): changed: null", "2", "n0, n1"),
                ("tab (b): refused: tabs", "1", "t"),
            ],
        ),
        (
            {},
            [
                RuledOut("to_sql", "its style is sync", is_default=True),
                RuledOut("write_database", "refused: digits are lost", "decimals", is_default=True),
                RuledOut("x", "refused: digits are lost", "decimals"),
            ],
            [
                ("decimals: refused: digits are lost", "2", "write_database (a default), x"),
                ("its style is sync", "1", "to_sql (a default)"),
            ],
        ),
        (
            {},
            STYLES,
            [("its style is sync", "2", "b, c"), ("without numba", "1", "a")],
        ),
        (
            {},
            [RuledOut(f"m{place}", "its style is sync") for place in range(5)],
            [("its style is sync", "5", "m0, m1, m2 and 2 more")],
        ),
        ({}, [], []),
    ],
)
def test_the_reasons_that_rule_transports_out_have_columns_and_how_many_they_concern(
    values: dict[str, tuple[str, ...]], out: list[RuledOut], told: list[tuple[str, ...]]
) -> None:
    assert excluded(values=values, ruled_out=tuple(out)) == told


def test_a_race_that_was_ended_and_values_that_are_converted_are_said() -> None:
    converted = replace(FASTEST, values="converted: id")
    found = said(ended="the budget of 9 s was used up", enough=60, fastest=converted)
    assert found[0] == (
        "Not final: the budget of 9 s was used up; figures are of 7 runs. --budget 60 is probably enough."
    )
    assert "No transport so far gives the canonical types. Here converted: id: converting them is not timed." in found
    assert opened(ended="the budget of 9 s was used up")[0].startswith("Take pgpq copy_binary_sorted so far: 0.125 s")


@pytest.mark.parametrize("width", [80, 200])
def test_a_race_that_ended_early_has_a_table_of_each_transport_that_ran_as_long_as_the_screen_has_room(
    width: int,
) -> None:
    converted = replace(SLOWER, rows=100, runs=1, values="converted: id")
    found = replace(FOUND, ended="the budget of 9 s was used up", enough=60, so_far=(FASTEST, converted))
    lines = [line.split() for line in screen(found, width).splitlines()]
    assert ["psycopg", "tuned", "1,000", "0.100", "7", "exact"] in lines
    assert ["sqlalchemy", "write_database", "100", "0.900", "1", "converted"] in lines
    assert ["Known", "so", "far,", "not", "final"] in lines
    many = screen(replace(found, so_far=(FASTEST,) * 60), width)
    assert len(many.splitlines()) <= 40
    assert "Known so far, not final: " in many
    assert " of 60 lines, all are in report.md" in many


@pytest.mark.parametrize("width", [80, 200])
def test_a_screen_has_no_line_above_its_width_no_broken_word_and_never_goes_without_what_to_install(width: int) -> None:
    """The screen has every word of every cell and sentence whole, and of an id every part between its dots."""
    found = replace(FOUND, bound=BOUND, ties=("postgres.asyncpg.write_polars_copy_binary_sorted_parallel",))
    path = f"/home/somebody/{'a-long-folder/' * 12}report.html"
    shown = screen(found, width, [f"Report: {path}"])
    lines = shown.splitlines()
    assert [line for line in lines if len(line) > width and line.strip() != path] == []
    assert path in [line.strip() for line in lines[-1:]]
    words = set(shown.split())
    cells = [cell for row in recommendation.table(found).rows for cell in (row if width == 200 else row[:3])]
    installs = recommendation.installs(found) if width == 80 else ()
    assert {word for text in (*opened(), *said(bound=BOUND), *cells, *installs) for word in text.split()} <= words
    assert ("0.0900-0.110" in words) == (width == 200)
    assert len(lines) <= 28


def test_a_narrow_screen_has_a_line_of_packages_for_each_transport_below_the_recommended_one() -> None:
    narrow, wide = screen(FOUND, 80), screen(FOUND, 200)
    assert ('fastest: pip install "psycopg[binary]", and arrow-wire (not on PyPI)' in narrow, "install" in wide) == (
        True,
        True,
    )
    assert "built in, default: pip install pandas" in narrow
    assert "built in, default: pip install" not in wide


def test_a_command_that_takes_two_lines_can_be_pasted() -> None:
    many = replace(PGPQ, installs=tuple(f"a-package-with-a-long-name-{place}" for place in range(4)))
    shown = screen(replace(FOUND, from_pypi=many), 80)
    assert f"pip install {' '.join(many.installs)}" in " ".join(shown.replace("\\\n", "").split())


@pytest.mark.parametrize("width", [80, 120, 200])
def test_it_is_one_screen_whatever_there_is_to_say(width: int) -> None:
    name = "postgres.sqlalchemy_with_a_long_name.write_polars_write_database_in_many_words"
    figures = [
        replace(SLOWER, transport=f"{name}_{place}", installs=("pyarrow", "psycopg", "numba", "sqlalchemy"))
        for place in range(6)
    ]
    columns = tuple(f"{'long name ' * 6}{place}" for place in range(3))
    out = [RuledOut(f"{name}_{kind}", f"changed: {KINDS[kind].meaning}", kind) for kind in KINDS]
    found = replace(
        FOUND,
        from_pypi=figures[0],
        least_code=figures[1],
        built_in=figures[2],
        default=figures[3].transport,
        defaults=tuple(figures[3:5]),
        bound=figures[5],
        ties=tuple(figure.transport for figure in figures) * 5,
        values=dict.fromkeys(KINDS, columns),
        ruled_out=(*out, *(RuledOut(name, f"without {module}") for module in columns)),
        ended="the budget of 180 s was used up",
    )
    ending = recommended(found, width)
    text = printed(ending.tables, width)
    assert len(text.splitlines()) + lines_of(ending.sentences, width) <= 40
    assert "Take " in text


def test_the_picture_has_the_default_the_one_from_pypi_the_fastest_and_the_server_alone() -> None:
    lane = recommendation.picture(replace(FOUND, bound=BOUND))
    assert [(dot.role, dot.seconds) for dot in lane.dots] == [("default", 0.9), ("from PyPI", 0.125), ("fastest", 0.1)]
    assert (lane.name, lane.alone, lane.factors) == ("polars to Postgres", 0.2, "7.2× · 9.0×")
    lane = recommendation.picture(replace(FOUND, defaults=(replace(SLOWER, rows=10),)))  # of fewer rows: no comparison
    assert ([dot.role for dot in lane.dots], lane.factors) == (["from PyPI", "fastest"], "")


FACTS = environment(
    packages={"polars": "2.1.0", "pgpq": "0.12.0", "psycopg": "3.3.9", "pyarrow": "26.0.1", "duckdb": "1.5.5"},
    servers={"postgres": {"version": "18.4"}},
)


def lines(found: Recommendation) -> list[str]:
    return share_lines(found, FACTS)


def test_it_has_what_to_take_what_it_is_set_against_the_machine_the_versions_and_the_command() -> None:
    assert lines(FOUND) == [
        "| polars to Postgres, 1,000 rows × 2 columns | median | peak | pip install |",
        "|---|---:|---:|---|",
        "| pgpq copy_binary_sorted | 0.125 s | <1 MB | pgpq==0.12.0, psycopg[binary]==3.3.9, pyarrow==26.0.1 |",
        "| sqlalchemy write_database | 0.900 s | 50.0 MB "
        "| pandas, psycopg[binary]==3.3.9, pyarrow==26.0.1, sqlalchemy |",
        "> Every value compared; 2 cores of A CPU, postgres 18.4 (embedded), polars 2.1.0: "
        "`lab recommend --data FILE --to postgres`",
    ]
    assert lines(replace(FOUND, frame="pandas"))[4].endswith("postgres --frame pandas`")
    assert lines(replace(FOUND, ended="you stopped the race"))[4].startswith("> Not final, every value compared; ")


def test_a_default_that_was_timed_on_fewer_rows_has_its_time_and_says_on_how_many() -> None:
    small = replace(FOUND, defaults=(replace(SLOWER, rows=500),), built_in=None)
    assert lines(small)[3].startswith("| sqlalchemy write_database | 0.900 s (500 rows) | 50.0 MB |")


def test_a_default_that_cannot_is_in_the_table_and_so_is_the_fastest_where_nothing_else_is_known() -> None:
    out = (RuledOut(SLOWER.transport, "refused: decimals", "decimals", True),)
    alone = replace(FOUND, fastest=PGPQ, defaults=(), built_in=None, ruled_out=out)
    assert lines(alone)[3] == "| sqlalchemy write_database | cannot |  |  |"
    assert "| psycopg tuned | 0.100 s |" in lines(replace(FOUND, defaults=(), built_in=None))[3]

"""README's answers for the eight directions, from the reference runs; made-up runs test their derivation."""

import re
from dataclasses import replace
from fnmatch import fnmatchcase

import pytest

from harness.docs import readme, reference
from harness.lab import packages
from harness.model import LabError, Origin, Status
from harness.registry import catalogue
from harness.report.answers import answers
from harness.report.crossings import curves
from harness.report.figures import route
from harness.report.summary import summarise
from harness.settings import ROOT
from harness.suites import suite_files
from harness.systems import SYSTEMS
from tests.report.cases import row
from tests.report.curves import line, runs

TUNED, PGPQ, ADBC = (
    f"postgres.{name}"
    for name in ("psycopg.write_polars_tuned", "pgpq.write_polars_copy_binary", "adbc.write_polars_ingest")
)
EXTENSION = "postgres.pg_parquet.write_polars_parquet_stream"
USUAL = "postgres.sqlalchemy.write_polars_write_database"
JOINED = "\N{NO-BREAK SPACE}"
TO_SQL, MULTI = (f"postgres.sqlalchemy.write_pandas_{name}" for name in ("to_sql", "to_sql_multi"))


def block():
    return readme.page().partition(readme.BEGIN)[2].partition(readme.END)[0]


def made_up(**seconds):
    """Three ok calls of each transport, by id with its dots as `__`; a tuple also has changed fields."""
    found = []
    for name, given in seconds.items():
        took, more = given if isinstance(given, tuple) else (given, {})
        transport = name.replace("__", ".")
        system, client, function = transport.split(".")
        operation, frame, *_ = function.split("_")
        about = {"system": system, "client": client, "operation": operation, "frame": frame, "origin": Origin.BEYOND}
        found += [row(transport, **{"seconds": took, **about, "pass": number, **more}) for number in (1, 2, 3)]
    return found


def cells(seconds, usual=(USUAL,)):
    """The cells of the one direction of made-up runs, with ordinary spaces for non-breaking ones."""
    rows = made_up(**{name.replace(".", "__"): given for name, given in seconds.items()})
    wanted = replace(suite_files.load(ROOT / "suites", readme.SUITE).answers, usual=list(usual))
    (one,) = answers(wanted, summarise(rows, ()))
    return tuple(cell.replace(JOINED, " ") for cell in readme.row(one))


def test_what_a_suite_calls_beyond_pypi_is_what_its_packages_say():
    wanted = suite_files.load(ROOT / "suites", readme.SUITE).answers
    moving = [one for one in catalogue().values() if one.moves_a_frame and one.system in ("postgres", "clickhouse")]
    said = {one.id for one in moving if any(fnmatchcase(one.id, pattern) for pattern in wanted.beyond_pypi)}
    assert said == {one.id for one in moving if not packages.from_pypi(one)}


@pytest.fixture
def screen(monkeypatch):
    """The block of README of a made-up reference run."""
    suite, run, _ = reference.of(readme.SUITE)

    def made(rows):
        facts = run.environment | {"together": [{"run_id": name} for name in dict.fromkeys(row.run_id for row in rows)]}
        found = replace(run, environment=facts, every=rows)
        of = reference.of
        summaries = summarise(rows, ())
        monkeypatch.setattr(
            reference, "of", lambda name: (suite, found, summaries) if name == readme.SUITE else of(name)
        )
        lines = block().replace(JOINED, " ").splitlines()
        return [line for line in lines if line.startswith("| p") or line.startswith("| C")], " ".join(lines)

    return made


PSYCOPG2 = "postgres.sqlalchemy_psycopg2.write_polars_write_database"
INTO_CLICKHOUSE = "clickhouse.clickhousedb.write_polars_database"
HTTP = "clickhouse.http_client.write_polars_tuned"


def of_two_databases():
    took = {TUNED: 0.1, PGPQ: 0.2, PSYCOPG2: 2.0, HTTP: 0.3, INTO_CLICKHOUSE: 0.9}
    return made_up(**{name.replace(".", "__"): given for name, given in took.items()})


def test_the_table_is_of_writes_into_a_table_that_has_rows_if_the_run_has_them(screen):
    empty = of_two_databases()
    rows, said = screen(empty)
    assert [line.split(" | ")[0] for line in rows] == ["| polars to Postgres", "| polars to ClickHouse"]
    assert "Writes go into an empty table." in said
    more = {"experiment": "existing", "parameters": {"rows": "1000", "rows_before": "5000"}}
    there = [replace(one, **more, seconds=3 * one.seconds) for one in empty if one.system == "postgres"]
    rows, said = screen([*empty, *there])
    assert [line.split(" | ")[0] for line in rows] == [
        "| polars to Postgres, table with rows",
        "| polars to ClickHouse",
    ]
    assert "0.300 s, **20×**" in rows[0]
    assert "Writes go into a table that has 5,000 rows, where the table says so, and else into an empty table." in said
    assert "Median of 3 calls, the call alone, in one run of the lab." in said


def test_a_factor_of_several_runs_is_their_range(screen):
    first = of_two_databases()
    slow = {TUNED: 1.2, PSYCOPG2: 1.1, HTTP: 1.1}
    second = [replace(one, run_id="another", seconds=one.seconds * slow.get(one.transport, 1.0)) for one in first]
    rows, said = screen([*first, *second])
    assert "| `write_database` 2.10 s |" in rows[0]
    assert "`tuned`](docs/catalogue/postgres-psycopg.md#write_polars_tuned) 0.110 s, **18× to 20×**" in rows[0]
    assert "0.200 s, **10× to 11×**" in rows[0]
    assert "0.315 s, **2.7× to 3.0×**" in rows[1]
    assert said.startswith("What most code does is 2.7× to 20× slower")
    assert "in 2 runs of the lab, hours apart; a factor has its range over these runs." in said
    assert "runs 20260101T000000Z-host, another: [report]" in said


def test_the_fastest_from_pypi_is_the_fastest_exact_one_that_needs_neither_arrow_wire_nor_an_extension():
    converted = {"fidelity": "converted: key (object)"}
    name, usual, from_pypi, fastest = cells(
        {TUNED: 0.1, EXTENSION: 0.2, ADBC: (0.25, converted), PGPQ: 0.5, USUAL: 2.0}
    )
    assert name == "polars to Postgres"
    assert usual == "`write_database` 2.00 s"
    page = "docs/catalogue/postgres-pgpq.md#write_polars_copy_binary"
    beside = "[adbc `ingest`](docs/catalogue/postgres-adbc.md#write_polars_ingest) 0.250 s, converted, **8.0×**"
    assert from_pypi == f"[pgpq `copy_binary`]({page}) 0.500 s, **4.0×**; {beside}"
    assert fastest == "[psycopg `tuned`](docs/catalogue/postgres-psycopg.md#write_polars_tuned) 0.100 s, **20×**"


def test_what_converts_is_named_only_where_it_is_faster_than_the_exact_one():
    converted = {"fidelity": "converted: key (object)"}
    *_, from_pypi, fastest = cells({TUNED: 0.1, ADBC: (0.05, converted), PGPQ: 0.5, USUAL: 2.0})
    assert "`tuned`" in fastest
    assert from_pypi.endswith("0.0500 s, converted, **40×**")
    assert fastest.endswith("0.0500 s, converted, **40×**")
    *_, from_pypi, fastest = cells({TUNED: 0.1, ADBC: (0.6, converted), PGPQ: 0.5, USUAL: 2.0})
    assert "converted" not in from_pypi + fastest


def test_without_an_exact_one_from_pypi_the_fastest_that_converts_is_named_as_such():
    converted = {"fidelity": "converted: key (object)"}
    _, usual, from_pypi, _ = cells({TUNED: 0.1, ADBC: (0.25, converted), USUAL: (2.0, converted)})
    assert usual == "`write_database` 2.00 s, converted"
    assert from_pypi.startswith("none kept every type; [adbc `ingest`](")
    assert from_pypi.endswith(" 0.250 s, converted, **8.0×**")


def test_where_none_from_pypi_ran_the_cell_says_so():
    failed = {"status": Status.ERROR}
    _, usual, from_pypi, fastest = cells({TUNED: 0.1, PGPQ: (None, failed), USUAL: (None, failed)})
    assert usual == "`write_database` error"
    assert from_pypi == readme.NONE_EXACT
    assert fastest.endswith(" 0.100 s")


@pytest.mark.parametrize(
    ("transport", "call"),
    [
        ("clickhouse.clickhouse_connect.write_pandas_df", "`insert_df`"),
        ("clickhouse.clickhousedb.read_polars_database", "`read_database`"),
        (TO_SQL, "`to_sql`"),
        (PGPQ, "`copy_binary`"),  # which its summary does not spell: the end of its name
    ],
)
def test_what_most_code_does_is_named_as_it_is_called(transport, call):
    (case,) = summarise(made_up(**{transport.replace(".", "__"): 1.0}), ())
    assert readme.call(case) == call


def of_sizes(few, many, *others):
    """The sentence about runs at several sizes: the first transport costs less a call, the second less a row."""
    sizes = (1, 100, 1_000)
    rows = runs(few, line(0.01, 1e-4, sizes)) + runs(many, line(0.05, 1e-6, sizes))
    for one, other in others:
        rows += runs(one, line(0.01, 1e-4, sizes)) + runs(other, line(0.02, 1e-6, sizes))
    suite, summaries = suite_files.load(ROOT / "suites", "crossings"), summarise(rows, ())
    return readme.few_rows(curves(suite, summaries))


def test_it_says_below_how_many_rows_clients_from_pypi_win():
    report = "(results/reference/crossings/report.md)"
    said = f"With few rows clients from PyPI win in {{}} of {{}} directions, below [{{}}]{report}."
    assert of_sizes(PGPQ, TUNED) == said.format(1, 1, "400 rows")  # 0.04 s are 400 of the rows that cost 99 µs more
    pandas = (PGPQ.replace("polars", "pandas"), TUNED.replace("polars", "pandas"))
    assert of_sizes(PGPQ, TUNED, pandas) == said.format(2, 2, "100 to 400 rows")
    assert of_sizes(PGPQ, TUNED, pandas[::-1]) == said.format(1, 2, "400 rows")


@pytest.mark.parametrize("pair", [(PGPQ, ADBC), (TUNED, PGPQ), (EXTENSION, TUNED)])
def test_where_no_client_from_pypi_gives_way_to_another_it_says_nothing(pair):
    assert of_sizes(*pair) == ""


def test_every_direction_has_a_row_of_the_reference_run():
    suite, _, summaries = reference.of(readme.SUITE)
    names = [text.split("|")[1].replace(JOINED, " ").strip() for text in block().splitlines() if text.startswith("|")]
    assert names[2:] == [route(one) for one in answers(suite.answers, summaries)]
    assert len(set(names[2:])) == 8


def test_no_line_begins_with_a_mark_or_a_unit():
    assert (
        re.findall(r"(?<!\|) (?:[†‡]|s\b)", "\n".join(text for text in block().splitlines() if text[0:1] == "|")) == []
    )
    assert f"{JOINED}†‡ 2.40{JOINED}s |" in block()


def test_each_link_of_a_row_leads_to_where_the_transport_is_listed():
    links = re.findall(r"\]\((docs/catalogue/[a-z0-9_-]+\.md)#(\w+)\)", block())
    assert len(links) == 16 + block().count("×**; [")
    for page, anchor in links:
        assert f"\n### {anchor}\n" in (ROOT / page).read_text(encoding="utf-8")


def test_it_says_where_the_figures_of_an_embedded_server_were_made():
    said = " ".join(block().split())
    assert "lab: embedded" in said
    assert "Median of 3 calls, the call alone, in one run of the lab. Writes go into an empty table." in said
    assert "ClickHouse here is its engine in a Python process" in said


def test_a_database_that_came_after_the_reference_run_is_not_in_it(monkeypatch):
    as_it_is = readme.page()
    third = replace(next(iter(SYSTEMS.values())), name="third", embedded="Something of a third one.")
    monkeypatch.setattr(readme, "SYSTEMS", SYSTEMS | {"third": third})
    assert readme.page() == as_it_is


@pytest.mark.parametrize("text", ["no marks", f"{readme.BEGIN}{readme.END}{readme.BEGIN}{readme.END}"])
def test_a_readme_without_its_two_marks_is_refused(text, tmp_path, monkeypatch):
    (tmp_path / "README.md").write_text(text)
    monkeypatch.setattr(readme, "ROOT", tmp_path)
    with pytest.raises(LabError, match="must have the lines <!-- reference:begin --> and"):
        readme.page()

"""The output of `lab recommend --share`: five lines of Markdown that form a table and a quotation."""

from dataclasses import replace

from harness.report.recommendation import Recommendation, RuledOut, share_lines
from tests.report.cases import environment
from tests.report.test_recommendation import FOUND, PGPQ, SLOWER

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


def test_a_default_that_was_timed_on_fewer_rows_has_its_time_and_says_on_how_many() -> None:
    small = replace(FOUND, defaults=(replace(SLOWER, rows=500),), built_in=None)
    assert lines(small)[3].startswith("| sqlalchemy write_database | 0.900 s (500 rows) | 50.0 MB |")


def test_a_default_that_cannot_is_in_the_table_and_so_is_the_fastest_where_nothing_else_is_known() -> None:
    out = (RuledOut(SLOWER.transport, "refused: decimals", "decimals", True),)
    alone = replace(FOUND, fastest=PGPQ, defaults=(), built_in=None, ruled_out=out)
    assert lines(alone)[3] == "| sqlalchemy write_database | cannot |  |  |"
    assert "| psycopg tuned | 0.100 s |" in lines(replace(FOUND, defaults=(), built_in=None))[3]

"""A tuned read of many columns: every value, and the queries sent for such tables alone."""

import polars as pl
import psycopg
import pytest
from arrow_wire import postgres_read

from harness.lab.embedded import EmbeddedLab
from harness.transports.postgres.psycopg import tuned

ROWS = 9_000  # rows of 66 columns, enough for a slice on each connection
ASKED = "SELECT current_setting('lab.asked', true)"


@pytest.mark.parametrize(("columns", "asked"), [(66, "yes"), (63, None)])
def test_of_many_columns_each_connection_is_prepared_and_every_value_comes(
    columns: int, asked: str | None, embedded_lab: EmbeddedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_read, "_FREE_A_LARGE_PIECE", "SELECT set_config('lab.asked', 'yes', false)")
    uri = embedded_lab.endpoints["postgres"]
    values = ", ".join(f"(n * {place})::float8 AS c{place}" for place in range(columns))
    with psycopg.connect(uri, autocommit=True) as server:
        server.execute(f"CREATE TABLE wide AS SELECT {values} FROM generate_series(1, {ROWS}) n")  # type: ignore[arg-type]
        try:
            with tuned.connect(uri) as connections:
                found = tuned.read_polars_tuned(connections, "wide")
                assert {one.execute(ASKED).fetchone()[0] for one in connections[:2]} == {asked}
        finally:
            server.execute("DROP TABLE wide")
    expected = pl.DataFrame({f"c{at}": [float(row * at) for row in range(1, ROWS + 1)] for at in range(columns)})
    assert found.sort("c1").equals(expected)


def test_the_statement_is_one_that_the_server_answers(embedded_lab: EmbeddedLab) -> None:
    with psycopg.connect(embedded_lab.endpoints["postgres"]) as server:
        answer = server.execute(postgres_read._FREE_A_LARGE_PIECE).fetchone()
    assert answer is not None
    assert answer[0] > 1 << 18  # bytes: more than glibc's threshold of 128 kB, and than the blocks of a wide row

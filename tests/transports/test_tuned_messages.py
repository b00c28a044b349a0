"""Messages of the tuned transports about a frame or a table they cannot take: the column, the problem, the fix."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import clickhouse_driver
import pandas as pd
import polars as pl
import psycopg
import pytest
from arrow_wire import UnsupportedType

from harness.machine.variables import namespace
from harness.registry import connect_of, one
from harness.systems import SYSTEMS
from harness.systems.clickhouse import client as clickhouse

CLIENTS = {"postgres": "psycopg", "clickhouse": "http_client"}


@pytest.fixture
def tables(embedded_lab, uri: str) -> Iterator[dict[str, str]]:
    """A table called `messages` in both databases; yields their addresses."""
    columns = "id uuid, number integer, yes boolean, text text"
    with psycopg.connect(uri, autocommit=True) as postgres:
        postgres.execute("DROP TABLE IF EXISTS messages, moods; DROP TYPE IF EXISTS mood")
        postgres.execute(f"CREATE TYPE mood AS ENUM ('good'); CREATE TABLE messages ({columns})")
        postgres.execute("CREATE TABLE moods (day date, now mood)")
    client = clickhouse_driver.Client.from_url(embedded_lab.endpoints["clickhouse_native"])
    client.execute(
        "CREATE OR REPLACE TABLE messages (id UUID, number Int32, yes Bool, text Nullable(String)) ENGINE Memory"
    )
    client.execute("CREATE OR REPLACE TABLE moods (day Date, now Enum('good' = 1)) ENGINE Memory")
    http = clickhouse.transport_uri("clickhouse_http", embedded_lab.endpoints["clickhouse_http"])
    yield {"postgres": uri, "clickhouse": http.replace(f"database={namespace()}", "database=default")}
    client.disconnect()


@pytest.fixture
def call(tables: dict[str, str]) -> Callable[..., Any]:
    def run(system: str, name: str, *given: object) -> Any:
        entry = one(f"{system}.{CLIENTS[system]}.{name}_tuned")
        with connect_of(entry)(tables[system]) as connection:
            return entry.function(connection, *given)

    return run


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pl.DataFrame(), "the frame has no columns; give it columns of the table"),
        (pd.DataFrame(), "the frame has no columns; give it columns of the table"),
        (
            pd.DataFrame([[1, 2]], columns=["number", "number"]),
            'column "number": 2 columns have this name; rename or drop one',
        ),
        (pd.DataFrame({0: [1]}), "column 0: its name is of int instead of str; rename it"),
    ],
)
def test_a_frame_without_proper_names_is_refused(system, frame, message, call):
    library = "polars" if isinstance(frame, pl.DataFrame) else "pandas"
    with pytest.raises(ValueError, match=f"^{message}$"):
        call(system, f"write_{library}", frame, "messages")


@pytest.mark.parametrize(("system", "column"), [("postgres", "text"), ("clickhouse", "text")])
@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_uuid_objects_are_refused_and_their_column_named(system, column, library, call):
    objects = [uuid.UUID(int=number) for number in (0, 2**127)]
    frame = pl.DataFrame({column: pl.Series(objects, dtype=pl.Object)})
    frame = frame if library == "polars" else pd.DataFrame({column: pd.Series(objects, dtype=object)})
    with pytest.raises(UnsupportedType, match=f'^column "{column}": .* fit .*; make strings of them with str'):
        call(system, f"write_{library}", frame, "messages")


@pytest.mark.parametrize("frame", [pl.DataFrame({"yes": [None, None]}), pd.DataFrame({"yes": [None, None]})])
def test_a_boolean_column_of_nulls_alone_is_written(frame, call, tables):
    call("postgres", "write_polars" if isinstance(frame, pl.DataFrame) else "write_pandas", frame, "messages")
    with psycopg.connect(tables["postgres"]) as server:
        assert server.execute("SELECT yes FROM messages").fetchall() == [(None,), (None,)]


@pytest.mark.parametrize(
    ("system", "frame", "message"),
    [
        ("postgres", {"number": ["1", "a"]}, "column \"number\": row 1: 'a' does not fit int4"),
        (
            "clickhouse",
            {"number": ["1", "a"]},
            "column \"number\": row 1: 'a' is not a value of Int32",
        ),
        ("clickhouse", {"yes": [[1]]}, 'column "yes": .*list.* does not fit Bool; cast it first'),
        ("clickhouse", {"no": [1]}, 'column "no": the table has no such column; rename or'),
        (
            "clickhouse",
            {"number": pl.Series([None], dtype=pl.Int32)},
            'column "number": Int32 takes no null, and 1 are there; fill them or make the column Nullable',
        ),
    ],
)
def test_a_column_that_does_not_fit_is_refused_with_what_fits(system, frame, message, call):
    with pytest.raises((UnsupportedType, ValueError), match=f"^{message}"):
        call(system, "write_polars", pl.DataFrame(frame), "messages")


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_uuid_objects_are_written_as_uuids(library, call, tables):
    objects = [uuid.UUID(int=number) for number in (0, 2**127)]
    frame = pl.DataFrame({"id": pl.Series(objects, dtype=pl.Object)})
    call("postgres", f"write_{library}", frame if library == "polars" else pd.DataFrame({"id": objects}), "messages")
    with psycopg.connect(tables["postgres"]) as server:
        assert server.execute("SELECT id FROM messages ORDER BY id").fetchall() == [(one,) for one in objects]
    rest = {"number": [1, 2], "yes": [True, False]}
    frame = frame.with_columns(**{name: pl.Series(values) for name, values in rest.items()})
    call(
        "clickhouse",
        f"write_{library}",
        frame if library == "polars" else pd.DataFrame({"id": objects, **rest}),
        "messages",
    )
    assert sorted(call("clickhouse", "read_polars", "messages")["id"]) == [str(one) for one in objects]


def test_the_type_of_a_column_is_named_and_not_numbered(call):
    with pytest.raises(UnsupportedType, match='column "now": int64 does not fit mood; cast it'):
        call("postgres", "write_polars", pl.DataFrame({"now": [1]}), "moods")
    with pytest.raises(ValueError, match=r"column \"now\": row 0: 'no' is not a value of Enum8\('good' = 1\)"):
        call("clickhouse", "write_polars", pl.DataFrame({"now": ["no"]}), "moods")

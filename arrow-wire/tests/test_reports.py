"""Values of public bug reports about pgpq, ADBC's driver of Postgres and clickhouse-connect: each is exact or refused.

The name of a case is the number of its report: adbc is apache/arrow-adbc, connect ClickHouse/clickhouse-connect, polars
pola-rs/polars, driver mymarilyn/clickhouse-driver, pgpq adriangb/pgpq.
"""

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pytest
from arrow_wire import ServerError, UnsupportedType, WrongValue, clickhouse, postgres

from clickhouse_server import DATABASE, Server

D = Decimal
DAYS = [dt.date(2015, 10, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1)]
NOON = dt.datetime(2025, 5, 28, 8, tzinfo=dt.UTC)
# An array, the type of its column ("" for the one that the library makes), and the values as the server's strings.
POSTGRES: dict[str, tuple[Any, str, list[str | None]]] = {
    "adbc 4507": (pa.array([D("5000000000.000001"), D("-1000000000.5")], pa.decimal128(18, 6)), "numeric(18, 6)",
                  ["5000000000.000001", "-1000000000.500000"]),
    "adbc 4499": (pa.array([1, 2**31], pa.int64()), "numeric(20, 2)", ["1.00", "2147483648.00"]),
    "adbc 3485": (pa.array([D("44.123456")], pa.decimal128(10, 6)), "numeric(10, 6)", ["44.123456"]),
    "adbc 2901": (pa.array([NOON], pa.timestamp("us", "UTC")), "", ["2025-05-28 08:00:00+00"]),
    "adbc 3841 s": (pa.array([dt.time(1, 2, 3)], pa.time32("s")), "", ["01:02:03"]),
    "adbc 3841 ms": (pa.array([dt.time(1, 2, 3, 4000)], pa.time32("ms")), "", ["01:02:03.004"]),
    "adbc 3841 ns": (pa.array([3_000_001_000], pa.time64("ns")), "", ["00:00:03.000001"]),
    "adbc 4505": (pa.array(['{"a": 1}', None]), "jsonb", ['{"a": 1}', None]),
    "adbc 1910": (pa.array([[1, None], [], None], pa.list_(pa.int32())), "", ["{1,NULL}", "{}", None]),
    "adbc 2071": (pa.array([], pa.int32()), "", []),
    "adbc 3549": (pa.nulls(2), "", [None, None]),
    "adbc 1275": (pa.array(["a", "b", "a"]).dictionary_encode(), "", ["a", "b", "a"]),
    "adbc 1181": (pa.array([b"", b"\0\1", b"\xfe\xff"]), "", ["\\x", "\\x0001", "\\xfeff"]),
    "polars 24396": (pl.Series([2**70, -1], dtype=pl.Int128), "", ["1180591620717411303424", "-1"]),
    "pgpq 22": (pa.array(DAYS), "date", ["2015-10-01", "1969-12-31", "1970-01-01"]),
}  # fmt: skip


@pytest.fixture
def connection(addresses: Any) -> Any:
    with psycopg.connect(addresses.postgres, options="-c TimeZone=UTC") as connection:
        yield connection
        connection.rollback()


@pytest.mark.parametrize("report", POSTGRES)
def test_values_are_in_postgres_as_they_were(report: str, connection: psycopg.Connection) -> None:
    values, sql_type, expected = POSTGRES[report]
    frame = pl.DataFrame({"v": values}) if isinstance(values, pl.Series) else pa.table({"v": values})
    if sql_type:
        connection.execute(f"CREATE TABLE reported (v {sql_type})".encode())
    postgres.write(connection, "reported", frame, mode="append" if sql_type else "create")
    found = [value for (value,) in connection.execute("SELECT v::text FROM reported ORDER BY ctid")]
    assert found == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("SELECT 0::numeric(10, 4) v", D("0.0000"), id="adbc 1501, a zero"),
        pytest.param("SELECT 0::numeric(10, 0) v", D(0), id="adbc 1501, a zero without places"),
        pytest.param("SELECT 1.01231::numeric(16, 5) v", D("1.01231"), id="adbc 1501, five places"),
        pytest.param("SELECT -123.456::numeric v", "-123.456", id="adbc 883"),
        pytest.param("SELECT '3 days 04:05:06'::interval v", dt.timedelta(3, 14706), id="adbc 908"),
        pytest.param("SELECT count(*) v FROM generate_series(1, 7)", 7, id="adbc 958"),
    ],
)
def test_values_come_out_of_postgres_as_they_are(query: str, expected: Any, connection: psycopg.Connection) -> None:
    assert postgres.read(connection, query)["v"].to_pylist() == [expected]


def test_what_a_query_fails_with_is_the_servers_own_error(connection: psycopg.Connection) -> None:  # adbc 2133
    with pytest.raises(ServerError, match="cannot extract elements from a scalar"):
        postgres.read(connection, "SELECT e FROM (VALUES ('1'::jsonb)) t (j), jsonb_array_elements(j) e")


TEXTS = pd.DataFrame({"v": ["1.5", None]}, dtype=object)
NS = pd.DataFrame({"v": pd.array([1731005237777063540], "datetime64[ns]")})
CLICKHOUSE = {
    "connect 414": (TEXTS, "Nullable(Float64)", "1.5\n\\N\n"),
    "connect 414, None first": (TEXTS[::-1], "Nullable(Float64)", "\\N\n1.5\n"),
    "connect 422": (NS, "DateTime64(9)", "2024-11-07 18:47:17.777063540\n"),
    "connect 116": (pd.DataFrame({"v": [1.5, np.nan]}), "Nullable(Float64)", "1.5\nnan\n"),
    "ClickHouse 71104": (pd.DataFrame({"v": [dt.date(2024, 1, 1), None]}), "Nullable(Date)", "2024-01-01\n\\N\n"),
}


@pytest.mark.parametrize("report", CLICKHOUSE)
def test_values_are_in_clickhouse_as_they_were(report: str, addresses: Any, server: Server) -> None:
    frame, sql_type, expected = CLICKHOUSE[report]
    before = frame.copy(deep=True)
    server.ask(f"CREATE OR REPLACE TABLE reported (v {sql_type}) ENGINE = Memory")
    clickhouse.write(addresses.clickhouse, (DATABASE, "reported"), frame)
    pd.testing.assert_frame_equal(frame, before)  # as it is not changed: connect 116
    assert sorted(server.ask("SELECT v FROM reported FORMAT TSV").decode().split()) == sorted(expected.split())


def test_a_missing_time_is_no_time_of_1970_or_2106(addresses: Any, server: Server) -> None:  # driver 329, 265
    server.ask("CREATE OR REPLACE TABLE reported (v DateTime) ENGINE = Memory")
    frame = pd.DataFrame({"v": pd.array([None, "2022-01-01"], "datetime64[ns]")})
    with pytest.raises((WrongValue, UnsupportedType), match=r'column "v": DateTime.* takes no null'):
        clickhouse.write(addresses.clickhouse, (DATABASE, "reported"), frame)
    assert server.ask("SELECT count() FROM reported") == b"0\n"


@pytest.mark.parametrize("as_", ["polars", "pandas", "arrow"])
def test_a_zone_of_a_query_stays(as_: str, addresses: Any) -> None:  # connect 120, 144, 566
    query = "SELECT toDateTime('2017-08-04 06:09:00', 'America/Chicago') AS v, toTimeZone(v, 'UTC') AS u"
    found = clickhouse.read(addresses.clickhouse, query, as_=as_)
    first, second = (found[name][0] for name in ("v", "u"))
    if as_ == "arrow":
        first, second = first.as_py(), second.as_py()
    assert first.isoformat() == "2017-08-04T06:09:00-05:00"
    assert second.isoformat() == "2017-08-04T11:09:00+00:00"


def test_a_time_with_nulls_comes_out(addresses: Any) -> None:  # connect 524
    query = "SELECT arrayJoin([CAST('12:34:56' AS Nullable(Time)), NULL]) AS v"
    found = clickhouse.read(addresses.clickhouse, query, as_="pandas", settings={"enable_time_time64_type": 1})
    assert found["v"].isna().tolist() == [False, True]
    assert found["v"][0] == pd.Timedelta("12:34:56")

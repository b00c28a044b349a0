"""Each client as it is shipped: write and read the thirteen columns, and work side by side."""

import contextlib
import datetime
import threading
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor

import asynch
import clickhouse_connect
import httpx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sqlalchemy
from clickhouse_connect.driver.exceptions import DatabaseError, StreamFailureError

NAMES = [
    "entity_key", "day", "number_1", "number_2", "kind", "text_1", "text_2", "text_3",
    "value_1", "value_2", "value_3", "value_4", "value_5",
]  # fmt: skip
TEXTS = ["", "ä€😀", "tab\there", "quote \" and ' and `", "back\\slash", "line\nbreak", "\\N", "NULL", "%s {x}"]


def rows(count=1000):
    """Make rows of the thirteen columns."""
    day = datetime.date(2020, 1, 1)
    return [
        (
            uuid.UUID(int=n), day + datetime.timedelta(days=n % 700), n - 500, 2**31 - 1 - n, f"kind {n % 5}",
            TEXTS[n % len(TEXTS)], "x" * (n % 300), TEXTS[(n + 1) % len(TEXTS)],
            n / 3, -0.0, 1e-310, float("inf"), float(n),
        )
        for n in range(count)
    ]  # fmt: skip


@pytest.fixture
def connect(gateway):
    client = clickhouse_connect.get_client(
        host="127.0.0.1", port=gateway.http_port, username=gateway.user, password=gateway.password
    )
    with contextlib.closing(client):
        yield client


def test_clickhouse_driver(client, table):
    assert client.execute(f"INSERT INTO {table} VALUES", rows()) == 1000
    assert client.execute(f"SELECT * FROM {table} ORDER BY entity_key") == rows()


def test_clickhouse_driver_with_dataframes(open_native, table):
    client = open_native(settings={"use_numpy": True}, compression="lz4")
    frame = pd.DataFrame({"number_1": np.arange(1000, dtype=np.int32), "text_1": [str(n) for n in range(1000)]})
    assert client.insert_dataframe(f"INSERT INTO {table} (number_1, text_1) VALUES", frame) == 1000
    back = client.query_dataframe(f"SELECT number_1, text_1 FROM {table} ORDER BY number_1")
    assert back["number_1"].tolist() == frame["number_1"].tolist()
    assert back["text_1"].tolist() == frame["text_1"].tolist()


def test_clickhouse_driver_streams(client):
    total = sum(row[0] for row in client.execute_iter("SELECT number FROM numbers(1000000)"))
    assert total == 499999500000


async def test_asynch(gateway, table):
    async with asynch.connect(
        host="127.0.0.1", port=gateway.native_port, user=gateway.user, password=gateway.password
    ) as connection:
        async with connection.cursor() as cursor:
            assert await cursor.execute(f"INSERT INTO {table} VALUES", rows()) == 1000
        async with connection.cursor() as cursor:
            await cursor.execute(f"SELECT * FROM {table} ORDER BY entity_key")
            assert [tuple(row) for row in await cursor.fetchall()] == rows()


def test_clickhouse_connect_rows(connect, table):
    assert connect.insert(table, rows(), column_names=NAMES).written_rows == 1000
    assert connect.query(f"SELECT * FROM {table} ORDER BY entity_key").result_rows == rows()


@pytest.mark.parametrize("compress", [False, "lz4", "zstd", "gzip"])
def test_clickhouse_connect_compressed(gateway, table, compress):
    client = clickhouse_connect.get_client(
        host="127.0.0.1", port=gateway.http_port, username=gateway.user, password=gateway.password, compress=compress
    )
    with contextlib.closing(client):
        client.insert(table, rows(), column_names=NAMES)
        assert client.query(f"SELECT * FROM {table} ORDER BY entity_key").result_rows == rows()


def test_clickhouse_connect_arrow_pandas_and_polars(connect, table):
    arrow = pa.table({"number_1": pa.array(range(1000), pa.int32()), "text_1": [TEXTS[n % 9] for n in range(1000)]})
    connect.insert_arrow(table, arrow)
    select = f"SELECT number_1, text_1 FROM {table} ORDER BY number_1"
    assert connect.query_arrow(select).to_pylist() == arrow.to_pylist()
    assert connect.query_df(select)["text_1"].tolist() == arrow["text_1"].to_pylist()
    assert connect.query_df_arrow(select, dataframe_library="polars").equals(pl.from_arrow(arrow))
    connect.command(f"TRUNCATE TABLE {table}")
    connect.insert_df(table, arrow.to_pandas())
    assert connect.query_arrow(select).to_pylist() == arrow.to_pylist()
    with connect.query_df_arrow_stream(select, dataframe_library="polars") as stream:
        assert pl.concat(list(stream)).height == 1000


def test_clickhouse_connect_settings_parameters_and_errors(connect):
    assert connect.command("SELECT {n:UInt8} + 1", parameters={"n": 4}) == 5
    assert connect.query("SELECT %(text)s", parameters={"text": TEXTS[3]}).first_item == {
        "'quote \" and \\' and `'": TEXTS[3]
    }
    assert connect.query("SELECT getSetting('max_block_size') AS s", settings={"max_block_size": 9}).first_item == {
        "s": 9
    }
    with pytest.raises(DatabaseError, match="UNKNOWN_TABLE"):
        connect.query("SELECT * FROM nope")
    with pytest.raises(DatabaseError, match="UNKNOWN_TABLE"):
        connect.insert("nope", [[1]], column_names=["a"])
    assert connect.query("SELECT 1 AS a, 'x' AS b LIMIT 0").column_names == ("a", "b")


def test_clickhouse_connect_sees_an_error_in_mid_stream(connect):
    query = "SELECT number, throwIf(number = 900000, 'too much') FROM numbers(1000000)"
    settings = {"max_threads": 1, "wait_end_of_query": 0}
    with (
        pytest.raises((StreamFailureError, DatabaseError), match="too much"),
        connect.query_row_block_stream(query, settings=settings) as stream,
    ):
        for _ in stream:
            pass


def test_clickhouse_sqlalchemy(gateway, table):
    from clickhouse_sqlalchemy import types

    url = f"clickhouse+native://{gateway.user}:{gateway.password}@127.0.0.1:{gateway.native_port}/default"
    engine = sqlalchemy.create_engine(url)
    with engine.connect() as connection:
        connection.exec_driver_sql(
            f"INSERT INTO {table} FORMAT CSV\n{uuid.UUID(int=1)},2020-01-01,1,2,k,a,b,c,1,2,3,4,5"
        )
        columns = [sqlalchemy.Column("number_1", types.Int32), sqlalchemy.Column("text_1", types.String)]
        target = sqlalchemy.Table(table, sqlalchemy.MetaData(), *columns)
        connection.execute(target.insert(), [{"number_1": n, "text_1": TEXTS[n % 8]} for n in range(2, 50)])
        result = connection.execute(sqlalchemy.text(f"SELECT count(), sum(number_1) FROM {table}")).fetchall()
        assert result == [(49, sum(range(1, 50)))]
        assert table in sqlalchemy.inspect(connection).get_table_names()
    engine.dispose()


def test_urllib(gateway, table):
    url = f"http://127.0.0.1:{gateway.http_port}/?user={gateway.user}&password={gateway.password}"
    body = f"INSERT INTO {table} (number_1, text_1) FORMAT TabSeparated\n1\ta\\tb\n2\t\n".encode()
    with urllib.request.urlopen(urllib.request.Request(url, data=body)) as response:
        assert response.status == 200
    with urllib.request.urlopen(f"{url}&query=SELECT+number_1,text_1+FROM+{table}+ORDER+BY+1") as response:
        assert response.read() == b"1\ta\\tb\n2\t\n"


async def test_httpx(gateway, table):
    auth = (gateway.user, gateway.password)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway.http_port}", auth=auth) as client:
        insert = {"query": f"INSERT INTO {table} (number_1) FORMAT CSV"}

        async def pieces():
            for n in range(1000):
                yield f"{n}\n".encode()

        assert (await client.post("/", params=insert, content=pieces())).status_code == 200
        frame = (await client.post("/", content=f"SELECT number_1 FROM {table} ORDER BY 1 FORMAT Parquet")).content
        assert pl.read_parquet(frame)["number_1"].to_list() == list(range(1000))
        broken = "SELECT throwIf(number = 900000) FROM numbers(1000000) SETTINGS max_threads = 1"
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post("/", content=broken, headers={"Accept-Encoding": "identity"})


def test_eight_different_clients_work_side_by_side(gateway, table):
    start = threading.Barrier(8)

    def native(number):
        client = gateway.native(compression="lz4" if number % 2 else False)
        start.wait()
        for _ in range(5):
            client.execute(f"INSERT INTO {table} (number_1) VALUES", [(number,)] * 1000)
            assert client.execute("SELECT sum(number) FROM numbers(100000)") == [(4999950000,)]
        client.disconnect()

    def http(number):
        start.wait()
        for _ in range(5):
            body = f"{number}\n".encode() * 1000
            assert gateway.ask(f"INSERT INTO {table} (number_1) FORMAT CSV", body=body).status == 200
            assert gateway.query("SELECT sum(number) AS s FROM numbers(100000) FORMAT CSV") == b"4999950000\n"
            assert b'"rows": 3' in gateway.query("SELECT number FROM numbers(3) FORMAT JSON")

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit((native, http)[number % 2], number) for number in range(8)]:
            done.result()
    assert gateway.query(f"SELECT number_1, count() FROM {table} GROUP BY 1 ORDER BY 1 FORMAT CSV") == b"".join(
        b"%d,5000\n" % number for number in range(8)
    )

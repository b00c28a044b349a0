"""Every type of ClickHouse by itself: out of a real server into Arrow, and back into it, where nothing has changed."""

import datetime as dt
import ipaddress
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import clickhouse_connect
import pyarrow as pa
import pytest
from clickhouse_connect.driver.client import Client
from pyarrow import ipc

from clickhouse_server import DATABASE, Server

# Type, and values of it as SQL.
CASES = {
    "Int8": "-128, 0, 127",
    "Int16": "-32768, 0, 32767",
    "Int32": "-2147483648, 7, 2147483647",
    "Int64": "-9223372036854775808, 7, 9223372036854775807",
    "UInt8": "0, 7, 255",
    "UInt16": "0, 7, 65535",
    "UInt32": "0, 7, 4294967295",
    "UInt64": "0, 7, 18446744073709551615",
    "Int128": "-170141183460469231731687303715884105728, 0, -1, 170141183460469231731687303715884105727",
    "UInt128": "0, 1000000000000000000, 340282366920938463463374607431768211455",
    "Int256": "toInt256('-57896044618658097711785492504343953926634992332820282019728792003956564819968'), 0, -1, "
    "toInt256('57896044618658097711785492504343953926634992332820282019728792003956564819967')",
    "UInt256": "0, 7, toUInt256('115792089237316195423570985008687907853269984665640564039457584007913129639935')",
    "Float32": "0, nan, inf, -inf, -0., 1e-45, 3.4028235e38",
    "Float64": "0, nan, inf, -inf, -0., 5e-324, 1.7976931348623157e308",
    "BFloat16": "0, 1.5, -2, inf",
    "Bool": "true, false, true",
    "Date": "'1970-01-01', '2149-06-06', '2025-03-04'",
    "Date32": "'1900-01-01', '2299-12-31', '1970-01-01'",
    "DateTime": "'1970-01-01 00:00:00', '2106-02-07 06:28:15', '2025-03-30 02:30:00'",
    "DateTime('Europe/Berlin')": "0, 1743298200, 4294967295",
    "DateTime64(0)": "'1900-01-01 00:00:00', '2299-12-31 23:59:59'",
    "DateTime64(1)": "'1900-01-01 00:00:00.1', '2299-12-31 23:59:59.9'",
    "DateTime64(3)": "'1900-01-01 00:00:00.001', '2299-12-31 23:59:59.999'",
    "DateTime64(6, 'UTC')": "'1900-01-01 00:00:00.000001', '2299-12-31 23:59:59.999999'",
    "DateTime64(6)": "'1969-12-31 23:59:59.999999', '2025-03-30 02:30:00'",
    "DateTime64(9, 'Asia/Tokyo')": "'1970-01-01 00:00:00.000000001', '2262-04-11 20:47:16.854775807'",
    "Time": "'-999:59:59', '00:00:00', '23:59:59', '999:59:59'",
    "Time64(3)": "'-999:59:59.999', '00:00:00.001', '999:59:59.999'",
    "Time64(9)": "'00:00:00.000000001', '999:59:59.999999999'",
    "Decimal(9, 2)": "'-9999999.99', '0.01', '9999999.99'",
    "Decimal(18, 0)": "'-999999999999999999', '1'",
    "Decimal(38, 10)": "'1234567890123456789012345678.0123456789', '-0.0000000001'",
    "Decimal(76, 20)": "'-12345678901234567890123456789012345678901234567890123456.12345678901234567890', '0'",
    "String": "'', 'a', 'twelve bytes', 'thirteen byte', 'nul\\0nul', '\\\\N', 'äöü€😀', repeat('x', 31), "
    "repeat('x', 32), repeat('y', 33), repeat('z', 127), repeat('z', 128), repeat('ß', 100000)",
    "FixedString(4)": "'ab', 'abcd', ''",
    "UUID": "'00000000-0000-0000-0000-000000000000', '01234567-89ab-cdef-fedc-ba9876543210'",
    "IPv4": "'0.0.0.0', '255.255.255.255', '192.168.0.1'",
    "IPv6": "'::', '::1', '2001:db8::1:0:0:1', '1::', '::ffff:192.168.0.1', '1:0:0:2::3', "
    "'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '0:1:0:1:0:1:0:1'",
    "Enum8('red' = -128, 'green\\'s' = 1, '' = 127)": "'red', 'green\\'s', ''",
    "Enum16('red' = -32768, 'green' = 1000)": "'red', 'green'",
    "LowCardinality(String)": "'a', '', 'a', 'more than twelve bytes', 'b'",
    "LowCardinality(Nullable(String))": "'a', NULL, '', 'more than twelve bytes', NULL",
    "LowCardinality(UInt16)": "7, 7, 65535",
    "LowCardinality(Nullable(Date))": "'2025-01-01', NULL",
    "LowCardinality(FixedString(3))": "'abc', 'abc'",
    "Nullable(Int32)": "1, NULL, -1",
    "Nullable(String)": "'', NULL, 'a'",
    "Nullable(UUID)": "NULL, '01234567-89ab-cdef-fedc-ba9876543210'",
    "Nullable(Enum8('a' = 1))": "'a', NULL",
    "Nullable(IPv6)": "NULL, '::1'",
    "Nullable(Decimal(9, 2))": "NULL, '1.25'",
    "Nullable(DateTime64(6))": "NULL, '2025-03-30 02:30:00'",
    "Nullable(Bool)": "NULL, true",
    "Array(Int32)": "[], [1, 2], [-1]",
    "Array(Nullable(String))": "[NULL, 'a'], [], ['']",
    "Array(Array(Nullable(Int64)))": "[[1], [], [NULL, 3]], [], [[]]",
    "Array(LowCardinality(String))": "['a', 'b'], [], ['a']",
    "Array(LowCardinality(Nullable(String)))": "['a', NULL], [], ['a']",
    "Array(Tuple(a Int32, b Array(String)))": "[(1, ['x']), (2, [])], []",
    "Tuple(Int32, String)": "(1, 'a'), (-1, '')",
    "Tuple(a Int32, `b c` Nullable(String))": "(1, 'a'), (-1, NULL)",
    "Tuple(a LowCardinality(String), b Array(LowCardinality(String)))": "('x', ['y']), ('', [])",
    "Map(String, Int32)": "map('a', 1, 'b', 2), map()",
    "Map(LowCardinality(String), Array(Nullable(UInt8)))": "map('a', [1, NULL]), map()",
    "Nested(a Int32, b String)": "[(1, 'x'), (2, 'y')], []",
    "Point": "(1., 2.)",
    "Polygon": "[[(1., 2.), (3., 4.)]], []",
    "SimpleAggregateFunction(sum, UInt64)": "7, 8",
    "JSON": '\'{"a":1,"b":"x"}\', \'{"c":[1,2],"d":{"e":1.5}}\'',
    "Array(JSON)": "['{\"a\":1}', '{}'], []",
}


@pytest.fixture
def filled(server: Server, request: pytest.FixtureRequest) -> tuple[Server, str]:
    sql_type = request.param
    server.table("one", sql_type)
    rows = ", ".join(f"({number}, {value})" for number, value in enumerate(_split(CASES[sql_type])))
    server.ask(f"INSERT INTO one VALUES {rows}")
    return server, sql_type


def _split(values: str) -> list[str]:
    """Cut at the commas outside of quotes and brackets."""
    parts, depth, quote, part, previous = [], 0, False, "", ""
    for character in values:
        if character == "'" and previous != "\\":
            quote = not quote
        depth += 0 if quote else {"[": 1, "(": 1, "]": -1, ")": -1}.get(character, 0)
        if character == "," and not depth and not quote:
            parts.append(part)
            part = ""
        else:
            part += character
        previous = character
    return [*parts, part]


def same(server: Server, sql_type: str) -> list[str]:
    """Return the rows that differ in the tables one and two, as the server writes them."""
    both = (
        "SELECT n, toString(v), toTypeName(v) FROM {}"
        if sql_type != "JSON"
        else "SELECT n, toJSONString(v), '' FROM {}"
    )
    query = " EXCEPT ".join(map(both.format, ("one", "two")))
    back = " EXCEPT ".join(map(both.format, ("two", "one")))
    return (server.ask(query) + server.ask(back)).decode().splitlines()


@pytest.mark.long
@pytest.mark.parametrize("filled", CASES, indirect=True)
def test_values_come_out_and_go_back_in(filled: tuple[Server, str]) -> None:
    server, sql_type = filled
    found = server.read("SELECT n, v FROM one ORDER BY n", pa.string_view())
    found.validate(full=True)
    for text in (pa.string_view(), pa.large_string()):
        again = server.read("SELECT n, v FROM one ORDER BY n", text, 7)
        assert str(again["v"].to_pylist()) == str(found["v"].to_pylist())
    server.table("two", sql_type)
    server.write("two", again["v"].chunk(0), sql_type)
    assert same(server, sql_type) == []
    server.table("two", sql_type)
    count = len(found)
    server.write("two", found["v"].chunk(0).slice(1), sql_type, range(count - 2, -1, -1))  # with an offset, in an order
    server.ask(
        "CREATE OR REPLACE TABLE one ENGINE = Memory AS "
        "SELECT toUInt32(m - 1) AS n, v FROM (SELECT n AS m, v FROM one) WHERE m > 0"
    )
    assert same(server, sql_type) == []


# Types that the other clients show in another way, or not at all.
BYTES_IN_ARROW = ("Int128", "Int256", "IP", "Enum", "Time", "JSON", "BFloat16")
NOT_IN_CONNECT = ("Time", "BFloat16")


@pytest.mark.long
@pytest.mark.parametrize(
    "filled", [sql_type for sql_type in CASES if not re.search("|".join(BYTES_IN_ARROW), sql_type)], indirect=True
)
def test_values_are_those_of_the_servers_own_arrow(filled: tuple[Server, str]) -> None:
    server, _ = filled
    query = "SELECT n, v FROM one ORDER BY n"
    with ipc.open_stream(server.ask(f"{query} FORMAT ArrowStream")) as stream:
        expected = stream.read_all()["v"].to_pylist()
    found = server.read(query, pa.string_view())["v"].to_pylist()
    assert [plain(value) for value in found] == [plain(value) for value in expected]


@pytest.mark.long
@pytest.mark.parametrize(
    "filled", [sql_type for sql_type in CASES if not re.search("|".join(NOT_IN_CONNECT), sql_type)], indirect=True
)
def test_values_are_those_of_the_reference_client(filled: tuple[Server, str], client: Client) -> None:
    server, sql_type = filled
    query = f"SELECT n, v FROM {DATABASE}.one ORDER BY n"
    expected = client.query(query, settings={"session_timezone": "UTC"}).result_columns[1]
    found = server.read(query, pa.string_view())["v"].to_pylist()
    if sql_type.startswith("Map"):
        found = [dict(value) for value in found]
    if "IPv6" in sql_type:
        found = [value and str(ipaddress.ip_address(value)) for value in found]
    if "JSON" in sql_type:
        found = [json.loads(value) if isinstance(value, str) else list(map(json.loads, value)) for value in found]
    assert [plain(value) for value in found] == [plain(value) for value in expected]


def plain(value: Any) -> Any:
    """Return a value in a form that is equal for both clients."""
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, dict):
        return [plain(one) for one in value.values()]
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # of more than 64 bits
    return value if value is None or isinstance(value, dt.date) else str(value)


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Client]:
    parts = urlsplit(server.url)
    name, password = server.headers["X-ClickHouse-User"], server.headers["X-ClickHouse-Key"]
    where = {"host": parts.hostname, "port": parts.port, "database": server.headers["X-ClickHouse-Database"]}
    with clickhouse_connect.get_client(username=name, password=password, **where) as made:
        yield made

"""The native protocol, with clickhouse-driver and plain sockets."""

import contextlib
import datetime
import struct
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import clickhouse_connect
import psutil
import pytest
from clickhouse_connect.driver.exceptions import DatabaseError, StreamFailureError
from clickhouse_driver.block import ColumnOrientedBlock
from clickhouse_driver.clientinfo import ClientInfo
from clickhouse_driver.errors import ServerException

from harness.systems.clickhouse.gateway.blocks import read_block
from harness.systems.clickhouse.gateway.codecs import METHOD_LZ4, compress_frames
from harness.systems.clickhouse.gateway.wire import Reader, TimedSocket, string, varint
from tests.systems.clickhouse.gateway.client_packets import (
    BLOCK_INFO,
    HELLO,
    NO_MORE_DATA,
    hello,
    in_chunks,
    newest_hello,
    newest_query,
    query_packet,
)
from tests.waiting import until

COMPRESSIONS = [False, "lz4", "zstd"]


@pytest.fixture
def wire(gateway):
    """A socket behind its handshake, and a reader on it."""
    with gateway.raw(gateway.native_port) as connection:
        connection.sendall(hello())
        reader = Reader(TimedSocket(connection, 30).receive)
        assert reader.byte() == 0
        for read in (reader.text, *[reader.varint] * 3, reader.text, reader.text, reader.varint):
            read(100) if read == reader.text else read()
        yield connection, reader


def read_exception(reader):
    """Skip Data and Progress packets up to the Exception packet and return its code."""
    while (packet := reader.byte()) in (1, 3):
        if packet == 3:
            [reader.varint() for _ in range(5)]
            continue
        reader.skip(1 + len(BLOCK_INFO))
        read_block(reader)
    assert packet == 2
    code = struct.unpack("<i", reader.exact(4))[0]
    reader.text(100), reader.text(100_000), reader.text(100_000), reader.byte()
    return code


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_values_of_many_types_survive_a_round_trip(open_native, compression):
    columns = (
        "u UUID, d Date, i Int32, k LowCardinality(String), s String, f Float64, n Nullable(String), a Array(String), "
        "m Map(String, UInt8), t Tuple(UInt8, String), l LowCardinality(Nullable(String)), x FixedString(3), "
        "dt DateTime64(3, 'UTC'), c Decimal(20, 4), e Enum8('a' = 1, 'b' = 2), nested Array(Array(UInt16))"
    )
    rows = [
        (
            uuid.UUID(int=n), datetime.date(2020, 1, 1), -n, f"kind {n % 3}",
            ["", "ä€😀\t\n\\'\"", "\\N"][n % 3] * n, n / 7,
            None if n % 2 else "x", ["a"] * (n % 4), {"k": n % 200}, (n % 256, "t"), None if n % 5 else "low", "abc",
            datetime.datetime(2020, 1, 1, 1, 2, 3, 4000, tzinfo=datetime.UTC), n, "ab"[n % 2], [[n % 99]] * (n % 3),
        )
        for n in range(500)
    ]  # fmt: skip
    client = open_native(compression=compression)
    client.execute("CREATE TEMPORARY TABLE many_types (" + columns + ")")
    assert client.execute("INSERT INTO many_types VALUES", rows) == 500
    assert client.execute("SELECT * FROM many_types ORDER BY u") == rows


@pytest.mark.long
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_large_insert_of_many_blocks_arrives_whole(open_native, compression):
    client = open_native(compression=compression)
    client.execute("CREATE TEMPORARY TABLE large (a UInt64, s String)")
    columns = [list(range(300_000)), [str(n) * (n % 40) for n in range(300_000)]]
    client.execute("INSERT INTO large VALUES", columns, columnar=True, settings={"insert_block_size": 70_000})
    answer = client.execute("SELECT count(), sum(a), sum(length(s)) FROM large")
    assert answer == [(300_000, sum(columns[0]), sum(map(len, columns[1])))]


@pytest.mark.parametrize("format", ["TabSeparated", "CSV", "JSONEachRow"])
def test_text_inside_the_query_is_inserted(client, table, format):
    row = {
        "TabSeparated": "{u}\t2020-01-01\t{n}\t2\tk\tä€😀\tb\\tc\t\t1\t2\t3\t4\t5\n",
        "CSV": '{u},2020-01-01,{n},2,k,ä€😀,"b\tc","",1,2,3,4,5\n',
        "JSONEachRow": '{{"entity_key":"{u}","number_1":{n},"text_1":"ä€😀","text_2":"b\\tc"}}\n',
    }[format]
    payload = "".join(row.format(u=uuid.UUID(int=n), n=n) for n in range(30_000))
    assert client.execute(f"INSERT INTO {table} FORMAT {format}\n{payload}") == []
    select = f"SELECT count(), sum(number_1), min(text_1), max(text_2), max(text_3) FROM {table}"
    assert client.execute(select) == [(30_000, sum(range(30_000)), "ä€😀", "b\tc", "")]


def test_values_inside_the_query_are_inserted(client, table):
    client.execute(f"INSERT INTO {table} (number_1, text_1) VALUES (1, 'a;b'), (2, 'c');")
    assert client.execute(f"SELECT number_1, text_1 FROM {table} ORDER BY 1") == [(1, "a;b"), (2, "c")]


def test_an_empty_result_has_its_columns(client):
    for query in (
        "SELECT 1 AS a, 'x' AS b WHERE 0",
        "SELECT a, b FROM (SELECT 1 AS a, 'x' AS b) WHERE a > 5 FORMAT CSV",
    ):
        assert client.execute(query, with_column_types=True) == ([], [("a", "UInt8"), ("b", "String")])
    rows, columns = client.execute("SHOW TABLES LIKE 'no_such_table'", with_column_types=True)
    assert (rows, columns) == ([], [("name", "String")])


def test_statements_that_are_no_select_have_results_too(client):
    assert ("default",) in client.execute("SHOW DATABASES")
    assert client.execute("EXISTS TABLE no_such_table") == [(0,)]
    assert client.execute("DESCRIBE TABLE (SELECT 1 AS a)")[0][:2] == ("a", "UInt8")
    assert client.execute("EXPLAIN SELECT 1")


def test_a_result_type_that_cannot_be_walked_over_still_arrives(gateway, client):
    rows, columns = client.execute(
        "SELECT finalizeAggregation(s) AS f, n FROM (SELECT sumState(number) AS s, 1 AS n FROM numbers(3))",
        with_column_types=True,
    )
    assert (rows, columns) == ([(3, 1)], [("f", "UInt64"), ("n", "UInt8")])
    with gateway.raw(gateway.native_port) as connection:
        connection.sendall(hello() + query_packet("SELECT sumState(number) AS s FROM numbers(3)") + NO_MORE_DATA)
        received = b""
        while not received.endswith(b"\x05"):
            received += connection.recv(1 << 16)
        assert received.count(b"AggregateFunction(sum, UInt64)") == 2


def test_settings_of_a_query_last_as_long_as_the_query(open_native):
    client = open_native(settings={"max_block_size": 1000})
    select = "SELECT getSetting('max_block_size'), getSetting('max_threads')"
    client.execute("SET max_threads = 3")
    assert client.execute(select, settings={"max_block_size": 5, "max_threads": 1}) == [(5, 1)]
    assert client.execute(select) == [(1000, 3)]


def test_an_unknown_setting_is_left_out_unless_it_is_important(open_native):
    client = open_native()
    settings = {"no_such_setting": 1, "max_block_size": 5}
    assert client.execute("SELECT getSetting('max_block_size')", settings=settings) == [(5,)]
    strict = open_native(settings_is_important=True)
    with pytest.raises(ServerException, match=r"^Code: 115\."):
        strict.execute("SELECT 1", settings={"no_such_setting": 1})


def test_the_session_keeps_its_database_and_temporary_tables(open_native):
    client = open_native()
    client.execute("CREATE DATABASE IF NOT EXISTS lab_native")
    client.execute("USE lab_native")
    client.execute("CREATE TEMPORARY TABLE mine (a UInt8)")
    assert client.execute("SELECT currentDatabase(), count() FROM mine") == [("lab_native", 0)]
    other = open_native(database="lab_native")
    assert other.execute("SELECT currentDatabase()") == [("lab_native",)]
    other.execute("DROP DATABASE lab_native")


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_json_survives_a_round_trip(open_native, compression):
    rows = [({"a": {"b": n}, "list": [1, 2], "k" + str(n % 40): "ä"}, {"m": [{"x": "y"}]}, "end") for n in range(200)]
    client = open_native(compression=compression)
    client.execute("CREATE TEMPORARY TABLE documents (j JSON, m Map(String, Array(JSON)), s String)")
    assert client.execute("INSERT INTO documents VALUES", rows) == 200
    assert client.execute("SELECT * FROM documents ORDER BY j.a.b::Int64") == rows


@pytest.mark.parametrize("revision", [54058, 54371, 54404, 54453, 54468])
def test_a_client_of_any_revision_reads_and_writes_values(open_native, revision):
    client = open_native(client_revision=revision, settings={"max_block_size": 7, "format_csv_delimiter": ";"})
    client.execute("CREATE TEMPORARY TABLE pairs (a Int32, s String)")
    assert client.execute("INSERT INTO pairs VALUES", [(1, "x"), (2, "y")]) == 2
    asked = "SELECT a, s, getSetting('max_block_size'), getSetting('format_csv_delimiter') FROM pairs ORDER BY a"
    assert client.execute(asked) == [(1, "x", 7, ";"), (2, "y", 7, ";")]


INSERT_ONE = b"\x02" + string("") + BLOCK_INFO + b"\x01\x01" + string("x") + string("UInt8") + b"\x00\x05"


def until_pong(connection):
    answer = b""
    while not answer.endswith(in_chunks(b"\x04")):
        answer += connection.recv(1 << 16)
    return answer


@pytest.mark.parametrize(
    ("query", "blocks", "packets"),
    [
        ("SELECT 5::UInt8 AS x", [], [1, 1, 6, 5, 4]),
        ("INSERT INTO FUNCTION null('x UInt8') VALUES", [INSERT_ONE, NO_MORE_DATA], [1, 5, 4]),
        ("SELECT nope", [], [2, 4]),
    ],
)
def test_packets_come_in_chunks_if_the_client_asks(gateway, query, blocks, packets):
    with gateway.raw(gateway.native_port) as connection:
        connection.sendall(newest_hello("chunked") + in_chunks(newest_query(query), NO_MORE_DATA, *blocks, b"\x04"))
        greeting, _, left = until_pong(connection).rpartition(string("notchunked_optional"))
    assert greeting.endswith(string("notchunked_optional"))
    left, kinds = left[12:], []
    while left:
        end = 4 + int.from_bytes(left[:4], "little")
        assert left[end : end + 4] == bytes(4)
        kinds.append(left[4])
        left = left[end + 4 :]
    assert [kind for kind in kinds if kind not in (3, 14)] == packets


def test_cancel_in_chunks_stops_a_running_select(gateway):
    marker = f"cancelled {uuid.uuid4()}"
    with gateway.raw(gateway.native_port) as connection:
        query = newest_query(f"SELECT '{marker}', sum(sipHash64(number)) FROM numbers(1000000000000)")
        connection.sendall(newest_hello("chunked") + in_chunks(query, NO_MORE_DATA))
        until(lambda: gateway.running(marker))
        connection.sendall(in_chunks(b"\x03", b"\x04"))
        answer = until_pong(connection)
    assert answer.endswith(in_chunks(b"\x05", b"\x04"))


def test_query_parameters_are_in_the_query(open_native):
    client = open_native(settings={"server_side_params": True})
    given = {"n": 5, "s": "it's\t\\ ä", "a": ["b'", "c"], "t": (1, "x")}
    asked = "SELECT {n:Int32}, {s:String}, {a:Array(String)}, {t:Tuple(Int32, String)}"
    assert client.execute(asked, given) == [tuple(given.values())]


@pytest.mark.parametrize("own", [False, True], ids=["names of all", "names of the session"])
def test_a_column_of_datetimes_names_its_time_zone(client, own):
    if own:
        client.execute("SET max_threads = 2")
    columns = "toDateTime(0, 'Asia/Tokyo') AS a, 'x' AS s, toDateTime(0) AS b, [toDateTime(0, 'UTC')] AS c"
    rows, types = client.execute(f"SELECT {columns} FROM numbers(2)", with_column_types=True)
    found = ["DateTime('Asia/Tokyo')", "String", "DateTime", "Array(DateTime('UTC'))"]
    assert [name for _, name in types] == found
    assert rows[0][0].isoformat() == "1970-01-01T09:00:00+09:00"


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_totals_and_extremes_follow_a_result(open_native, compression):
    client = open_native(compression=compression)
    asked = "SELECT number % 3 AS k, toDateTime(sum(number), 'Asia/Tokyo') AS d FROM numbers(9) GROUP BY k WITH TOTALS"
    found = client.execute(f"{asked} ORDER BY k", settings={"extremes": 1})
    assert [(k, int(d.timestamp())) for k, d in found] == [(0, 9), (1, 12), (2, 15), (0, 36), (0, 9), (2, 15)]
    assert client.last_query.progress.rows == 9
    assert len(client.execute(f"{asked} ORDER BY k")) == 4
    client.execute("SET extremes = 1")
    assert client.execute("SELECT number FROM numbers(4)") == [(0,), (1,), (2,), (3,), (0,), (3,)]


def test_blocks_fill_an_insert_from_input_in_another_time_zone(open_native):
    client = open_native(settings={"session_timezone": "Asia/Tokyo"})
    client.execute("CREATE TEMPORARY TABLE filled (a Int32, z String)")
    rows = [{"x": 1}, {"x": 2}]
    client.execute("INSERT INTO filled SELECT x + 1, timezone() FROM input('x Int32') FORMAT Native", rows)
    assert client.execute("SELECT * FROM filled ORDER BY a") == [(2, "Asia/Tokyo"), (3, "Asia/Tokyo")]
    assert client.connection.server_info.session_timezone == "Asia/Tokyo"


@pytest.mark.parametrize(("origin", "packets"), [(1, [14, 14, 14, 5]), (2, [5])], ids=["client", "another server"])
def test_profile_events_follow_the_blocks_of_a_client_but_not_of_another_server(client, monkeypatch, origin, packets):
    # remote() reads nothing before its last block: events of many blocks would fill its buffers, and both would wait.
    monkeypatch.setattr(ClientInfo.QueryKind, "INITIAL_QUERY", origin)
    client.execute("CREATE TEMPORARY TABLE filled (a Int32)")
    connection = client.connection
    connection.send_query("INSERT INTO filled VALUES")
    connection.send_external_tables(None)
    header = connection.receive_packet().block
    for values in ([[1]], [[2]], []):
        connection.send_data(ColumnOrientedBlock(header.columns_with_types if values else [], values))
    assert [connection.receive_packet().type for _ in packets] == packets
    assert client.execute("SELECT count() FROM filled") == [(2,)]


def test_the_rows_read_and_returned_are_reported(client):
    client.execute("SELECT number FROM numbers(1000)")
    told = client.last_query.progress
    assert (told.rows, told.bytes, told.total_rows) == (1000, 8000, 1000)
    assert told.elapsed_ns > 0
    assert client.last_query.profile_info.rows == 1000
    assert list(client.execute_with_progress("SELECT number FROM numbers(7)")) == [(7, 7), (7, 7)]


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELEKT", 62),
        ("SELECT nope", 47),
        ("USE nope", 81),
        ("SELECT * FROM nope", 60),
        ("SELECT throwIf(1)", 395),
        ("SELECT throwIf(number = 900000) FROM numbers(1000000)", 395),
        ("INSERT INTO nope FORMAT CSV\n1", 60),
        ("SELECT 1; SELECT 2", 62),
        ("INSERT INTO nope FROM INFILE 'x' FORMAT CSV", 78),
    ],
)
def test_an_error_has_the_code_of_a_server_and_the_connection_goes_on(wire, query, code):
    connection, reader = wire
    for _ in range(2):
        connection.sendall(query_packet(query) + NO_MORE_DATA)
        assert read_exception(reader) == code
    connection.sendall(b"\x04")
    assert reader.byte() == 4


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_missing_table_is_reported_before_any_block_is_sent(open_native, compression):
    with pytest.raises(ServerException, match=r"^Code: 60\."):
        open_native(compression=compression).execute("INSERT INTO nope VALUES", [(1,)])


def test_bad_text_inside_a_long_query_is_refused_and_the_connection_goes_on(client, table):
    with pytest.raises(ServerException, match=r"^Code: (6|27|38|376)\."):
        client.execute(f"INSERT INTO {table} FORMAT CSV\n" + "this,is,no,row\n" * 300_000)
    assert client.execute(f"SELECT count() FROM {table}") == [(0,)]


def test_blocks_that_break_a_constraint_are_refused_and_the_connection_goes_on(client):
    client.execute("DROP TABLE IF EXISTS positive")
    client.execute("CREATE TABLE positive (a Int32, CONSTRAINT c CHECK a > 0) ENGINE = MergeTree ORDER BY a")
    with pytest.raises(ServerException, match=r"^Code: 469\."):
        client.execute("INSERT INTO positive VALUES", [(-1,)] * 100_000, settings={"insert_block_size": 1000})
    assert client.execute("SELECT count() FROM positive") == [(0,)]
    client.execute("DROP TABLE positive")


@pytest.mark.parametrize(("user", "password"), [("tester", "wrong"), ("nobody", ""), ("tester", "")])
def test_a_wrong_user_or_password_is_refused_with_code_516(gateway, user, password):
    with pytest.raises(ServerException, match=r"^Code: 516\.") as raised:
        gateway.native(user=user, password=password).execute("SELECT 1")
    assert "test-password" not in str(raised.value)


def test_a_missing_database_is_refused_with_code_81(gateway):
    with pytest.raises(ServerException, match=r"^Code: 81\."):
        gateway.native(database="nope").execute("SELECT 1")


def test_external_tables_last_as_long_as_their_query(client):
    tables = [
        {
            "name": "ext",
            "structure": [("x", "Int32"), ("a b", "Array(String)")],
            "data": [{"x": 1, "a b": ["c"]}] * 100,
        },
        {"name": "none", "structure": [("y", "Int32")], "data": []},
    ]
    for _ in range(2):
        query = "SELECT sum(x), any(`a b`), (SELECT count() FROM none) FROM ext"
        assert client.execute(query, external_tables=tables) == [(100, ["c"], 0)]
    with pytest.raises(ServerException, match=r"^Code: 60\."):
        client.execute("SELECT * FROM ext")


def test_a_connection_goes_on_after_an_external_table_that_cannot_be_made(wire):
    connection, reader = wire
    table = b"\x02" + string("ext") + BLOCK_INFO + b"\x01\x01" + string("x") + string("UInt8") + b"\x01"
    connection.sendall(query_packet("SELECT nope FROM ext") + table + NO_MORE_DATA)
    assert read_exception(reader) == 47
    connection.sendall(b"\x04")
    assert reader.byte() == 4


def test_a_wrong_checksum_is_refused_with_the_code_of_a_server(wire):
    connection, reader = wire
    frame = bytearray(compress_frames(BLOCK_INFO + b"\x00\x00", METHOD_LZ4))
    frame[0] ^= 1
    connection.sendall(query_packet("SELECT 1", compressed=True) + b"\x02" + string("") + bytes(frame))
    assert read_exception(reader) == 271
    assert not reader.more()


@pytest.mark.parametrize(
    "query", ["SELECT sum(sipHash64(number)) FROM numbers(1000000000000)", "SELECT number FROM system.numbers"]
)
def test_cancel_stops_a_running_select(gateway, client, query):
    marker = f"cancelled {uuid.uuid4()}"
    client.connection.force_connect()
    client.connection.send_query(f"/* {marker} */ {query}")
    client.connection.send_external_tables(None)
    until(lambda: gateway.running(marker))
    client.connection.send_cancel()
    while (packet := client.connection.receive_packet()).type != 5:  # EndOfStream
        assert packet.type != 2
    assert client.execute("SELECT 1") == [(1,)]
    until(lambda: not gateway.running(marker))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT sum(sipHash64(number)) FROM numbers(1000000000000)",
        "SELECT number, toString(number) FROM system.numbers",
        "SELECT number FROM system.numbers FORMAT JSON",
    ],
)
@pytest.mark.parametrize("protocol", ["native", "http"])
def test_a_client_that_leaves_stops_its_select_and_leaks_no_thread(gateway, query, protocol):
    marker = f"left {uuid.uuid4()}"
    text = f"/* {marker} */ {query}"
    port = gateway.native_port if protocol == "native" else gateway.http_port
    with gateway.raw(port) as connection:
        if protocol == "native":
            connection.sendall(hello() + query_packet(text) + NO_MORE_DATA)
        else:
            connection.sendall(f"POST / HTTP/1.1\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
        until(lambda: gateway.running(marker))
    until(lambda: not gateway.running(marker))


@pytest.mark.parametrize("protocol", ["native blocks", "native text", "http"])
def test_a_client_that_leaves_within_an_insert_inserts_nothing(gateway, table, protocol):
    row = f"{uuid.uuid4()},2020-01-01,1,2,k,a,b,c,1,2,3,4,5\n".encode()
    insert = f"INSERT INTO {table} FORMAT CSV\n".encode()
    if protocol == "http":
        port, data = gateway.http_port, b"POST / HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n" + insert + row * 1000
    elif protocol == "native text":
        port, data = gateway.native_port, hello() + query_packet(insert + row * 40_000)[:-100]
    else:
        block = b"\x01\x64" + string("number_1") + string("Int32") + bytes(400)
        packet = b"\x02" + string("") + BLOCK_INFO + block
        text = f"INSERT INTO {table} (number_1) VALUES"
        port, data = gateway.native_port, hello() + query_packet(text) + NO_MORE_DATA + packet * 10 + packet[:50]
    with gateway.raw(port) as connection:
        connection.sendall(data)
    until(lambda: gateway.running(f"INSERT INTO {table}") == 0)
    assert gateway.query(f"SELECT count() FROM {table}") == b"0\n"


def test_many_clients_that_leave_leak_neither_threads_nor_files(gateway):
    process = psutil.Process(gateway.process.pid)
    text = b"SELECT number FROM system.numbers FORMAT JSON"
    baseline = len(process.net_connections("tcp"))
    threads, files = [], []

    def open_files():
        return process.num_fds() - 3 * gateway.threads  # the engine opens three for each of its threads

    for _ in range(3):
        for _ in range(5):
            with gateway.raw(gateway.native_port) as connection:
                connection.sendall(hello() + query_packet("SELECT number FROM system.numbers") + NO_MORE_DATA)
                connection.recv(1)
            with gateway.raw(gateway.http_port) as connection:
                connection.sendall(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text))
        until(lambda: gateway.running("system.numbers") == 0)
        until(lambda: len(process.net_connections("tcp")) <= baseline)
        threads.append(gateway.threads)
        files.append(open_files())
    # The engine's own pool of threads may still grow; a thread and a session left behind by each would be ten a round.
    assert threads[2] <= threads[0] + 15
    until(lambda: open_files() <= files[0] + 30)  # the engine itself opens some for a short time


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\xff" * 100,
        b"\x00" + b"\xff" * 20,
        b"\x00" + varint(1 << 40),
        HELLO + string("tester"),
        hello() + b"\x63",
        hello() + b"\x01" + varint(1 << 62),
        hello() + b"\x01" + b"\xff" * 30,
        hello() + query_packet("SELECT 1") + b"\x02" + string("") + b"\x09" * 50,
        hello() + query_packet("SELECT 1") + b"\x02" + string("") + BLOCK_INFO + varint(1 << 60) + varint(1 << 60),
        hello() + query_packet("SELECT 1") + b"\x02\x00" + BLOCK_INFO + b"\x01" + varint(1 << 31) + b"\x01a\x07UInt256",
        hello() + query_packet("SELECT 1", compressed=True) + b"\x02" + string("") + b"\xff" * 200,
    ],
)  # fmt: skip
def test_garbage_is_closed_and_harms_no_other(gateway, data):
    bystander = gateway.native()
    assert bystander.execute("SELECT 1") == [(1,)]
    gateway.said(gateway.native_port, data)
    assert bystander.execute("SELECT 2") == [(2,)]
    bystander.disconnect()


TEXT = "quote \" and ' and `"


@pytest.fixture
def connect(gateway):
    client = clickhouse_connect.get_client(
        host="127.0.0.1", port=gateway.http_port, username=gateway.user, password=gateway.password
    )
    with contextlib.closing(client):
        yield client


def test_clickhouse_driver_streams(client):
    total = sum(row[0] for row in client.execute_iter("SELECT number FROM numbers(1000000)"))
    assert total == 499999500000


def test_clickhouse_connect_settings_parameters_and_errors(connect):
    assert connect.command("SELECT {n:UInt8} + 1", parameters={"n": 4}) == 5
    assert connect.query("SELECT %(text)s", parameters={"text": TEXT}).first_item == {"'quote \" and \\' and `'": TEXT}
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

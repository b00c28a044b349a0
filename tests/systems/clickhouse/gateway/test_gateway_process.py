"""The process: how it starts, refuses to start, and ends; its memory, and tables read from it by `remote`."""

import contextlib
import http.client
import json
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from harness.systems.clickhouse.gateway import __main__ as program
from harness.systems.clickhouse.gateway.http_sessions import NamedSessions
from harness.systems.clickhouse.gateway.server import LoopbackServer
from harness.systems.clickhouse.gateway.users import Users, UsersFileError, read_users
from harness.systems.clickhouse.gateway.watch import ClientWatch
from tests.systems.clickhouse.gateway.conftest import start
from tests.waiting import until


@pytest.mark.long
def test_the_ready_line_is_all_that_is_printed(launch):
    gateway = launch()
    assert gateway.version.startswith("26.")
    assert gateway.ask("SELEKT").status == 400
    assert gateway.ask("SELECT 1", user="nobody").status == 403
    gateway.process.send_signal(signal.SIGTERM)
    output, errors = gateway.process.communicate(timeout=60)
    assert (output, errors, gateway.process.returncode) == ("", "", 0)


def test_no_password_is_in_the_process_list(gateway):
    assert "test-password" not in " ".join(psutil.Process(gateway.process.pid).cmdline())


def test_it_listens_on_the_loopback_interface_only(gateway):
    sockets = psutil.Process(gateway.process.pid).net_connections("tcp")
    listening = {(s.laddr.ip, s.laddr.port) for s in sockets if s.status == psutil.CONN_LISTEN}
    assert listening == {("127.0.0.1", gateway.http_port), ("127.0.0.1", gateway.native_port)}


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_at_once_with_connections_open_and_a_query_running(launch, number):
    gateway = launch()
    client = gateway.native()
    client.execute("SELECT 1")
    with gateway.raw(gateway.http_port) as idle, gateway.raw(gateway.http_port) as running:
        idle.sendall(b"GET /ping HTTP/1.1\r\n\r\n")
        assert idle.recv(100)
        query = b"SELECT sum(sipHash64(number)) FROM numbers(1000000000000)"
        running.sendall(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(query), query))
        until(lambda: gateway.running("sipHash64"))
        gateway.process.send_signal(number)
        assert gateway.process.wait(timeout=60) == 0  # the query alone would take hours
    client.disconnect()


@pytest.mark.long
def test_data_outlives_a_kill(launch):
    first = launch()
    first.query("CREATE DATABASE kept")
    first.query("CREATE TABLE kept.t (a UInt64) ENGINE = MergeTree ORDER BY a COMMENT 'my comment'")
    assert first.ask("INSERT INTO kept.t FORMAT CSV", body=b"1\n2\n").status == 200
    first.process.kill()
    first.process.wait()
    second = launch()
    assert second.query("SELECT sum(a) FROM kept.t") == b"3\n"
    assert second.query("SELECT comment FROM system.tables WHERE database = 'kept'") == b"my comment\n"


def assert_one_line(process, *words):
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (2, "")
    assert errors.count("\n") == 1, errors
    for word in words:
        assert word in errors


@pytest.mark.long
def test_a_second_process_on_one_path_is_refused(launch, launch_process):
    gateway = launch()
    assert_one_line(launch_process(), "data path", "in use by another process")
    assert gateway.query("SELECT 1") == b"1\n"


@pytest.mark.long
@pytest.mark.parametrize("option", ["--http-port", "--native-port"])
def test_a_taken_port_is_refused(launch_process, option):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = str(taken.getsockname()[1])
        assert_one_line(launch_process(option, port), f"port {port}", "in use")


@pytest.mark.long
def test_a_port_out_of_range_is_refused(launch_process):
    assert_one_line(launch_process("--http-port", "70000"), "port 70000")


@pytest.mark.parametrize(
    "content", [None, "", "not JSON secret-word", "[]", "{}", '{"a": 1}', '["secret-word"]', '{"secret-word": null}']
)
def test_an_unusable_users_file_is_refused_and_not_shown(tmp_path, content):
    path = tmp_path / "other.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(UsersFileError) as refused:
        read_users(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "secret-word" not in str(refused.value)


@pytest.mark.long
def test_a_process_with_an_unusable_users_file_does_not_start(launch_process, tmp_path):
    assert_one_line(launch_process(users=tmp_path / "none.json"), "users file", "none.json")


@pytest.mark.long
def test_a_path_that_is_a_file_is_refused(launch_process, tmp_path):
    (tmp_path / "data").write_text("a file", encoding="utf-8")
    assert_one_line(launch_process(), "data")


@pytest.mark.long
def test_connections_over_the_limit_are_closed_and_free_places_are_used_again(launch):
    gateway = launch("--max-connections", "2")

    def has_a_place(connections):
        """Connect, and keep the connection if the gateway answers."""
        connection = gateway.raw(gateway.http_port)
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"GET /ping HTTP/1.1\r\n\r\n")
            if connection.recv(1):
                connections.enter_context(connection)
                return True
        connection.close()
        return False

    for _ in range(2):  # a place is free some time after its connection was closed
        with contextlib.ExitStack() as connections:
            for _ in range(2):
                until(lambda connections=connections: has_a_place(connections))
            assert not has_a_place(connections)


@pytest.fixture(scope="module")
def impatient(tmp_path_factory):
    gateway = start(tmp_path_factory.mktemp("impatient"), "--greeting-seconds", "0.5")
    yield gateway
    gateway.stop()


@pytest.mark.long
@pytest.mark.process
@pytest.mark.parametrize(
    ("protocol", "beginning"),
    [("http", b"GET /ping HT"), ("native", b""), ("native", b"\x00"), ("native", b"\x00\x7f")],
)
def test_a_greeting_that_never_ends_is_closed(impatient, protocol, beginning):
    with impatient.raw(impatient.http_port if protocol == "http" else impatient.native_port) as connection:
        connection.settimeout(0.1)
        connection.sendall(beginning)

        def closed():
            try:
                return connection.recv(1000) == b""
            except TimeoutError:
                with contextlib.suppress(ConnectionError):
                    connection.sendall(b"a")  # one byte after the other
            except ConnectionError:
                return True

        until(closed)
    assert impatient.query("SELECT 1") == b"1\n"


def test_the_options_are_explained(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["gateway", "--help"])
    with pytest.raises(SystemExit) as ended:
        program._arguments()
    output = capsys.readouterr().out
    assert ended.value.code == 0
    for option in ("--path", "--http-port", "--native-port", "--users-file", "--max-connections", "--greeting-seconds"):
        assert option in output


@pytest.mark.process
def test_a_fault_of_ours_is_reported_by_its_place_and_not_by_its_words(capfd):
    class Broken(socketserver.BaseRequestHandler):
        def handle(self):
            raise ValueError("a value of somebody's table")

    shared = {"users": Users({}), "watch": ClientWatch(), "sessions": NamedSessions(), "address": "127.0.0.1"}
    with LoopbackServer(Broken, 0, max_connections=8, greeting_seconds=1.0, **shared) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        socket.create_connection(server.server_address).close()
        # Shut down before it had accepted the connection, the server would never handle it.
        said = []
        until(lambda: said.append(capfd.readouterr().err) or "ValueError" in "".join(said))
        server.shutdown()
        thread.join()
    assert "".join(said).startswith("ValueError in test_gateway_process.py, line ")
    assert "somebody" not in "".join(said)


SESSION = """
import json, sys, chdb
session = chdb.connect(":memory:")
session.query("SET prefer_localhost_replica = 0")
answers = []
for query in json.load(sys.stdin):
    try:
        answers.append(session.query(query, "JSONCompactEachRow").bytes().decode())
    except RuntimeError as error:
        answers.append(f"refused: {error}")
print(json.dumps(answers))
"""


@pytest.fixture
def elsewhere(gateway):
    """Run queries in an engine of another process, because one process holds one; {rows} is a table of the gateway."""

    def run(*queries, password=gateway.password):
        def remote(table):
            where = f"127.0.0.1:{gateway.native_port}"
            return f"remote('{where}', 'default', '{table}', '{gateway.user}', '{password}')"

        strings = [query.format(rows=remote("rows"), missing=remote("missing")) for query in queries]
        command = [sys.executable, "-c", SESSION]
        done = subprocess.run(
            command, input=json.dumps(strings), capture_output=True, text=True, timeout=60, check=True
        )
        return json.loads(done.stdout.splitlines()[-1])

    columns = "n Int64, t Nullable(String), u UUID, k LowCardinality(String), s String"
    gateway.query(f"CREATE TABLE rows ({columns}) ENGINE = MergeTree ORDER BY n")
    yield run
    gateway.query("DROP TABLE rows SYNC")


@pytest.mark.long
def test_rows_written_through_remote_are_read_through_remote(gateway, elsewhere):
    rows = "SELECT number, if(number % 2 = 0, NULL, toString(number)), toUUID('01234567-89ab-cdef-0123-456789abcdef')"
    rows += ", 'k', if(number % 2, 'a\\tb', 'ä😀') FROM numbers(150000)"
    written, count, first = elsewhere(
        f"INSERT INTO FUNCTION {{rows}} {rows}",
        "SELECT count(), sum(n), countIf(t IS NULL), countIf(s = 'ä😀') FROM {rows}",
        "SELECT * FROM {rows} WHERE n < 2 ORDER BY n",
    )
    assert written == ""
    assert [int(number) for number in json.loads(count)] == [150000, 11249925000, 75000, 75000]
    lines = [json.loads(line) for line in first.splitlines()]
    assert [[int(line[0]), *line[1:]] for line in lines] == [
        [0, None, "01234567-89ab-cdef-0123-456789abcdef", "k", "ä😀"],
        [1, "1", "01234567-89ab-cdef-0123-456789abcdef", "k", "a\tb"],
    ]
    assert gateway.query("SELECT uniqExact(n) FROM rows") == b"150000\n"


@pytest.mark.long
def test_a_compressed_insert_of_another_engine_arrives(gateway, elsewhere):
    insert = "INSERT INTO FUNCTION {rows} (n) SELECT number FROM numbers(1000) SETTINGS network_compression_method = "
    assert elsewhere(*(f"{insert}'{codec}'" for codec in ("LZ4", "ZSTD", "NONE"))) == ["", "", ""]
    assert gateway.query("SELECT count() FROM rows") == b"3000\n"


@pytest.mark.long
def test_a_table_that_is_not_there_and_a_wrong_password_are_refused(gateway, elsewhere):
    (missing,) = elsewhere("SELECT * FROM {missing}")
    assert missing.startswith("refused: ")
    assert "missing" in missing
    (denied,) = elsewhere("SELECT * FROM {rows}", password=gateway.password[::-1])
    assert "AUTHENTICATION_FAILED" in denied or "Authentication failed" in denied


BYTES = 1 << 30
MOST_GROWTH = 300 << 20
# As wide as the lab's rows: the engine works on blocks of 65,409 rows, and holds some of them.
SELECT = f"SELECT number, randomPrintableASCII(100) AS x FROM numbers({BYTES // 100})"


def peak_growth(gateway, work):
    """Call a function and return the largest growth of the gateway's memory."""
    process = psutil.Process(gateway.process.pid)
    before = peak = process.memory_info().rss
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        while not working.done():
            peak = max(peak, process.memory_info().rss)
            time.sleep(0.02)
    working.result()
    return peak - before


def drain_slowly(receive, least):
    """Read a stream to its end with a pause after each 100 MB."""
    total = 0
    while data := receive(1 << 20):
        if total // (100 << 20) < (total + len(data)) // (100 << 20):
            time.sleep(0.1)
        total += len(data)
    assert total >= least


@pytest.mark.long
@pytest.mark.parametrize(
    ("format", "most"),
    [("TabSeparated", MOST_GROWTH), ("ArrowStream", MOST_GROWTH), ("Native", MOST_GROWTH), ("Parquet", BYTES // 2)],
)
def test_a_slow_reader_of_a_gigabyte_over_http_costs_little_memory(launch, format, most):
    gateway = launch()
    gateway.query("SELECT 1")
    settings = "enable_http_compression=0&output_format_arrow_compression_method=none"
    # The engine's Parquet encoder holds several row groups, of a million rows by default.
    settings += "&output_format_parquet_compression_method=none&output_format_parquet_row_group_size=65536"

    def read_slowly():
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", gateway.http_port)) as connection:
            connection.request("POST", f"/?{settings}", f"{SELECT} FORMAT {format}")
            drain_slowly(connection.getresponse().read, BYTES)

    assert peak_growth(gateway, read_slowly) < most


@pytest.mark.long
def test_a_slow_reader_of_a_gigabyte_over_native_costs_little_memory(launch):
    gateway = launch()
    gateway.query("SELECT 1")

    def read_slowly():
        client = gateway.native()
        client.connection.force_connect()
        client.connection.send_query(SELECT)
        client.connection.send_external_tables(None)
        left = BYTES

        def receive(size):
            nonlocal left
            data = client.connection.socket.recv(size) if left > 0 else b""
            left -= len(data)
            return data

        drain_slowly(receive, BYTES)
        client.disconnect()

    assert peak_growth(gateway, read_slowly) < MOST_GROWTH


@pytest.mark.long
def test_a_long_text_over_native_is_not_held_as_a_whole(launch):
    gateway = launch()
    gateway.query("CREATE TABLE sink (a String) ENGINE = Null")
    client = gateway.native()
    client.execute("SELECT 1")
    text = "INSERT INTO sink FORMAT TabSeparated\n" + ("x" * 60 + "\n") * 8_000_000
    small_blocks = {"max_insert_block_size": 65_536, "min_insert_block_size_rows": 65_536}
    assert peak_growth(gateway, lambda: client.execute(text, settings=small_blocks)) < len(text) / 2
    client.disconnect()

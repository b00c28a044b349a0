"""Results and inserts far larger than the memory that the gateway may use for them."""

import contextlib
import http.client
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

pytestmark = pytest.mark.long

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


def test_a_long_text_over_native_is_not_held_as_a_whole(launch):
    gateway = launch()
    gateway.query("CREATE TABLE sink (a String) ENGINE = Null")
    client = gateway.native()
    client.execute("SELECT 1")
    text = "INSERT INTO sink FORMAT TabSeparated\n" + ("x" * 60 + "\n") * 8_000_000
    small_blocks = {"max_insert_block_size": 65_536, "min_insert_block_size_rows": 65_536}
    assert peak_growth(gateway, lambda: client.execute(text, settings=small_blocks)) < len(text) / 2
    client.disconnect()

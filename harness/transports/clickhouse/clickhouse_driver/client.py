"""clickhouse-driver, the native protocol in Python with C extensions: https://clickhouse-driver.readthedocs.io/"""

from contextlib import contextmanager

from harness.registry import phase
from harness.transports.clickhouse.server import INSERT_SETTINGS
from harness.transports.clickhouse.sql import insert_into

ENDPOINT = "clickhouse_native"


@contextmanager
def opened(uri, **options):
    """Yield a client with these options and an open connection."""
    from urllib.parse import urlencode

    from clickhouse_driver import Client

    url = uri + ("&" if "?" in uri else "?") * bool(options) + urlencode(options)
    with Client.from_url(url) as client:
        client.execute("SELECT 1")  # a client connects only at its first query
        yield client


def insert_text(client, frame, table, settings, format_name, encode, *how):
    """Encode a frame as text with `encode(frame, *how)`, and run an INSERT whose text contains it."""
    with phase("encode"):
        payload = encode(frame, *how)
    with phase("send"):
        client.execute(f"{insert_into(table, frame.columns)} FORMAT {format_name}\n{payload}", settings=settings)


def insert_columns(client, frame, table, encode):
    """Insert the columns of a frame, as the sequences of `encode(frame)`, which the client packs into native blocks."""
    with phase("encode"):
        columns = encode(frame)
    with phase("send"):
        query = f"{insert_into(table, frame.columns)} VALUES"
        client.execute(query, params=columns, columnar=True, settings=INSERT_SETTINGS)


def connect(uri):
    """Open an uncompressed connection.

    Settings are marked as important. A server older than 26.5 therefore refuses inline inserts with code 115
    (UNKNOWN_SETTING). Otherwise it would ignore the unknown setting and wait forever.
    """
    return opened(uri, settings_is_important="1")

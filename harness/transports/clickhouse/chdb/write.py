"""chDB, the ClickHouse engine in this process, as a client of the server: https://clickhouse.com/docs/chdb

Rows that chDB writes into its own tables cross no network, but no other process can see them. Here chDB reads the frame
in place and inserts into remote(), so two engines communicate over the native protocol.
"""

from harness.registry import transport
from harness.transports.clickhouse.sql import identifiers

# Without prefer_localhost_replica=0 chDB treats a server on 127.0.0.1:9000 as itself and looks for the table there.
INSERT_SETTINGS = {"async_insert": "0", "prefer_localhost_replica": "0"}


def _insert(connection, frame, table, settings):
    """Insert a frame, which chDB finds by the name of this variable."""
    session, remote = connection
    names = identifiers(frame.columns)
    changes = ", ".join(f"{name} = '{value}'" for name, value in settings.items())
    session.query(
        f"INSERT INTO FUNCTION {remote(table)} ({names}) SELECT {names} FROM Python(frame) SETTINGS {changes}",
        "Null",
    )


@transport(
    "INSERT INTO FUNCTION remote(), zstd",
    "native columns",
    settings=INSERT_SETTINGS | {"network_compression_method": "ZSTD"},
)
def write_polars_remote(connection, frame, table):
    """Let chDB read the frame in place and insert it into remote(), in native blocks compressed with zstd.

    The engine converts in several threads, where other clients convert in Python, and the server parses nothing. zstd
    is the default between servers since 26.9 (before: lz4), set explicitly here.
    """
    _insert(connection, frame, table, INSERT_SETTINGS | {"network_compression_method": "ZSTD"})


@transport(
    "INSERT INTO FUNCTION remote(), lz4",
    "native columns",
    settings=INSERT_SETTINGS | {"network_compression_method": "LZ4"},
)
def write_polars_remote_lz4(connection, frame, table):
    """Let chDB read the frame in place and insert it into remote(), in native blocks compressed with lz4."""
    _insert(connection, frame, table, INSERT_SETTINGS | {"network_compression_method": "LZ4"})


@transport(
    "INSERT INTO FUNCTION remote(), zstd",
    "native columns",
    settings=INSERT_SETTINGS | {"network_compression_method": "ZSTD"},
)
def write_pandas_remote(connection, frame, table):
    """Let chDB read the frame in place and insert it into remote(), in native blocks compressed with zstd.

    Works like write_polars_remote. chDB turns a NaN in the frame into a null.
    """
    _insert(connection, frame, table, INSERT_SETTINGS | {"network_compression_method": "ZSTD"})


@transport(
    "INSERT INTO FUNCTION remote(), lz4",
    "native columns",
    settings=INSERT_SETTINGS | {"network_compression_method": "LZ4"},
)
def write_pandas_remote_lz4(connection, frame, table):
    """Let chDB read the frame in place and insert it into remote(), in native blocks compressed with lz4."""
    _insert(connection, frame, table, INSERT_SETTINGS | {"network_compression_method": "LZ4"})


@transport("SELECT 1", "one value", origin="limit")
def call_select_1(connection):
    """Run `SELECT 1` to time an empty round trip of this client."""
    session, remote = connection
    return 1 + int(str(session.query(f"SELECT dummy FROM {remote('one', 'system')}", "TSV")))

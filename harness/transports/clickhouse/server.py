"""What ClickHouse's server is told by several clients, and how it says that an answer is broken off."""

from urllib.parse import parse_qs, unquote, urlsplit

# A socket that is silent for so long is broken (the native clients have the same default).
TIMEOUT_SECONDS = 300
# Since 26.2 ClickHouse collects small inserts for up to 200 ms before it writes them: that wait is not the transport's.
INSERT_SETTINGS = {"async_insert": "0"}
# Rows inside the query text: since 26.5 a server parses them itself when it is told not to send the table's structure
# first; otherwise it waits for native blocks, which never come. (Before 26.5 it parsed them for async_insert=1 only.)
# precise_float_parsing is the default since 26.7; before, a double parsed from text could lose its last bit.
TEXT_INSERT_SETTINGS = {
    **INSERT_SETTINGS,
    "send_table_structure_on_insert_with_inline_data": "0",
    "precise_float_parsing": "1",
}
# An empty field that is not quoted is null or the default: the server's default, on which a null from pyarrow depends.
LOSSLESS_INSERT_SETTINGS = {**TEXT_INSERT_SETTINGS, "input_format_csv_empty_as_default": "1"}
# The server's defaults since 24.3, written down because they were different before (lz4, Binary) and may be again.
PARQUET_SETTINGS = {
    "output_format_parquet_compression_method": "zstd",
    "output_format_parquet_string_as_string": "1",
}
PARQUET_LZ4_SETTINGS = {**PARQUET_SETTINGS, "output_format_parquet_compression_method": "lz4"}


def sessionless(uri):
    """Return a client of clickhouse-connect that makes no session and has asked the server for its settings.

    As by default, it compresses with lz4.
    """
    import clickhouse_connect

    parts = urlsplit(uri)
    return clickhouse_connect.get_client(
        host=parts.hostname,
        port=parts.port,
        secure=parts.scheme == "https",
        username=unquote(parts.username or "default"),
        password=unquote(parts.password or ""),
        database=parse_qs(parts.query).get("database", ["default"])[0],
        compress="lz4",  # what the default (True) means where lz4 is installed, which clickhouse-connect requires
        autogenerate_session_id=False,
    )


def raise_if_broken_off(answer, tag):
    """Raise RuntimeError when the answer ends with the server's mark of a failure after the first rows.

    The status is sent before the rows. A server that fails later breaks off the answer (which the client raises), and
    since 25.11 it also ends it with a message between two marks that repeat a header. So nothing has to be held back:
    the other way, wait_end_of_query=1, makes the server keep the whole answer in memory before it sends the first byte.
    """
    if tag and tag.encode() in answer[-64:]:
        raise RuntimeError(f"ClickHouse failed in the middle of its answer: {answer[-2000:].decode(errors='replace')}")


def to_the_end(stream):
    """Yield the record batches of a stream of clickhouse-connect. Raises RuntimeError when the server broke it off.

    pyarrow stops at the end mark of Arrow, which an answer that failed has as well: the failure stands behind it.
    """
    yield from stream
    if behind := stream.source.read():
        raise RuntimeError(f"ClickHouse failed in the middle of its answer: {behind[-2000:].decode(errors='replace')}")

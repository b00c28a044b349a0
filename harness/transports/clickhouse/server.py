"""Settings that several clients send to ClickHouse's server, and how it marks a broken-off answer."""

from urllib.parse import parse_qs, unquote, urlsplit

# A socket that is silent for this long counts as broken (the native clients' default).
TIMEOUT_SECONDS = 300
# Since 26.2 ClickHouse collects small inserts for up to 200 ms before it writes them. This keeps that wait out of the
# time.
INSERT_SETTINGS = {"async_insert": "0"}
# Rows inside the query text: since 26.5 a server parses them itself if it does not first send the table's structure.
# Otherwise it waits for native blocks, which never come. (Before 26.5 it parsed them only with async_insert=1.)
# precise_float_parsing is the default since 26.7; before, a double parsed from text could lose its last bit.
TEXT_INSERT_SETTINGS = {
    **INSERT_SETTINGS,
    "send_table_structure_on_insert_with_inline_data": "0",
    "precise_float_parsing": "1",
}
# An unquoted empty field becomes null or the default: this is the server's default, and nulls from pyarrow depend on
# it.
LOSSLESS_INSERT_SETTINGS = {**TEXT_INSERT_SETTINGS, "input_format_csv_empty_as_default": "1"}
# The server's defaults since 24.3, set explicitly because they were different before (lz4, Binary).
PARQUET_SETTINGS = {
    "output_format_parquet_compression_method": "zstd",
    "output_format_parquet_string_as_string": "1",
}
PARQUET_LZ4_SETTINGS = {**PARQUET_SETTINGS, "output_format_parquet_compression_method": "lz4"}


def sessionless(uri):
    """Return a clickhouse-connect client that creates no session and has asked the server for its settings.

    It compresses with lz4, the default.
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
        compress="lz4",  # the meaning of the default (True) if lz4 is installed, which clickhouse-connect requires
        autogenerate_session_id=False,
    )


def raise_if_broken_off(answer, tag):
    """Raise RuntimeError if the answer ends with the server's mark of a failure after the first rows.

    The server sends the status before the rows. If it fails later, it breaks off the answer, which makes the client
    raise. Since 25.11 it also appends an error message between two marks that repeat a header. The answer therefore
    need not be held back. The alternative, wait_end_of_query=1, makes the server keep the whole answer in memory before
    it sends the first byte.
    """
    if tag and tag.encode() in answer[-64:]:
        raise RuntimeError(f"ClickHouse failed in the middle of its answer: {answer[-2000:].decode(errors='replace')}")


def to_the_end(stream):
    """Yield the record batches of a clickhouse-connect stream. Raises RuntimeError if the server broke it off.

    pyarrow stops at Arrow's end mark, which an answer that failed also has. The error message follows the mark.
    """
    yield from stream
    if behind := stream.source.read():
        raise RuntimeError(f"ClickHouse failed in the middle of its answer: {behind[-2000:].decode(errors='replace')}")

"""The ClickHouse sink that Daft uses both in one process and on Ray."""

from urllib.parse import parse_qs, unquote, urlsplit

from harness.transports.clickhouse.server import INSERT_SETTINGS
from harness.transports.clickhouse.sql import identifier


def write_by_daft(frame, uri, table):
    """Write a frame with Daft's own sink, which inserts each micropartition as a pandas frame."""
    parts = urlsplit(uri)
    frame.write_clickhouse(
        identifier(table),  # clickhouse-connect keeps a name that is already quoted
        host=parts.hostname,
        port=parts.port,
        user=unquote(parts.username or "default"),
        password=unquote(parts.password or ""),
        database=parse_qs(parts.query).get("database", ["default"])[0],
        client_kwargs={"secure": parts.scheme == "https"},
        write_kwargs={"settings": INSERT_SETTINGS},
    )

"""What Daft does with ClickHouse in one process and on Ray alike: its own sink."""

from urllib.parse import parse_qs, unquote, urlsplit

from harness.transports.clickhouse.server import INSERT_SETTINGS
from harness.transports.clickhouse.sql import identifier


def write_by_daft(frame, uri, table):
    """Write a frame with Daft's own sink, which inserts each micropartition as a frame of pandas."""
    parts = urlsplit(uri)
    frame.write_clickhouse(
        identifier(table),  # clickhouse-connect leaves what is quoted already as it is
        host=parts.hostname,
        port=parts.port,
        user=unquote(parts.username or "default"),
        password=unquote(parts.password or ""),
        database=parse_qs(parts.query).get("database", ["default"])[0],
        client_kwargs={"secure": parts.scheme == "https"},
        write_kwargs={"settings": INSERT_SETTINGS},
    )

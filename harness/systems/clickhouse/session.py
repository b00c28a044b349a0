"""A user's query in their own session: with their address's database and settings, read-only.

https://clickhouse.com/docs/operations/settings/permissions-for-queries
"""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import Error

from harness.model import LabError
from harness.systems.clickhouse import client
from harness.systems.clickhouse.asked import as_brought, with_bytes
from harness.systems.queries import DOLLARS, without_end

_QUOTED = r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`\\]|\\.|``)*`""" + f"|{DOLLARS}"
_TO_LINE_END = r"--|\#[ !]"
_READS_ALONE = "SELECT value FROM system.settings WHERE name = 'readonly'"


def answer(endpoints: dict[str, str], query: str) -> tuple[pa.Table, str]:
    """Return the rows of a user's query as Arrow, and the rewritten query. Raises LabError."""
    asked = without_end(query, _QUOTED, nested=True, to_line_end=_TO_LINE_END)
    try:
        with _opened(endpoints["clickhouse_http"]) as opened:
            described = opened.query(f"DESCRIBE TABLE ({asked})").result_rows
            asked = as_brought(asked, [(name, of) for name, of, *_ in described])
            return with_bytes(opened.query_arrow(asked)), asked
    except Error as error:
        raise LabError(f"clickhouse refused the query: {client.said(error)}") from None


def _opened(uri: str) -> Client:
    """Open a client whose queries can only read; users may still choose data and settings."""
    parts = urlsplit(uri)
    settings = dict(parse_qsl(parts.query))
    database = settings.pop("database", "") or unquote(parts.path.strip("/"))
    opened = client.connected(uri, **({"database": database} if database else {}), settings=settings)
    if not int(str(opened.command(_READS_ALONE)).split()[0]):  # with extremes=1 more lines follow
        opened.set_client_setting("readonly", "2")
    return opened

"""Parts of a printed program for one ClickHouse table, next to its transport: create the table, run a query."""

VARIABLE, PACKAGES = "LAB_CLICKHOUSE_HTTP_URL", ()
BY_ARROW_WIRE: dict[str, str] = {}
CREATE = "create_table()"
CREATE_TABLE = '''\
def create_table():
    """Create the table if it is missing."""
    from http.client import HTTPConnection, HTTPSConnection
    from urllib.parse import unquote, urlsplit

    url = urlsplit(os.environ["LAB_CLICKHOUSE_HTTP_URL"])
    connect_to = HTTPSConnection if url.scheme == "https" else HTTPConnection
    server = connect_to(url.hostname, url.port or 8123)
    user = {"X-ClickHouse-User": unquote(url.username or "default"), "X-ClickHouse-Key": unquote(url.password or "")}
    server.request("POST", f"/?{url.query}", CREATE_TABLE.encode(), user)
    if (answer := server.getresponse()).status != 200:
        raise SystemExit(answer.read().decode())'''
CREATE_BY_ARROW_WIRE = "connection.ask(CREATE_TABLE)"
# The body of `load` for a query: `table` is its rows in Arrow.
SELECT_PACKAGES = ("clickhouse_connect", "pyarrow")
SELECT = """\
import clickhouse_connect
from urllib.parse import parse_qsl, urlsplit

url = urlsplit(os.environ["LAB_CLICKHOUSE_HTTP_URL"])
settings = dict(parse_qsl(url.query))
place = {"interface": url.scheme, "port": url.port or 8123, "database": settings.pop("database", None)}
client = clickhouse_connect.get_client(dsn=url._replace(query="").geturl(), settings=settings, **place)
table = client.query_arrow(QUERY)"""

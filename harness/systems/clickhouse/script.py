"""Parts of a printed program for one ClickHouse table, next to its transport: create the table, run a query."""

VARIABLE, PACKAGES = "LAB_CLICKHOUSE_HTTP_URL", ()
BY_ARROW_WIRE: dict[str, str] = {}
CREATE_TABLE = '''\
def create_table():
    """Create the table where there is none."""
    import http.client
    from urllib.parse import unquote, urlsplit

    url = urlsplit(os.environ["LAB_CLICKHOUSE_HTTP_URL"])
    secure = url.scheme == "https"
    server = (http.client.HTTPSConnection if secure else http.client.HTTPConnection)(url.hostname, url.port or 8123)
    user = {"X-ClickHouse-User": unquote(url.username or "default"), "X-ClickHouse-Key": unquote(url.password or "")}
    server.request("POST", f"/?{url.query}", CREATE_TABLE.encode(), user)
    answer = server.getresponse()
    if answer.status != 200:
        raise SystemExit(answer.read().decode())'''
CREATE_BY_ARROW_WIRE = "connection.ask(CREATE_TABLE)"
# What `load` does for a query: `table` is its rows in Arrow.
SELECT_PACKAGES = ("clickhouse_connect", "pyarrow")
SELECT = """\
import clickhouse_connect
from urllib.parse import parse_qsl, unquote, urlsplit

url = urlsplit(os.environ["LAB_CLICKHOUSE_HTTP_URL"])
settings = dict(parse_qsl(url.query))
database = settings.pop("database", "") or unquote(url.path.strip("/"))
user = {"username": unquote(url.username or "default"), "password": unquote(url.password or "")}
place = {"host": url.hostname, "port": url.port or 8123, "secure": url.scheme == "https", "database": database or None}
client = clickhouse_connect.get_client(**place, **user, settings=settings)
table = client.query_arrow(QUERY)"""

"""The server reads the rows from S3 with s3(): https://clickhouse.com/docs/sql-reference/table-functions/s3"""

from contextlib import contextmanager

from harness.registry import phase, transport
from harness.transports.clickhouse.columns import arrow_parquet, polars_parquet
from harness.transports.clickhouse.httpx.client import accepted, opened
from harness.transports.clickhouse.server import INSERT_SETTINGS
from harness.transports.clickhouse.sql import identifiers, insert_into


@contextmanager
def connect(uri, s3):
    """Yield an HTTP client of the server, an open bucket, and the bucket's addresses and keys.

    `s3` has endpoint (http://host:port, reachable from this process and the server), region, access_key, secret_key and
    bucket. The uploaded objects are removed at the end, outside the timed writes.
    """
    from obstore.store import S3Store

    store = S3Store(
        s3.bucket,
        endpoint=s3.endpoint,
        region=s3.region,
        access_key_id=s3.access_key,
        secret_access_key=s3.secret_key,
        virtual_hosted_style_request=False,
        client_options={"allow_http": True},
    )
    with opened(uri) as client:
        store.list().collect()
        uploaded: set[str] = set()
        yield client, store, s3, uploaded
        for key in uploaded:
            store.delete(key)


def _upload_and_pull(connection, frame, table, encode, *how):
    """Upload the Parquet file of `encode(frame, *how)` and have the server insert it; the time includes both."""
    client, store, s3, uploaded = connection
    with phase("encode"):
        parquet = encode(frame, *how)
    key = f"{table.encode().hex()}.parquet"  # in hex, because *, ?, {} and % have a meaning in a URL
    uploaded.add(key)
    with phase("upload"):
        store.put(key, parquet)
    names = identifiers(frame.columns)
    source = "s3({address:String}, {key:String}, {secret:String}, 'Parquet')"
    place = {"param_address": f"{s3.endpoint}/{s3.bucket}/{key}"}
    keys = {"param_key": s3.access_key, "param_secret": s3.secret_key}
    query = f"{insert_into(table, frame.columns)} SELECT {names} FROM {source}"
    with phase("send"):
        accepted(client.post("/", params=INSERT_SETTINGS | place | keys, content=query.encode()))


@transport("upload, INSERT SELECT FROM s3()", "Parquet", needs=["s3"], settings=INSERT_SETTINGS)
def write_polars_s3_parquet(connection, frame, table):
    """Upload the frame as one zstd Parquet file with obstore and let the server read it with s3().

    The rows cross the network twice, but the server can read row groups in parallel, and from any number of such files.
    Only UUIDs travel as strings. The time includes the upload.
    """
    _upload_and_pull(connection, frame, table, polars_parquet)


@transport("upload, INSERT SELECT FROM s3()", "Parquet", needs=["s3"], settings=INSERT_SETTINGS)
def write_pandas_s3_parquet(connection, frame, table):
    """Upload the frame as one zstd Parquet file with obstore and let the server read it with s3().

    Works like write_polars_s3_parquet. UUIDs travel as strings and dates as timestamps. A NaN arrives as NaN.
    """
    _upload_and_pull(connection, frame, table, arrow_parquet, "zstd")

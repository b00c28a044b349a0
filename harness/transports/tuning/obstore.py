"""obstore, the Rust crate object_store for Python: https://developmentseed.org/obstore/latest/"""

from contextlib import contextmanager

from harness.registry import transport
from harness.transports.tuning.queries import download_with, upload_with


@contextmanager
def connect(folder, s3):
    """Yield a DuckDB connection and a function that opens a bucket of an S3 server.

    `s3` has endpoint (http(s)://host:port), region, access_key and secret_key.
    """
    from functools import partial

    import duckdb
    from obstore.store import S3Store

    bucket = partial(
        S3Store,
        endpoint=s3["endpoint"],
        region=s3["region"],
        access_key_id=s3["access_key"],
        secret_access_key=s3["secret_key"],
        virtual_hosted_style_request=False,
        client_options={"allow_http": True},
    )
    with duckdb.connect(config={"temp_directory": folder}) as connection:
        yield connection, bucket


@transport("COPY TO local files, upload", "table to Parquet files", operation="job")
def upload(session, source, folder, destination, threads):
    """Copy a table into local Parquet files and upload them with obstore, ten files at a time."""
    from concurrent.futures import ThreadPoolExecutor

    connection, opened = session

    def send(files, bucket, prefix):
        store = opened(bucket)
        with ThreadPoolExecutor(10) as pool:
            list(pool.map(lambda file: store.put(f"{prefix}/{file.name}", file), files))

    return upload_with(send, connection, source, folder, destination, threads)


@transport("download, GROUP BY", "Parquet files", operation="job")
def download(session, source, folder, threads):
    """Download Parquet files with obstore, ten at a time, and run the group-by query on them."""
    from concurrent.futures import ThreadPoolExecutor

    connection, opened = session

    def fetch(bucket, pattern):
        store = opened(bucket)
        found = [one for page in store.list(pattern.removesuffix("/*.parquet")) for one in page]

        def save(key):
            with open(f"{folder}/{key.rpartition('/')[2]}", "wb") as file:
                for chunk in store.get(key).stream():
                    file.write(chunk)

        with ThreadPoolExecutor(10) as pool:
            list(pool.map(save, [one["path"] for one in found]))
        return sum(one["size"] for one in found)

    return download_with(fetch, connection, source, folder, threads)

"""obstore, the Rust crate object_store for Python: https://developmentseed.org/obstore/latest/"""

from contextlib import contextmanager

from harness.registry import transport
from harness.transports.tuning.queries import TOP, write_files


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
    import time
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path

    connection, opened = session
    bucket, _, prefix = destination.removeprefix("s3://").partition("/")
    started = time.perf_counter()
    rows = write_files(connection, source, f"{folder}/out", threads)
    files = sorted(Path(folder, "out").iterdir())
    written = time.perf_counter()
    store = opened(bucket)
    with ThreadPoolExecutor(10) as pool:
        list(pool.map(lambda file: store.put(f"{prefix}/{file.name}", file), files))
    seconds = time.perf_counter() - written
    rate = sum(file.stat().st_size for file in files) / seconds
    details = {"write_seconds": written - started, "upload_seconds": seconds, "upload_bytes_per_s": rate}
    return {"answer": rows, "details": details}


@transport("download, GROUP BY", "Parquet files", operation="job")
def download(session, source, folder, threads):
    """Download Parquet files with obstore, ten at a time, and run the group-by query on them."""
    import time
    from concurrent.futures import ThreadPoolExecutor

    connection, opened = session
    bucket, _, pattern = source.removeprefix("s3://").partition("/")
    started = time.perf_counter()
    store = opened(bucket)
    found = [one for page in store.list(pattern.removesuffix("/*.parquet")) for one in page]

    def fetch(key):
        with open(f"{folder}/{key.rpartition('/')[2]}", "wb") as file:
            for chunk in store.get(key).stream():
                file.write(chunk)

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(fetch, [one["path"] for one in found]))
    seconds = time.perf_counter() - started
    connection.execute(f"SET threads = {int(threads)}")
    rows = connection.execute(TOP, {"source": f"{folder}/*.parquet"}).fetchall()
    details = {
        "download_seconds": seconds,
        "download_bytes_per_s": sum(one["size"] for one in found) / seconds,
        "query_seconds": time.perf_counter() - started - seconds,
    }
    return {"answer": [list(row) for row in rows], "details": details}

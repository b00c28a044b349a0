"""The timed call around an upload or a download: a table is written to files before, or a query runs on them after."""

import time
from pathlib import Path

TOP = """
SELECT col_1, col_2, count(*) AS cnt FROM read_parquet($source)
GROUP BY col_1, col_2 ORDER BY cnt DESC, col_1, col_2 LIMIT 10
"""


def write_files(connection, source, folder, threads):
    """Copy a table into Parquet files in a new local folder, one per thread; return the number of rows."""
    database, new = ("'" + text.replace("'", "''") + "'" for text in (source, folder))
    connection.execute(f"SET threads = {int(threads)}")
    connection.execute(f"ATTACH OR REPLACE {database} AS given (READ_ONLY)")
    return connection.execute(f"COPY given.benchmark_input TO {new} (FORMAT parquet, PER_THREAD_OUTPUT)").fetchone()[0]


def send_files(opened, files, bucket, prefix):
    """Upload files with a manager of s3transfer, which is closed at the end."""
    with opened as manager:
        for future in [manager.upload(str(file), bucket, f"{prefix}/{file.name}") for file in files]:
            future.result()


def fetch_files(opened, client, folder, bucket, pattern):
    """Download the files of a pattern with a manager of s3transfer; return their bytes. boto3's client lists them."""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=pattern.removesuffix("*.parquet"))
    sizes = {found["Key"]: found["Size"] for page in pages for found in page["Contents"]}
    with opened as manager:
        for future in [manager.download(bucket, key, f"{folder}/{key.rpartition('/')[2]}") for key in sizes]:
            future.result()
    return sum(sizes.values())


def upload_with(send, connection, source, folder, destination, threads):
    """Copy a table into local Parquet files, send them with `send(files, bucket, prefix)`, and time both."""
    bucket, _, prefix = destination.removeprefix("s3://").partition("/")
    started = time.perf_counter()
    rows = write_files(connection, source, f"{folder}/out", threads)
    files = sorted(Path(folder, "out").iterdir())
    written = time.perf_counter()
    send(files, bucket, prefix)
    seconds = time.perf_counter() - written
    rate = sum(file.stat().st_size for file in files) / seconds
    details = {"write_seconds": written - started, "upload_seconds": seconds, "upload_bytes_per_s": rate}
    return {"answer": rows, "details": details}


def download_with(fetch, connection, source, folder, threads):
    """Fetch files with `fetch(bucket, pattern)`, which returns their bytes; run the query on them, and time both."""
    bucket, _, pattern = source.removeprefix("s3://").partition("/")
    started = time.perf_counter()
    size = fetch(bucket, pattern)
    seconds = time.perf_counter() - started
    connection.execute(f"SET threads = {int(threads)}")
    rows = connection.execute(TOP, {"source": f"{folder}/*.parquet"}).fetchall()
    query = time.perf_counter() - started - seconds
    details = {"download_seconds": seconds, "download_bytes_per_s": size / seconds, "query_seconds": query}
    return {"answer": [list(row) for row in rows], "details": details}

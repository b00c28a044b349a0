"""boto3's classic transfer client, the default of "aws s3 sync": https://github.com/boto/s3transfer"""

from contextlib import contextmanager
from functools import partial

from harness.registry import transport
from harness.transports.tuning.queries import download_with, fetch_files, send_files, upload_with


@contextmanager
def connect(folder, s3):
    """Yield a DuckDB connection and boto3's client of an S3 server.

    `s3` has endpoint (http(s)://host:port), region, access_key and secret_key.
    """
    import boto3
    import duckdb

    client = boto3.client(
        "s3",
        endpoint_url=s3["endpoint"],
        region_name=s3["region"],
        aws_access_key_id=s3["access_key"],
        aws_secret_access_key=s3["secret_key"],
    )
    with duckdb.connect(config={"temp_directory": folder}) as connection:
        yield connection, client


@transport("COPY TO local files, upload", "table to Parquet files", operation="job", origin="published")
def upload(session, source, folder, destination, threads):
    """Copy a table into local Parquet files and upload them with the classic client: ten requests at a time."""
    from s3transfer.manager import TransferManager

    connection, client = session

    send = partial(send_files, TransferManager(client))
    return upload_with(send, connection, source, folder, destination, threads)


@transport("download, GROUP BY", "Parquet files", operation="job", published="download with the classic client")
def download(session, source, folder, threads):
    """Download Parquet files with the classic client, ten requests at a time, and run the group-by query on them."""
    from s3transfer.manager import TransferManager

    connection, client = session

    fetch = partial(fetch_files, TransferManager(client), client, folder)
    return download_with(fetch, connection, source, folder, threads)

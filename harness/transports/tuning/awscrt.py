"""The AWS Common Runtime (CRT) as "aws s3 sync" uses it if configured: https://github.com/awslabs/aws-crt-python

boto3 uses the CRT only on some instances and does not pass it another server's endpoint. If another process holds the
CRT's lock, boto3 silently continues without it. These jobs therefore use s3transfer's CRT manager directly.
"""

from contextlib import contextmanager
from functools import partial

from harness.registry import transport
from harness.transports.tuning.queries import download_with, fetch_files, send_files, upload_with


@contextmanager
def connect(folder, s3):
    """Yield a DuckDB connection, boto3's client to list objects, and the CRT's client with its request serializer.

    `s3` has endpoint (http(s)://host:port), region, access_key and secret_key.
    """
    import boto3
    import duckdb
    from awscrt.auth import AwsCredentialsProvider
    from botocore.session import Session
    from s3transfer.crt import BotocoreCRTRequestSerializer, create_s3_crt_client

    place = {"endpoint_url": s3["endpoint"], "region_name": s3["region"]}
    client = boto3.client("s3", **place, aws_access_key_id=s3["access_key"], aws_secret_access_key=s3["secret_key"])
    keys = AwsCredentialsProvider.new_static(s3["access_key"], s3["secret_key"])
    runtime = create_s3_crt_client(s3["region"], keys, use_ssl=s3["endpoint"].startswith("https://"))
    with duckdb.connect(config={"temp_directory": folder}) as connection:
        yield connection, client, (runtime, BotocoreCRTRequestSerializer(Session(), place))


@transport(
    "COPY TO local files, upload",
    "table to Parquet files",
    operation="job",
    requires=["awscrt.s3"],
    published="upload with the CRT client",
)
def upload(session, source, folder, destination, threads):
    """Copy a table into local Parquet files and upload them with the CRT, which chooses the number of requests."""
    from s3transfer.crt import CRTTransferManager

    connection, _, runtime = session

    send = partial(send_files, CRTTransferManager(*runtime))
    return upload_with(send, connection, source, folder, destination, threads)


@transport(
    "download, GROUP BY",
    "Parquet files",
    operation="job",
    requires=["awscrt.s3"],
    published="download with the CRT client",
)
def download(session, source, folder, threads):
    """Download Parquet files with the CRT, which chooses the number of requests, and run the group-by query on them."""
    from s3transfer.crt import CRTTransferManager

    connection, client, runtime = session

    fetch = partial(fetch_files, CRTTransferManager(*runtime), client, folder)
    return download_with(fetch, connection, source, folder, threads)

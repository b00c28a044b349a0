"""Any S3 server, through boto3: https://boto3.amazonaws.com/v1/documentation/api/latest/reference/services/s3.html"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import address
from harness.model import LabError, ObjectStore, Server

REQUIRES = ("boto3",)  # required modules beyond the lab's base dependencies
_ADDRESS = address.Address("s3", "s3_endpoint", "", ("http", "https"), 9000)


def check(store: ObjectStore) -> Server:
    """List the buckets; return the server's name of itself. Raises LabError: unreachable, not S3, keys refused."""
    from botocore.exceptions import BotoCoreError, ClientError

    parts = address.split(store.endpoint, _ADDRESS)
    address.reach(parts, replace(_ADDRESS, port=443 if parts.scheme == "https" else 80))
    try:
        headers = client(store).list_buckets()["ResponseMetadata"]["HTTPHeaders"]
    except ClientError as error:
        raise LabError(
            f"s3 at {parts.netloc}: {error.response['Error']['Code']}; "
            "check LAB_S3_ACCESS_KEY, LAB_S3_SECRET_KEY and LAB_S3_REGION"
        ) from None
    except BotoCoreError as error:
        raise LabError(f"s3 at {parts.netloc}: {error}; is it an S3 server?") from None
    return Server(headers.get("server", "unnamed"), frozenset({"s3"}), {})


def greet(store: ObjectStore) -> None:
    """Check that the server answers. Raises the client's exceptions."""
    client(store).list_buckets()


def timed_out(error: Exception) -> bool:
    """Return whether a client stopped waiting, in the words of any layer below boto3."""
    from boto3.exceptions import RetriesExceededError
    from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError

    last = getattr(error, "last_exception", error) if isinstance(error, RetriesExceededError) else error
    return isinstance(last, (ConnectTimeoutError, ReadTimeoutError, TimeoutError))


def client(store: ObjectStore, read_seconds: float = address.CONNECT_SECONDS) -> Any:
    """Return boto3's client without retries; it waits this long for an answer."""
    import boto3
    from botocore.config import Config

    return boto3.client(
        "s3",
        endpoint_url=store.endpoint,
        region_name=store.region,
        aws_access_key_id=store.access_key,
        aws_secret_access_key=store.secret_key,
        config=Config(
            connect_timeout=address.CONNECT_SECONDS, read_timeout=read_seconds, retries={"total_max_attempts": 1}
        ),
    )


def bucket_name(run_id: str) -> str:
    """Return a run's name in S3's form: 3 to 63 lower-case letters, digits and hyphens."""
    return ("dataframe-io-lab-" + re.sub(r"[^a-z0-9]+", "-", run_id.lower()))[:63].strip("-")


def make_bucket(store: ObjectStore, name: str) -> None:
    """Create a bucket. Raises LabError if it exists already, or the keys do not permit it."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        client(store).create_bucket(Bucket=name)
    except (BotoCoreError, ClientError) as error:
        raise LabError(f's3: the bucket "{name}" could not be made: {error}') from None


def remove_bucket(store: ObjectStore, name: str) -> None:
    """Empty and remove a bucket."""
    remove_all(store, name)
    client(store).delete_bucket(Bucket=name)


def upload(store: ObjectStore, name: str, folder: Path, prefix: str) -> None:
    """Upload every file below a folder to a bucket, under its path below a prefix."""
    requests = client(store, read_seconds=60.0)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        requests.upload_file(str(path), name, f"{prefix}/{path.relative_to(folder).as_posix()}")


def sizes(store: ObjectStore, name: str, prefix: str = "") -> dict[str, int]:
    """Return the bytes of every object of a bucket below a prefix, by key."""
    pages = client(store).get_paginator("list_objects_v2").paginate(Bucket=name, Prefix=prefix)
    return {found["Key"]: found["Size"] for page in pages for found in page.get("Contents", ())}


def download(store: ObjectStore, name: str, key: str, path: Path) -> None:
    """Fetch one object into a file."""
    from boto3.s3.transfer import TransferConfig

    once = TransferConfig(num_download_attempts=1)
    client(store, read_seconds=60.0).download_file(name, key, str(path), Config=once)


def remove_all(store: ObjectStore, name: str, prefix: str = "") -> None:
    """Remove every object of a bucket below a prefix, and the parts of incomplete uploads."""
    requests = client(store)
    for key in sizes(store, name, prefix):
        requests.delete_object(Bucket=name, Key=key)
    for open_upload in requests.list_multipart_uploads(Bucket=name).get("Uploads", ()):
        requests.abort_multipart_upload(Bucket=name, Key=open_upload["Key"], UploadId=open_upload["UploadId"])

"""Any S3 server, through boto3: https://boto3.amazonaws.com/v1/documentation/api/latest/reference/services/s3.html"""

from __future__ import annotations

from harness.model import LabError, Server
from harness.systems import address


def check(endpoint: str, region: str, access_key: str, secret_key: str) -> Server:
    """List the buckets; return what the server calls itself. Raises LabError: unreachable, no S3, keys refused."""
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    parts = address.split(endpoint, "LAB_S3_ENDPOINT", ("http", "https"), 9000)
    address.reach(parts, "s3", 443 if parts.scheme == "https" else 80)
    patience = address.CONNECT_SECONDS
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=region,
        aws_access_key_id=access_key,
        aws_secret_access_key=secret_key,
        config=Config(connect_timeout=patience, read_timeout=patience, retries={"total_max_attempts": 1}),
    )
    try:
        headers = client.list_buckets()["ResponseMetadata"]["HTTPHeaders"]
    except ClientError as error:
        raise LabError(
            f"s3 at {parts.netloc}: {error.response['Error']['Code']}; "
            "check LAB_S3_ACCESS_KEY, LAB_S3_SECRET_KEY and LAB_S3_REGION"
        ) from None
    except BotoCoreError as error:
        raise LabError(f"s3 at {parts.netloc}: {error}; is it an S3 server?") from None
    return Server(headers.get("server", "unnamed"), frozenset({"s3"}), {})

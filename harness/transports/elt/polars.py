"""Polars, with lazy queries and streaming: https://docs.pola.rs/api/python/stable/reference/api/polars.scan_csv.html"""

from contextlib import contextmanager

from harness.registry import transport

# Present in every file and never empty: a row without one of them was a malformed line.
MANDATORY = (
    "event_id",
    "occurred_at",
    "user_id",
    "session",
    "country",
    "path",
    "status",
    "duration_ms",
    "bytes_sent",
    "price",
    "agent",
    "note",
)


@contextmanager
def connect(folder, s3):
    """Yield the storage options for an S3 server; None without one.

    `s3` is None, or has endpoint (http(s)://host:port), region, access_key and secret_key.
    """
    yield s3 and {
        "aws_endpoint_url": s3["endpoint"],
        "aws_region": s3["region"],
        "aws_access_key_id": s3["access_key"],
        "aws_secret_access_key": s3["secret_key"],
        "aws_allow_http": "true",
    }


@transport("scan_csv -> sink_parquet", "CSV to Parquet")
def transform(options, source, destination):
    """Stream everything that scan_csv finds below the source into one Parquet file.

    Polars does not skip malformed lines: it turns what it cannot read into nulls (ignore_errors). The transport
    afterwards drops rows without the values that every row must have. Polars infers the columns from the first 200
    lines of all files.
    """
    import polars as pl

    pl.scan_csv(
        f"{source}/**/*.csv",
        ignore_errors=True,
        truncate_ragged_lines=True,
        try_parse_dates=True,
        infer_schema_length=200,
        infer_schema_files=1_000_000,
        missing_columns="insert",
        include_file_paths="filename",
        storage_options=options,
    ).filter(pl.all_horizontal(pl.col(MANDATORY).is_not_null())).sink_parquet(destination, storage_options=options)

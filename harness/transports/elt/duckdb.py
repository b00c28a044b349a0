"""DuckDB, an analytical database inside the process: https://duckdb.org/docs/stable/data/csv/overview"""

from contextlib import contextmanager

from harness.registry import transport


@contextmanager
def connect(folder, s3):
    """Yield a connection to an empty database in memory that would spill to the folder; with the keys of an S3 server.

    `s3` is None, or has endpoint (http(s)://host:port), region, access_key and secret_key. The extension httpfs comes
    from its wheel: nothing is downloaded.
    """
    import duckdb

    with duckdb.connect(config={"temp_directory": folder}) as connection:
        if s3:
            import duckdb_extensions

            duckdb_extensions.import_extension("httpfs", con=connection)
            connection.execute("LOAD httpfs")
            scheme, _, address = s3["endpoint"].partition("://")
            connection.execute(
                "CREATE SECRET (TYPE s3, KEY_ID $access_key, SECRET $secret_key, REGION $region, "
                "ENDPOINT $address, URL_STYLE 'path', USE_SSL $tls)",
                {**{name: s3[name] for name in ("access_key", "secret_key", "region")}, "address": address}
                | {"tls": scheme == "https"},
            )
        yield connection


@transport(
    "transform",
    path="read_csv -> COPY TO",
    payload="CSV to Parquet",
    requires=["duckdb", "duckdb_extensions"],
    published="DuckDB",
)
def transform(connection, source, destination):
    """Copy what read_csv finds below the source into one Parquet file, with the options of the published job.

    ignore_errors leaves out malformed lines, union_by_name takes files of different columns together, filename says
    where a row is from, and the types of a file are found from its first 200 lines.
    """
    connection.execute(
        "COPY (SELECT * FROM read_csv($source, ignore_errors = true, filename = true, union_by_name = true, "
        "sample_size = 200)) TO $destination (FORMAT parquet)",
        {"source": f"{source}/**/*.csv", "destination": destination},
    )

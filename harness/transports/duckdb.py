"""DuckDB in memory, for transports that read or write files locally or on an S3 server."""

from contextlib import contextmanager


@contextmanager
def in_memory(folder, s3):
    """Yield a connection to an empty in-memory database that spills to the folder, with S3 keys if given.

    `s3` is None, or has endpoint (http(s)://host:port), region, access_key and secret_key. The httpfs extension comes
    from its wheel, so nothing is downloaded.
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

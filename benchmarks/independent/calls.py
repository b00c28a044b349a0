"""Ten transports as plain calls of their clients, timed in one process; nothing of the lab is imported here.

python calls.py NAME URI TABLE PARQUET WARMUP_TABLE WARMUP_PARQUET prints seconds, CPU seconds and rows as JSON. As in
the lab, one call with few rows comes first and does not count.
"""

import gc
import io
import json
import sys
import time
from urllib.parse import urlsplit

PIECE_BYTES = 1 << 20
PAUSE_SECONDS = 0.2  # after the first call, which imports numpy: OpenBLAS's threads then compute for up to 0.06 s


def psycopg_copy_csv(uri, frame):
    """Send a frame as CSV into COPY over psycopg."""
    import psycopg

    connection = psycopg.connect(uri, autocommit=True)

    def call(frame, table):
        buffer = io.BytesIO()
        frame.write_csv(buffer, include_header=False, quote_style="non_numeric")
        columns = ", ".join(f'"{name}"' for name in frame.columns)
        statement = f"COPY \"{table}\" ({columns}) FROM STDIN WITH (FORMAT csv, NULL '')"
        with connection.cursor().copy(statement) as copy:
            copy.write(buffer.getbuffer())

    return call


def adbc_ingest(uri, frame):
    """Append a frame with ADBC, uuids as bytes."""
    import polars as pl
    from adbc_driver_postgresql import dbapi

    connection = dbapi.connect(uri)

    def call(frame, table):
        schema = connection.adbc_get_table_schema(table)
        uuids = [
            one.name
            for one in schema
            if (one.metadata or {}).get(b"POSTGRESQL:type") == b"uuid" or str(one.type) == "extension<arrow.uuid>"
        ]
        frame = frame.with_columns(
            pl.col(name).str.replace_all("-", "", literal=True).str.decode("hex") for name in uuids
        )
        with connection.cursor() as cursor:
            cursor.adbc_ingest(table, frame, mode="append")
        connection.commit()

    return call


def _engine(uri, driver):
    import sqlalchemy as sa

    engine = sa.create_engine(sa.make_url(uri).set(drivername=f"postgresql+{driver}"))
    engine.connect().close()
    return engine


def to_sql(uri, frame):
    """pandas.to_sql over psycopg2."""
    engine = _engine(uri, "psycopg2")
    return lambda frame, table: frame.to_sql(table, engine, if_exists="append", index=False)


def read_sql_query(uri, frame):
    """pandas.read_sql_query over psycopg 3."""
    import pandas as pd

    engine = _engine(uri, "psycopg")
    return lambda frame, table: pd.read_sql_query(f'SELECT * FROM "{table}"', engine)


def read_database(uri, frame):
    """polars.read_database over psycopg2."""
    import polars as pl

    engine = _engine(uri, "psycopg2")
    return lambda frame, table: pl.read_database(f'SELECT * FROM "{table}"', engine)


def connectorx(uri, frame):
    """polars.read_database_uri."""
    import polars as pl

    return lambda frame, table: pl.read_database_uri(f'SELECT * FROM "{table}"', uri, engine="connectorx")


def _clickhouse(uri, **more):
    import clickhouse_connect

    parts = urlsplit(uri)
    return clickhouse_connect.get_client(
        host=parts.hostname, port=parts.port, username=parts.username, password=parts.password, **more
    )


def insert_df(uri, frame):
    """clickhouse-connect's insert_df."""
    client = _clickhouse(uri, compress="lz4", autogenerate_session_id=False)
    return lambda frame, table: client.insert_df(table, frame, settings={"async_insert": "0"})


def query_df(uri, frame):
    """clickhouse-connect's query_df."""
    client = _clickhouse(uri)
    return lambda frame, table: client.query_df(f"SELECT * FROM `{table}`")


def query_arrow(uri, frame):
    """clickhouse-connect's query_arrow, as a polars frame."""
    import polars as pl

    client = _clickhouse(uri)
    settings = {"output_format_arrow_compression_method": "lz4_frame"}
    return lambda frame, table: pl.from_arrow(client.query_arrow(f"SELECT * FROM `{table}`", settings=settings))


def post_csv(uri, frame):
    """A frame as CSV with names, over HTTP by httpx."""
    import httpx

    parts = urlsplit(uri)
    address = f"{parts.scheme}://{parts.hostname}:{parts.port}/"
    client = httpx.Client(auth=(parts.username, parts.password), timeout=300, verify=False)

    def call(frame, table):
        body = frame.write_csv(file=None, quote_style="non_numeric", null_value=r"\N").encode()
        pieces = (body[start : start + PIECE_BYTES] for start in range(0, len(body), PIECE_BYTES))
        params = {"query": f"INSERT INTO `{table}` FORMAT CSVWithNames", "async_insert": "0"}
        client.post(address, params=params, content=pieces).raise_for_status()

    return call


# The plain call, the lab's transport that does the same, and the frame it moves.
CALLS = {
    "psycopg_copy_csv": (psycopg_copy_csv, "postgres.psycopg.write_polars_copy_csv_lossless"),
    "adbc_ingest": (adbc_ingest, "postgres.adbc.write_polars_ingest"),
    "to_sql": (to_sql, "postgres.sqlalchemy_psycopg2.write_pandas_to_sql"),
    "read_sql_query": (read_sql_query, "postgres.sqlalchemy.read_pandas_read_sql_query"),
    "read_database": (read_database, "postgres.sqlalchemy_psycopg2.read_polars_read_database"),
    "connectorx": (connectorx, "postgres.connectorx.read_polars_read_database_uri"),
    "post_csv": (post_csv, "clickhouse.httpx.write_polars_csv_with_names"),
    "insert_df": (insert_df, "clickhouse.clickhouse_connect.write_pandas_df"),
    "query_df": (query_df, "clickhouse.clickhouse_connect.read_pandas_query_df"),
    "query_arrow": (query_arrow, "clickhouse.clickhouse_connect.read_polars_query_arrow"),
}


def frame_of(transport, path):
    """Read the frame that a transport writes; None for one that reads."""
    if ".write_" not in transport:
        return None
    if "_polars_" in transport:
        import polars

        return polars.read_parquet(path)
    import pandas

    frame = pandas.read_parquet(path)
    for name in [name for name in frame if frame[name].dtype == "object"]:  # dates come as objects
        frame[name] = frame[name].astype("datetime64[us]")
    return frame


def main(name, uri, table, parquet, warmup_table, warmup_parquet):
    """Make one call in this process and print its figures."""
    make, transport = CALLS[name]
    frame, warmup = frame_of(transport, parquet), frame_of(transport, warmup_parquet)
    call = make(uri, frame)
    call(warmup, warmup_table)
    gc.collect()
    time.sleep(PAUSE_SECONDS)
    started, used = time.monotonic(), time.process_time()
    found = call(frame, table)
    took, cpu = time.monotonic() - started, time.process_time() - used
    rows = len(frame) if frame is not None else len(found)
    print(json.dumps({"seconds": took, "cpu_seconds": cpu, "rows": rows}))


if __name__ == "__main__":
    main(*sys.argv[1:])

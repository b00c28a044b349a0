"""pg_parquet, an extension that lets COPY read and write Parquet files: https://github.com/CrunchyData/pg_parquet"""

from harness.transports.postgres.sql import identifier


def polars_with_bytes(frame, uuids):
    """Return the frame with uuid strings as 16 bytes, and the Arrow schema that says so."""
    import polars.selectors as cs
    import pyarrow as pa

    frame = frame.with_columns(cs.by_name(uuids).str.replace_all("-", "", literal=True).str.decode("hex"))
    schema = frame.head(0).to_arrow().schema
    for name in uuids:
        schema = schema.set(schema.get_field_index(name), pa.field(name, pa.binary(16)))
    return frame, schema


def pandas_with_bytes(frame, uuids):
    """Return the frame with uuid strings as 16 bytes."""
    import pandas as pd

    return frame.assign(**{name: pd.arrays.ArrowExtensionArray(uuid_bytes(frame[name])) for name in uuids})


def uuid_bytes(strings):
    """Return uuid strings as Arrow's binary of 16 bytes; pg_parquet takes no string for a uuid. A null stays null."""
    import pyarrow as pa

    values = [bytes.fromhex(text.replace("-", "")) if isinstance(text, str) else None for text in strings]
    return pa.array(values, pa.binary(16))


def uuid_columns(connection, table, columns):
    """Ask the server which of the columns are uuid and return their names (one round trip)."""
    query = "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND atttypid = 'uuid'::regtype"
    found = connection.execute(query, [identifier(table)]).fetchall()
    return [name for (name,) in found if name in columns]

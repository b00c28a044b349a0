"""pgpq, an encoder from Arrow to the rows of a binary COPY, which psycopg sends: https://github.com/adriangb/pgpq"""

from harness.transports.postgres.tables import psycopg_connection

connect = psycopg_connection

BLOCK_ROWS = 65_536  # turned into Arrow, encoded and sent at a time


def uuid_bytes(texts):
    """Turn an Arrow column of uuid texts into one of 16 bytes a value. Raises ValueError where a text is no uuid."""
    import pyarrow as pa
    import pyarrow.compute as pc

    digits = pc.fill_null(pc.replace_substring(pa.chunked_array(texts).combine_chunks(), "-", ""), "0" * 32)
    joined = memoryview(digits.buffers()[-1] or b"")[: 32 * len(digits)]
    octets = bytes.fromhex(str(joined, "ascii"))
    if len(octets) != 16 * len(digits) or not pc.all(pc.equal(pc.binary_length(digits), 32), min_count=0).as_py():
        raise ValueError("expected uuids of 32 hexadecimal digits, found another text")
    values = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(digits), [None, pa.py_buffer(octets)])
    return pc.if_else(pc.is_valid(texts), values, None)


def types_of(connection, table, columns):
    """Ask the server for the types of these columns, by name (one round trip)."""
    from psycopg import sql

    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    found = connection.execute(sql.SQL("SELECT {} FROM {} LIMIT 0").format(names, sql.Identifier(table)))
    types = connection.adapters.types
    return {column.name: getattr(types.get(column.type_code), "name", None) for column in found.description}


def as_the_table(arrow, types):
    """Give uuids and dates the Arrow types that the server's binary form of them needs: 16 bytes, and days."""
    import pyarrow as pa

    for position, (name, values) in enumerate(zip(arrow.column_names, arrow.columns, strict=True)):
        if types[name] == "uuid":
            arrow = arrow.set_column(position, name, uuid_bytes(values))
        elif types[name] == "date" and values.type != pa.date32():
            days = values.cast(pa.date32())
            if not days.cast(values.type).equals(values):  # Arrow cuts a time of day off without a word
                raise ValueError(f'column "{name}" is a date in the table, but has times of day')
            arrow = arrow.set_column(position, name, days)
    return arrow.combine_chunks()

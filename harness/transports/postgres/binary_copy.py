"""Arrow into a binary COPY of Postgres: pgpq encodes the rows, psycopg sends them. https://github.com/adriangb/pgpq"""

import itertools


def uuid_bytes(texts):
    """Turn an Arrow column of uuid strings into one of 16 bytes a value. Raises ValueError for other strings."""
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
    """Give uuids and dates the Arrow types that the server's binary form needs: 16 bytes, and days."""
    import pyarrow as pa

    for position, (name, values) in enumerate(zip(arrow.column_names, arrow.columns, strict=True)):
        if types[name] == "uuid":
            arrow = arrow.set_column(position, name, uuid_bytes(values))
        elif types[name] == "date" and values.type != pa.date32():
            days = values.cast(pa.date32())
            if not days.cast(values.type).equals(values):  # Arrow silently drops a time of day
                raise ValueError(f'column "{name}" is a date in the table, but has times of day')
            arrow = arrow.set_column(position, name, days)
    return arrow.combine_chunks()


def copy_batches(connection, table, batches):
    """Encode Arrow record batches one by one and send them into one binary COPY; return the number of rows.

    `connection` is a psycopg connection. Without batches nothing is sent.
    """
    import pyarrow as pa
    from pgpq import ArrowToPostgresBinaryEncoder
    from psycopg import sql

    remaining = iter(batches)
    if (first := next(remaining, None)) is None:
        return 0
    types = types_of(connection, table, first.schema.names)
    tables = (as_the_table(pa.Table.from_batches([batch]), types) for batch in itertools.chain([first], remaining))
    made = next(tables)
    encoder, rows = ArrowToPostgresBinaryEncoder(made.schema), 0
    names = sql.SQL(", ").join(map(sql.Identifier, types))
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(sql.Identifier(table), names)
    with connection.cursor().copy(statement) as copy:
        copy.write(encoder.write_header())
        for arrow in itertools.chain([made], tables):
            for batch in arrow.to_batches():
                copy.write(encoder.write_batch(batch))
            rows += arrow.num_rows
        copy.write(encoder.finish())
    return rows

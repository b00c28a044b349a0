"""Arrow into a binary COPY of Postgres: pgpq encodes the rows, psycopg sends them. https://github.com/adriangb/pgpq"""

import itertools

from harness.transports.postgres.sql import copy_from_stdin
from harness.transports.postgres.tables import types_of


def uuid_bytes(strings):
    """Turn an Arrow column of uuid strings into one of 16 bytes a value. Raises ValueError for other strings."""
    import pyarrow as pa
    import pyarrow.compute as pc

    digits = pc.fill_null(pc.replace_substring(pa.chunked_array(strings).combine_chunks(), "-", ""), "0" * 32)
    joined = memoryview(digits.buffers()[-1] or b"")[: 32 * len(digits)]
    octets = bytes.fromhex(str(joined, "ascii"))
    if len(octets) != 16 * len(digits) or not pc.all(pc.equal(pc.binary_length(digits), 32), min_count=0).as_py():
        raise ValueError("a UUID does not have 32 hexadecimal digits")
    values = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(digits), [None, pa.py_buffer(octets)])
    return pc.if_else(pc.is_valid(strings), values, None)


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


def copy_tables(connection, table, types, tables):
    """Encode Arrow tables one by one and send them into one binary COPY; return the number of rows.

    `connection` is a psycopg connection, `types` those of the columns (`types_of`). At least one table is needed.
    """
    from pgpq import ArrowToPostgresBinaryEncoder

    made = (as_the_table(arrow, types) for arrow in tables)
    first = next(made)
    encoder, rows = ArrowToPostgresBinaryEncoder(first.schema), 0
    with connection.cursor().copy(copy_from_stdin(table, types, "(FORMAT binary)")) as copy:
        copy.write(encoder.write_header())
        for arrow in itertools.chain([first], made):
            for batch in arrow.to_batches():
                copy.write(encoder.write_batch(batch))
            rows += arrow.num_rows
        copy.write(encoder.finish())
    return rows


def copy_batches(connection, table, batches):
    """Send Arrow record batches as `copy_tables` does; without batches nothing is sent."""
    import pyarrow as pa

    remaining = iter(batches)
    if (first := next(remaining, None)) is None:
        return 0
    types = types_of(connection, table, first.schema.names)
    tables = (pa.Table.from_batches([batch]) for batch in itertools.chain([first], remaining))
    return copy_tables(connection, table, types, tables)

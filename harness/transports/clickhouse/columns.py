"""Convert frame columns for several ClickHouse clients: types, nulls versus NaN, strings."""

import csv
import io

from harness.registry import Unsupported

# ClickHouse type -> Arrow type with the same bytes; a Date first becomes days in 32 bits.
ARROW_TYPES = {
    **{f"{sign}Int{bits}": f"{sign.lower()}int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)},
    "Float32": "float32",
    "Float64": "float64",
    "Bool": "uint8",
    "Date": "uint16",
    "Date32": "int32",
}
# ClickHouse fixed-width type -> numpy type, which is also the Arrow type.
NUMPY_TYPES = {
    **{f"{sign}Int{bits}": f"<{sign.lower() or 'i'}{bits // 8}" for sign in ("", "U") for bits in (8, 16, 32, 64)},
    **{"Float32": "<f4", "Float64": "<f8", "Date": "<u2", "Date32": "<i4"},
}


def inner(sql_type):
    """Return a type without the LowCardinality and Nullable around it."""
    return sql_type.removeprefix("LowCardinality(").removeprefix("Nullable(").rstrip(")")


def arrow_of_pandas(frame):
    """Return a pandas frame as Arrow; a NaN in a float column stays NaN, which Table.from_pandas would make null."""
    import pyarrow as pa

    return pa.table(
        {
            name: pa.array(values.to_numpy() if values.dtype in ("float64", "float32") else values)
            for name, values in frame.items()
        }
    )


def arrow_of_polars(frame):
    """Return a polars frame as Arrow, with strings as offsets and bytes instead of views."""
    import polars as pl

    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())


def without_nan(values):
    """Return a column with None for the missing values that pandas marks with NaN; a NaN in a float column stays."""
    if values.dtype in ("float64", "float32") or not values.hasnans:
        return values
    return values.astype(object).where(values.notna(), None)


def polars_lists(frame):
    """Return the columns of a polars frame as lists of Python objects."""
    return [frame.get_column(name).to_list() for name in frame.columns]


def pandas_lists(frame):
    """Return the columns of a pandas frame as lists of Python objects, with NaN for a missing value."""
    return [frame[name].to_list() for name in frame.columns]


def pandas_lists_with_none(frame):
    """Return the columns of a pandas frame as lists of Python objects, with None for a missing value."""
    return [without_nan(values).to_list() for _, values in frame.items()]


def pandas_rows(frame):
    """Return the rows of a pandas frame as tuples of Python objects, with None for a missing value."""
    return list(zip(*pandas_lists_with_none(frame), strict=True))


def typed(values, sql_type):
    """Return a column for pandas: Arrow for a nullable number (to tell None from NaN), otherwise unchanged."""
    import pandas as pd
    import pyarrow as pa

    sql_type = sql_type.removeprefix("LowCardinality(")
    if not sql_type.startswith(("Nullable(Int", "Nullable(UInt", "Nullable(Float")):
        return values
    return pd.arrays.ArrowExtensionArray(pa.array(values, pa.type_for_alias(sql_type[9:].rstrip(")").lower())))


def polars_parquet(frame, compression="zstd", statistics=True):
    """Return the frame as the bytes of a Parquet file that polars writes."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression=compression, statistics=statistics)
    return buffer.getvalue()


def polars_arrow_stream(frame, compression="uncompressed"):
    """Return the frame as the bytes of an Arrow stream that polars writes."""
    buffer = io.BytesIO()
    frame.write_ipc_stream(buffer, compression=compression)
    return buffer.getvalue()


def pandas_parquet(frame):
    """Return the frame as the bytes of a snappy Parquet file that pandas writes, which turns a NaN into a null."""
    buffer = io.BytesIO()
    frame.to_parquet(buffer, compression="snappy", index=False)
    return buffer.getvalue()


def arrow_parquet(frame, compression="snappy"):
    """Return a pandas frame as the bytes of a Parquet file that pyarrow writes, which keeps a NaN."""
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(arrow_of_pandas(frame), buffer, compression=compression)
    return buffer.getvalue()


def polars_csv(frame, separator=","):
    """Return the frame as polars' CSV, which quotes a string only where CSV requires it."""
    return frame.write_csv(file=None, include_header=False, separator=separator)


def polars_csv_lossless(frame, include_header=False):
    """Return the frame as CSV with every string quoted and each null as an unquoted \\N."""
    return frame.write_csv(file=None, include_header=include_header, quote_style="non_numeric", null_value=r"\N")


def polars_tsv(frame):
    """Return the frame in ClickHouse's TabSeparated: escaped instead of quoted; a null is an unescaped \\N."""
    import polars as pl

    escaped = pl.col(pl.String).str.replace_many(["\\", "\t", "\n", "\r"], [r"\\", r"\t", r"\n", r"\r"])
    layout = {"include_header": False, "separator": "\t", "quote_style": "never", "null_value": r"\N"}
    return frame.with_columns(escaped).write_csv(file=None, **layout)


def pandas_csv(frame, separator=","):
    """Return the frame as pandas' CSV, which quotes a string only where CSV requires it."""
    return frame.to_csv(None, index=False, header=False, sep=separator)


def arrow_csv(frame, include_header=True):
    """Return a pandas frame as pyarrow's CSV: strings quoted, a null empty, a NaN as nan, a midnight as a date.

    pandas itself quotes a null like a string. A time of day is dropped.
    """
    import pyarrow as pa
    import pyarrow.csv

    table, buffer = arrow_of_pandas(frame), io.BytesIO()
    dates = {field.name: pa.date32() for field in table.schema if pa.types.is_timestamp(field.type)}
    table = table.cast(pa.schema([(field.name, dates.get(field.name, field.type)) for field in table.schema]))
    pyarrow.csv.write_csv(table, buffer, pyarrow.csv.WriteOptions(include_header=include_header))
    return buffer.getvalue()


def pandas_csv_lossless(frame):
    """Return a pandas frame as a string of pyarrow's CSV without names."""
    return arrow_csv(frame, include_header=False).decode()


def pandas_tsv(frame):
    """Return the frame in ClickHouse's TabSeparated: escaped instead of quoted; a null is an unescaped \\N."""
    strings = {}
    for name, values in frame.items():
        if values.dtype in ("float64", "float32") and values.hasnans:
            strings[name] = [repr(value) for value in values.tolist()]  # na_rep is only for nulls
        elif values.dtype == "str":
            for plain, escaped in (("\\", r"\\"), ("\t", r"\t"), ("\n", r"\n"), ("\r", r"\r")):
                values = values.str.replace(plain, escaped, regex=False)
            strings[name] = values.fillna(r"\N")
    layout = {"sep": "\t", "na_rep": r"\N", "quoting": csv.QUOTE_NONE}
    return frame.assign(**strings).to_csv(None, index=False, header=False, **layout)


def arrow_numbers(name, column, sql_type):
    """Return a column in the Arrow type of a number; a value that does not fit raises ValueError."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_temporal(column.type):  # Arrow would cast it to its count of units
        raise ValueError(f"column {name}: {column.type} is no {sql_type}")
    numbers = column.cast(ARROW_TYPES[sql_type])
    if sql_type == "Float32" and pa.types.is_floating(column.type) and not pc.is_inf(numbers).equals(pc.is_inf(column)):
        raise ValueError(f"column {name} has floats that are larger than a {sql_type} holds")
    return numbers


def numbers_or_strings(name, column, sql_type, nullable):
    """Return a column as a format stores it, with an empty value for each null.

    Strings are Arrow's, numbers a NumPy array, and UUIDs one of two halves each. Raises Unsupported for another type,
    and ValueError for a value or a null that the column of the table does not hold.
    """
    import pyarrow as pa

    if column.null_count and not nullable:  # the server would silently store an empty value
        raise ValueError(f"column {name} has nulls, the table's column cannot")
    if sql_type == "UUID":
        return uuid_halves(column.cast(pa.large_string()).fill_null("00000000-0000-0000-0000-000000000000"))
    if sql_type == "String":
        return column.cast(pa.large_string()).fill_null("")
    if sql_type not in ARROW_TYPES:
        raise Unsupported(f"column {name}: this encoder has no type {sql_type}")
    if sql_type.startswith("Date"):
        column = column.cast("date32").cast("int32")
    return arrow_numbers(name, column, sql_type).fill_null(0).to_numpy()


def uuid_halves(strings):
    """Turn UUID strings (36 characters) into two little-endian 64-bit halves, 16 bytes a row."""
    import numpy as np

    offsets = np.frombuffer(strings.buffers()[1], np.int64)[strings.offset : strings.offset + len(strings) + 1]
    if (np.diff(offsets) != 36).any():
        raise ValueError("a UUID does not have 36 characters")
    letters = np.frombuffer(strings.buffers()[2], np.uint8)[offsets[0] : offsets[-1]].reshape(-1, 36)
    value_of = np.full(256, 255, np.uint8)
    for alphabet in (b"0123456789abcdef", b"0123456789ABCDEF"):
        value_of[np.frombuffer(alphabet, np.uint8)] = np.arange(16)
    digits = value_of[letters[:, [place for place in range(36) if place not in (8, 13, 18, 23)]]]
    if (digits == 255).any():
        raise ValueError("a UUID has a character that is no hexadecimal digit")
    return np.ascontiguousarray(digits[:, 0::2] << 4 | digits[:, 1::2]).view(">u8").astype("<u8")


def lengths_of_strings(strings):
    """Return the byte lengths of strings as LEB128, in an Arrow binary array."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = pc.binary_length(strings).to_numpy()
    sizes = 1 + sum((lengths >> 7 * groups > 0).astype(np.int64) for groups in range(1, 5))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    data = np.empty(offsets[-1], np.uint8)
    for group in range(sizes.max()):
        reaching = sizes > group
        more = np.where(sizes[reaching] > group + 1, 0x80, 0)
        data[offsets[:-1][reaching] + group] = lengths[reaching] >> 7 * group & 0x7F | more
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(strings), buffers)

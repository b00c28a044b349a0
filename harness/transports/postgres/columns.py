"""Convert columns for several Postgres clients: the server's types, CSV, and pandas."""

# Type in the server's catalogue -> polars dtype and Arrow type; other types stay the string that the server prints.
TYPES = {
    "int2": ("Int16", "int16"),
    "int4": ("Int32", "int32"),
    "int8": ("Int64", "int64"),
    "float4": ("Float32", "float32"),
    "float8": ("Float64", "float64"),
    "date": ("Date", "date32"),
}


def polars_schema(types):
    """Return the polars dtype of each column, given its type in the server's catalogue."""
    import polars as pl

    return {name: getattr(pl, TYPES.get(sql_type, ("String",))[0]) for name, sql_type in types.items()}


def arrow_schema(types):
    """Return the Arrow type of each column, given its type in the server's catalogue."""
    import pyarrow as pa

    return {name: getattr(pa, TYPES.get(sql_type, ("", "string"))[1])() for name, sql_type in types.items()}


def polars_of_csv(text, types):
    """Parse CSV under a line of names with polars and the table's types."""
    import polars as pl

    # polars would keep doubled quotes in the names of the header line.
    return pl.read_csv(text, has_header=False, skip_rows=1, schema=polars_schema(types))


def arrow_of_csv(text, types):
    """Parse CSV under a line of names with Arrow and the table's types; a quoted empty string is no NULL."""
    import pyarrow as pa
    from pyarrow import csv

    convert = csv.ConvertOptions(
        column_types=arrow_schema(types), null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    parse = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
    return csv.read_csv(pa.BufferReader(text), parse_options=parse, convert_options=convert)


def as_pandas(table):
    """Turn an Arrow table into a pandas frame that keeps integers with nulls, and dates as datetime64[us]."""
    import pandas as pd
    import pyarrow as pa

    for position, column in enumerate(table.columns):
        if pa.types.is_date(column.type):
            table = table.set_column(position, table.column_names[position], column.cast(pa.timestamp("us")))
    frame = table.to_pandas()
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_integer(column.type) and column.null_count:
            dtype = pd.api.types.pandas_dtype(str(column.type).capitalize())  # int32 -> Int32, which can hold NA
            frame[name] = column.to_pandas(types_mapper={column.type: dtype}.get)
    return frame

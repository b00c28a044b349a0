"""Convert frame columns for several Postgres clients."""


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

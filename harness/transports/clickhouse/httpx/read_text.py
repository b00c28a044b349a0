r"""httpx with CSV or TSV that keeps nulls and strings apart: https://clickhouse.com/docs/interfaces/formats/CSV

ClickHouse's CSV quotes every string and no null. Only the quotes tell an empty string or a string \N from a null. Its
TabSeparated has no quotes: it escapes backslash, tab, line breaks and NUL with a backslash. A null is \N, and the
string \N is \\N. Readers that guess types or remove quotes first lose the difference.
"""

import io
import re

from harness.registry import phase, transport
from harness.transports.clickhouse.httpx.client import PLAIN, ask
from harness.transports.clickhouse.sql import identifier

# polars reads an empty unquoted field as a null, and a quoted empty field as an empty string.
NULL_IS_NOTHING = {**PLAIN, "format_csv_null_representation": ""}
HTTP_COMPRESSED = {**NULL_IS_NOTHING, "enable_http_compression": "1"}

# TabSeparated's escapes and their characters.
ESCAPES = {
    r"\\": "\\",
    r"\t": "\t",
    r"\n": "\n",
    r"\r": "\r",
    r"\b": "\b",
    r"\f": "\f",
    r"\0": "\0",
    r"\'": "'",
}


def _columns(answer, separator):
    """Return the type name (`Int32`, `Float64`, `Date` ... or `String`) of each column from the two header lines."""
    import csv

    text = io.TextIOWrapper(io.BytesIO(answer), "utf-8", newline="")
    lines = csv.reader(text, delimiter=separator, quoting=csv.QUOTE_NONE) if separator == "\t" else csv.reader(text)
    names, sql_types = next(lines), next(lines)
    if separator == "\t":
        names = [re.sub(r"\\.", lambda found: ESCAPES[found[0]], name) for name in names]
    sql_types = [re.sub(r"^(LowCardinality\(|Nullable\()+|\)+$", "", sql_type) for sql_type in sql_types]
    sql_types = ["Date" if sql_type == "Date32" else sql_type for sql_type in sql_types]
    known = [
        sql_type if re.fullmatch(r"U?Int(8|16|32|64)|Float(32|64)|Date", sql_type) else "String"
        for sql_type in sql_types
    ]
    return dict(zip(names, known, strict=True))


def _polars_schema(columns):
    import polars as pl

    return {name: getattr(pl, sql_type) for name, sql_type in columns.items()}


def _arrow_schema(columns):
    import pyarrow as pa

    return {
        name: pa.type_for_alias("date32" if sql_type == "Date" else sql_type.lower())
        for name, sql_type in columns.items()
    }


def _unescaped(column):
    """Undo TabSeparated's escapes in those strings of an Arrow column that have any."""
    import pyarrow as pa
    import pyarrow.compute as pc

    marked = pc.fill_null(pc.match_substring(column, "\\"), False).combine_chunks()
    strings = [re.sub(r"\\.", lambda found: ESCAPES[found[0]], text) for text in column.filter(marked).to_pylist()]
    return pc.replace_with_mask(column, marked, pa.array(strings, column.type))


@transport("HTTP SELECT FORMAT CSV", "delimited text", settings=NULL_IS_NOTHING)
def read_polars_csv_lossless(connection, table):
    """Fetch the table as CSV with names and types, and let polars decode it with these types.

    format_csv_null_representation is empty, which polars tells from a quoted empty string. The names need no second
    round trip. Values other than numbers and dates stay strings, including UUIDs.
    """
    import polars as pl

    with phase("receive"):
        answer = ask(connection, f"SELECT * FROM {identifier(table)} FORMAT CSVWithNamesAndTypes", NULL_IS_NOTHING)
    with phase("decode"):
        schema = _polars_schema(_columns(answer, ","))
        return pl.read_csv(io.BytesIO(answer), has_header=False, skip_rows=2, schema=schema)


@transport("HTTP SELECT FORMAT CSV", "delimited text", requires=["zstandard"], settings=HTTP_COMPRESSED)
def read_polars_csv_lossless_http_zstd(connection, table):
    """Fetch the table as CSV with HTTP compression zstd and let polars decode it by its types.

    Tuned: Accept-Encoding: zstd, for a slow network. Otherwise like read_polars_csv_lossless.
    """
    import polars as pl

    with phase("receive"):
        answer = ask(
            connection, f"SELECT * FROM {identifier(table)} FORMAT CSVWithNamesAndTypes", HTTP_COMPRESSED, "zstd"
        )
    with phase("decode"):
        schema = _polars_schema(_columns(answer, ","))
        return pl.read_csv(io.BytesIO(answer), has_header=False, skip_rows=2, schema=schema)


@transport("HTTP SELECT FORMAT CSV", "delimited text", settings=PLAIN)
def read_pandas_csv_lossless(connection, table):
    r"""Fetch the table as CSV with names and types, and let pyarrow decode it with these types.

    pandas.read_csv cannot tell a quoted string \N from a null, but pyarrow.csv can. The columns stay Arrow
    (pandas.ArrowDtype). Values other than numbers and dates stay strings, including UUIDs.
    """
    import pandas as pd
    import pyarrow as pa
    from pyarrow import csv

    with phase("receive"):
        answer = ask(connection, f"SELECT * FROM {identifier(table)} FORMAT CSVWithNamesAndTypes", PLAIN)
    with phase("decode"):
        convert = csv.ConvertOptions(
            column_types=_arrow_schema(_columns(answer, ",")),
            null_values=[r"\N"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        lines = csv.ReadOptions(skip_rows_after_names=1), csv.ParseOptions(newlines_in_values=True)
        return csv.read_csv(pa.BufferReader(answer), *lines, convert).to_pandas(types_mapper=pd.ArrowDtype)


@transport("HTTP SELECT FORMAT TSV", "delimited text", settings=PLAIN)
def read_polars_tsv_lossless(connection, table):
    """Fetch the table as TSV with names and types, let polars decode it and undo the escapes.

    replace_many replaces all escapes in one pass, from left to right. Values other than numbers and dates stay strings,
    including UUIDs.
    """
    import polars as pl

    with phase("receive"):
        answer = ask(connection, f"SELECT * FROM {identifier(table)} FORMAT TSVWithNamesAndTypes", PLAIN)
    with phase("decode"):
        frame = pl.read_csv(
            io.BytesIO(answer),
            separator="\t",
            quote_char=None,
            has_header=False,
            skip_rows=2,
            schema=_polars_schema(_columns(answer, "\t")),
            null_values=r"\N",
            empty_string_is_null=False,
        )
        return frame.with_columns(pl.col(pl.String).str.replace_many(ESCAPES))


@transport("HTTP SELECT FORMAT TSV", "delimited text", settings=PLAIN)
def read_pandas_tsv_lossless(connection, table):
    """Fetch the table as TSV with names and types, let pyarrow decode it, then undo the escapes.

    Only strings with a backslash are processed again, each as a Python object. The columns stay Arrow
    (pandas.ArrowDtype). Values other than numbers and dates stay strings, including UUIDs.
    """
    import pandas as pd
    import pyarrow as pa
    from pyarrow import csv

    with phase("receive"):
        answer = ask(connection, f"SELECT * FROM {identifier(table)} FORMAT TSVWithNamesAndTypes", PLAIN)
    with phase("decode"):
        types = _arrow_schema(_columns(answer, "\t"))
        convert = csv.ConvertOptions(column_types=types, null_values=[r"\N"], strings_can_be_null=True)
        names = csv.ReadOptions(skip_rows=2, column_names=list(types))  # names in the header line are escaped
        lines = names, csv.ParseOptions(delimiter="\t", quote_char=False)
        arrow = csv.read_csv(pa.BufferReader(answer), *lines, convert)
        columns = [_unescaped(column) if pa.types.is_string(column.type) else column for column in arrow.columns]
        return pa.table(columns, names=arrow.column_names).to_pandas(types_mapper=pd.ArrowDtype)

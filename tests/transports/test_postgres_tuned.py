"""The tuned Postgres transports on a real server: hostile values, whole tables, and nothing left after an error."""

import datetime as dt
import threading
import uuid
from itertools import count

import pandas as pd
import polars as pl
import psycopg
import pytest
from arrow_wire import UnsupportedType, postgres_read
from psycopg import sql

from harness.transports.postgres.psycopg import tuned

NUMBERS = count()
COLUMNS = (
    "id uuid, day date, small smallint, number integer, large bigint, half real, float double precision, "
    '"select ""x""" text, yes boolean, moment timestamp'
)
ROWS = 60_000  # enough for a slice on every connection
LONG = "ä€𝄞x" * 120_000  # 1.2 MB
TEXTS = ["", r"\N", "NULL", "a\tb\n\r\"',\\", "twelve bytes", "thirteen byte", "𝄞", "ends in é", "seven77", LONG, " "]
UUIDS = [str(uuid.UUID(int=number)) for number in (0, 2**128 - 1, 0x0123456789ABCDEF << 64, 0xFEDCBA9876543210)]
DAYS = [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2000, 1, 1), dt.date(9999, 12, 31)]
FLOATS = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 5e-324, 1e-310, 1.7976931348623157e308]


@pytest.fixture(scope="module")
def server(uri):
    """A connection of a witness: psycopg's own rows."""
    with psycopg.connect(uri, autocommit=True) as connection:
        yield connection


@pytest.fixture
def readers(uri):
    with tuned.connect(uri) as connections:
        yield connections


@pytest.fixture
def make(server):
    """Make a table of these columns and return its name; it is dropped in the end."""
    made = []

    def new(columns):
        made.append(f'Tuned "{next(NUMBERS)}')
        server.execute(f"CREATE TABLE {quoted(made[-1])} ({columns})")
        return made[-1]

    yield new
    for table in made:
        server.execute(f"DROP TABLE {quoted(table)} CASCADE")


def quoted(table):
    return sql.Identifier(table).as_string()


def rows_of(server, table, what="*"):
    return server.execute(f"SELECT {what} FROM {quoted(table)}").fetchall()


def hostile():
    """Every hostile value of every type, and a null in every column but the first, which tells the rows apart."""
    ints = [0, 1, -1, None]
    length = len(TEXTS)

    def filled(values):
        return [(values + [None] * length)[i] for i in range(length)]

    return pl.DataFrame(
        {
            "id": pl.Series(filled(UUIDS), dtype=pl.String),
            "day": pl.Series(filled(DAYS), dtype=pl.Date),
            "small": pl.Series(filled([*ints, 32767, -32768]), dtype=pl.Int16),
            "number": pl.Series(filled([*ints, 2**31 - 1, -(2**31)]), dtype=pl.Int32),
            "large": pl.Series(filled([*ints, 2**63 - 1, -(2**63), 2**53 + 1]), dtype=pl.Int64),
            "half": pl.Series(filled([1.5, -0.0, float("nan"), float("inf")]), dtype=pl.Float32),
            "float": pl.Series(filled(FLOATS), dtype=pl.Float64),
            'select "x"': pl.Series(TEXTS, dtype=pl.String),
            "yes": pl.Series(filled([True, False]), dtype=pl.Boolean),
            "moment": pl.Series(filled([dt.datetime(1, 1, 1), dt.datetime(2026, 4, 7, 1, 2, 3, 4)]), dtype=pl.Datetime),
        }
    )


def many(rows=ROWS):
    """Rows with random keys, long enough for several slices."""
    ids = [str(uuid.UUID(int=(number * 0x9E3779B97F4A7C15F39CC0605CEDC835) % 2**128)) for number in range(rows)]
    return pl.DataFrame(
        {"id": ids, "number": pl.Series(range(rows), dtype=pl.Int32), "text": [f"{i:>60}" for i in ids]}
    )


def test_hostile_values_come_through_write_and_read(make, server, writers, readers):
    table, frame = make(COLUMNS), hostile()
    tuned.write_polars_tuned(writers, frame, table)
    assert tuned.read_polars_tuned(readers, table).equals(frame, null_equal=True)
    text = 'id::text, day::text, large, float::text, "select ""x"""'
    floats = ["0", "-0", "NaN", "Infinity", "-Infinity", "5e-324", "1e-310", "1.7976931348623157e+308", *[None] * 3]
    days = frame["day"].cast(pl.String)
    assert rows_of(server, table, text) == list(zip(frame["id"], days, frame["large"], floats, TEXTS, strict=True))


def test_the_signs_and_bits_of_floats_stay(make, writers, readers):
    table, bits = make("float double precision"), pl.Series("float", FLOATS).reinterpret(dtype=pl.UInt64)
    tuned.write_polars_tuned(writers, pl.DataFrame({"float": FLOATS}), table)
    assert tuned.read_polars_tuned(readers, table)["float"].reinterpret(dtype=pl.UInt64).equals(bits)


def test_hostile_values_come_through_write_and_read_of_pandas(make, server, writers, readers):
    table = make("id uuid, day date, number integer, large bigint, float double precision, text text")
    frame = pd.DataFrame(
        {
            "id": pd.Series([*UUIDS, None], dtype="str"),
            "day": pd.Series([*DAYS[1:], None], dtype="datetime64[us]"),
            "number": pd.Series([1, None, 3, 4, 5], dtype="Int32"),
            "large": pd.Series([1, -(2**63), 2**53 + 1, 4, 5], dtype="int64"),
            "float": pd.Series(FLOATS[:5], dtype="float64"),
            "text": pd.Series([LONG, "", None, r"\N", "NA"], dtype="str"),
        }
    )
    tuned.write_pandas_tuned(writers, frame, table)
    pd.testing.assert_frame_equal(tuned.read_pandas_tuned(readers, table), frame)
    assert rows_of(server, table, "day, number, float = 'NaN', text") == [
        (DAYS[1], 1, False, LONG),
        (DAYS[2], None, False, ""),
        (DAYS[3], 3, True, None),
        (DAYS[4], 4, False, r"\N"),
        (None, 5, False, "NA"),
    ]


@pytest.mark.parametrize("library", ["polars", "pandas"])
@pytest.mark.parametrize("rows", [0, 1])
def test_a_frame_of_no_row_and_of_one_comes_through_with_its_types(rows, library, make, writers, readers):
    table, frame = make(COLUMNS), hostile().head(rows)
    frame = (
        frame if library == "polars" else frame.select("number", 'select "x"').to_pandas().astype({"number": "int32"})
    )
    getattr(tuned, f"write_{library}_tuned")(writers, frame, table)
    found = getattr(tuned, f"read_{library}_tuned")(readers, table)[list(frame.columns)]
    assert found.equals(frame)
    assert list(found.dtypes) == list(frame.dtypes)


@pytest.mark.long
@pytest.mark.parametrize("keys", ["", ", PRIMARY KEY (id, number)", ", UNIQUE (number)", ", PRIMARY KEY (text)"])
def test_slices_hold_every_row_exactly_once(keys, make, server, writers, readers):
    table, frame = make(f"id uuid, number integer, text text{keys}"), many()
    tuned.write_polars_tuned(writers, frame, table)
    assert server.execute(f"SELECT pg_relation_size('{quoted(table)}') / 8192").fetchone() > (512,)
    server.execute(f"DELETE FROM {quoted(table)} WHERE number % 7 = 0 OR number BETWEEN 20000 AND 50000")
    left = frame.filter(pl.col("number") % 7 != 0, ~pl.col("number").is_between(20000, 50000))
    assert tuned.read_polars_tuned(readers, table).sort("number").equals(left)


def test_a_slice_or_a_frame_in_several_chunks_is_one_frame(make, monkeypatch, writers, readers):
    monkeypatch.setattr(postgres_read, "_ROWS", 1000)
    table, frame = make("id uuid, number integer, text text"), many(5000)
    pieces = pl.concat([frame.slice(start, 700) for start in range(0, 5000, 700)], rechunk=False)
    tuned.write_polars_tuned(writers, pieces, table)
    assert tuned.read_polars_tuned(readers, table).equals(frame)
    pd.testing.assert_frame_equal(
        tuned.read_pandas_tuned(readers, table), frame.to_pandas().astype({"id": "str", "text": "str"})
    )


def test_all_slices_see_one_snapshot(make, monkeypatch, server, writers, readers):
    table, frame, fetch, changed = (
        make("id uuid, number integer, text text"),
        many(),
        postgres_read._fetch,
        threading.Lock(),
    )
    tuned.write_polars_tuned(writers, frame, table)

    def change_then_fetch(*arguments):
        with changed:
            server.execute(f"DELETE FROM {quoted(table)} WHERE number < 30000")
            server.execute(f"INSERT INTO {quoted(table)} VALUES (NULL, -1, 'new')")
        return fetch(*arguments)

    monkeypatch.setattr(postgres_read, "_fetch", change_then_fetch)
    assert tuned.read_polars_tuned(readers, table).sort("number").equals(frame)


def test_a_view_is_read_as_one_slice(make, server, readers):
    table = make("number integer")
    server.execute(f"INSERT INTO {quoted(table)} VALUES (1), (2); CREATE VIEW seen AS SELECT * FROM {quoted(table)}")
    assert tuned.read_polars_tuned(readers, "seen")["number"].to_list() == [1, 2]


def test_rows_of_two_slices_that_clash_in_another_index_are_an_error_and_no_standstill(make, server, writers):
    table, frame = make("id uuid PRIMARY KEY, number integer UNIQUE, text text"), many()
    last = pl.lit(frame["id"][-1].upper())
    capitals = pl.when(pl.col("number") == 0).then(last).otherwise("id").alias("id")
    for clash in (pl.col("number") // 2, capitals):
        with pytest.raises(psycopg.errors.UniqueViolation):
            tuned.write_polars_tuned(writers, frame.with_columns(clash), table)
        assert rows_of(server, table, "count(*)") == [(0,)]


@pytest.mark.parametrize("wrong", ["no uuid", "0" * 36, "g" + UUIDS[0][1:], UUIDS[0][:-1] + "\x10", "{" + UUIDS[0][1:]])
def test_a_text_that_is_no_uuid_is_refused_and_its_column_named(wrong, make, server, writers):
    table = make("key uuid, number integer")
    with pytest.raises(ValueError, match='"key"'):
        tuned.write_polars_tuned(writers, pl.DataFrame({"number": [1, 2], "key": [UUIDS[0], wrong]}), table)
    assert rows_of(server, table) == []


def test_the_character_nul_is_refused_and_not_cut(make, server, writers):
    table = make("text text")
    with pytest.raises(psycopg.errors.CharacterNotInRepertoire):
        tuned.write_polars_tuned(writers, pl.DataFrame({"text": ["a\0b"]}), table)
    assert rows_of(server, table) == []


@pytest.mark.parametrize(
    ("sql_type", "values", "dtype"),
    [
        ("smallint", [32768], pl.Int32),
        ("integer", [2**31], pl.Int64),
        ("boolean", [2], pl.Int8),
        ("date", [dt.datetime(2026, 1, 1, 12)], pl.Datetime),
        ("date", [-(2**31) + 10957], pl.Date),
    ],
)
def test_a_value_that_its_column_cannot_hold_is_refused(sql_type, values, dtype, make, server, writers):
    table = make(f'"mine" {sql_type}')
    frame = pl.DataFrame(
        {"mine": pl.Series(values).cast(dtype) if dtype == pl.Date else pl.Series(values, dtype=dtype)}
    )
    with pytest.raises(ValueError, match='"mine"'):
        tuned.write_polars_tuned(writers, frame, table)
    assert rows_of(server, table) == []


@pytest.mark.parametrize("value", ["infinity", "-infinity"])
@pytest.mark.parametrize("sql_type", ["date", "timestamp"])
def test_infinite_dates_are_refused_by_reads(sql_type, value, make, server, readers):
    table = make(f"day {sql_type}")
    server.execute(f"INSERT INTO {quoted(table)} VALUES ('{value}')")
    with pytest.raises(ValueError, match=r'"day": row 0: .* has no infinity or NaN'):
        tuned.read_polars_tuned(readers, table)


def test_a_type_that_does_not_fit_is_unsupported_and_its_column_named(make, writers):
    table = make("fine integer, place point")
    with pytest.raises(UnsupportedType, match=r'"place": .* does not fit point'):
        tuned.write_polars_tuned(writers, pl.DataFrame({"place": ["(1,2)"]}), table)
    with pytest.raises(UnsupportedType, match='"fine"'):
        tuned.write_polars_tuned(writers, pl.DataFrame({"fine": [[1]]}), table)


def test_a_type_without_one_in_arrow_comes_as_the_text_of_the_server(make, server, readers):
    table = make("place point, at inet, price numeric")
    server.execute(f"INSERT INTO {quoted(table)} VALUES ('(1,2)', '10.0.0.1', 1.50)")
    assert tuned.read_polars_tuned(readers, table).rows() == [("(1,2)", "10.0.0.1", "1.50")]


def test_an_error_of_the_server_in_the_middle_of_a_read_is_raised(make, server, readers):
    table = make("number integer")
    server.execute(f"INSERT INTO {quoted(table)} VALUES (1), (0)")
    server.execute(f"CREATE VIEW broken AS SELECT 1 / number AS number FROM {quoted(table)}")
    with pytest.raises(psycopg.DatabaseError, match="division by zero"):
        tuned.read_polars_tuned(readers, "broken")

"""Parts of a printed program for one Postgres table, next to its transport: create the table, run a query."""

VARIABLE, PACKAGES = "LAB_POSTGRES_URI", ("psycopg",)
# The requirement of a program that uses arrow-wire, instead of a package.
BY_ARROW_WIRE = {"psycopg": "", "arrow-wire": "arrow-wire[postgres]"}
CREATE_TABLE = ""
CREATE = """\
import psycopg
with psycopg.connect(os.environ["LAB_POSTGRES_URI"], autocommit=True) as connection:
    connection.execute(CREATE_TABLE)"""
CREATE_BY_ARROW_WIRE = "connection[0].execute(CREATE_TABLE)"
# `load` for a query: `table` is its rows in Arrow.
SELECT_PACKAGES = ("adbc_driver_postgresql", "pyarrow")
SELECT = """\
from adbc_driver_postgresql import dbapi

with dbapi.connect(os.environ["LAB_POSTGRES_URI"]) as connection, connection.cursor() as cursor:
    cursor.execute("SET client_encoding = 'UTF8'")  # which ADBC takes all strings for
    cursor.execute(QUERY)
    table = cursor.fetch_arrow_table()"""

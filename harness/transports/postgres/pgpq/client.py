"""pgpq, an encoder from Arrow to the rows of a binary COPY, which psycopg sends: https://github.com/adriangb/pgpq"""

from harness.transports.postgres.tables import psycopg_connection

connect = psycopg_connection

BLOCK_ROWS = 65_536  # rows turned into Arrow, encoded and sent at a time

"""The lab without Docker: a real Postgres and the ClickHouse engine, each from a wheel, as processes of their own.

`EmbeddedLab` in `lab.py` starts them on free loopback ports and stops them in every case; `keeper.py` is the small
process that guards each of them; `folders.py` keeps and clears their files; `postgres.py` knows Postgres; `clickhouse/`
is the gateway that puts the ClickHouse engine behind its own HTTP and native protocols.
"""

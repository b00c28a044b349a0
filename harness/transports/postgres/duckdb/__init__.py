"""DuckDB, an in-process analytical database, next to the server: https://duckdb.org/docs/stable/"""

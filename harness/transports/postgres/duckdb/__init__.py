"""DuckDB, an analytical database inside the process, beside the server: https://duckdb.org/docs/stable/"""

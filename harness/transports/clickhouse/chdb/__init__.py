"""chDB, the ClickHouse engine in this process, as a client of a server: https://clickhouse.com/docs/chdb"""

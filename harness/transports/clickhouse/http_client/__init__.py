"""http.client of Python's standard library, over which arrow-wire (arrow-wire/) sends and reads Native blocks.

https://clickhouse.com/docs/interfaces/formats/Native
"""

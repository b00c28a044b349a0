"""Stores under the protocol of a published benchmark, unfair where it is: each starts from what it was given there.

"Small Benchmark", documentation of ParquetDB (L. Lang, after C. Körber). What its clocks include differs by store:
PyArrow and ParquetDB turn a list of dicts into Arrow inside the clock, while the dicts become tuples for SQLite before
it starts; only ParquetDB is opened outside the clock, after a second of sleep; SQLite hands back Python tuples, the
others Arrow tables; nothing is flushed to disk, and SQLite is told not to.
"""

"""Stores under a published benchmark's protocol, including its unfairness: each starts from the input it had there.

"Small Benchmark", documentation of ParquetDB (L. Lang, after C. Körber). Its times include different work by store.
PyArrow and ParquetDB turn a list of dicts into Arrow inside the timed call, but the dicts become SQLite's tuples before
it. Only ParquetDB is opened outside the timed call, after a second of sleep. SQLite returns Python tuples, the others
Arrow tables. Nothing is flushed to disk, and SQLite's flush is off.
"""

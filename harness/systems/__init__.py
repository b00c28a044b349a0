"""The databases, each through one fixed reference client that is the witness of every verification.

Every module here offers the same functions: `check(endpoints)` says what the server is, `open_connection(endpoints)`
opens the reference connection, `ensure_namespace`, `create`, `load`, `fetch`, `drop` and `settle` work on it.
"""

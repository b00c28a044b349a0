"""The ClickHouse engine from the chdb wheel, behind ClickHouse's own HTTP and native TCP protocols.

    python -m harness.systems.clickhouse.gateway --path DIR --users-file FILE [--http-port N] [--native-port N]

Clients work against it unchanged. What differs from a ClickHouse server:

- INSERT is always synchronous. ``async_insert`` and ``wait_for_async_insert`` are passed to the engine and change
  nothing: with 1 as with 0, an INSERT with data answers when its rows are in the table, and nothing is batched.
- All users are the engine's one user: names and passwords open the door, rights and quotas do not exist. A query may
  read the files that the process may read, with ``file()``.
- The engine counts its queries under ids of its own: ``query_id`` comes back in the answer but not in system tables.
  A streamed query's text ends with a comment in ``system.processes``, by which it can be stopped.
- A client that closes its sending side is taken for gone: its running SELECT is stopped, also one that has sent nothing
  yet, which a server runs to its end.
- Results stream in bounded memory, a few of the engine's blocks (65,409 rows each). Parquet holds several row groups of
  ``output_format_parquet_row_group_size`` rows; what is no SELECT (SHOW, DESCRIBE, EXPLAIN) is held as a whole.
- remote() of another engine reads and writes here; its scalars are left out, so that a query that needs one fails.
- Native protocol revision 54429; types without a layout known here (JSON, Dynamic, Variant, AggregateFunction) cannot
  be inserted as native blocks, nor columns with EPHEMERAL values; external tables are refused (code 48), over HTTP too.
  No column is sent as sparse, so that clickhouse-driver's numpy columns keep their size (a server's become 64 bits).
- Encodings of HTTP bodies are zstd, lz4, gzip and deflate; no br, xz, bz2 or snappy, no TLS, no HTTP/2, no roles, no
  ``X-ClickHouse-Progress``, no pages (``/play``, ``/dashboard``), no OPTIONS. A zstd or lz4 body that is cut off is
  refused; a server takes what it could unpack.
- Compressed frames are read in NONE, LZ4 and ZSTD; other codecs are unknown (432), where a server tries to unpack them.
- ``X-ClickHouse-Summary`` of a result has its bytes on the wire (with ``wait_end_of_query``, else 0) and the time;
  a server also counts what was read, and the bytes as they were in memory.
- In a session that lives on, ``readonly`` as a setting of one query stays until the session ends; by GET it makes,
  fills (with data) and drops temporary tables, and every other change is refused, without looking for its table.
- ``INSERT ... FROM INFILE`` is refused (code 78); a server reads a file of its own.
"""

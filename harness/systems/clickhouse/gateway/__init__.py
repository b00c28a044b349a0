"""The ClickHouse engine from the chdb wheel, behind ClickHouse's own HTTP and native TCP protocols.

    python -m harness.systems.clickhouse.gateway --path DIR --users-file FILE [--http-port N] [--native-port N]

Clients work with it unchanged. Differences from a ClickHouse server:

- INSERT is always synchronous. ``async_insert`` and ``wait_for_async_insert`` are passed to the engine without effect.
  With either value, an INSERT with data answers when its rows are in the table, and nothing is batched.
- All users are the engine's one user. The gateway checks names and passwords, but there are no rights or quotas. A
  query may read with ``file()`` every file that the process may read.
- The engine gives queries its own ids: the answer has the client's ``query_id``, the system tables do not.
  A streamed query's text ends with a comment in ``system.processes``, which identifies it to stop it.
- If a client closes its sending side, the gateway stops its running SELECT, even one that has sent nothing yet. A
  server runs that SELECT to its end.
- Results stream in bounded memory, a few of the engine's blocks (65,409 rows each). Parquet holds several row groups of
  ``output_format_parquet_row_group_size`` rows. Results of statements other than SELECT (SHOW, DESCRIBE, EXPLAIN) are
  held in memory.
- remote() of another engine can read and write here. Its scalars are ignored, so a query that needs one fails.
- Native protocol revision 54429. Types without a layout known here (JSON, Dynamic, Variant, AggregateFunction) cannot
  be inserted as native blocks, nor columns with EPHEMERAL values. External tables are refused (code 48), also over
  HTTP. No column is sent as sparse, so clickhouse-driver's numpy columns keep their size (a server's become 64 bits).
- Encodings of HTTP bodies are zstd, lz4, gzip and deflate. There is no br, xz, bz2 or snappy, no TLS, no HTTP/2, no
  roles, no ``X-ClickHouse-Progress``, no pages (``/play``, ``/dashboard``) and no OPTIONS. A truncated zstd or lz4 body
  is refused; a server uses what it could decompress.
- Compressed frames are read in NONE, LZ4 and ZSTD. Other codecs are unknown (432); a server tries to decompress them.
- ``X-ClickHouse-Summary`` of a result has the bytes sent (with ``wait_end_of_query``, otherwise 0) and the time.
  A server also counts the data read, and the bytes in memory.
- In a session with an id, a query's ``readonly`` setting stays until the session ends. Such a session can create, fill
  (with data) and drop temporary tables by GET. Every other change is refused, without looking for its table.
- ``INSERT ... FROM INFILE`` is refused (code 78); a server reads a local file.
"""

"""The ClickHouse engine from the chdb wheel, behind ClickHouse's own HTTP and native TCP protocols.

    python -m harness.systems.clickhouse.gateway --path DIR --users-file FILE [--http-port N] [--native-port N]

Clients work with it unchanged. ``tests/systems/clickhouse/gateway/test_gateway_differences.py`` shows each difference
from a ClickHouse server (the list is made of its docstrings):

- INSERT is always synchronous. ``async_insert`` and ``wait_for_async_insert`` are passed to the engine without effect.
  With either value, an INSERT with data answers when its rows are in the table, and nothing is batched.
- All users are the engine's one user. The gateway checks names and passwords, but there are no rights, and no other
  users, roles, policies or quotas. CREATE of these fails with code 514 (ACCESS_STORAGE_FOR_INSERTION_NOT_FOUND), ALTER,
  DROP, GRANT and REVOKE with code 495 (ACCESS_STORAGE_READONLY).
- A query may read with ``file()`` every file that the process may read.
- The engine gives queries its own ids. The answer has the client's ``query_id``, the system tables do not. A streamed
  query's text ends with a comment in ``system.processes``, which identifies it to stop it.
- If a client closes its sending side, the gateway stops its running SELECT, even one that has sent nothing yet. A
  server runs that SELECT to its end.
- Results stream in bounded memory, a few of the engine's blocks (65,409 rows each). Results of statements other than
  SELECT (SHOW, DESCRIBE, EXPLAIN) are held in memory.
- A result's first bytes wait until it has 1 MiB or ends, at most 0.2 s. Errors before then have their own status; a
  server may have sent 200 already.
- ``http_write_exception_in_output_format`` works as a parameter of the URL, and for line formats only after the first
  row.
- If a query fails, the engine drops up to two blocks that it has not sent, so the error comes sooner. Over HTTP, a
  server sends them first.
- Scalars that remote() of another engine sends are ignored, so a query that needs one fails.
- The native protocol ends at revision 54479. The gateway reads sparse columns and sends none. Of the packets of a
  server, Log and TableColumns are never sent, and ProfileEvents is always empty.
- ProfileInfo has no count of the rows before LIMIT or before aggregation.
- A query with totals or extremes runs a second time over the native protocol, because only text formats have them.
- A native block cannot be inserted if it has a type without a layout known here (AggregateFunction, flattened Dynamic).
- External tables are refused (code 48) with inline data of a native query's own text.
- Encodings of HTTP bodies are zstd, lz4, gzip and deflate. There is no br, xz, bz2 or snappy.
- A truncated zstd or lz4 body is refused; a server uses what it could decompress.
- There is no TLS, no HTTP/2, no page (``/play``, ``/dashboard``) and no OPTIONS.
- Compressed frames are read in NONE, LZ4 and ZSTD. Other codecs are unknown (432); a server tries to decompress them.
- ``X-ClickHouse-Summary`` has no ``memory_usage``, and ``X-ClickHouse-Progress`` comes once, with the head.
- In a session with an id, a query's ``readonly`` setting stays until the session ends. Such a session can create, fill
  (with data) and drop temporary tables by GET. Every other change is refused, without looking for its table.
- ``INSERT ... FROM INFILE`` is refused (code 78); a server reads a local file.
- The engine keeps no ``system.query_log``, and no definitions of system tables (SHOW CREATE): code 60.
"""

"""Transports that scan Parquet files: three columns of lineitem, TPC-H query 6's filter, a count of rows."""

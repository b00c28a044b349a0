"""Transports to scan Parquet files: three columns of lineitem, the filter of TPC-H query 6, and the rows left."""

"""Transports to turn a tree of CSV files into one Parquet file, on local disk and in an S3 server."""

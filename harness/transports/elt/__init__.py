"""Transports that turn a tree of CSV files into one Parquet file, on local disk and on an S3 server."""

"""Jobs of DuckDB and of S3 clients under settings that are worth a look on larger machines."""

"""DuckDB and S3 client jobs under settings that matter on larger machines."""

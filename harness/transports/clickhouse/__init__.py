"""Ways into and out of ClickHouse."""

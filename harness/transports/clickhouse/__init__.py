"""Transports into and out of ClickHouse."""

"""Transports into and out of Postgres."""

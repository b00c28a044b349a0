"""ADBC, Arrow's own database driver: https://arrow.apache.org/adbc/current/driver/postgresql.html"""

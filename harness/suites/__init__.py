"""Suites are data: the checked content of suites/*.toml."""

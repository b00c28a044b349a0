"""Suites are data: what stands in suites/*.toml, checked."""

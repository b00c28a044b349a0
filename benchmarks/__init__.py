"""Benchmarks of the harness itself: what it adds to a run, how fast the lab starts, how fast data are made."""

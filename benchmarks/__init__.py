"""Benchmarks of the harness itself: its overhead in a run, and how fast the lab starts and makes data."""

"""Somebody's own data: a file or a query becomes a dataset that lives as long as a run."""

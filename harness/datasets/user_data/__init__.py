"""A user's own data: a file or a query becomes a dataset for the duration of a run."""

"""A run of a suite, from its plan to its rows: the parent of all workers."""

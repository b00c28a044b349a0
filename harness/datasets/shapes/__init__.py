"""Shapes of data: one dataset a shape, each about what some clients suffer from and others do not.

Values are seeded and ordinary. Tables of them have no key, and types as `harness.datasets.specification.Column` says.
How many bytes a row takes as Arrow stands at each, so that an experiment can give all of them the same bytes a frame.
"""

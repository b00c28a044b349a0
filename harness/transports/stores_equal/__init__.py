"""Stores under one protocol for all, so that only the stores differ.

Each store starts from the same Arrow table and returns an Arrow table. The time includes opening or creating the store.
When a create returns, its data are on disk. Each store keeps its default guarantees, and every create ends with an
fsync of its files and their folders. That fsync takes no time if the store has already done it. On macOS fsync passes
the data to the drive, whose cache may still hold them.
"""

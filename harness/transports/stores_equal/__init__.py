"""Stores under one protocol for all, so that only the stores differ.

Each starts from the same Arrow table and hands back an Arrow table; the clock covers opening or making the store; and
when a create returns, its data are on disk: each store's own guarantees are at their defaults, and every create ends
with an fsync of all files it made and of their folders, which costs nothing where the store has done it before.
On macOS fsync hands the data to the drive, whose own cache may still hold them.
"""

"""This machine: its facts, page cache, scratch folders, and the signals with which a user stops a run."""

"""This machine: its facts, page cache, scratch folders, and the signals by which a person stops what runs on it."""

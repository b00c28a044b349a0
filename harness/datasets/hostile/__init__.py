"""`hostile`: small tables of values that break transports of dataframes, one table for each kind of value.

`kinds.KINDS` are the kinds by name: these names stand in the `lossy` of transports, in the tables of `lab verify` and
in the docs. What a database has of its own about them stands in its room (`harness/systems/<system>/hostile.py`).
"""

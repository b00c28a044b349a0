"""`hostile`: small tables of values that break transports of dataframes, one table for each kind of value.

`kinds.KINDS` are the kinds by name. These names appear in the `lossy` of transports, in the tables of `lab verify` and
in the docs. Each database's particulars of the kinds are in its package (`harness/systems/<system>/hostile.py`).
"""

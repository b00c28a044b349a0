"""`hostile`: small tables of values that break ways of moving dataframes, one table for each kind of value.

`kinds.KINDS` are the kinds by name: these names stand in the `lossy` of transports, in the tables of `lab verify` and
in the docs. `tables` gives a kind's rows in a system, and the table they go into.
"""

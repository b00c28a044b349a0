"""The rigs that a suite's transports run on, for the parent of all runs: one module per rig, named by the suite.

A rig prepares everything before the first run (and refuses impossible cases), prepares each run, verifies its result,
and cleans up.
"""

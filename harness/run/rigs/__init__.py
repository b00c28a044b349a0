"""What the transports of a suite run on, for the parent of all runs: one module a rig, named by the suite.

A rig gets everything ready before the first run (and refuses what cannot be done), prepares each run, verifies what
came out of it, and leaves nothing behind.
"""

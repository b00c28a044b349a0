"""How the worker calls the transports of each rig: one module a rig, of the rig's name.

Each has `calls(entry, job)`, which makes ready what a transport is called with, outside the clock, and
`hand_over(entry, returned, job)`, which leaves what it returned where the parent can verify it.
"""

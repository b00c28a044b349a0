"""How the worker calls the transports of each rig: one module a rig, of the rig's name, with its job and its answer.

What each offers says `harness.worker.contracts.contract`.
"""

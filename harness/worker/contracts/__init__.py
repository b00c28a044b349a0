"""How the worker calls each rig's transports: one module per rig, with the rig's name, its job and its answer.

`harness.worker.contracts.calls` defines the functions of each module.
"""

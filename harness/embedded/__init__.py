"""The lab without Docker: start, guard and remove services from wheels, which the database packages define.

`service.py` describes a service. `keeper.py` is the small process that guards it, and how the lab starts and stops it.
"""

"""The lab without Docker: how a service from a wheel is started, guarded and removed; which there are the rooms say.

`service.py` is what has to be known of a service, `keeper.py` the small process that guards each of them, `folders.py`
keeps and clears their files.
"""

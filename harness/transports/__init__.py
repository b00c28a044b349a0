"""The catalogue: one folder a system, one module or folder a client, one function a transport.

What several modules say to the letter stands in a sibling that has no transport: `client.py` in a client's folder for
that client, modules named after what they have in a system's folder for its clients, and here for one client whatever
the system. `lab show` prints what a transport uses of them.
"""

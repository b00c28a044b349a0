"""The catalogue: one folder per system, one module or folder per client, one function per transport.

Code that several modules share is in a sibling module without transports. `client.py` in a client's folder serves that
client. Modules in a system's folder serve all its clients. Modules in this folder serve clients of several systems.
`lab show` prints the shared code that a transport uses.
"""

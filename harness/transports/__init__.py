"""The catalogue: one folder a system, one module a client, one function a way to move a dataframe."""

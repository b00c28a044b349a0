"""Lower bounds of the machine: the time to move a frame's bytes."""

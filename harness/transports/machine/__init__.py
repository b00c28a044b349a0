"""What the machine itself can do with the bytes of a frame."""

"""The child process: prepare one transport call, time it and hand over its result."""

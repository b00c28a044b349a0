"""The child: one call of a transport, made ready, timed and handed over."""

"""`lab recommend`: the fastest exact way to move one frame, found by a race and said on one screen."""

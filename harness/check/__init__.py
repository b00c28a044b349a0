"""The pure checks: canonical frames, comparison of every value, row sums, and stores read back."""

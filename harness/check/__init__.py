"""What is compared, pure: canonical frames, the comparison of every value, sums of rows, and stores read back."""

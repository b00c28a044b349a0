"""A run's folder, which runs write and reports read: its rows, its environment, its traces."""

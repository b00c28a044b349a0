"""A run's folder, where whoever runs and whoever reports meet: its rows, its environment, its traces."""

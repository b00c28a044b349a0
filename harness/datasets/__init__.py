"""Datasets: a name becomes seeded data, kept as Parquet with a manifest."""

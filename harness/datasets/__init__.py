"""Datasets: a name becomes seeded data, stored as Parquet with a manifest."""

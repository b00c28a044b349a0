"""Daft, a Rust dataframe library for one process or Ray, with Postgres: https://docs.daft.ai/en/stable/"""

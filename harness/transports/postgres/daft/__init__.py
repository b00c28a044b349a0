"""Daft, a dataframe library in Rust for one process or Ray, with Postgres: https://docs.daft.ai/en/stable/"""

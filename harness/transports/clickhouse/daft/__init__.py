"""Daft, a dataframe library in Rust for one process or Ray, with ClickHouse: https://docs.daft.ai/en/stable/"""

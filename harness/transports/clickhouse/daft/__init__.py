"""Daft, a Rust dataframe library for one process or Ray, with ClickHouse: https://docs.daft.ai/en/stable/"""

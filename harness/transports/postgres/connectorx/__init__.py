"""connectorx, a reader in Rust that fills columns without Python objects: https://sfu-db.github.io/connector-x/"""

"""connectorx, a Rust reader that fills columns without Python objects: https://sfu-db.github.io/connector-x/"""

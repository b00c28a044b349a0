"""The servers that transports run against: the lab (embedded, Compose or named), object stores, tables."""

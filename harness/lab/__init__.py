"""What transports run against: the lab (embedded, Compose or named servers), object stores, tables, what is there."""

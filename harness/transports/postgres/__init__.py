"""Ways into and out of Postgres."""

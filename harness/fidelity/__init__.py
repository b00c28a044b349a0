"""How kinds of hostile values fare with every transport: the pairs of `lab verify`, tried and judged."""

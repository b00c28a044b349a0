"""The fate of hostile kinds of values with every transport: the pairs of `lab verify`, tried and judged."""

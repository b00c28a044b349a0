"""The dataframe IO lab: every way to move a dataframe, measured on your machine."""

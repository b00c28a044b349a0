"""The dataframe IO lab: every transport of a dataframe, measured on your machine."""

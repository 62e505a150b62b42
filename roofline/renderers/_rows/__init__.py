"""Choose the rows of a table and their order, and sum the others."""

"""What is told below a table, in words: one file for each thing."""

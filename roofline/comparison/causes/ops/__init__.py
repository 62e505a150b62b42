"""What one run does and the other does not: other ops, more of them, or the same ones in another form."""

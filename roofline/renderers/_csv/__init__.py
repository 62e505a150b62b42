"""Write comma-separated values: cells that are text and numbers everywhere, and the file of them."""
